"""Shapes: distinct combinations of requests and placement rules, and the nodes that admit each.

Tasks that ask for the same share a shape, so that legality is decided once for many of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from dagsail.domain import snapshot as arrays
from dagsail.domain.errors import InfeasibleError
from dagsail.domain.placement import Placement
from dagsail.domain.units import CPU, GPU, GPU_MILLI, MEMORY, MIB, format_amount
from dagsail.domain.workflow import Task, Workflow
from dagsail.scheduling import constraints
from dagsail.scheduling.cluster_arrays import ClusterArrays
from dagsail.scheduling.constraints import node_affinity, taints

DEFAULT_SCORE_CPU: Final = 100
DEFAULT_SCORE_MEMORY: Final = 200 * MIB
"""What kube-scheduler counts for a container without a request when it scores nodes."""

_MAX_GROWTHS: Final = 4


class _Key(NamedTuple):
    request: tuple[int, ...]
    gpu_milli: int
    placement: Placement
    num_workers: int
    tenant: int


class Shapes:
    """The shapes of a run, in order of appearance.

    Attributes:
        counts: how many tasks have each shape.
        eligible: the nodes that a shape may ever use. bool (nodes,) each.
    """

    def __init__(self, machines: ClusterArrays) -> None:
        self.counts: list[int] = []
        self.eligible: list[Any] = []
        self._machines = machines
        self._nodes = machines.cluster.nodes
        self._resources = machines.resources
        self._keys: dict[_Key, int] = {}
        self._allowed_by: dict[Placement, Any] = {}

    def of(self, workflow: Workflow, task: Task, tenant: int) -> int:
        """The shape of a task; `tenant` is -1 where no quota tells tenants apart.

        Raises:
            InfeasibleError: if the task fits on no node; names the resource and the best node.
        """
        request = self._in_columns(task.request)
        for resource, amount in request.items():
            if amount and resource not in self._resources:
                raise InfeasibleError(
                    f"workflow '{workflow.id}', task '{task.id}' requests"
                    f" {amount} {resource}, which no node of cluster"
                    f" '{self._machines.cluster.name}' has;"
                    " remove the request or choose another cluster"
                )
        key = _Key(
            tuple(request.get(r, 0) for r in self._resources),
            request.get(GPU_MILLI, 0) if self._machines.shares_gpus else 0,
            task.placement,
            task.num_workers,
            tenant,
        )
        if key not in self._keys:
            eligible = self._eligible(key)
            if self._room_for(key, eligible) < task.num_workers:
                raise InfeasibleError(self._why_nowhere(workflow, task, key))
            self._add(key, eligible)
        return self._keys[key]

    def grow(self, oom_growth: float) -> dict[int, int]:
        """Shapes with more memory for attempts after an OOM kill: shape -> grown shape."""
        grown: dict[int, int] = {}
        memory = self._resources.index(MEMORY)
        largest = int(self._machines.allocatable[:, memory].max())
        frontier = list(self._keys)
        for _ in range(_MAX_GROWTHS):
            following = []
            for key in frontier:
                request = list(key.request)
                request[memory] = min(math.ceil(request[memory] * oom_growth), largest)
                bigger = key._replace(request=tuple(request))
                eligible = self._eligible(bigger)
                if bigger == key or self._room_for(bigger, eligible) < key.num_workers:
                    continue
                if bigger not in self._keys:
                    self._add(bigger, eligible)
                    following.append(bigger)
                grown[self._keys[key]] = self._keys[bigger]
            frontier = following
        return grown

    def arrays(self, grown: Mapping[int, int]) -> tuple[Any, Any, Any]:
        """SHAPE (shapes,), SHAPE_NODE (shapes, nodes) and requests, int64 (shapes, resources)."""
        shapes = np.zeros(len(self._keys), arrays.SHAPE)
        sizes = self._queue_sizes(grown)
        shapes["num_tasks"] = self.counts
        shapes["queue_size"] = sizes
        shapes["queue_start"] = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        shapes["active_position"] = -1
        shapes["grown"] = [grown.get(shape, -1) for shape in range(len(shapes))]
        for name in ("num_workers", "tenant", "gpu_milli"):
            shapes[name] = [getattr(key, name) for key in self._keys]
        for name in ("near_parents", "wants_local_ssd"):
            shapes[name] = [getattr(key.placement, name) for key in self._keys]
        request = np.array([key.request for key in self._keys], np.int64)
        shapes["is_virtual"] = ~request.any(axis=1)
        cpu = request[:, self._resources.index(CPU)]
        memory = request[:, self._resources.index(MEMORY)]
        shapes["cpu_default"] = np.where(cpu == 0, DEFAULT_SCORE_CPU, cpu)
        shapes["memory_default"] = np.where(memory == 0, DEFAULT_SCORE_MEMORY, memory)
        return shapes, self._pairs(), request

    def _pairs(self) -> Any:
        """What does not change with load, of each shape on each node."""
        pairs = np.zeros((len(self._keys), len(self._nodes)), arrays.SHAPE_NODE)
        soft: dict[Placement, tuple[Any, Any]] = {}
        for key, shape in self._keys.items():
            rule = key.placement
            if rule not in soft:
                soft[rule] = (
                    np.array([node_affinity.preference(rule, node) for node in self._nodes]),
                    np.array([taints.untolerated(rule, node) for node in self._nodes]),
                )
            pairs[shape]["eligible"] = self.eligible[shape]
            pairs[shape]["preference"], pairs[shape]["untolerated"] = soft[rule]
        return pairs

    def _queue_sizes(self, grown: Mapping[int, int]) -> list[int]:
        """Most tasks that can ever queue in each shape: its own and those that grow into it."""
        sizes = list(self.counts)
        for shape, count in enumerate(self.counts):
            bigger = grown.get(shape)
            while count and bigger is not None:
                sizes[bigger] += count
                bigger = grown.get(bigger)
        return sizes

    def _add(self, key: _Key, eligible: Any) -> None:
        self._keys[key] = len(self._keys)
        self.counts.append(0)
        self.eligible.append(eligible)

    def _in_columns(self, request: Mapping[str, int]) -> Mapping[str, int]:
        """Express whole and shared GPUs in the columns that the cluster has."""
        shares = self._machines.shares_gpus
        if shares and request.get(GPU, 0):
            whole = {**request, GPU_MILLI: 1000 * request[GPU]}
            return whole if GPU in self._resources else {r: whole[r] for r in whole if r != GPU}
        if not shares and request.get(GPU_MILLI, 0):
            rest = {r: amount for r, amount in request.items() if r != GPU_MILLI}
            return {**rest, GPU: -(-request[GPU_MILLI] // 1000)}
        return request

    # Where a shape fits ---------------------------------------------------------------------------

    def _allowed(self, placement: Placement) -> Any:
        """Which nodes the placement rules admit. bool (nodes,)."""
        if placement not in self._allowed_by:
            self._allowed_by[placement] = np.array(
                [constraints.refusal(placement, node) is None for node in self._nodes]
            )
        return self._allowed_by[placement]

    def _eligible(self, key: _Key) -> Any:
        roomy = (self._machines.allocatable >= np.array(key.request)).all(axis=1)
        return self._allowed(key.placement) & roomy

    def _room_for(self, key: _Key, eligible: Any) -> int:
        """How many workers of a shape an empty cluster holds."""
        request = np.array(key.request)
        asked = request > 0
        if not asked.any():
            return int(eligible.sum()) * key.num_workers
        allocatable = self._machines.allocatable[eligible]
        per_node = (allocatable[:, asked] // request[asked]).min(axis=1)
        if 0 < key.gpu_milli < 1000:
            devices = allocatable[:, self._resources.index(GPU_MILLI)] // 1000
            per_node = np.minimum(per_node, devices * (1000 // key.gpu_milli))
        return int(per_node.sum())

    def _why_nowhere(self, workflow: Workflow, task: Task, key: _Key) -> str:
        where = f"workflow '{workflow.id}', task '{task.id}'"
        name = self._machines.cluster.name
        allowed = self._allowed(key.placement)
        if not allowed.any():
            node = self._nodes[0]
            reason = constraints.refusal(key.placement, node)
            return (
                f"{where} fits on no node of cluster '{name}': its placement rules refuse all"
                f" {len(allowed)} (node '{node.name}': {reason}); relax them or add a node"
            )
        request = np.array(key.request)
        allocatable = self._machines.allocatable
        lacking = np.maximum(request - allocatable, 0) / np.maximum(request, 1)
        lacking[~allowed] = np.inf
        best = int(np.argmin(lacking.max(axis=1)))
        if not lacking[best].any():
            return (
                f"{where} needs {task.num_workers} workers at once, but cluster '{name}' holds"
                f" only {self._room_for(key, self._eligible(key))} of them; use fewer workers"
            )
        column = int(np.argmax(lacking[best]))
        resource = self._resources[column]
        return (
            f"{where} fits on no node of cluster '{name}': it requests"
            f" {format_amount(resource, int(request[column]))} of {resource}, the best node"
            f" '{self._nodes[best].name}' has"
            f" {format_amount(resource, int(allocatable[best, column]))};"
            " lower the request or choose a cluster with larger nodes"
        )
