"""Batch mapping: look at all ready tasks at once, place one, look again.

The loop behind Min-Min, Max-Min and Sufferage. A decision looks at the first `WINDOW` tasks of
each shape, so that its cost does not grow with the length of the queue.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import arbiter, estimates, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory

MIN_MIN: Final = 0
MAX_MIN: Final = 1
SUFFERAGE: Final = 2

WINDOW: Final = 32
"""Tasks of one shape that a decision looks at."""
_MAX_TASKS: Final = 512


@kernel
def batch_schedule(snapshot: Snapshot, memory: Memory, limit: int, mode: int) -> int:
    """Place up to `limit` ready tasks in the order of `mode`; returns how many."""
    status = snapshot.status[0]
    for index in range(status.num_incoming):
        queue.push(snapshot, snapshot.incoming[index])
    status.num_incoming = 0
    placed = 0
    tasks = np.empty(_MAX_TASKS, np.int64)
    best = np.empty(_MAX_TASKS, np.int64)
    second = np.empty(_MAX_TASKS, np.int64)
    best_s = np.empty(_MAX_TASKS)
    second_s = np.empty(_MAX_TASKS)
    while placed < limit:
        # 1. The window, and each task's two best nodes.
        count = _collect(snapshot, tasks)
        for index in range(count):
            _rate(snapshot, tasks[index], index, best, second, best_s, second_s)
        # 2. Place task after task; only those that wanted the node just used look again.
        placed_before = placed
        while placed < limit:
            index = _choose(snapshot, count, tasks, best, best_s, second_s, mode)
            if index < 0:
                break
            node = best[index]
            if not legality.fits(snapshot, snapshot.tasks[tasks[index]].shape, node):
                # A group of workers has used the node meanwhile.
                _rate(snapshot, tasks[index], index, best, second, best_s, second_s)
                continue
            if arbiter.place_group(snapshot, tasks[index], node):
                placed += 1
            count -= 1
            tasks[index] = tasks[count]
            best[index] = best[count]
            second[index] = second[count]
            best_s[index] = best_s[count]
            second_s[index] = second_s[count]
            for other in range(count):
                if best[other] == node or second[other] == node:
                    _rate(snapshot, tasks[other], other, best, second, best_s, second_s)
        if placed == placed_before:
            break
    return placed


@kernel
def _collect(snapshot: Snapshot, tasks: NDArray[np.int64]) -> int:
    """The first tasks of every shape that may fit; starving ones alone while there are any."""
    count = 0
    starving = False
    for index in range(snapshot.status[0].num_active):
        row = snapshot.shapes[snapshot.active[index]]
        if row.blocked == 1 or not legality.within_quota(snapshot, snapshot.active[index]):
            continue
        if snapshot.tasks[snapshot.queue[row.queue_start]].boost == -1 and not starving:
            starving = True
            count = 0
        for position in range(min(row.queue_size, WINDOW)):
            task = snapshot.queue[row.queue_start + position]
            if count < _MAX_TASKS and (not starving or snapshot.tasks[task].boost == -1):
                tasks[count] = task
                count += 1
    return count


@kernel
def _rate(
    snapshot: Snapshot,
    task: int,
    index: int,
    best: NDArray[np.int64],
    second: NDArray[np.int64],
    best_s: NDArray[np.float64],
    second_s: NDArray[np.float64],
) -> None:
    """Expected time to finish on the best and the second-best legal node."""
    shape = snapshot.tasks[task].shape
    best[index] = -1
    second[index] = -1
    best_s[index] = math.inf
    second_s[index] = math.inf
    some = False
    for node in range(snapshot.nodes.shape[0]):
        if not legality.fits(snapshot, shape, node):
            continue
        some = True
        if not legality.is_open(snapshot, task, node):
            continue
        seconds = estimates.busy_s(snapshot, task, node)
        if seconds < best_s[index]:
            second_s[index] = best_s[index]
            second[index] = best[index]
            best_s[index] = seconds
            best[index] = node
        elif seconds < second_s[index]:
            second_s[index] = seconds
            second[index] = node
    if not some:
        snapshot.shapes[shape].blocked = 1


@kernel
def _choose(
    snapshot: Snapshot,
    count: int,
    tasks: NDArray[np.int64],
    best: NDArray[np.int64],
    best_s: NDArray[np.float64],
    second_s: NDArray[np.float64],
    mode: int,
) -> int:
    """Position of the task that goes next, earliest arrival among equals; -1 if none fits."""
    chosen = -1
    chosen_value = -math.inf
    for index in range(count):
        if best[index] < 0:
            continue
        if mode == MIN_MIN:
            value = -best_s[index]
        elif mode == MAX_MIN:
            value = best_s[index]
        else:
            value = second_s[index] - best_s[index]
        if (
            chosen < 0
            or value > chosen_value
            or (
                value == chosen_value
                and snapshot.tasks[tasks[index]].sequence < snapshot.tasks[tasks[chosen]].sequence
            )
        ):
            chosen = index
            chosen_value = value
    return chosen
