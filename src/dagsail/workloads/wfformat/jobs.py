"""The tasks and files of both layouts of WfFormat, before relatives are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dagsail.domain.units import MAX_BYTES
from dagsail.workloads.reading import Repairs
from dagsail.workloads.wfformat.objects import Object


@dataclass(frozen=True, slots=True)
class Job:
    """A task before its relatives are known."""

    id: str
    spec: Object
    """Where name, parents and children stand."""
    run: Object
    """Where measured values stand."""
    reads: dict[str, None]
    writes: dict[str, None]
    """Names of files, in the order of the source."""


class Files:
    """Sizes and producers of all files of a workflow."""

    def __init__(self, repairs: Repairs) -> None:
        self.sizes: dict[str, int] = {}
        self.producers: dict[str, list[str]] = {}
        self._repairs = repairs

    def add(self, name: str, entry: Object) -> None:
        """Note the size of a file, if the entry states one."""
        number = entry.number(MAX_BYTES, "sizeInBytes", "size")
        if number is None:
            return
        size = math.ceil(number)
        if self.sizes.setdefault(name, size) != size:
            self._repairs.note("file with different sizes, the largest is used", name)
            self.sizes[name] = max(self.sizes[name], size)

    def finish(self, jobs: Iterable[Job]) -> None:
        """Learn who writes what, once all sizes are known."""
        for job in jobs:
            for name in job.reads | job.writes:
                if name not in self.sizes:
                    self._repairs.note("file without a size, 0 bytes assumed", name)
                    self.sizes[name] = 0
            for name in job.writes:
                self.producers.setdefault(name, []).append(job.id)

    def total(self, names: Iterable[str]) -> int:
        """Bytes of these files together."""
        return sum(self.sizes[name] for name in names)

    def is_external(self, name: str, reader: str) -> bool:
        """Whether no task but the reader itself (updating in place) writes the file."""
        return all(producer == reader for producer in self.producers.get(name, ()))


def read_specification(workflow: Object, files: Files, repairs: Repairs) -> list[Job]:
    """Tasks of 1.5 and later."""
    specification = workflow.child("specification")
    for entry in specification.objects("files"):
        files.add(entry.text("id", required=True), entry)
    runs: dict[str, Object] = {}
    for run in workflow.child("execution").objects("tasks"):
        if runs.setdefault(run.text("id", required=True), run) is not run:
            raise run.fault("id", run.fields["id"], "an earlier entry has the same id")
    jobs = []
    for spec in specification.objects("tasks"):
        name = spec.text("id", required=True)
        reads = unique(spec.texts("inputFiles"), "file", name, repairs)
        writes = unique(spec.texts("outputFiles"), "file", name, repairs)
        run = runs.pop(name) if name in runs else Object({}, spec.path, spec.source)
        jobs.append(Job(name, spec, run, reads, writes))
    for run in runs.values():
        raise run.fault("id", run.fields["id"], "no task of the specification has that id")
    return jobs


def read_flat(workflow: Object, files: Files, is_nextflow: bool, repairs: Repairs) -> list[Job]:
    """Tasks of 1.4 and earlier."""
    tasks = workflow.objects("tasks" if "tasks" in workflow.fields else "jobs")
    count = Counter(task.text("name") for task in tasks)
    jobs = []
    for task in tasks:
        name, number = task.text("name"), task.text("id")
        if not name and not number:
            raise task.fault("name", None, "a name or an id is expected")
        if name and number and (is_nextflow or count[name] > 1):
            name = f"{name}_{number}"
        used: dict[str, list[str]] = {"input": [], "output": []}
        for entry in task.objects("files"):
            link = entry.text("link")
            if link not in used:
                raise entry.fault("link", link, "'input' or 'output' is expected")
            # Nextflow has many files of one name that differ by their folder.
            file = entry.text("path") + entry.text("name", required=True)
            used[link].append(file)
            files.add(file, entry)
        reads, writes = (unique(names, "file", name, repairs) for names in used.values())
        jobs.append(Job(name or number, task, task, reads, writes))
        if task.text("type") == "auxiliary":
            repairs.note("auxiliary job (staging, clean-up) kept as a task", name)
    return jobs


def unique(names: list[str], what: str, task: str, repairs: Repairs) -> dict[str, None]:
    """The names in order, each once."""
    unique = dict.fromkeys(names)
    if len(unique) < len(names):
        repairs.note(f"task that lists a {what} twice, merged", task)
    return unique
