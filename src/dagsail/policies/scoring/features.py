"""Features: the numbers of `schema`, computed from a snapshot. Kernels that fill arrays."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import entry, inlined, kernel
from dagsail.policies.packing import alignment, unusable
from dagsail.policies.scoring import outlook
from dagsail.scheduling import estimates, experience
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory

Row = NDArray[np.float64]

NUM_OPTIONS: Final = 5

_DAY_S = 86400.0
_START_S = 300.0
_LOG_DAY = math.log1p(_DAY_S)
_NO_TIME_S = 0.01
"""Added to both sides of ratios of times, so that times of nothing compare as equal."""


@inlined
def clip(value: float, low: float, high: float) -> float:
    """`value`, or the bound that it exceeds."""
    return min(max(value, low), high)


@inlined
def log_s(seconds: float) -> float:
    """The unit `log s` of the schema."""
    return clip(math.log1p(max(seconds, 0.0)) / _LOG_DAY, 0.0, 2.0)


@inlined
def _signed_log_ratio(a_s: float, b_s: float) -> float:
    return clip(math.log((a_s + _NO_TIME_S) / (b_s + _NO_TIME_S)), -3.0, 3.0)


@kernel
def _usd(snapshot: Snapshot, task: int, node: int) -> float:
    """Cost of a task on a node in thousandths, so that `_NO_TIME_S` is little beside it."""
    shape = snapshot.tasks[task].shape
    run_s = estimates.runtime_s(snapshot, task, node)
    return run_s * estimates.usd_per_h(snapshot, shape, node) / 3.6


@inlined
def _log_ratio(a_s: float, b_s: float) -> float:
    return clip(math.log((a_s + _NO_TIME_S) / (b_s + _NO_TIME_S)), 0.0, 3.0)


@entry
def task_features(snapshot: Snapshot, memory: Memory, task: int, out: Row) -> None:
    """Fill `out` with `schema.TASK` of a ready task. float64 (NUM_TASK,)."""
    changing_features(snapshot, task, out)
    lasting_features(snapshot, memory, task, out)


@kernel
def changing_features(snapshot: Snapshot, task: int, out: Row) -> None:
    """The first NUM_CHANGING features of a task: those that depend on more than the task."""
    row = snapshot.tasks[task]
    flow = snapshot.workflows[row.workflow]
    now_s = snapshot.status[0].now_s
    age_s = now_s - flow.arrival_s
    out[0] = log_s(flow.remaining_s)
    out[1] = clip(row.upward_rank_s / (flow.remaining_s + 1e-9), 0.0, 2.0)
    out[2] = log_s(age_s)
    out[3] = log_s(now_s - row.ready_s)
    out[4] = 1.0
    if row.deadline_s < math.inf:
        slack_s = row.deadline_s - now_s - row.upward_rank_s
        out[4] = clip(slack_s / (row.upward_rank_s + 1.0), -1.0, 3.0) / 3.0
    out[5] = clip((row.start_deadline_s - now_s) / _START_S, -1.0, 1.0)
    out[6] = flow.tasks_left / flow.num_tasks
    ahead = (age_s + row.upward_rank_s + 1.0) / (flow.critical_path_s + 1.0)
    out[7] = clip(math.log(ahead) / 3.0, -1.0, 1.0)
    history = snapshot.histories[row.kind]
    usual_s = history.p99_s if history.count > 0 else _DAY_S
    out[8] = clip(math.log1p(row.mean_s) / math.log1p(usual_s + _NO_TIME_S), 0.0, 1.0)
    out[9] = _mean_deviation(snapshot, row.kind)


@kernel
def lasting_features(snapshot: Snapshot, memory: Memory, task: int, out: Row) -> None:
    """The other features of a task, which stay as they are through an attempt."""
    row = snapshot.tasks[task]
    out[10] = log_s(row.upward_rank_s)
    out[11] = log_s(row.mean_s)
    out[12] = row.priority / 3.0
    out[13] = 1.0 if snapshot.shapes[row.shape].gpu_milli > 0 else 0.0
    share = _largest_share(snapshot, memory, row.shape) * row.num_workers
    out[14] = clip(math.log1p(100.0 * share) / math.log1p(100.0), 0.0, 1.0)
    out[15] = clip(math.log1p(row.child_end - row.child_start) / 5.0, 0.0, 3.0)
    out[16] = log_s(row.mean_s * row.num_workers)
    out[17] = row.is_critical
    out[18] = clip(row.io_demand, 0.0, 1.0)
    out[19] = clip(row.memory_bandwidth_demand, 0.0, 1.0)
    out[20] = clip(math.log(row.num_workers) / 2.0, 0.0, 2.0)


@kernel
def _mean_deviation(snapshot: Snapshot, kind: int) -> float:
    """Mean over the types of node, by how much has been seen on each."""
    weight = 1.0
    total = 0.0
    for index in range(snapshot.ratios.shape[1]):
        weight += snapshot.ratios[kind, index].weight
        total += snapshot.ratios[kind, index].total
    return clip(total / weight, -1.0, 1.0)


@kernel
def _largest_share(snapshot: Snapshot, memory: Memory, shape: int) -> float:
    """Largest share of the cluster, over the resources, that one worker of a shape asks for."""
    share = 0.0
    for resource in range(memory.capacity.shape[0]):
        amount = snapshot.shape_request[shape, resource]
        if amount > 0:
            share = max(share, amount / max(memory.capacity[resource], 1.0))
    return share


@entry
def find_options(snapshot: Snapshot, task: int, options: Row) -> bool:
    """What the task's nodes offer at best; returns whether any has room for one worker.

    Args:
        snapshot: of the instant.
        task: a ready task.
        options: filled with the least time to finish on a node that has room and is open (inf if
            there is none), the least run time and the least price on any node that it may use, the
            bytes of its inputs, and that first node. float64 (NUM_OPTIONS,)
    """
    shape = snapshot.tasks[task].shape
    best_s = math.inf
    fastest_s = math.inf
    cheapest = math.inf
    has_room = False
    for node in range(snapshot.nodes.shape[0]):
        if snapshot.shape_node[shape, node].eligible == 0:
            continue
        run_s = estimates.runtime_s(snapshot, task, node)
        fastest_s = min(fastest_s, run_s)
        cheapest = min(cheapest, run_s * estimates.usd_per_h(snapshot, shape, node))
        if legality.fits(snapshot, shape, node):
            has_room = True
            if run_s < best_s and legality.is_open(snapshot, task, node):
                busy_s = estimates.busy_s(snapshot, task, node)
                if busy_s < best_s:
                    best_s = busy_s
                    options[4] = node
    options[0] = best_s
    options[1] = fastest_s
    options[2] = cheapest
    options[3] = _input_bytes(snapshot, task)
    return has_room


@kernel
def _input_bytes(snapshot: Snapshot, task: int) -> float:
    row = snapshot.tasks[task]
    total = 0.0
    for index in range(row.parent_start, row.parent_end):
        total += snapshot.parents[index].data_bytes
    return total


@entry
def pair_features(
    snapshot: Snapshot, memory: Memory, task: int, node: int, options: Row, out: Row
) -> None:
    """Fill `out` with `schema.PAIR` of a ready task and a node with room. float64 (NUM_PAIR,)."""
    row = snapshot.tasks[task]
    busy_s = estimates.busy_s(snapshot, task, node)
    run_s = estimates.runtime_s(snapshot, task, node)
    out[0] = _log_ratio(busy_s, options[0])
    out[1] = _log_ratio(run_s, options[1])
    out[2] = alignment(snapshot, row.shape, node)
    out[3] = _used(snapshot, row.shape, node)
    out[4] = 0.0
    out[5] = 0.0
    if snapshot.nodes[node].num_gpus > 0 and snapshot.shapes[row.shape].gpu_milli == 0:
        out[4] = 1.0
        out[5] = _free_special(snapshot, node)
    out[6] = _fragmentation(snapshot, memory, row.shape, node)
    cost = run_s * estimates.usd_per_h(snapshot, row.shape, node)
    out[7] = clip(math.log((cost + 1e-9) / (options[2] + 1e-9)), 0.0, 4.0) / 4.0
    out[8] = snapshot.nodes[node].is_spot
    out[9] = estimates.local_bytes(snapshot, task, node) / max(options[3], 1.0)
    out[10] = clip((busy_s - options[0]) / (row.upward_rank_s + _NO_TIME_S), 0.0, 2.0)
    end_s = snapshot.status[0].now_s + busy_s
    out[11] = 1.0 if outlook.is_in_the_way(snapshot, memory, node, end_s) else 0.0
    node_type = snapshot.nodes[node].type
    out[12] = clip(experience.deviation(snapshot, row.kind, node_type), -1.0, 1.0)
    link = snapshot.shape_node[row.shape, node]
    out[13] = clip(link.preference / 100.0 - link.untolerated, -1.0, 1.0)


@kernel
def _used(snapshot: Snapshot, shape: int, node: int) -> float:
    """Mean share in use of the resources that a shape asks for, with one worker placed."""
    total = 0.0
    count = 0
    for resource in range(snapshot.node_free.shape[1]):
        amount = snapshot.shape_request[shape, resource]
        allocatable = snapshot.node_allocatable[node, resource]
        if amount > 0 and allocatable > 0:
            total += 1.0 - (snapshot.node_free[node, resource] - amount) / allocatable
            count += 1
    return total / max(count, 1)


@kernel
def _free_special(snapshot: Snapshot, node: int) -> float:
    """Largest free share of a node's resources other than cpu and memory."""
    largest = 0.0
    for resource in range(2, snapshot.node_free.shape[1]):
        allocatable = snapshot.node_allocatable[node, resource]
        if allocatable > 0:
            largest = max(largest, snapshot.node_free[node, resource] / allocatable)
    return largest


