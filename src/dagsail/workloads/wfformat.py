"""Reads WfFormat, the JSON of WfCommons (schemas 0.1 to 1.6): recorded runs of real workflows.

Two layouts exist. From 1.5 on `workflow.specification` holds tasks and files, and
`workflow.execution` what was measured, joined by task id. Before, each entry of `workflow.tasks`
(`jobs` up to 1.2) holds everything, names its relatives by *name*, and lists its files with their
sizes. Fields carry their unit: seconds, bytes, percent of a core (`avgCPU`); only `memory` of the
old layout is in KB. Tasks are named as the 1.5 edition of the same run names them.

Source: https://github.com/wfcommons/WfFormat; Coleman et al., "WfCommons: A framework for enabling
scientific workflow research and development", FGCS 128 (2022).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, KIB, MAX_BYTES, MAX_TIME_S, MEMORY, MIB, format_bytes
from dagsail.domain.workflow import Dependency, Task, Workflow
from dagsail.files import parse_json
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Reading,
    Repairs,
    round_up_memory,
)

_VERSIONS: Final = ("0.1", "0.2", "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
_MAX_CORES: Final = 1e6
_MAX_NAME_LENGTH: Final = 4096
_KB: Final = 1000
"""The factor with which WfCommons itself turned `memory` into the `memoryInBytes` of 1.4."""
_FEWEST_BYTES_PER_CORE: Final = 128 * MIB
"""A machine with less memory than that a core is described in KiB, whatever its field is named."""

_FAMILIES: Final = {
    "1000genome": "1000genome",
    "blast": "blast",
    "bwa": "bwa",
    "cycles": "cycles",
    "epigenomics": "epigenomics",
    "genome-dax": "epigenomics",
    "helloworld": "helloworld",
    "montage": "montage",
    "seismology": "seismology",
    "soykb": "soykb",
    "srasearch": "srasearch",
}
"""What a name contains, and the application that it gives away."""

_HEAD: Final = re.compile(
    r'\s*\{(?=.*?("schemaVersion"\s*:\s*"[01]\.\d+"|"workflow"\s*:\s*\{))(?!.*?"apiVersion")', re.S
)
_INSTANCE: Final = re.compile(r"(_(ID)?\d+)+$")
_DOUBLED: Final = re.compile(r"(.+?)_\1(_|$)")
"""Early Pegasus wrote the transformation twice: `mapMerge_mapMerge_3_TAQ2`."""


def looks_like(text_head: str) -> bool:
    """Whether a text that begins so (about 4096 characters) is WfFormat."""
    return _HEAD.match(text_head) is not None


def read(text: str, source: str) -> Reading:
    """The one workflow of a WfFormat document.

    Args:
        text: the whole document.
        source: file name, for messages; its stem is the id of a workflow without a name.

    Raises:
        FormatError: if it is not JSON, not WfFormat, or holds a value of the wrong kind.
        WorkflowError: if tasks and dependencies do not form a DAG.
    """
    root = _Object.of(parse_json(text, source), "", source)
    if "workflow" not in root.fields:
        raise FormatError(f"{source}: not WfFormat: the document has no 'workflow'")
    workflow = root.child("workflow")
    repairs = Repairs(source)
    if (version := root.fields.get("schemaVersion")) not in _VERSIONS:
        repairs.note(f"schemaVersion {reprlib.repr(version)} is unknown; read by its layout")
    system = root.child("runtimeSystem" if "runtimeSystem" in root.fields else "wms").text("name")
    is_nextflow = system.lower() == "nextflow"
    files = _Files(repairs)
    if "specification" in workflow.fields:
        jobs = _read_specification(workflow, files, repairs)
    else:
        jobs = _read_flat(workflow, files, is_nextflow, repairs)
    files.finish(jobs)
    dependencies = _dependencies(jobs, files, repairs)
    memory_unit = _memory_unit(workflow, repairs)
    stem = Path(source.removesuffix(".gz")).stem
    name = root.text("name")
    try:
        result = Workflow(
            id=name or stem,
            tasks=tuple(_task(job, files, memory_unit, is_nextflow, repairs) for job in jobs),
            dependencies=dependencies,
            family=name.lower() if is_nextflow else _family(f"{name} {stem}".lower()),
        )
    except WorkflowError as error:
        raise WorkflowError(f"{source}: {error}") from None
    return Reading((result,), repairs.warnings())


def _family(names: str) -> str:
    return next((family for part, family in _FAMILIES.items() if part in names), "")


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object and its place in the file, so that every fault can be named."""

    fields: Mapping[str, Any]
    path: str
    source: str

    @classmethod
    def of(cls, value: object, path: str, source: str) -> _Object:
        if not isinstance(value, dict):
            place = path or "the document"
            raise FormatError(f"{source}: {place} is {_shown(value)}; an object is expected")
        return cls(value, path, source)

    def child(self, key: str) -> _Object:
        """The object under that key, empty where there is none."""
        value = self.fields.get(key)
        return self.of({} if value is None else value, self._place(key), self.source)

    def objects(self, key: str) -> list[_Object]:
        place = self._place(key)
        return [
            self.of(value, f"{place}[{index}]", self.source)
            for index, value in enumerate(self._list(key))
        ]

    def texts(self, key: str) -> list[str]:
        return [self._checked(f"{key}[{i}]", value) for i, value in enumerate(self._list(key))]

    def text(self, key: str, *, required: bool = False) -> str:
        value = self.fields.get(key)
        return "" if value in (None, "") and not required else self._checked(key, value)

    def number(self, largest: float, *keys: str) -> float | None:
        """The first of these fields that is there and not null."""
        for key in keys:
            value = self.fields.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.fault(key, value, "a number is expected")
            if not 0 <= value <= largest:
                raise self.fault(key, value, f"0 to {largest:g} is allowed, check the unit")
            return value
        return None

    def fault(self, key: str, value: object, expected: str) -> FormatError:
        name = self.fields.get("id") or self.fields.get("name")
        label = f" of {reprlib.repr(name)}" if isinstance(name, str) else ""
        return FormatError(
            f"{self.source}: {self._place(key)}{label} is {_shown(value)}; {expected}"
        )

    def _checked(self, key: str, value: object) -> str:
        if isinstance(value, str) and value.isprintable() and 0 < len(value) <= _MAX_NAME_LENGTH:
            return value
        raise self.fault(key, value, "one line of text is expected")

    def _list(self, key: str) -> list[Any]:
        value = self.fields.get(key)
        if value is not None and not isinstance(value, list):
            raise self.fault(key, value, "a list is expected")
        return value or []

    def _place(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return "missing" if value is None else reprlib.repr(value)


@dataclass(frozen=True, slots=True)
class _Job:
    """A task before its relatives are known."""

    id: str
    spec: _Object
    """Where name, parents and children stand."""
    run: _Object
    """Where measured values stand."""
    reads: dict[str, None]
    writes: dict[str, None]
    """Names of files, in the order of the source."""


class _Files:
    """Sizes and producers of all files of a workflow."""

    def __init__(self, repairs: Repairs) -> None:
        self.sizes: dict[str, int] = {}
        self.producers: dict[str, list[str]] = {}
        self._repairs = repairs

    def add(self, name: str, entry: _Object) -> None:
        number = entry.number(MAX_BYTES, "sizeInBytes", "size")
        if number is None:
            return
        size = math.ceil(number)
        if self.sizes.setdefault(name, size) != size:
            self._repairs.note("file with different sizes, the largest is used", name)
            self.sizes[name] = max(self.sizes[name], size)

    def finish(self, jobs: Iterable[_Job]) -> None:
        """Learn who writes what, once all sizes are known."""
        for job in jobs:
            for name in job.reads | job.writes:
                if name not in self.sizes:
                    self._repairs.note("file without a size, 0 bytes assumed", name)
                    self.sizes[name] = 0
            for name in job.writes:
                self.producers.setdefault(name, []).append(job.id)

    def total(self, names: Iterable[str]) -> int:
        return sum(self.sizes[name] for name in names)

    def is_external(self, name: str, reader: str) -> bool:
        """Whether no task but the reader itself (updating in place) writes the file."""
        return all(producer == reader for producer in self.producers.get(name, ()))


def _read_specification(workflow: _Object, files: _Files, repairs: Repairs) -> list[_Job]:
    """Tasks of 1.5 and later."""
    specification = workflow.child("specification")
    for entry in specification.objects("files"):
        files.add(entry.text("id", required=True), entry)
    runs: dict[str, _Object] = {}
    for run in workflow.child("execution").objects("tasks"):
        if runs.setdefault(run.text("id", required=True), run) is not run:
            raise run.fault("id", run.fields["id"], "an earlier entry has the same id")
    jobs = []
    for spec in specification.objects("tasks"):
        name = spec.text("id", required=True)
        reads = _unique(spec.texts("inputFiles"), "file", name, repairs)
        writes = _unique(spec.texts("outputFiles"), "file", name, repairs)
        run = runs.pop(name) if name in runs else _Object({}, spec.path, spec.source)
        jobs.append(_Job(name, spec, run, reads, writes))
    for run in runs.values():
        raise run.fault("id", run.fields["id"], "no task of the specification has that id")
    return jobs


def _read_flat(workflow: _Object, files: _Files, is_nextflow: bool, repairs: Repairs) -> list[_Job]:
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
        reads, writes = (_unique(names, "file", name, repairs) for names in used.values())
        jobs.append(_Job(name or number, task, task, reads, writes))
        if task.text("type") == "auxiliary":
            repairs.note("auxiliary job (staging, clean-up) kept as a task", name)
    return jobs


def _unique(names: list[str], what: str, task: str, repairs: Repairs) -> dict[str, None]:
    unique = dict.fromkeys(names)
    if len(unique) < len(names):
        repairs.note(f"task that lists a {what} twice, merged", task)
    return unique


def _dependencies(jobs: list[_Job], files: _Files, repairs: Repairs) -> tuple[Dependency, ...]:
    by_parents = {(name, job.id): None for job, name in _relatives(jobs, "parents", repairs)}
    by_children = {(job.id, name): None for job, name in _relatives(jobs, "children", repairs)}
    pairs = by_parents | by_children
    if all(any(key in job.spec.fields for job in jobs) for key in ("parents", "children")):
        for parent, child in pairs:
            if ((parent, child) in by_parents) != ((parent, child) in by_children):
                what = "dependency that only one of its two tasks lists, kept"
                repairs.note(what, f"{parent} -> {child}")
    if not pairs:
        for job in jobs:
            writers = (writer for name in job.reads for writer in files.producers.get(name, ()))
            pairs |= {(writer, job.id): None for writer in writers if writer != job.id}
        if pairs:
            repairs.note("no task lists parents or children; dependencies follow from the files")
    by_id = {job.id: job for job in jobs}
    return tuple(
        Dependency(
            parent, child, files.total(by_id[parent].writes.keys() & by_id[child].reads.keys())
        )
        for parent, child in pairs
    )


def _relatives(jobs: list[_Job], key: str, repairs: Repairs) -> Iterator[tuple[_Job, str]]:
    """Each task with the id of each of its parents or children."""
    ids = {job.id: job.id for job in jobs}
    for field in ("name", "id"):
        count = Counter(job.spec.text(field) for job in jobs)
        for job in jobs:
            if count[name := job.spec.text(field)] == 1:
                ids.setdefault(name, job.id)
    for job in jobs:
        for name in _unique(job.spec.texts(key), "relative", job.id, repairs):
            if name not in ids:
                role = "parent" if key == "parents" else "child"
                raise WorkflowError(
                    f"{job.spec.source}: task '{job.id}' names an unknown {role} '{name}';"
                    " allowed are ids, and names that only one task has"
                )
            yield job, ids[name]


def _memory_unit(workflow: _Object, repairs: Repairs) -> int:
    """Bytes in one unit of `memoryInBytes`."""
    place = workflow.child("execution") if "execution" in workflow.fields else workflow
    for machine in place.objects("machines"):
        memory = machine.number(MAX_BYTES, "memoryInBytes")
        if memory:
            cores = machine.child("cpu").number(_MAX_CORES, "coreCount", "count") or 1
            if memory < cores * _FEWEST_BYTES_PER_CORE:
                what = f"machine with {format_bytes(memory)}; memory is taken for KiB"
                repairs.note(what, machine.text("nodeName"))
                return KIB
    return 1


def _task(job: _Job, files: _Files, memory_unit: int, is_nextflow: bool, repairs: Repairs) -> Task:
    runtime_s = job.run.number(MAX_TIME_S, "runtimeInSeconds", "runtime")
    if runtime_s is None:
        repairs.note(f"task without a run time, {DEFAULT_RUNTIME_S:g} s assumed", job.id)
        runtime_s = DEFAULT_RUNTIME_S
    elif runtime_s == 0:
        repairs.note("task with a recorded run time of 0 s, kept", job.id)
    return Task(
        id=job.id,
        runtime_s=float(runtime_s),
        kind=_kind(job, is_nextflow),
        request={
            CPU: _cpu_millicores(job, repairs),
            MEMORY: _memory_bytes(job, memory_unit, repairs),
        },
        input_bytes=files.total(name for name in job.reads if files.is_external(name, job.id)),
        output_bytes=files.total(job.writes),
    )


def _kind(job: _Job, is_nextflow: bool) -> str:
    name = job.spec.text("name") or job.id
    if is_nextflow:
        # The program is the first word of a shell script (`mkdir`, `[`); the process says more.
        return name.rpartition(".")[2]
    if program := job.run.child("command").text("program"):
        return program
    doubled = _DOUBLED.match(name)
    return doubled[1] if doubled else _INSTANCE.sub("", name)


def _cpu_millicores(job: _Job, repairs: Repairs) -> int:
    cores = job.run.number(_MAX_CORES, "coreCount", "cores")
    if cores:
        return math.ceil(1000 * cores)
    percent = job.run.number(100 * _MAX_CORES, "avgCPU")
    if percent is None:
        repairs.note(f"task without cores, {DEFAULT_CPU_MILLICORES} millicores assumed", job.id)
        return DEFAULT_CPU_MILLICORES
    repairs.note("task without cores, its mean CPU use rounded up to whole cores", job.id)
    return 1000 * max(math.ceil(percent / 100), 1)


def _memory_bytes(job: _Job, memory_unit: int, repairs: Repairs) -> int:
    amount = (job.run.number(MAX_BYTES, "memoryInBytes") or 0) * memory_unit
    amount = amount or (job.run.number(MAX_BYTES / _KB, "memory") or 0) * _KB
    if amount:
        return round_up_memory(math.ceil(amount))
    repairs.note(f"task without memory, {format_bytes(DEFAULT_MEMORY_BYTES)} assumed", job.id)
    return DEFAULT_MEMORY_BYTES
