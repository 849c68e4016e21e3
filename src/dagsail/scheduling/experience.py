"""Experience: what has been learned from attempts that ended, kept in the snapshot.

For each kind of task the real run times of the last 7 days and how far they were off the estimate
on each type of node, for each family of workflows its completion times, for each node its failures
and its use over the last minutes. Whoever executes calls `note_end` and `note_flow`; the arbiter
keeps the use up to date. Policies see none of it before it has happened.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import NUM_BINS, Snapshot
from dagsail.kernels import inlined, kernel

RECENT_S: Final = 300.0
"""Time constant of the mean use of a node."""
_BINS_A_DOUBLING: Final = 4
_DAY_S: Final = 86400.0
_DAYS: Final = 7
_FORGET_RATIO: Final = 0.98
"""What an observation of a node or a type of node weighs after the next one."""
_REFRESH: Final = 16
"""The percentiles of a kind are worked out anew after so many ends."""


@inlined
def _bin_of(seconds: float) -> int:
    """Quarter doublings of 1 + seconds: 19 % apart, up to 18 hours; the last bin is open."""
    return min(int(_BINS_A_DOUBLING * math.log2(1.0 + max(seconds, 0.0))), NUM_BINS - 1)


@inlined
def _upper_s(position: int) -> float:
    return 2.0 ** ((position + 1) / _BINS_A_DOUBLING) - 1.0


@kernel
def note_end(snapshot: Snapshot, task: int, run_s: float, finished: bool) -> None:
    """An attempt ended by itself: after `run_s` from its start if it finished, or it failed."""
    row = snapshot.tasks[task]
    node = snapshot.nodes[row.node]
    node.starts = _FORGET_RATIO * node.starts + 1.0
    node.failures = _FORGET_RATIO * node.failures + (0.0 if finished else 1.0)
    if not finished:
        return
    _note(snapshot, row.kind, run_s)
    expected_s = row.estimate_s * snapshot.runtime_factor[row.runtime_row, node.type]
    ratio = snapshot.ratios[row.kind, node.type]
    ratio.weight = _FORGET_RATIO * ratio.weight + 1.0
    ratio.total = _FORGET_RATIO * ratio.total + math.log((run_s + 1.0) / (expected_s + 1.0))


@kernel
def note_flow(snapshot: Snapshot, workflow: int, flow_s: float) -> None:
    """A workflow was completed `flow_s` after its arrival."""
    _note(snapshot, snapshot.workflows[workflow].family, flow_s)


@kernel
def _note(snapshot: Snapshot, subject: int, seconds: float) -> None:
    """Enter one duration into the windows of a kind or family."""
    now_s = snapshot.status[0].now_s
    history = snapshot.histories[subject]
    # 1. The day, for the percentiles of 7 days.
    day = int(now_s / _DAY_S)
    first = (day % _DAYS) * (NUM_BINS + 1)
    bins = snapshot.days
    if bins[subject, first + NUM_BINS] != day:
        for position in range(NUM_BINS):
            bins[subject, first + position] = 0
        bins[subject, first + NUM_BINS] = day
    bins[subject, first + _bin_of(seconds)] += 1
    # 2. What is read often.
    history.count += 1
    if history.count <= _REFRESH or history.count % _REFRESH == 0:
        _refresh(snapshot, subject)


@kernel
def _refresh(snapshot: Snapshot, subject: int) -> None:
    history = snapshot.histories[subject]
    week = np.zeros(NUM_BINS)
    today = int(snapshot.status[0].now_s / _DAY_S)
    for day in range(_DAYS):
        first = day * (NUM_BINS + 1)
        if snapshot.days[subject, first + NUM_BINS] > today - _DAYS:
            for position in range(NUM_BINS):
                week[position] += snapshot.days[subject, first + position]
    history.p95_s = _percentile_s(week, 0.95)
    history.p99_s = _percentile_s(week, 0.99)


@kernel
def _percentile_s(counts: NDArray[np.float64], share: float) -> float:
    """Upper edge of the bin in which the cumulative count reaches a share of all."""
    wanted = share * counts.sum()
    seen = 0.0
    for position in range(NUM_BINS):
        seen += counts[position]
        if seen >= wanted:
            return _upper_s(position)
    return _upper_s(NUM_BINS - 1)


@kernel
def deviation(snapshot: Snapshot, kind: int, node_type: int) -> float:
    """Mean log of real over expected run time of a kind on a type of node; 0 without history.

    Shrunk towards 0 as long as little has been seen, as by one observation without deviation.
    """
    ratio = snapshot.ratios[kind, node_type]
    return ratio.total / (ratio.weight + 1.0)


@kernel
def failure_ratio(snapshot: Snapshot, node: int) -> float:
    """Share of the latest attempts on a node that failed, as if one more had not."""
    return snapshot.nodes[node].failures / (snapshot.nodes[node].starts + 1.0)


@kernel
def age_use(snapshot: Snapshot, node: int) -> None:
    """Bring the mean use of a node up to now; to be called before its free amounts change."""
    here = snapshot.nodes[node]
    here.cpu_use, here.gpu_use = recent_use(snapshot, node)
    here.used_s = snapshot.status[0].now_s


@kernel
def recent_use(snapshot: Snapshot, node: int) -> tuple[float, float]:
    """Mean share of a node's cpu and GPUs in use over some 5 minutes (exponentially weighted)."""
    here = snapshot.nodes[node]
    now_s = snapshot.status[0].now_s
    weight = 1.0 if now_s == here.used_s else math.exp((here.used_s - now_s) / RECENT_S)
    cpu_use = weight * here.cpu_use + (1.0 - weight) * used_share(snapshot, node, 0)
    if here.gpu_column < 0:
        return cpu_use, 0.0
    gpu_use = used_share(snapshot, node, here.gpu_column)
    return cpu_use, weight * here.gpu_use + (1.0 - weight) * gpu_use


@inlined
def used_share(snapshot: Snapshot, node: int, resource: int) -> float:
    """Share of one resource of a node that is in use; 0 where the node has none."""
    allocatable = snapshot.node_allocatable[node, resource]
    if allocatable == 0:
        return 0.0
    return 1.0 - snapshot.node_free[node, resource] / allocatable
