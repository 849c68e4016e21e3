"""Turns named workflows and nodes into the arrays of a snapshot.

Workflows drawn several times from one source share their rows and graph computations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dagsail.domain import snapshot as arrays
from dagsail.domain.cluster import Cluster
from dagsail.domain.graph import (
    Graph,
    critical_path_s,
    downward_rank,
    graph_of,
    hops_to_exit,
    upward_rank,
)
from dagsail.domain.scenario import Scenario
from dagsail.domain.snapshot import Names, Snapshot
from dagsail.domain.units import GPU, GPU_MILLI
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.scheduling.cluster_arrays import ClusterArrays
from dagsail.scheduling.shapes import Shapes

_COMPUTED: Final = (
    *("shape", "runtime_row", "kind", "image", "estimate_s", "mean_s", "best_s"),
    *("start_deadline_s", "deadline_s", "priority"),
)
"""What `_task_row` works out for a task, in this order; then follow those it copies."""
_COPIED: Final = (
    *("num_workers", "is_critical", "comm_bytes", "input_bytes", "output_bytes"),
    *("io_demand", "memory_bandwidth_demand"),
)


class _Block(NamedTuple):
    """The rows of one workflow, with positions relative to its first task."""

    tasks: Any  # TASK (n,)
    graph: Graph
    work_s: float
    critical_path_s: float
    tenant: int


def assemble(
    arrivals: Sequence[Arrival], cluster: Cluster, scenario: Scenario
) -> tuple[Snapshot, Names]:
    """Build the arrays of a run: all workflows still absent, all nodes up and empty.

    Args:
        arrivals: sorted by time; workflow ids are unique.
        cluster: the nodes.
        scenario: for the effects that policies may know: transfers, start-up, quotas, spread.

    Raises:
        InfeasibleError: if a task fits on no node; names the resource and the best node.
    """
    return _Assembler(cluster, scenario).build(arrivals)


class _Assembler:
    """Collects distinct shapes, runtime rows, images, kinds and tenants while it reads tasks."""

    def __init__(self, cluster: Cluster, scenario: Scenario) -> None:
        self.scenario = scenario
        self.machines = ClusterArrays(cluster)
        self.shapes = Shapes(self.machines)
        self.mean_latency_s, self.mean_s_per_byte = (
            self.machines.mean_network() if scenario.transfers.enabled else (0.0, 0.0)
        )
        self.rows: dict[tuple[Any, ...], int] = {}
        self.row_values: list[list[float]] = []
        self.image_bytes: dict[str, float] = {}
        self.images: dict[str, int] = {}
        self.kinds: dict[str, int] = {}
        self.families: dict[str, int] = {}
        self.tenants: dict[str, int] = {}
        self.blocks: dict[tuple[int, int, int, int], _Block] = {}
        self.kept: list[Workflow] = []

    # One workflow -----------------------------------------------------------------------------

    def _block(self, workflow: Workflow) -> _Block:
        tenant = self.tenants.setdefault(workflow.tenant, len(self.tenants))
        quota = tenant if self.scenario.fairness.tenant_quota else -1
        key = (id(workflow.tasks), id(workflow.dependencies), quota, workflow.priority)
        if key not in self.blocks:
            self.kept.append(workflow)  # keeps the ids in `key` alive
            self.blocks[key] = self._new_block(workflow, tenant, quota)
        block = self.blocks[key]
        shapes, counts = np.unique(block.tasks["shape"], return_counts=True)
        for shape, count in zip(shapes.tolist(), counts.tolist(), strict=True):
            self.shapes.counts[shape] += count
        return block._replace(tenant=tenant)

    def _new_block(self, workflow: Workflow, tenant: int, quota: int) -> _Block:
        graph = graph_of(workflow)
        rows = [self._task_row(workflow, task, quota) for task in workflow.tasks]
        tasks = np.zeros(len(rows), arrays.TASK)
        columns = dict(zip(_COMPUTED + _COPIED, zip(*rows, strict=True), strict=True))
        best_s = np.array(columns.pop("best_s"))
        for name, values in columns.items():
            tasks[name] = values
        tasks["spread"] = self.scenario.runtimes.noise
        network = (self.mean_s_per_byte, self.mean_latency_s)
        tasks["upward_rank_s"] = upward_rank(graph, tasks["mean_s"], *network)
        tasks["downward_rank_s"] = downward_rank(graph, tasks["mean_s"], *network)
        tasks["hops_to_exit"] = hops_to_exit(graph)
        tasks["parents_left"] = np.diff(graph.parent_start)
        work_s = float((tasks["mean_s"] * tasks["num_workers"]).sum())
        return _Block(tasks, graph, work_s, critical_path_s(graph, best_s), tenant)

    def _task_row(self, workflow: Workflow, task: Task, quota: int) -> tuple[Any, ...]:
        shape = self.shapes.of(workflow, task, quota)
        row = self._runtime_row(task)
        estimate_s = 1.0 if task.runtime_s_by_node_type else task.runtime_s
        types = self.machines.node_types[self.shapes.eligible[shape]]
        factors = np.array(self.row_values[row])[types]
        return (
            shape,
            row,
            self.kinds.setdefault(task.kind, len(self.kinds)),
            self._image(task),
            estimate_s,
            estimate_s * factors.mean(),
            estimate_s * factors.min(),
            math.inf if task.start_deadline_s is None else task.start_deadline_s,
            math.inf if task.deadline_s is None else task.deadline_s,
            workflow.priority if task.priority is None else task.priority,
            *(getattr(task, name) for name in _COPIED),
        )

    def _image(self, task: Task) -> int:
        """Position of a task's image, whose size is the largest that any task states; -1: none."""
        if not task.image:
            return -1
        known = self.image_bytes.get(task.image, 0.0)
        self.image_bytes[task.image] = max(known, float(task.image_bytes))
        return self.images.setdefault(task.image, len(self.images))

    def _runtime_row(self, task: Task) -> int:
        """Tasks with the same factors of their run time on each type of node share a row."""
        examples = self.machines.type_examples
        uses_gpu = bool(task.request.get(GPU, 0) or task.request.get(GPU_MILLI, 0))
        special = any(task.kind in node.speed_by_kind for node in examples)
        stated = tuple(sorted(task.runtime_s_by_node_type.items()))
        base = task.runtime_s if stated else 1.0
        key = (uses_gpu, task.kind if special else "", stated, base)
        if key not in self.rows:
            self.rows[key] = len(self.rows)
            self.row_values.append(
                [
                    task.runtime_s_by_node_type.get(
                        node.type, base / node.speed_for(task.kind, uses_gpu=uses_gpu)
                    )
                    for node in examples
                ]
            )
        return self.rows[key]

    # The whole run ----------------------------------------------------------------------------

    def build(self, arrivals: Sequence[Arrival]) -> tuple[Snapshot, Names]:
        blocks = [self._block(arrival.workflow) for arrival in arrivals]
        faults = self.scenario.faults
        grown = self.shapes.grow(faults.oom_growth) if faults.oom_ratio else {}
        shapes, shape_node, shape_request = self.shapes.arrays(grown)
        tasks, workflows = self._tasks_and_workflows(arrivals, blocks)
        parents, children = self._edges(blocks, tasks)
        workers = np.zeros(int(tasks["num_workers"].sum()), arrays.WORKER)
        workers["task"] = np.repeat(np.arange(len(tasks)), tasks["num_workers"])
        workers["node"] = -1
        nodes = self.machines.nodes()
        used, limit = self._quotas()
        snapshot = Snapshot(
            status=self._status(),
            tasks=tasks,
            workflows=workflows,
            nodes=nodes,
            shapes=shapes,
            shape_node=shape_node,
            workers=workers,
            children=children,
            parents=parents,
            links=self.machines.links(),
            node_free=self.machines.allocatable.copy(),
            node_allocatable=self.machines.allocatable.copy(),
            node_devices=self.machines.devices(),
            shape_request=shape_request,
            runtime_factor=np.array(self.row_values, np.float64),
            queue=np.full(int(shapes["queue_size"].sum()), -1, np.int64),
            active=np.full(len(shapes), -1, np.int64),
            incoming=np.full(len(tasks), -1, np.int64),
            bound=np.full(len(tasks), -1, np.int64),
            deferred=np.full(len(tasks), -1, np.int64),
            placed=np.full(len(tasks), -1, np.int64),
            node_images=np.zeros((len(nodes), max(len(self.images), 1)), np.uint8),
            image_bytes=np.array(list(self.image_bytes.values()) or [0.0]),
            tenant_used=used,
            tenant_limit=limit,
            **self._experience(),
        )
        snapshot.shapes["queue_size"] = 0
        return snapshot, Names(
            self.machines.resources,
            tuple(node.name for node in self.machines.cluster.nodes),
            tuple(arrival.workflow.id for arrival in arrivals),
            tuple(task.id for arrival in arrivals for task in arrival.workflow.tasks),
            tuple(self.tenants),
        )

    def _experience(self) -> dict[str, Any]:
        """Nothing has been seen of any kind of task or family of workflows."""
        count = len(self.kinds) + len(self.families)
        days = np.zeros((count, 7, arrays.NUM_BINS + 1), np.int64)
        days[:, :, -1] = -7
        return {
            "histories": np.zeros(count, arrays.HISTORY),
            "days": days.reshape(count, -1),
            "ratios": np.zeros((count, len(self.machines.type_examples)), arrays.RATIO),
        }

    def _status(self) -> Any:
        startup = self.scenario.startup
        status = np.zeros(1, arrays.STATUS)
        status["wake_s"] = math.inf
        status["startup_s"] = startup.container_s
        if startup.image_pull:
            status["registry_bytes_per_s"] = startup.registry_bytes_per_s
        return status

    def _tasks_and_workflows(
        self, arrivals: Sequence[Arrival], blocks: Sequence[_Block]
    ) -> tuple[Any, Any]:
        tasks = np.concatenate([block.tasks for block in blocks])
        workflows = np.zeros(len(blocks), arrays.WORKFLOW)
        sizes = np.array([len(block.tasks) for block in blocks])
        workflows["first_task"] = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        workflows["num_tasks"] = workflows["tasks_left"] = sizes
        workflows["tenant"] = [block.tenant for block in blocks]
        workflows["priority"] = [a.workflow.priority for a in arrivals]
        workflows["family"] = [
            len(self.kinds) + self.families.setdefault(a.workflow.family, len(self.families))
            for a in arrivals
        ]
        workflows["arrival_s"] = [a.time_s for a in arrivals]
        workflows["remaining_s"] = [block.work_s for block in blocks]
        workflows["critical_path_s"] = [block.critical_path_s for block in blocks]
        workflows["finish_s"] = workflows["first_start_s"] = math.inf
        for name in ("deadline_s", "start_deadline_s"):
            relative = [getattr(a.workflow, name) for a in arrivals]
            limits = np.array([math.inf if r is None else r for r in relative])
            workflows[name] = limits + workflows["arrival_s"]
        owner = np.repeat(np.arange(len(blocks)), sizes)
        tasks["workflow"] = owner
        tasks["deadline_s"] = np.minimum(
            tasks["deadline_s"] + workflows["arrival_s"][owner], workflows["deadline_s"][owner]
        )
        tasks["start_deadline_s"] += workflows["arrival_s"][owner]
        tasks["worker_start"] = np.concatenate([[0], np.cumsum(tasks["num_workers"])[:-1]])
        tasks["state"] = arrays.ABSENT
        for name in ("node", "planned_node", "queue_position", "bound_position"):
            tasks[name] = -1
        for name in ("ready_s", "start_s", "end_s"):
            tasks[name] = math.inf
        return tasks, workflows

    def _edges(self, blocks: Sequence[_Block], tasks: Any) -> tuple[Any, Any]:
        num_edges = sum(len(block.graph.parents) for block in blocks)
        parents = np.zeros(num_edges, arrays.EDGE)
        children = np.zeros(num_edges, arrays.EDGE)
        first_task = first_edge = 0
        for block in blocks:
            graph = block.graph
            tail, last = first_task + len(block.tasks), first_edge + len(graph.parents)
            parents["task"][first_edge:last] = graph.parents + first_task
            parents["data_bytes"][first_edge:last] = graph.parent_bytes
            children["task"][first_edge:last] = graph.children + first_task
            children["data_bytes"][first_edge:last] = graph.child_bytes
            children["twin"][first_edge:last] = graph.twin + first_edge
            parents["twin"][graph.twin + first_edge] = np.arange(first_edge, last)
            tasks["parent_start"][first_task:tail] = graph.parent_start[:-1] + first_edge
            tasks["parent_end"][first_task:tail] = graph.parent_start[1:] + first_edge
            tasks["child_start"][first_task:tail] = graph.child_start[:-1] + first_edge
            tasks["child_end"][first_task:tail] = graph.child_start[1:] + first_edge
            first_task, first_edge = tail, last
        if not self.scenario.transfers.enabled:
            parents["data_bytes"] = children["data_bytes"] = 0.0
        return parents, children

    def _quotas(self) -> tuple[Any, Any]:
        total = self.machines.allocatable.sum(axis=0)
        limit = np.zeros((max(len(self.tenants), 1), len(self.machines.resources)), np.int64)
        limit[:] = total
        for tenant, ratio in self.scenario.fairness.tenant_quota.items():
            if tenant in self.tenants:
                limit[self.tenants[tenant]] = np.floor(total * ratio)
        return np.zeros_like(limit), limit
