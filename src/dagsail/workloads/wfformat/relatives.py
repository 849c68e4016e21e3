"""Who waits for whom: stated by parents, by children, or only by the files they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dagsail.domain.errors import WorkflowError
from dagsail.domain.workflow import Dependency
from dagsail.workloads.reading import Repairs
from dagsail.workloads.wfformat.jobs import Files, Job, unique


def dependencies_of(jobs: list[Job], files: Files, repairs: Repairs) -> tuple[Dependency, ...]:
    """The edges, each with the bytes of the files that its parent writes and its child reads."""
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


def _relatives(jobs: list[Job], key: str, repairs: Repairs) -> Iterator[tuple[Job, str]]:
    """Each task with the id of each of its parents or children."""
    ids = {job.id: job.id for job in jobs}
    for field in ("name", "id"):
        count = Counter(job.spec.text(field) for job in jobs)
        for job in jobs:
            if count[name := job.spec.text(field)] == 1:
                ids.setdefault(name, job.id)
    for job in jobs:
        for name in unique(job.spec.texts(key), "relative", job.id, repairs):
            if name not in ids:
                role = "parent" if key == "parents" else "child"
                raise WorkflowError(
                    f"{job.spec.source}: task '{job.id}' names an unknown {role} '{name}';"
                    " allowed are ids, and names that only one task has"
                )
            yield job, ids[name]
