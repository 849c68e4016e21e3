"""Offered load: how hard a stream of workflows presses on a cluster.

Load is offered work over capacity: of every resource, what an average workflow holds of it for
how long, times workflows per second, over the cluster's allocatable total. The resource with the
highest load dominates and sets the rate. Above 1 the queue grows without bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TypeAlias

from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.errors import ScenarioError
from dagsail.domain.placement import Placement
from dagsail.domain.units import GPU, GPU_MILLI
from dagsail.domain.workflow import Task, Workflow

_NodeDemand: TypeAlias = tuple[tuple[tuple[str, int], ...], Placement]


def rate_for_load(pool: Sequence[Workflow], cluster: Cluster, load: float) -> tuple[float, str]:
    """Workflows per second that offer `load` on the dominating resource, and that resource.

    Raises:
        ScenarioError: if the workflows need nothing for any time, so that no rate is enough.
    """
    busy_s = busy_seconds(pool, cluster)
    dominating = max(busy_s, key=lambda resource: busy_s[resource])
    if busy_s[dominating] <= 0:
        raise ScenarioError(
            "arrivals: the workflows have no runtime or request no resource of the cluster,"
            " so a load cannot set their rate; use arrivals together or recorded"
        )
    return load / busy_s[dominating], dominating


def busy_seconds(pool: Iterable[Workflow], cluster: Cluster) -> dict[str, float]:
    """For how long an average workflow of the pool would fill each resource of the cluster.

    Resources that no node has are left out. A task counts with its request times its workers
    times its mean runtime over the nodes that it may run on.

    Returns:
        Seconds by resource, in the order of `cluster.resources`.
    """
    capacity = {
        resource: sum(node.allocatable.get(resource, 0) for node in cluster.nodes)
        for resource in cluster.resources
    }
    held = dict.fromkeys(capacity, 0.0)
    runtimes = _MeanRuntimes(cluster)
    num_workflows = 0
    for workflow in pool:
        num_workflows += 1
        for task in workflow.tasks:
            seconds = runtimes.mean_s(task) * task.num_workers
            for resource, amount in task.request.items():
                if resource in held:
                    held[resource] += amount * seconds
    return {
        resource: held[resource] / total / num_workflows
        for resource, total in capacity.items()
        if total and num_workflows
    }


class _MeanRuntimes:
    """Mean runtimes over nodes; nodes for one request and placement are looked up once."""

    def __init__(self, cluster: Cluster) -> None:
        self._all_nodes = cluster.nodes
        self._nodes: dict[_NodeDemand, Sequence[Node]] = {}
        self._slowness: dict[tuple[_NodeDemand, str], float] = {}

    def mean_s(self, task: Task) -> float:
        """Mean runtime over the nodes that the task may run on; over all nodes if on none."""
        demand = (tuple(sorted(task.request.items())), task.placement)
        if demand not in self._nodes:
            fitting = [node for node in self._all_nodes if _may_run(task, node)]
            self._nodes[demand] = fitting or self._all_nodes
        nodes = self._nodes[demand]
        uses_gpu = bool(task.request.get(GPU, 0) or task.request.get(GPU_MILLI, 0))
        if task.runtime_s_by_node_type:
            return fmean(
                task.runtime_s_by_node_type.get(
                    node.type, task.runtime_s / node.speed_for(task.kind, uses_gpu=uses_gpu)
                )
                for node in nodes
            )
        key = (demand, task.kind)
        if key not in self._slowness:
            self._slowness[key] = fmean(
                1 / node.speed_for(task.kind, uses_gpu=uses_gpu) for node in nodes
            )
        return task.runtime_s * self._slowness[key]


def _may_run(task: Task, node: Node) -> bool:
    """Whether one worker fits the empty node and its labels; taints count as tolerated."""
    placement = task.placement
    return (
        all(amount <= node.allocatable.get(r, 0) for r, amount in task.request.items())
        and all(node.labels.get(label) == value for label, value in placement.node_selector)
        and (not placement.gpu_models or node.gpu_model in placement.gpu_models)
        and (
            not placement.required
            or any(term.matches(node.labels, node.name) for term in placement.required)
        )
    )
