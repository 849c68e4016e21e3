"""Batch mapping: look at all ready tasks at once, place one, look again.

The loop behind Min-Min, Max-Min and Sufferage. A decision looks at the first `WINDOW` tasks of
each shape, so that its cost does not grow with the length of the queue. What a task's best nodes
are is remembered within an instant, as long as nothing was placed on them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.policies.rule import make_memory
from dagsail.scheduling import arbiter, estimates, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory

MIN_MIN: Final = 0
MAX_MIN: Final = 1
SUFFERAGE: Final = 2

WINDOW: Final = 32
"""Tasks of one shape that a decision looks at."""
_MAX_TASKS: Final = 512

# Columns of a task's rating in `ints`, after one counter of placements for each node.
_BEST: Final = 0
_SECOND: Final = 1
_BEST_USES: Final = 2
_SECOND_USES: Final = 3
_STAMP: Final = 4
_COLUMNS: Final = 5


def prepare(snapshot: Snapshot, seed: int) -> Memory:
    """`ints`: placements on each node, then the rating of each task; `floats`: its two times."""
    num_tasks = len(snapshot.tasks)
    memory = make_memory(seed, 2 * num_tasks, len(snapshot.nodes) + _COLUMNS * num_tasks)
    memory.ints[len(snapshot.nodes) :] = -1
    return memory


@kernel
def batch_schedule(snapshot: Snapshot, memory: Memory, limit: int, mode: int) -> int:
    """Place up to `limit` ready tasks in the order of `mode`; returns how many."""
    status = snapshot.status[0]
    queue.take_in(snapshot)
    tasks = np.empty(_MAX_TASKS, np.int64)
    placed = 0
    while placed < limit:
        # 1. The window, each task with its two best nodes; 2. the task that goes next.
        count = _collect(snapshot, tasks)
        for index in range(count):
            _rate(snapshot, memory, tasks[index])
        task = _choose(snapshot, memory, tasks[:count], mode)
        if task < 0:
            break
        # 3. Place it; a group that does not fit as a whole holds up its shape.
        row = snapshot.tasks[task]
        if arbiter.place_group(snapshot, task, memory.ints[_rating(snapshot, task) + _BEST]):
            placed += 1
            for slot in range(row.worker_start, row.worker_start + row.num_workers):
                memory.ints[snapshot.workers[slot].node] += 1
        else:
            snapshot.shapes[row.shape].skipped = status.stamp
    return placed


@kernel
def _collect(snapshot: Snapshot, tasks: NDArray[np.int64]) -> int:
    """The first tasks of every shape that may fit; starving ones alone while there are any."""
    count = 0
    starving = False
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.active[index]
        if not queue.has_turn(snapshot, shape) or not legality.within_quota(snapshot, shape):
            continue
        row = snapshot.shapes[shape]
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
def _rating(snapshot: Snapshot, task: int) -> int:
    """Where a task's rating starts in `ints`."""
    return snapshot.nodes.shape[0] + _COLUMNS * task


@kernel
def _is_fresh(snapshot: Snapshot, memory: Memory, task: int) -> bool:
    """Whether a rating is of this instant and nothing was placed on its nodes since."""
    ints = memory.ints
    at = _rating(snapshot, task)
    if ints[at + _STAMP] != snapshot.status[0].stamp:
        return False
    best, second = ints[at + _BEST], ints[at + _SECOND]
    if best >= 0 and ints[best] != ints[at + _BEST_USES]:
        return False
    return second < 0 or ints[second] == ints[at + _SECOND_USES]


@kernel
def _rate(snapshot: Snapshot, memory: Memory, task: int) -> None:
    """Find the best and the second-best legal node and the expected times to finish there."""
    if _is_fresh(snapshot, memory, task):
        return
    shape = snapshot.tasks[task].shape
    best = -1
    second = -1
    best_s = math.inf
    second_s = math.inf
    some = False
    for node in range(snapshot.nodes.shape[0]):
        if not legality.fits(snapshot, shape, node):
            continue
        some = True
        if not legality.is_open(snapshot, task, node):
            continue
        seconds = estimates.busy_s(snapshot, task, node)
        if seconds < best_s:
            second, second_s = best, best_s
            best, best_s = node, seconds
        elif seconds < second_s:
            second, second_s = node, seconds
    if not some:
        snapshot.shapes[shape].blocked = 1
    at = _rating(snapshot, task)
    ints = memory.ints
    ints[at + _BEST] = best
    ints[at + _SECOND] = second
    ints[at + _BEST_USES] = ints[best] if best >= 0 else 0
    ints[at + _SECOND_USES] = ints[second] if second >= 0 else 0
    ints[at + _STAMP] = snapshot.status[0].stamp
    memory.floats[2 * task] = best_s
    memory.floats[2 * task + 1] = second_s


@kernel
def _choose(snapshot: Snapshot, memory: Memory, tasks: NDArray[np.int64], mode: int) -> int:
    """The task that goes next, the earliest arrival among equals; -1 if none fits."""
    chosen = -1
    chosen_value = -math.inf
    for task in tasks:
        if memory.ints[_rating(snapshot, task) + _BEST] < 0:
            continue
        best_s, second_s = memory.floats[2 * task], memory.floats[2 * task + 1]
        if mode == MIN_MIN:
            value = -best_s
        elif mode == MAX_MIN:
            value = best_s
        else:
            value = second_s - best_s
        if (
            chosen < 0
            or value > chosen_value
            or (
                value == chosen_value
                and snapshot.tasks[task].sequence < snapshot.tasks[chosen].sequence
            )
        ):
            chosen = task
            chosen_value = value
    return chosen
