"""Fitting: generated workflows cut down to a cluster whose nodes are too small for them.

A family draws its requests without knowing the cluster. Where no node could hold a task, it asks
for less and runs longer in proportion, so that the work stays what it was. Files are never changed.
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
"""Whose amount sets how long a task takes, the first that it asks for; memory does not."""


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
    longer = replace(workflow, tasks=tuple(tasks))
    return replace(longer, deadline_s=_stretched_deadline(workflow, longer))


def _cut(task: Task, nodes: Sequence[Node]) -> _Cut | None:
    """What the task asks for instead; None if it fits as it is, or could not at any size."""
    able = [node for node in nodes if all(map(node.allocatable.get, task.request))]
    if not able:
        return None

    def kept(node: Node) -> float:
        shares = [node.allocatable[name] / amount for name, amount in task.request.items()]
        return min(1.0, *shares)

    roomiest = max(able, key=kept)
    request = {
        name: min(amount, roomiest.allocatable[name]) for name, amount in task.request.items()
    }
    at_once = sum(
        min(node.allocatable[name] // amount for name, amount in request.items()) for node in able
    )
    num_workers = min(task.num_workers, at_once)
    if request == task.request and num_workers == task.num_workers:
        return None
    scale = next((name for name in _WORK_RESOURCES if name in request), None)
    stretch = task.num_workers / num_workers
    if scale is not None:
        stretch *= task.request[scale] / request[scale]
    return _Cut(request, num_workers, stretch)


def _apply(task: Task, cut: _Cut) -> Task:
    return replace(
        task,
        request=cut.request,
        num_workers=cut.num_workers,
        runtime_s=task.runtime_s * cut.stretch,
        comm_bytes=task.comm_bytes if cut.num_workers > 1 else 0,
    )


def _stretched_deadline(before: Workflow, after: Workflow) -> float | None:
    import numpy as np

    from dagsail.domain.graph import critical_path_s, graph_of

    if before.deadline_s is None:
        return None
    graph = graph_of(before)
    old_s, new_s = (
        critical_path_s(graph, np.array([task.runtime_s for task in workflow.tasks]))
        for workflow in (before, after)
    )
    return before.deadline_s * new_s / old_s if old_s else before.deadline_s
