"""Context: features of a node by itself and of the whole cluster. Kernels that fill arrays."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import NODE_UP, Snapshot
from dagsail.domain.units import GIB
from dagsail.kernels import entry, inlined, kernel
from dagsail.policies.scoring import outlook
from dagsail.policies.scoring.features import Row, clip, log_s
from dagsail.scheduling import experience
from dagsail.scheduling.listing import Memory

_CPU: Final = 0
_MEMORY: Final = 1
_NO_PRICE: Final = 1e-6
_LARGE_GPU_BYTES: Final = 80.0 * GIB
_NO_LATENCY_S: Final = 1e-4

# Places in `memory.surroundings`.
_MEAN_PRICE: Final = 0
_MAX_PRICE: Final = 1
_READY: Final = 2  # by priority
_READY_GPU: Final = 6
_LONGEST_S: Final = 7
_HOPS: Final = 8
_SIZE: Final = 9


def surroundings(snapshot: Snapshot) -> NDArray[np.float64]:
    """Room for what is counted once an instant, with the prices, which do not change."""
    values = np.zeros(_SIZE)
    values[_MEAN_PRICE] = snapshot.nodes["price_usd_per_h"].mean()
    values[_MAX_PRICE] = snapshot.nodes["price_usd_per_h"].max()
    return values


def zone_share(snapshot: Snapshot) -> NDArray[np.float64]:
    """Share of the nodes that are in the zone of each. float64 (N,)."""
    zones = snapshot.nodes["zone"]
    return np.bincount(zones)[zones] / len(zones)


@kernel
def look_around(snapshot: Snapshot, memory: Memory) -> None:
    """Count what waits and runs, once an instant."""
    counts = memory.surroundings
    counts[_READY:] = 0.0
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.shapes[snapshot.active[index]]
        for position in range(shape.queue_size):
            row = snapshot.tasks[snapshot.queue[shape.queue_start + position]]
            counts[_READY + min(row.priority, 3)] += 1.0
            counts[_READY_GPU] += 1.0 if shape.gpu_milli > 0 else 0.0
            counts[_LONGEST_S] = max(counts[_LONGEST_S], row.upward_rank_s)
            counts[_HOPS] += row.hops_to_exit
    for index in range(snapshot.status[0].num_bound):
        row = snapshot.tasks[snapshot.bound[index]]
        counts[_LONGEST_S] = max(counts[_LONGEST_S], row.upward_rank_s)


@inlined
def _price_ratio(price: float, mean: float) -> float:
    return clip(math.log((price + _NO_PRICE) / (mean + _NO_PRICE)) / 3.0, -1.0, 1.0)


@inlined
def _log_count(count: float, many: float) -> float:
    return math.log1p(count) / math.log1p(many)


@entry
def node_features(snapshot: Snapshot, memory: Memory, node: int, out: Row) -> None:
    """Fill `out` with `schema.NODE`. float64 (NUM_NODE,)."""
    row = snapshot.nodes[node]
    out[0] = experience.used_share(snapshot, node, _CPU)
    out[1] = experience.used_share(snapshot, node, _MEMORY)
    out[2] = 0.0
    if row.gpu_column >= 0:
        out[2] = experience.used_share(snapshot, node, row.gpu_column)
    out[3], out[4] = experience.recent_use(snapshot, node)
    out[5] = clip(math.log1p(row.num_running), 0.0, 6.0) / 2.0
    out[6] = _price_ratio(row.price_usd_per_h, memory.surroundings[_MEAN_PRICE])
    out[7] = row.is_spot
    out[8] = 1.0 if row.pool == 2 else 0.0
    out[9] = 1.0 if row.pool == 1 else 0.0
    out[10] = memory.zone_share[node]
    out[11] = experience.failure_ratio(snapshot, node)
    out[12] = clip(row.disk_pressure / 3.0, 0.0, 1.0)
    out[13] = clip(row.net_in_ratio, 0.0, 1.0)
    out[14] = clip(row.net_out_ratio, 0.0, 1.0)
    traffic = row.net_in_ratio + row.net_out_ratio
    out[15] = clip(row.net_in_ratio / traffic, 0.0, 1.0) if traffic > 0.0 else 0.5
    out[16] = clip(math.log1p(row.latency_p99_s / _NO_LATENCY_S) / 10.0, 0.0, 1.0)
    out[17] = clip(row.pcie_ratio, 0.0, 1.0)
    out[18] = clip(row.gpu_memory_bytes / _LARGE_GPU_BYTES, 0.0, 1.0)
    first = memory.first_leaver[node]
    now_s = snapshot.status[0].now_s
    out[19] = log_s(memory.leave_s[first] - now_s) if first >= 0 else 0.0


@kernel
def node_row(snapshot: Snapshot, memory: Memory, node: int) -> Row:
    """`node_features`, remembered as long as they hold."""
    version = outlook.version_of(snapshot, node)
    if memory.node_versions[node] != version:
        memory.node_versions[node] = version
        node_features(snapshot, memory, node, memory.node_rows[node])
    return memory.node_rows[node]


@entry
def global_features(snapshot: Snapshot, memory: Memory, out: Row) -> None:
    """Fill `out` with `schema.GLOBAL`. float64 (NUM_GLOBAL,)."""
    counts = memory.surroundings
    num_nodes = snapshot.nodes.shape[0]
    gpu_free, gpu_all, gpu_recent, up = 0.0, 0.0, 0.0, 0
    for node in range(num_nodes):
        row = snapshot.nodes[node]
        up += 1 if row.state == NODE_UP else 0
        if row.gpu_column >= 0:
            size = snapshot.node_allocatable[node, row.gpu_column]
            gpu_all += size
            gpu_free += snapshot.node_free[node, row.gpu_column]
            gpu_recent += size * experience.recent_use(snapshot, node)[1]
    out[0] = _use_of_all(snapshot, memory, _CPU)
    out[1] = _use_of_all(snapshot, memory, _MEMORY)
    out[2] = 1.0 - gpu_free / gpu_all if gpu_all > 0.0 else 0.0
    out[3] = clip(gpu_recent / gpu_all, 0.0, 1.0) if gpu_all > 0.0 else 0.0
    num_ready = 0.0
    for priority in range(4):
        count = counts[_READY + priority]
        num_ready += count
        out[4 + priority] = clip(_log_count(count / num_nodes, 100.0), 0.0, 1.0)
    out[8] = counts[_READY_GPU] / max(num_ready, 1.0)
    out[9] = clip(_log_count(snapshot.status[0].num_bound / num_nodes, 100.0), 0.0, 1.0)
    out[10] = log_s(counts[_LONGEST_S])
    out[11] = clip(_log_count(counts[_HOPS] / max(num_ready, 1.0), 1000.0), 0.0, 1.0)
    out[12] = up / num_nodes
    out[13] = clip(_price_ratio(counts[_MAX_PRICE], counts[_MEAN_PRICE]), 0.0, 1.0)


@kernel
def _use_of_all(snapshot: Snapshot, memory: Memory, resource: int) -> float:
    free = 0.0
    for node in range(snapshot.nodes.shape[0]):
        free += snapshot.node_free[node, resource]
    return clip(1.0 - free / max(memory.capacity[resource], 1.0), 0.0, 1.0)
