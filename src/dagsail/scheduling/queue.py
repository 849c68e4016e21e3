"""The queue of ready tasks: one binary heap a shape, ordered by (boost, key, sequence).

Tasks of one shape fit or do not fit together, so a decision looks only at the heads of the heaps,
however many tasks wait behind them.
"""

from __future__ import annotations

from typing import Final

from dagsail.domain.snapshot import READY, Snapshot
from dagsail.kernels import kernel

_MAX_DEFERRED: Final = 16
"""Tasks of one instant that may be set aside while others of their shape are tried."""


@kernel
def goes_before(snapshot: Snapshot, a: int, b: int) -> bool:
    """Whether task `a` is ahead of task `b`: starving first, then key, then order of arrival."""
    left, right = snapshot.tasks[a], snapshot.tasks[b]
    if left.boost != right.boost:
        return left.boost < right.boost
    if left.key != right.key:
        return left.key < right.key
    return left.sequence < right.sequence


@kernel
def _sift_up(snapshot: Snapshot, start: int, position: int) -> None:
    queue, tasks = snapshot.queue, snapshot.tasks
    task = queue[start + position]
    while position > 0:
        above = (position - 1) // 2
        other = queue[start + above]
        if not goes_before(snapshot, task, other):
            break
        queue[start + position] = other
        tasks[other].queue_position = position
        position = above
    queue[start + position] = task
    tasks[task].queue_position = position


@kernel
def _sift_down(snapshot: Snapshot, start: int, size: int, position: int) -> None:
    queue, tasks = snapshot.queue, snapshot.tasks
    task = queue[start + position]
    while True:
        below = 2 * position + 1
        if below >= size:
            break
        if below + 1 < size and goes_before(
            snapshot, queue[start + below + 1], queue[start + below]
        ):
            below += 1
        other = queue[start + below]
        if not goes_before(snapshot, other, task):
            break
        queue[start + position] = other
        tasks[other].queue_position = position
        position = below
    queue[start + position] = task
    tasks[task].queue_position = position


@kernel
def push(snapshot: Snapshot, task: int) -> None:
    """Queue a ready task under its present key."""
    shape = snapshot.tasks[task].shape
    row = snapshot.shapes[shape]
    if row.queue_size == 0:
        row.blocked = 0  # not kept up to date while no task of the shape was queued
        row.active_position = snapshot.status[0].num_active
        snapshot.active[row.active_position] = shape
        snapshot.status[0].num_active += 1
    snapshot.queue[row.queue_start + row.queue_size] = task
    row.queue_size += 1
    _sift_up(snapshot, row.queue_start, row.queue_size - 1)


@kernel
def take_in(snapshot: Snapshot) -> None:
    """Queue the tasks that became ready since the last decision, under the keys that they have."""
    status = snapshot.status[0]
    for index in range(status.num_incoming):
        push(snapshot, snapshot.incoming[index])
    status.num_incoming = 0


@kernel
def remove(snapshot: Snapshot, task: int) -> None:
    """Take a task out of the queue, wherever it stands."""
    shape = snapshot.tasks[task].shape
    row = snapshot.shapes[shape]
    position = snapshot.tasks[task].queue_position
    snapshot.tasks[task].queue_position = -1
    row.queue_size -= 1
    last = snapshot.queue[row.queue_start + row.queue_size]
    if position < row.queue_size:
        snapshot.queue[row.queue_start + position] = last
        snapshot.tasks[last].queue_position = position
        _sift_up(snapshot, row.queue_start, position)
        _sift_down(snapshot, row.queue_start, row.queue_size, snapshot.tasks[last].queue_position)
    if row.queue_size == 0:
        status = snapshot.status[0]
        status.num_active -= 1
        moved = snapshot.active[status.num_active]
        snapshot.active[row.active_position] = moved
        snapshot.shapes[moved].active_position = row.active_position
        row.active_position = -1


@kernel
def reorder(snapshot: Snapshot) -> None:
    """Restore heap order after the keys of queued tasks have changed."""
    for index in range(snapshot.status[0].num_active):
        row = snapshot.shapes[snapshot.active[index]]
        for position in range(row.queue_size // 2 - 1, -1, -1):
            _sift_down(snapshot, row.queue_start, row.queue_size, position)


@kernel
def defer(snapshot: Snapshot, task: int) -> None:
    """Set a queued task aside for this instant: it waits by choice, those behind it go on."""
    status = snapshot.status[0]
    remove(snapshot, task)
    snapshot.deferred[status.num_deferred] = task
    status.num_deferred += 1


@kernel
def restore(snapshot: Snapshot) -> None:
    """Queue again what was set aside; whoever drives a policy does so after each decision."""
    status = snapshot.status[0]
    for index in range(status.num_deferred):
        if snapshot.tasks[snapshot.deferred[index]].state == READY:
            push(snapshot, snapshot.deferred[index])
    status.num_deferred = 0


@kernel
def make_ready(snapshot: Snapshot, task: int) -> None:
    """Hand a task whose parents are done to the next decision."""
    status = snapshot.status[0]
    row = snapshot.tasks[task]
    row.state = READY
    row.ready_s = status.now_s
    row.sequence = status.sequence
    status.sequence += 1
    snapshot.incoming[status.num_incoming] = task
    status.num_incoming += 1
    status.num_ready += 1
    status.changed = 1


@kernel
def take_out(snapshot: Snapshot, task: int) -> None:
    """A ready task is placed, or must not run any more: it waits no longer."""
    status = snapshot.status[0]
    status.num_ready -= 1
    if snapshot.tasks[task].queue_position >= 0:
        remove(snapshot, task)
        return
    kept = 0
    for index in range(status.num_incoming):
        if snapshot.incoming[index] != task:
            snapshot.incoming[kept] = snapshot.incoming[index]
            kept += 1
    status.num_incoming = kept


@kernel
def pass_over(snapshot: Snapshot, task: int) -> None:
    """Set a task aside for this instant, so that its shape goes on; after many, its shape too."""
    status = snapshot.status[0]
    if status.num_deferred < _MAX_DEFERRED:
        defer(snapshot, task)
    else:
        snapshot.shapes[snapshot.tasks[task].shape].skipped = status.stamp


@kernel
def has_turn(snapshot: Snapshot, shape: int) -> bool:
    """Whether tasks of a shape may fit and are not passed over in this instant."""
    row = snapshot.shapes[shape]
    return row.blocked == 0 and row.skipped != snapshot.status[0].stamp


@kernel
def first_shape(snapshot: Snapshot) -> int:
    """Shape whose head goes first among those neither blocked nor skipped; -1 if there is none."""
    best = -1
    head = -1
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.active[index]
        if not has_turn(snapshot, shape):
            continue
        task = snapshot.queue[snapshot.shapes[shape].queue_start]
        if best < 0 or goes_before(snapshot, task, head):
            best = shape
            head = task
    return best