@kernel
def _fragmentation(snapshot: Snapshot, memory: Memory, shape: int, node: int) -> float:
    """Growth of what typical tasks cannot use, remembered until the node changes."""
    version = snapshot.nodes[node].version
    if memory.growth_version[shape, node] != version:
        memory.growth_version[shape, node] = version
        memory.growth[shape, node] = _growth(snapshot, memory, shape, node)
    return memory.growth[shape, node]


@kernel
def _growth(snapshot: Snapshot, memory: Memory, shape: int, node: int) -> float:
    growth = 0.0
    for index in range(memory.typical.shape[0]):
        typical = memory.typical[index]
        before = unusable(snapshot, typical, node, -1)
        after = unusable(snapshot, typical, node, shape)
        growth += memory.typical_share[index] * (after - before)
    return growth


@entry
def wait_features(
    snapshot: Snapshot, memory: Memory, task: int, options: Row, limit_s: float, out: Row
) -> tuple[int, float]:
    """Fill `out` with `schema.WAIT` of a ready task for the busy node that finishes it first.

    Args:
        snapshot: of the instant.
        memory: of the policy, with the outlook.
        task: a ready task with room somewhere.
        options: of the task, by `find_options`.
        limit_s: nodes on which it would take longer are left out.
        out: float64 (NUM_WAIT,)

    Returns:
        The node and when the task would start there; -1 and inf if there is none, or if the task
        has several workers. `out` then is not filled.
    """
    row = snapshot.tasks[task]
    now_s = snapshot.status[0].now_s
    if row.num_workers > 1:
        return -1, math.inf
    outlook.look_ahead(snapshot, memory)
    target = -1
    start_s = math.inf
    here_s = options[0]
    there_s = limit_s
    for node in range(snapshot.nodes.shape[0]):
        if snapshot.shape_node[row.shape, node].eligible == 0 or snapshot.nodes[node].state != 0:
            continue
        run_s = estimates.runtime_s(snapshot, task, node)
        if run_s >= there_s or legality.fits(snapshot, row.shape, node):
            continue
        room_s = outlook.room_s(snapshot, memory, row.shape, node)
        if room_s - now_s + run_s < there_s:
            finish_s = room_s - now_s + estimates.busy_s(snapshot, task, node)
            if finish_s < there_s:
                there_s = finish_s
                target = node
                start_s = room_s
    if target >= 0:
        out[0] = 1.0
        out[1] = _signed_log_ratio(here_s, there_s)
        out[2] = clip((here_s - there_s) / (row.upward_rank_s + _NO_TIME_S), -2.0, 2.0)
        num_ready = snapshot.status[0].num_ready
        out[3] = clip(math.log1p(num_ready / snapshot.nodes.shape[0]) / 5.0, 0.0, 3.0)
        out[4] = clip((now_s - row.ready_s) / (row.mean_s + 1.0), 0.0, 3.0)
        out[5] = clip(math.log1p(memory.num_claims[target]), 0.0, 3.0)
        here = int(options[4])
        out[6] = _signed_log_ratio(_usd(snapshot, task, here), _usd(snapshot, task, target))
        out[7] = 0.0
        if snapshot.shapes[row.shape].gpu_milli == 0 and snapshot.nodes[here].num_gpus > 0:
            out[7] = 1.0 if snapshot.nodes[target].num_gpus == 0 else 0.0
    return target, start_s
