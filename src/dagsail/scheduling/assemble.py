"""Turns named workflows and nodes into the arrays of a snapshot.

Requests and placement rules that are equal share a *shape*, so that legality is decided once for
many tasks. Workflows drawn several times from one source share their graph computations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dagsail.domain import snapshot as arrays
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import InfeasibleError
from dagsail.domain.graph import (
    Graph,
    critical_path_s,
    downward_rank,
    graph_of,
    hops_to_exit,
    upward_rank,
)
from dagsail.domain.placement import Placement
from dagsail.domain.scenario import Scenario
from dagsail.domain.snapshot import Names, Snapshot
from dagsail.domain.units import CPU, GPU, GPU_MILLI, MEMORY, MIB, format_amount
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.scheduling import constraints
from dagsail.scheduling.constraints import node_affinity, taints

DEFAULT_SCORE_CPU: Final = 100
DEFAULT_SCORE_MEMORY: Final = 200 * MIB
"""What kube-scheduler counts for a container without a request when it scores nodes."""

_MAX_GROWTHS: Final = 4


class _ShapeKey(NamedTuple):
    request: tuple[int, ...]
    gpu_milli: int
    placement: Placement
    num_workers: int
    tenant: int


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
        self.cluster = cluster
        self.scenario = scenario
        self.resources = cluster.resources
        self.allocatable = np.array(
            [[n.allocatable.get(r, 0) for r in self.resources] for n in cluster.nodes], np.int64
        )
        self.shapes: dict[_ShapeKey, int] = {}
        self.shape_counts: list[int] = []
        self.eligible: list[Any] = []
        self.rows: dict[tuple[Any, ...], int] = {}
        self.row_values: list[list[float]] = []
        self.images: dict[str, int] = {}
        self.image_bytes: list[float] = []
        self.kinds: dict[str, int] = {}
        self.tenants: dict[str, int] = {}
        self.blocks: dict[tuple[int, int, int, int], _Block] = {}
        self.kept: list[Workflow] = []
        self.placements: dict[Placement, Any] = {}
        self.has_sharing = GPU_MILLI in self.resources
        if self.has_sharing and GPU in self.resources:
            whole = 1000 * self.allocatable[:, self.resources.index(GPU)]
            milli = self.resources.index(GPU_MILLI)
            self.allocatable[:, milli] = np.maximum(self.allocatable[:, milli], whole)
        self._index_nodes()
        self._mean_network()

    def _index_nodes(self) -> None:
        signatures: dict[tuple[Any, ...], int] = {}
        self.node_type: list[int] = []
        self.type_example = []
        for node in self.cluster.nodes:
            speeds = tuple(sorted(node.speed_by_kind.items()))
            signature = (node.type, node.speed, node.gpu_speed, speeds)
            if signature not in signatures:
                signatures[signature] = len(signatures)
                self.type_example.append(node)
            self.node_type.append(signatures[signature])

    def _mean_network(self) -> None:
        """Mean latency and inverse bandwidth over distinct node pairs, for ranks."""
        self.zones = _index([n.zone for n in self.cluster.nodes])
        self.racks = _index([f"{n.zone}/{n.rack}" for n in self.cluster.nodes])
        network = self.cluster.network
        self.links = [network.same_rack, network.same_zone, network.cross_zone]
        nic = np.array([n.nic_bytes_per_s for n in self.cluster.nodes])
        count = len(nic)
        if count == 1 or not self.scenario.transfers.enabled:
            self.mean_latency_s = self.mean_s_per_byte = 0.0
            return
        tier = self._tiers()
        bandwidth = np.array([link.bytes_per_s for link in self.links])[tier]
        latency = np.array([link.latency_s for link in self.links])[tier]
        inverse = 1.0 / np.minimum(bandwidth, np.minimum(nic[:, None], nic[None, :]))
        pairs = ~np.eye(count, dtype=bool)
        self.mean_latency_s = float(latency[pairs].mean())
        self.mean_s_per_byte = float(inverse[pairs].mean())

    def _tiers(self) -> Any:
        zone, rack = np.array(self.zones), np.array(self.racks)
        same_zone = zone[:, None] == zone[None, :]
        same_rack = rack[:, None] == rack[None, :]
        return np.where(same_rack, 0, np.where(same_zone, 1, 2))

    # One workflow -----------------------------------------------------------------------------

    def _block(self, workflow: Workflow) -> _Block:
        tenant = self.tenants.setdefault(workflow.tenant, len(self.tenants))
        quota = tenant if self.scenario.fairness.tenant_quota else -1
        key = (id(workflow.tasks), id(workflow.dependencies), quota, workflow.priority)
        if key in self.blocks:
            for shape, count in zip(
                *np.unique(self.blocks[key].tasks["shape"], return_counts=True), strict=True
            ):
                self.shape_counts[shape] += int(count)
            return self.blocks[key]._replace(tenant=tenant)
        self.kept.append(workflow)  # keeps the ids in `key` alive
        graph = graph_of(workflow)
        rows = [self._task_row(workflow, task, quota) for task in workflow.tasks]
        tasks = np.array(rows, _ROW).astype(_ROW)
        block = np.zeros(len(rows), arrays.TASK)
        for name in _ROW.names or ():
            if name in (arrays.TASK.names or ()):
                block[name] = tasks[name]
        block["upward_rank_s"] = upward_rank(
            graph, tasks["mean_s"], self.mean_s_per_byte, self.mean_latency_s
        )
        block["downward_rank_s"] = downward_rank(
            graph, tasks["mean_s"], self.mean_s_per_byte, self.mean_latency_s
        )
        block["hops_to_exit"] = hops_to_exit(graph)
        block["parents_left"] = np.diff(graph.parent_start)
        self.blocks[key] = _Block(
            block,
            graph,
            float((tasks["mean_s"] * tasks["num_workers"]).sum()),
            critical_path_s(graph, tasks["best_s"]),
            tenant,
        )
        return self.blocks[key]

    def _task_row(self, workflow: Workflow, task: Task, tenant: int) -> tuple[Any, ...]:
        shape = self._shape(workflow, task, tenant)
        self.shape_counts[shape] += 1
        row = self._runtime_row(task)
        estimate_s = 1.0 if task.runtime_s_by_node_type else task.runtime_s
        factors = self.eligible_factors(shape, row)
        image = -1
        if task.image:
            if task.image not in self.images:
                self.images[task.image] = len(self.images)
                self.image_bytes.append(0.0)
            image = self.images[task.image]
            self.image_bytes[image] = max(self.image_bytes[image], float(task.image_bytes))
        return (
            shape,
            row,
            self.kinds.setdefault(task.kind, len(self.kinds)),
            workflow.priority if task.priority is None else task.priority,
            task.num_workers,
            image,
            int(task.is_critical),
            estimate_s,
            self.scenario.runtimes.noise,
            task.comm_bytes,
            task.input_bytes,
            task.output_bytes,
            task.io_demand,
            task.memory_bandwidth_demand,
            math.inf if task.start_deadline_s is None else task.start_deadline_s,
            math.inf if task.deadline_s is None else task.deadline_s,
            estimate_s * factors.mean(),
            estimate_s * factors.min(),
        )

    def eligible_factors(self, shape: int, row: int) -> Any:
        """Runtime factors of the nodes that a shape may use. float64 (eligible nodes,)."""
        types = np.array(self.node_type)[self.eligible[shape]]
        return np.array(self.row_values[row])[types]

    def _runtime_row(self, task: Task) -> int:
        uses_gpu = bool(task.request.get(GPU, 0) or task.request.get(GPU_MILLI, 0))
        special = any(task.kind in node.speed_by_kind for node in self.type_example)
        stated = tuple(sorted(task.runtime_s_by_node_type.items()))
        key = (
            uses_gpu,
            task.kind if special else "",
            stated,
            task.runtime_s if stated else 0.0,
        )
        if key not in self.rows:
            base = task.runtime_s if stated else 1.0
            self.rows[key] = len(self.rows)
            self.row_values.append(
                [
                    task.runtime_s_by_node_type.get(
                        node.type, base / node.speed_for(task.kind, uses_gpu=uses_gpu)
                    )
                    for node in self.type_example
                ]
            )
        return self.rows[key]

    def _shape(self, workflow: Workflow, task: Task, tenant: int) -> int:
        request = self._request(task.request)
        gpu_milli = 0
        if self.has_sharing:
            gpu_milli = request.get(GPU_MILLI, 0)
        unknown = [r for r, amount in request.items() if amount and r not in self.resources]
        if unknown:
            raise InfeasibleError(
                f"workflow '{workflow.id}', task '{task.id}' requests"
                f" {request[unknown[0]]} {unknown[0]}, which no node of cluster"
                f" '{self.cluster.name}' has; remove the request or choose another cluster"
            )
        key = _ShapeKey(
            tuple(request.get(r, 0) for r in self.resources),
            gpu_milli,
            task.placement,
            task.num_workers,
            tenant,
        )
        if key not in self.shapes:
            eligible = self._eligible(key)
            if self._room_for(key, eligible) < task.num_workers:
                raise InfeasibleError(self._why_nowhere(workflow, task, key))
            self.shapes[key] = len(self.shapes)
            self.shape_counts.append(0)
            self.eligible.append(eligible)
        return self.shapes[key]

    def _request(self, request: Mapping[str, int]) -> Mapping[str, int]:
        """Express whole and shared GPUs in the columns that the cluster has."""
        if self.has_sharing and request.get(GPU, 0):
            whole = {**request, GPU_MILLI: 1000 * request[GPU]}
            return whole if GPU in self.resources else {r: whole[r] for r in whole if r != GPU}
        if not self.has_sharing and request.get(GPU_MILLI, 0):
            rest = {r: amount for r, amount in request.items() if r != GPU_MILLI}
            return {**rest, GPU: -(-request[GPU_MILLI] // 1000)}
        return request

    def _allowed(self, placement: Placement) -> Any:
        """Which nodes the placement rules admit. bool (N,)."""
        if placement not in self.placements:
            self.placements[placement] = np.array(
                [constraints.refusal(placement, node) is None for node in self.cluster.nodes]
            )
        return self.placements[placement]

    def _eligible(self, key: _ShapeKey) -> Any:
        roomy = (self.allocatable >= np.array(key.request)).all(axis=1)
        return self._allowed(key.placement) & roomy

    def _room_for(self, key: _ShapeKey, eligible: Any) -> int:
        """How many workers of a shape an empty cluster holds."""
        request = np.array(key.request)
        asked = request > 0
        if not asked.any():
            return int(eligible.sum()) * key.num_workers
        per_node = (self.allocatable[eligible][:, asked] // request[asked]).min(axis=1)
        if 0 < key.gpu_milli < 1000:
            devices = self.allocatable[eligible][:, self.resources.index(GPU_MILLI)] // 1000
            per_node = np.minimum(per_node, devices * (1000 // key.gpu_milli))
        return int(per_node.sum())

    def _why_nowhere(self, workflow: Workflow, task: Task, key: _ShapeKey) -> str:
        where = f"workflow '{workflow.id}', task '{task.id}'"
        name = self.cluster.name
        allowed = self._allowed(key.placement)
        if not allowed.any():
            node = self.cluster.nodes[0]
            reason = constraints.refusal(key.placement, node)
            return (
                f"{where} fits on no node of cluster '{name}': its placement rules refuse all"
                f" {len(allowed)} (node '{node.name}': {reason}); relax them or add a node"
            )
        request = np.array(key.request)
        lacking = np.maximum(request - self.allocatable, 0) / np.maximum(request, 1)
        lacking[~allowed] = np.inf
        best = int(np.argmin(lacking.max(axis=1)))
        if not lacking[best].any():
            return (
                f"{where} needs {task.num_workers} workers at once, but cluster '{name}' holds"
                f" only {self._room_for(key, self._eligible(key))} of them; use fewer workers"
            )
        column = int(np.argmax(lacking[best]))
        resource = self.resources[column]
        return (
            f"{where} fits on no node of cluster '{name}': it requests"
            f" {format_amount(resource, int(request[column]))} of {resource}, the best node"
            f" '{self.cluster.nodes[best].name}' has"
            f" {format_amount(resource, int(self.allocatable[best, column]))};"
            " lower the request or choose a cluster with larger nodes"
        )

    # The whole run ----------------------------------------------------------------------------

    def build(self, arrivals: Sequence[Arrival]) -> tuple[Snapshot, Names]:
        blocks = [self._block(arrival.workflow) for arrival in arrivals]
        grown = self._grow_shapes()
        tasks, workflows = self._tasks_and_workflows(arrivals, blocks)
        parents, children = self._edges(blocks, tasks)
        workers = np.zeros(int(tasks["num_workers"].sum()), arrays.WORKER)
        workers["node"] = -1
        shapes, shape_node, shape_request = self._shape_arrays(grown)
        nodes = self._node_array()
        devices = self._devices()
        status = np.zeros(1, arrays.STATUS)
        status["wake_s"] = math.inf
        status["startup_s"] = self.scenario.startup.container_s
        if self.scenario.startup.image_pull:
            status["registry_bytes_per_s"] = self.scenario.startup.registry_bytes_per_s
        used, limit = self._quotas()
        snapshot = Snapshot(
            status=status,
            tasks=tasks,
            workflows=workflows,
            nodes=nodes,
            shapes=shapes,
            shape_node=shape_node,
            workers=workers,
            children=children,
            parents=parents,
            links=self._link_array(),
            node_free=self.allocatable.copy(),
            node_allocatable=self.allocatable.copy(),
            node_devices=devices,
            shape_request=shape_request,
            runtime_factor=np.array(self.row_values, np.float64),
            queue=np.full(int(shapes["queue_size"].sum()), -1, np.int64),
            active=np.full(len(shapes), -1, np.int64),
            incoming=np.full(len(tasks), -1, np.int64),
            placed=np.full(len(tasks), -1, np.int64),
            node_images=np.zeros((len(nodes), max(len(self.images), 1)), np.uint8),
            image_bytes=np.array(self.image_bytes or [0.0]),
            tenant_used=used,
            tenant_limit=limit,
        )
        snapshot.shapes["queue_size"] = 0
        return snapshot, Names(
            self.resources,
            tuple(node.name for node in self.cluster.nodes),
            tuple(arrival.workflow.id for arrival in arrivals),
            tuple(task.id for arrival in arrivals for task in arrival.workflow.tasks),
            tuple(self.tenants),
        )

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
        for name in ("node", "planned_node", "queue_position"):
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

    def _grow_shapes(self) -> dict[int, int]:
        """Shapes with more memory for attempts after an OOM kill: shape -> grown shape."""
        grown: dict[int, int] = {}
        if self.scenario.faults.oom_ratio == 0:
            return grown
        memory = self.resources.index(MEMORY)
        largest = int(self.allocatable[:, memory].max())
        frontier = list(self.shapes)
        for _ in range(_MAX_GROWTHS):
            following = []
            for key in frontier:
                request = list(key.request)
                more = math.ceil(request[memory] * self.scenario.faults.oom_growth)
                request[memory] = min(more, largest)
                bigger = key._replace(request=tuple(request))
                eligible = self._eligible(bigger)
                if bigger == key or self._room_for(bigger, eligible) < key.num_workers:
                    continue
                if bigger not in self.shapes:
                    self.shapes[bigger] = len(self.shapes)
                    self.shape_counts.append(0)
                    self.eligible.append(eligible)
                    following.append(bigger)
                grown[self.shapes[key]] = self.shapes[bigger]
            frontier = following
        return grown

    def _queue_sizes(self, grown: Mapping[int, int]) -> list[int]:
        """Most tasks that can ever queue in each shape: its own and those that grow into it."""
        sizes = list(self.shape_counts)
        for shape, count in enumerate(self.shape_counts):
            bigger = grown.get(shape)
            while count and bigger is not None:
                sizes[bigger] += count
                bigger = grown.get(bigger)
        return sizes

    def _shape_arrays(self, grown: Mapping[int, int]) -> tuple[Any, Any, Any]:
        shapes = np.zeros(len(self.shapes), arrays.SHAPE)
        shape_node = np.zeros((len(shapes), len(self.cluster.nodes)), arrays.SHAPE_NODE)
        sizes = self._queue_sizes(grown)
        shapes["num_tasks"] = self.shape_counts
        shapes["queue_size"] = sizes
        shapes["queue_start"] = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        shapes["active_position"] = -1
        shapes["grown"] = [grown.get(shape, -1) for shape in range(len(shapes))]
        soft: dict[Placement, tuple[Any, Any]] = {}
        for key, shape in self.shapes.items():
            rule = key.placement
            if rule not in soft:
                nodes = self.cluster.nodes
                soft[rule] = (
                    np.array([node_affinity.preference(rule, n) for n in nodes]),
                    np.array([taints.untolerated(rule, n) for n in nodes]),
                )
            shape_node[shape]["eligible"] = self.eligible[shape]
            shape_node[shape]["preference"], shape_node[shape]["untolerated"] = soft[rule]
            shapes[shape]["num_workers"] = key.num_workers
            shapes[shape]["tenant"] = key.tenant
            shapes[shape]["gpu_milli"] = key.gpu_milli
            shapes[shape]["near_parents"] = rule.near_parents
            shapes[shape]["wants_local_ssd"] = rule.wants_local_ssd
        request = np.array([key.request for key in self.shapes], np.int64)
        shapes["is_virtual"] = ~request.any(axis=1)
        cpu, memory = self.resources.index(CPU), self.resources.index(MEMORY)
        shapes["cpu_default"] = np.where(request[:, cpu] == 0, DEFAULT_SCORE_CPU, request[:, cpu])
        shapes["memory_default"] = np.where(
            request[:, memory] == 0, DEFAULT_SCORE_MEMORY, request[:, memory]
        )
        return shapes, shape_node, request

    def _node_array(self) -> Any:
        nodes = np.zeros(len(self.cluster.nodes), arrays.NODE)
        nodes["type"] = self.node_type
        nodes["zone"] = self.zones
        nodes["rack"] = self.racks
        nodes["reserved_for"] = -1
        for name in ("num_gpus", "is_spot", "has_local_ssd"):
            nodes[name] = [getattr(node, name) for node in self.cluster.nodes]
        for name in ("price_usd_per_h", "nic_bytes_per_s", "gpu_link_bytes_per_s"):
            nodes[name] = [getattr(node, name) for node in self.cluster.nodes]
        return nodes

    def _devices(self) -> Any:
        if not self.has_sharing:
            return np.zeros((len(self.cluster.nodes), 0), np.int64)
        counts = (self.allocatable[:, self.resources.index(GPU_MILLI)] // 1000).tolist()
        devices = np.zeros((len(counts), max(counts)), np.int64)
        for node, count in enumerate(counts):
            devices[node, :count] = 1000
        return devices

    def _link_array(self) -> Any:
        links = np.zeros(4, arrays.LINK)
        links["bytes_per_s"][0] = math.inf
        for tier, link in enumerate(self.links, start=1):
            links["latency_s"][tier] = link.latency_s
            links["bytes_per_s"][tier] = link.bytes_per_s
        return links

    def _quotas(self) -> tuple[Any, Any]:
        total = self.allocatable.sum(axis=0)
        limit = np.zeros((max(len(self.tenants), 1), len(self.resources)), np.int64)
        limit[:] = total
        for tenant, ratio in self.scenario.fairness.tenant_quota.items():
            if tenant in self.tenants:
                limit[self.tenants[tenant]] = np.floor(total * ratio)
        return np.zeros_like(limit), limit


_ROW: Final = np.dtype(
    [
        *((name, "i8") for name in ("shape", "runtime_row", "kind", "priority", "num_workers")),
        ("image", "i8"),
        ("is_critical", "i8"),
        *((name, "f8") for name in ("estimate_s", "spread", "comm_bytes", "input_bytes")),
        ("output_bytes", "f8"),
        ("io_demand", "f8"),
        ("memory_bandwidth_demand", "f8"),
        ("start_deadline_s", "f8"),
        ("deadline_s", "f8"),
        ("mean_s", "f8"),
        ("best_s", "f8"),
    ]
)


def _index(names: Sequence[str]) -> list[int]:
    """Position of each name among the distinct names, in order of appearance."""
    positions: dict[str, int] = {}
    return [positions.setdefault(name, len(positions)) for name in names]
