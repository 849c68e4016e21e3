"""Rollout: how the workflows that are here would fare under a rule, by estimates alone.

A copy of the snapshot is played forward: bound tasks end when they are expected to, the rule
places what becomes ready, until every present workflow is done. Nothing arrives, nothing fails
and run times are as estimated, so a rollout says which rule suits what is here, not what will be.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import FINISHED, Snapshot
from dagsail.kernels import entry, kernel
from dagsail.scheduling import arbiter, estimates, listing, queue
from dagsail.scheduling.listing import Memory, Rules

FLOW_S: Final = 0
COMPLETE: Final = 1
NUM_OUTCOMES: Final = 2
"""What a rollout tells: sum of completion times, and 1 if every workflow ended."""


@entry
def roll_out(
    snapshot: Snapshot,
    memory: Memory,
    rules: Rules,
    limit: int,
    heap: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Play a scratch snapshot forward to the end, or until so many tasks are placed.

    What is cut off there counts as ending after the longest path that it has left.

    Args:
        snapshot: a copy; changed.
        memory: of the rule, for this rollout alone.
        rules: the rule.
        limit: most placements.
        heap: room for a heap of the bound tasks. int64 (T,)
        out: of NUM_OUTCOMES.
    """
    status = snapshot.status[0]
    out[:] = 0.0
    # 1. Those under way end when expected, those queued are ordered by this rule.
    size = 0
    left = limit
    for index in range(status.num_bound):
        task = snapshot.bound[index]
        snapshot.tasks[task].end_s = estimates.end_s(snapshot, task)
        size = _push(snapshot, heap, size, task)
    take_over(snapshot, memory, rules)
    while left > 0:
        # 2. Decide; what was placed joins the heap.
        if status.num_ready > 0:
            status.stamp += 1
            status.num_placed = 0
            left -= listing.decide(snapshot, memory, left, rules)
            queue.restore(snapshot)
            for index in range(status.num_placed):
                size = _push(snapshot, heap, size, snapshot.placed[index])
        if size == 0:
            break
        # 3. On to the next end.
        status.now_s = snapshot.tasks[heap[0]].end_s
        while size > 0 and snapshot.tasks[heap[0]].end_s <= status.now_s:
            task = heap[0]
            size = _pop(snapshot, heap, size)
            _finish(snapshot, task, out)
    # 4. What came of it.
    out[COMPLETE] = 1.0 if status.num_ready == 0 or left == 0 else 0.0
    for workflow in range(status.num_arrived):
        flow = snapshot.workflows[workflow]
        if flow.tasks_left > 0:
            out[FLOW_S] += status.now_s + _path_left_s(snapshot, workflow) - flow.arrival_s


@kernel
def _finish(snapshot: Snapshot, task: int, out: NDArray[np.float64]) -> None:
    row = snapshot.tasks[task]
    status = snapshot.status[0]
    arbiter.release(snapshot, task)
    row.state = FINISHED
    status.finished_version += 1
    flow = snapshot.workflows[row.workflow]
    flow.tasks_left -= 1
    flow.remaining_s -= row.mean_s * row.num_workers
    if flow.tasks_left == 0:
        out[FLOW_S] += status.now_s - flow.arrival_s
    for index in range(row.child_start, row.child_end):
        child = snapshot.children[index].task
        snapshot.tasks[child].parents_left -= 1
        if snapshot.tasks[child].parents_left == 0:
            queue.make_ready(snapshot, child)


@kernel
def _path_left_s(snapshot: Snapshot, workflow: int) -> float:
    flow = snapshot.workflows[workflow]
    longest_s = 0.0
    for task in range(flow.first_task, flow.first_task + flow.num_tasks):
        if snapshot.tasks[task].state < FINISHED:
            longest_s = max(longest_s, snapshot.tasks[task].upward_rank_s)
    return longest_s


@entry
def take_over(snapshot: Snapshot, memory: Memory, rules: Rules) -> None:
    """Order what is queued by another rule."""
    listing.drain_incoming(snapshot, memory, rules.key)
    listing.rekey(snapshot, memory, rules.key)


@entry
def present_tasks(snapshot: Snapshot) -> int:
    """Number of tasks of the workflows that are here and not done."""
    count = 0
    for index in range(snapshot.status[0].num_arrived):
        count += snapshot.workflows[index].tasks_left
    return count


@entry
def synchronise(source: Snapshot, target: Snapshot) -> None:
    """Make an earlier copy equal again in all that a rollout reads: what is here, not what was."""
    stamp = max(target.status[0].stamp, source.status[0].stamp) + 1
    target.status[:] = source.status
    target.status[0].stamp = stamp  # memories know their caches by it, and by nodes' versions
    for node in range(source.nodes.shape[0]):
        version = max(target.nodes[node].version, source.nodes[node].version) + 1
        target.nodes[node] = source.nodes[node]
        target.nodes[node].version = version
    target.histories[:] = source.histories
    target.ratios[:] = source.ratios
    target.shapes[:] = source.shapes
    target.node_free[:] = source.node_free
    target.node_devices[:] = source.node_devices
    target.node_images[:] = source.node_images
    target.tenant_used[:] = source.tenant_used
    target.active[:] = source.active
    status = source.status[0]
    target.bound[: status.num_bound] = source.bound[: status.num_bound]
    target.incoming[: status.num_incoming] = source.incoming[: status.num_incoming]
    for index in range(status.num_active):
        row = source.shapes[source.active[index]]
        first, last = row.queue_start, row.queue_start + row.queue_size
        target.queue[first:last] = source.queue[first:last]
    for index in range(status.num_arrived):
        flow = source.workflows[index]
        target.workflows[index] = flow
        if flow.tasks_left == 0:
            continue
        first, last = flow.first_task, flow.first_task + flow.num_tasks
        target.tasks[first:last] = source.tasks[first:last]
        first = source.tasks[first].worker_start
        last = source.tasks[last - 1].worker_start + source.tasks[last - 1].num_workers
        target.workers[first:last] = source.workers[first:last]


@kernel
def _ends_before(snapshot: Snapshot, a: int, b: int) -> bool:
    left, right = snapshot.tasks[a], snapshot.tasks[b]
    return left.end_s < right.end_s or (left.end_s == right.end_s and a < b)


@kernel
def _push(snapshot: Snapshot, heap: NDArray[np.int64], size: int, task: int) -> int:
    position = size
    while position > 0 and _ends_before(snapshot, task, heap[(position - 1) // 2]):
        heap[position] = heap[(position - 1) // 2]
        position = (position - 1) // 2
    heap[position] = task
    return size + 1


@kernel
def _pop(snapshot: Snapshot, heap: NDArray[np.int64], size: int) -> int:
    size -= 1
    task = heap[size]
    position = 0
    while 2 * position + 1 < size:
        below = 2 * position + 1
        if below + 1 < size and _ends_before(snapshot, heap[below + 1], heap[below]):
            below += 1
        if not _ends_before(snapshot, heap[below], task):
            break
        heap[position] = heap[below]
        position = below
    heap[position] = task
    return size
