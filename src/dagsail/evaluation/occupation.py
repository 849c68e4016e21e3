"""Occupation: which amounts lie on which node at which time.

Everything here is a sort of starts and ends followed by a running sum; no loop runs over attempts.
Foreign load and absent nodes are not part of a run's record: a node counts as whole all the time.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.snapshot import Snapshot
from dagsail.evaluation.window import Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_TYPICAL_SHAPES: Final = 32
_SECONDS_PER_HOUR: Final = 3600.0


class Occupation(NamedTuple):
    """One row for each worker of each attempt that held resources; K rows."""

    attempt: Ints  # (K,): row of `run.attempts`
    node: Ints  # (K,)
    start_s: Floats  # (K,)
    end_s: Floats  # (K,)
    request: Ints  # (K, R)


class Steps(NamedTuple):
    """What each node holds between one change of it and the next; M rows, by node, then time."""

    node: Ints  # (M,)
    start_s: Floats  # (M,)
    seconds: Floats  # (M,)
    used: Ints  # (M, R)


def occupation(run: Run) -> Occupation:
    """The rows of a run, in order of `run.attempts`."""
    attempts, tasks = run.attempts, run.snapshot.tasks
    started = np.flatnonzero((attempts["node"] >= 0) & np.isfinite(attempts["start_s"]))
    workers = tasks["num_workers"][attempts["task"][started]]
    rows = np.repeat(started, workers)
    node = attempts["node"][rows].astype(np.int64)
    in_group = np.repeat(workers > 1, workers)
    worker = np.arange(len(rows)) - np.repeat(np.cumsum(workers) - workers, workers)
    slots = attempts["worker_start"][rows] + worker
    node[in_group] = run.attempt_workers[slots[in_group]]
    return Occupation(
        rows,
        node,
        attempts["start_s"][rows],
        attempts["end_s"][rows],
        run.snapshot.shape_request[attempts["shape"][rows]],
    )


def steps(held: Occupation, num_nodes: int, window: Window) -> Steps:
    """What each node holds over a window; every node's rows cover the window without a gap."""
    first = np.full(num_nodes, window.start_s)
    time = np.concatenate([first, held.start_s, held.end_s]).clip(window.start_s, window.end_s)
    node = np.concatenate([np.arange(num_nodes), held.node, held.node])
    none = np.zeros((num_nodes, held.request.shape[1]), np.int64)
    change = np.concatenate([none, held.request, -held.request])
    order = np.lexsort((time, node))
    time, node = time[order], node[order]
    # One running sum serves all nodes: all that is put on a node is also taken off it.
    used = np.cumsum(change[order], axis=0)
    following = np.append(time[1:], window.end_s)
    following[np.append(node[1:] != node[:-1], True)] = window.end_s
    return Steps(node, time, following - time, used)


def expected_work(snapshot: Snapshot) -> Floats:
    """Request x workers x mean runtime of each task. float64 (T, R)."""
    tasks = snapshot.tasks
    seconds = tasks["mean_s"] * tasks["num_workers"]
    work: Floats = seconds[:, None] * snapshot.shape_request[tasks["shape"]]
    return work


def dominating_resource(snapshot: Snapshot) -> int:
    """Column of the resource that the expected work of all tasks fills for longest."""
    capacity = snapshot.node_allocatable.sum(axis=0)
    busy_s = expected_work(snapshot).sum(axis=0) / np.maximum(capacity, 1)
    return int(np.argmax(busy_s))


def shares(amounts: Ints, allocatable: Ints) -> Floats:
    """Each amount over what the node has of it; 0 of 0 is 0. Both (M, R)."""
    return amounts / np.maximum(allocatable, 1)


def utilisation(changes: Steps, snapshot: Snapshot, resource: int) -> float:
    """Share of the cluster's amount of a resource that is held, averaged over the window."""
    capacity = float(snapshot.node_allocatable[:, resource].sum())
    span_s = float(changes.seconds.sum()) / len(snapshot.nodes)
    return _ratio(float(changes.used[:, resource] @ changes.seconds), capacity * span_s)


def node_load_std(changes: Steps, snapshot: Snapshot) -> float:
    """Standard deviation over nodes of their load, averaged over the window.

    The load of a node is its dominant share: the largest share of any of its resources in use.
    """
    num_nodes = len(snapshot.nodes)
    load = shares(changes.used, snapshot.node_allocatable[changes.node]).max(axis=1)
    is_first = np.append(True, changes.node[1:] != changes.node[:-1])
    before = np.where(is_first, 0.0, np.append(0.0, load[:-1]))
    order = np.argsort(changes.start_s, kind="stable")
    time = changes.start_s[order]
    total = np.cumsum((load - before)[order])
    squares = np.cumsum((load**2 - before**2)[order])
    variance = squares / num_nodes - (total / num_nodes) ** 2
    span_s = float(changes.seconds.sum()) / num_nodes
    end_s = time[0] + span_s
    seconds = np.diff(time, append=end_s)
    return _ratio(float(np.sqrt(variance.clip(0.0)) @ seconds), span_s)


def fragmentation(changes: Steps, snapshot: Snapshot, resource: int) -> float:
    """Share of the free amount of a resource that typical requests cannot use, over the window.

    After the fragmentation measure of Weng et al., "Beware of Fragmentation", USENIX ATC 2023:
    the free amount of a node is lost to a request that does not fit into what the node has left,
    weighted by the popularity of the request. Other than there, a pair counts only if the request
    would fit the empty node, so that an empty cluster has none (nor has a full one); the devices of
    a node are taken as one amount.
    """
    shapes = snapshot.shapes
    popular = np.argsort(-shapes["num_tasks"], kind="stable")[:_TYPICAL_SHAPES]
    lasting = changes.seconds > 0
    node = changes.node[lasting]
    free = (snapshot.node_allocatable[node] - changes.used[lasting]).T.copy()
    weight = free[resource] * changes.seconds[lasting]
    lost = offered = 0.0
    for shape in popular[shapes["num_tasks"][popular] > 0]:
        popularity = float(shapes["num_tasks"][shape])
        counted = weight * snapshot.shape_node[shape]["eligible"][node]
        lacks = np.zeros(len(node), bool)
        for column in np.flatnonzero(snapshot.shape_request[shape]):
            lacks |= free[column] < snapshot.shape_request[shape, column]
        offered += popularity * float(counted.sum())
        lost += popularity * float(counted[lacks].sum())
    return lost / offered if offered > 0 else 0.0


class Costs(NamedTuple):
    """Money for what attempts held, failed ones included."""

    total_usd: float
    gpu_nodes_usd: float
    by_resource_usd: Floats
    """By the resource of which a worker held the largest share of its node. (R,)"""


def costs(held: Occupation, snapshot: Snapshot) -> Costs:
    """Price of a node x the dominant share of it that a worker held x the time it held it."""
    share = shares(held.request, snapshot.node_allocatable[held.node])
    price = snapshot.nodes["price_usd_per_h"][held.node] / _SECONDS_PER_HOUR
    cost: Any = share.max(axis=1) * price * (held.end_s - held.start_s)
    has_gpu = snapshot.nodes["num_gpus"][held.node] > 0
    by_resource: Any = np.bincount(share.argmax(axis=1), cost, minlength=share.shape[1])
    return Costs(float(cost.sum()), float(cost[has_gpu].sum()), by_resource)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else float("nan")
