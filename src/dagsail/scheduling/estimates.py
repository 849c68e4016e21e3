"""What a decision expects of a pair: run time, transfer time, finish. Kernels over a snapshot."""

from __future__ import annotations

from typing import Final

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import inlined, kernel

SAME_NODE: Final = 0
SAME_RACK: Final = 1
SAME_ZONE: Final = 2
CROSS_ZONE: Final = 3

_OVERDUE: Final = 0.2
"""What runs longer than expected is expected to take this share of its past time more."""


@inlined
def runtime_s(snapshot: Snapshot, task: int, node: int) -> float:
    """Expected run time of a task on a node, without data and start-up."""
    row = snapshot.tasks[task]
    return row.estimate_s * snapshot.runtime_factor[row.runtime_row, snapshot.nodes[node].type]


@kernel
def tier(snapshot: Snapshot, a: int, b: int) -> int:
    """How far two nodes are apart: 0 same node, 1 same rack, 2 same zone, 3 other zone."""
    if a == b:
        return SAME_NODE
    left, right = snapshot.nodes[a], snapshot.nodes[b]
    if left.zone != right.zone:
        return CROSS_ZONE
    return SAME_RACK if left.rack == right.rack else SAME_ZONE


@kernel
def bandwidth(snapshot: Snapshot, a: int, b: int) -> float:
    """Bytes per second between two different nodes: the least of both cards and the tier."""
    slowest_card = min(snapshot.nodes[a].nic_bytes_per_s, snapshot.nodes[b].nic_bytes_per_s)
    return min(snapshot.links[tier(snapshot, a, b)].bytes_per_s, slowest_card)


@kernel
def edge_s(snapshot: Snapshot, data_bytes: float, source: int, target: int) -> float:
    """Time to move the data of one dependency; 0 on one node or without data."""
    if data_bytes <= 0.0 or source == target or source < 0:
        return 0.0
    latency_s = snapshot.links[tier(snapshot, source, target)].latency_s
    return latency_s + data_bytes / bandwidth(snapshot, source, target)


@kernel
def transfer_s(snapshot: Snapshot, task: int, node: int) -> float:
    """Time until all inputs of a ready task are on a node, the transfers running side by side."""
    longest = 0.0
    row = snapshot.tasks[task]
    for index in range(row.parent_start, row.parent_end):
        edge = snapshot.parents[index]
        source = snapshot.tasks[edge.task].node
        longest = max(longest, edge_s(snapshot, edge.data_bytes, source, node))
    return longest


@kernel
def local_bytes(snapshot: Snapshot, task: int, node: int) -> float:
    """Input bytes of a task that already lie on a node."""
    local = 0.0
    row = snapshot.tasks[task]
    for index in range(row.parent_start, row.parent_end):
        edge = snapshot.parents[index]
        if snapshot.tasks[edge.task].node == node:
            local += edge.data_bytes
    return local


@kernel
def startup_s(snapshot: Snapshot, task: int, node: int) -> float:
    """Expected container start and image pull of a task on a node."""
    status = snapshot.status[0]
    image = snapshot.tasks[task].image
    if snapshot.shapes[snapshot.tasks[task].shape].is_virtual:
        return 0.0
    pull_s = 0.0
    if status.registry_bytes_per_s > 0.0 and image >= 0 and snapshot.node_images[node, image] == 0:
        pull_s = snapshot.image_bytes[image] / status.registry_bytes_per_s
    return status.startup_s + pull_s


@kernel
def busy_s(snapshot: Snapshot, task: int, node: int) -> float:
    """Expected time from placement to finish: start-up, transfers, run."""
    return (
        startup_s(snapshot, task, node)
        + transfer_s(snapshot, task, node)
        + runtime_s(snapshot, task, node)
    )


@kernel
def end_s(snapshot: Snapshot, task: int) -> float:
    """When a bound task is expected to leave its nodes, in the light of how long it took so far."""
    row = snapshot.tasks[task]
    now_s = snapshot.status[0].now_s
    return max(row.end_s, now_s + _OVERDUE * (now_s - row.start_s))


@kernel
def usd_per_h(snapshot: Snapshot, shape: int, node: int) -> float:
    """Price of one worker of a shape on a node: the node's, by the largest share that it takes."""
    share = 0.0
    for resource in range(snapshot.node_free.shape[1]):
        amount = snapshot.shape_request[shape, resource]
        if amount > 0:
            share = max(share, amount / max(snapshot.node_allocatable[node, resource], 1))
    return share * snapshot.nodes[node].price_usd_per_h


@kernel
def communication_s(snapshot: Snapshot, task: int) -> float:
    """Extra run time of a multi-worker task from the spread of its (placed) workers.

    A ring exchange over the slowest link between neighbours: every worker moves
    `2 (w - 1) / w * comm_bytes` (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
    for clusters of workstations", JPDC 69(2), 2009); on one node the GPU link carries it.
    """
    row = snapshot.tasks[task]
    count = row.num_workers
    if count <= 1 or row.comm_bytes <= 0.0:
        return 0.0
    slowest = snapshot.nodes[snapshot.workers[row.worker_start].node].gpu_link_bytes_per_s
    latency_s = 0.0
    for index in range(count):
        here = snapshot.workers[row.worker_start + index].node
        there = snapshot.workers[row.worker_start + (index + 1) % count].node
        if here != there:
            slowest = min(slowest, bandwidth(snapshot, here, there))
            latency_s = max(latency_s, snapshot.links[tier(snapshot, here, there)].latency_s)
    return latency_s + 2.0 * (count - 1) / count * row.comm_bytes / slowest
