"""Fitting: generated workflows cut down to a cluster whose nodes are too small for them.

A family draws its requests without knowing the cluster. Where no node could hold a task, it asks
for less and, with fewer GPUs, cores or workers, runs longer in proportion, so that the work stays
what it was. Files are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from dagsail.domain.units import CPU, GPU

if TYPE_CHECKING:
    from dagsail.domain.cluster import Cluster, Node
    from dagsail.domain.workflow import Task, Workflow

_WORK_RESOURCES: Final = (GPU, CPU)
"""Whose amount sets how long a task takes, the first that it asks for; memory costs no time."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """What a task asks for on this cluster.

    Attributes:
        request: of each worker.
        num_workers: at most as many as fit at once.
        stretch: run time over the run time of the task as generated.
    """

    request: Mapping[str, int]
    num_workers: int
    stretch: float


def fitted(workflows: Iterable[Workflow], cluster: Cluster) -> list[Workflow]:
    """The workflows, each task small enough for some node, each group for the cluster.

    A task that asks for a kind of resource that no node has is left as it is, and refused later.
    Deadlines are stretched as the critical path is; the path between tasks keeps its data.
    """
    cuts: dict[tuple[object, ...], _Cut | None] = {}
    return [_fit(workflow, cluster, cuts) for workflow in workflows]


def _fit(
    workflow: Workflow, cluster: Cluster, cuts: dict[tuple[object, ...], _Cut | None]
) -> Workflow:
    tasks = []
    for task in workflow.tasks:
        key = (*task.request.items(), task.num_workers)
        if key not in cuts:
            cuts[key] = _cut(task, cluster.nodes)
        cut = cuts[key]
        tasks.append(task if cut is None else _apply(task, cut))
    if all(new is old for new, old in zip(tasks, workflow.tasks, strict=True)):
        return workflow
    deadline_s = _stretched_deadline_s(workflow, tasks)
    return replace(workflow, tasks=tuple(tasks), deadline_s=deadline_s)


def _cut(task: Task, nodes: Sequence[Node]) -> _Cut | None:
    """What the task asks for instead; None if it fits as it is, or could not at any size."""
    wanted = {name: amount for name, amount in task.request.items() if amount > 0}
    able = [node for node in nodes if all(map(node.allocatable.get, wanted))]
    if not wanted or not able:
        return None

    def kept(node: Node) -> float:
        return min(node.allocatable[name] / amount for name, amount in wanted.items())

    roomiest = max(able, key=lambda node: min(1.0, kept(node)))
    request = {name: min(amount, roomiest.allocatable[name]) for name, amount in wanted.items()}
    at_once = sum(
        min(node.allocatable[name] // amount for name, amount in request.items()) for node in able
    )
    num_workers = min(task.num_workers, at_once)
    if request == wanted and num_workers == task.num_workers:
        return None
    stretch = task.num_workers / num_workers
    scale = next((name for name in _WORK_RESOURCES if name in request), None)
    if scale is not None:
        stretch *= wanted[scale] / request[scale]
    return _Cut(request, num_workers, stretch)


def _apply(task: Task, cut: _Cut) -> Task:
    return replace(
        task,
        request=cut.request,
        num_workers=cut.num_workers,
        runtime_s=task.runtime_s * cut.stretch,
        comm_bytes=task.comm_bytes if cut.num_workers > 1 else 0,
    )


def _stretched_deadline_s(workflow: Workflow, longer: Sequence[Task]) -> float | None:
    """The deadline times the new over the old critical path on a node of speed 1."""
    import numpy as np

    from dagsail.domain.graph import critical_path_s, graph_of

    if workflow.deadline_s is None:
        return None
    graph = graph_of(workflow)
    old_s, new_s = (
        critical_path_s(graph, np.array([task.runtime_s for task in tasks]))
        for tasks in (workflow.tasks, longer)
    )
    return workflow.deadline_s * new_s / old_s if old_s else workflow.deadline_s
