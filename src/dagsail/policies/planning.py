"""Whole-workflow planning: rank the tasks, put each on the node of its best expected finish.

One planner serves HEFT, CPOP, PEFT and lookahead HEFT; they differ in the order and in what a node
is judged by. Tasks are inserted into the gaps of the nodes' time lines, which hold whole resource
vectors, so several tasks may share a node. Data is either pulled by a task that holds its node
meanwhile, as in a cluster, or sent ahead as soon as its parent ends, as in the papers.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import BOUND, FINISHED, PENDING, READY, Snapshot
from dagsail.kernels import entry, kernel
from dagsail.policies import ranking, timeline
from dagsail.policies.rule import make_memory
from dagsail.scheduling import estimates
from dagsail.scheduling.listing import Memory

HEFT: Final = 0
CPOP: Final = 1
PEFT: Final = 2
LOOKAHEAD: Final = 3

UP_TO_DATE: Final = 0
ADDITION: Final = 1
EVERYTHING: Final = 2

HEADER: Final = 5
"""`ints`: steps in use, versions of the snapshot at the last plan, its size; then planned nodes."""
_ARRIVED: Final = 1
_NODES: Final = 2
_FINISHED: Final = 3
_PLANNED: Final = 4


def prepare(snapshot: Snapshot, seed: int) -> Memory:
    """Room for a plan: node, start and end of every task, and the nodes' time lines.

    `ints[HEADER + t]` is the planned node of task `t`, `floats[t]` its start and
    `floats[T + t]` its end.
    """
    num_tasks, num_nodes = len(snapshot.tasks), len(snapshot.nodes)
    memory = make_memory(
        seed,
        2 * num_tasks,
        HEADER + num_tasks,
        table=(num_tasks, snapshot.runtime_factor.shape[1]),
        steps=(num_nodes + 2 * len(snapshot.workers) + 2, snapshot.node_free.shape[1]),
    )
    memory.ints[1:] = -1
    return memory


@entry
def plan(
    snapshot: Snapshot, memory: Memory, method: int, sends_ahead: bool, is_addition: bool
) -> int:
    """Plan the tasks of arrived workflows that have not started; returns how many.

    Args:
        snapshot: of the instant.
        memory: holds the plan.
        method: HEFT, CPOP, PEFT or LOOKAHEAD.
        sends_ahead: data moves as soon as its parent ends, instead of with its child.
        is_addition: keep the plan and add the workflows that arrived since.
    """
    status = snapshot.status[0]
    # 1. What runs keeps its node until its expected end; what is planned keeps its place.
    first = 0
    if is_addition:
        timeline.forget_past(snapshot, memory)
        first = memory.ints[_ARRIVED]
    else:
        timeline.clear(snapshot, memory)
        memory.ints[_FINISHED] = status.finished_version
        memory.ints[_PLANNED] = 0
    pending = _collect(snapshot, memory, first)
    # 2. The order, parents before children.
    if method == PEFT:
        ranking.optimistic_costs(snapshot, memory, pending)
    order = ranking.order_of(snapshot, memory, pending, method == CPOP, method == PEFT)
    pinned = np.full(snapshot.tasks.shape[0] if method == CPOP else 0, -1, np.int64)
    if method == CPOP:
        ranking.pin_critical_paths(snapshot, pinned)
    # 3. Each task on its best node.
    num_tasks = snapshot.tasks.shape[0]
    for index in range(order.shape[0]):
        task = order[index]
        only = pinned[task] if method == CPOP else -1
        node, start_s, end_s = _best(snapshot, memory, task, method, sends_ahead, only)
        memory.ints[HEADER + task] = node
        memory.floats[task] = start_s
        memory.floats[num_tasks + task] = end_s
        if node >= 0:
            timeline.reserve(snapshot, memory, snapshot.tasks[task].shape, node, start_s, end_s)
    memory.ints[_ARRIVED] = status.num_arrived
    memory.ints[_NODES] = status.nodes_version
    memory.ints[_PLANNED] += order.shape[0]
    return order.shape[0]


@kernel
def _collect(snapshot: Snapshot, memory: Memory, first: int) -> NDArray[np.int64]:
    """Tasks to plan, from workflow `first` on; bound ones enter the time lines on the way."""
    now_s = snapshot.status[0].now_s
    pending = np.empty(snapshot.tasks.shape[0], np.int64)
    count = 0
    for index in range(first, snapshot.status[0].num_arrived):
        workflow = snapshot.workflows[index]
        if workflow.tasks_left == 0:
            continue
        for task in range(workflow.first_task, workflow.first_task + workflow.num_tasks):
            row = snapshot.tasks[task]
            if row.state == PENDING or row.state == READY:
                pending[count] = task
                count += 1
            elif row.state == BOUND:
                end_s = _expected_end_s(snapshot, task)
                for slot in range(row.worker_start, row.worker_start + row.num_workers):
                    node = snapshot.workers[slot].node
                    timeline.reserve(snapshot, memory, row.shape, node, now_s, end_s)
    return pending[:count]


@kernel
def _expected_end_s(snapshot: Snapshot, task: int) -> float:
    """End of a bound task; one that is overdue is given a tenth of its estimate more."""
    row = snapshot.tasks[task]
    return max(row.end_s, snapshot.status[0].now_s + 0.1 * row.mean_s)


@kernel
def _best(
    snapshot: Snapshot,
    memory: Memory,
    task: int,
    method: int,
    sends_ahead: bool,
    only: int,
) -> tuple[int, float, float]:
    """Node, start and end of the best placement; `only` (if not -1) is the one node considered."""
    shape = snapshot.tasks[task].shape
    best = -1
    best_value = math.inf
    best_start_s = math.inf
    best_end_s = math.inf
    for node in range(snapshot.nodes.shape[0]):
        if snapshot.shape_node[shape, node].eligible == 0 or snapshot.nodes[node].state != 0:
            continue
        if only >= 0 and node != only:
            continue
        start_s, end_s = _try(snapshot, memory, task, node, sends_ahead)
        value = end_s
        if method == PEFT:
            value += memory.table[task, snapshot.nodes[node].type]
        elif method == LOOKAHEAD:
            value = _latest_child_s(snapshot, memory, task, node, end_s, sends_ahead)
        if value < best_value:
            best = node
            best_value = value
            best_start_s = start_s
            best_end_s = end_s
    return best, best_start_s, best_end_s


@kernel
def _try(
    snapshot: Snapshot, memory: Memory, task: int, node: int, sends_ahead: bool
) -> tuple[float, float]:
    """Start and end of a task if it were put on a node, into the first gap that is long enough."""
    row = snapshot.tasks[task]
    ready_s = snapshot.status[0].now_s
    transfer_s = 0.0
    num_tasks = snapshot.tasks.shape[0]
    for index in range(row.parent_start, row.parent_end):
        edge = snapshot.parents[index]
        parent = snapshot.tasks[edge.task]
        if parent.state == FINISHED:
            source, end_s = parent.node, parent.end_s
        elif parent.state == BOUND:
            source, end_s = parent.node, _expected_end_s(snapshot, edge.task)
        else:
            source, end_s = memory.ints[HEADER + edge.task], memory.floats[num_tasks + edge.task]
        move_s = estimates.edge_s(snapshot, edge.data_bytes, source, node)
        if sends_ahead:
            ready_s = max(ready_s, end_s + move_s)
        else:
            ready_s = max(ready_s, end_s)
            transfer_s = max(transfer_s, move_s)
    duration_s = (
        transfer_s
        + estimates.startup_s(snapshot, task, node)
        + estimates.runtime_s(snapshot, task, node)
    )
    start_s = timeline.earliest_start(snapshot, memory, row.shape, node, ready_s, duration_s)
    return start_s, start_s + duration_s


@kernel
def _latest_child_s(
    snapshot: Snapshot, memory: Memory, task: int, node: int, end_s: float, sends_ahead: bool
) -> float:
    """Latest expected finish among the children, each on its best node, given this placement.

    Only this task's own data is counted; the children's other parents may not be planned yet.
    """
    row = snapshot.tasks[task]
    latest_s = end_s
    for index in range(row.child_start, row.child_end):
        edge = snapshot.children[index]
        shape = snapshot.tasks[edge.task].shape
        best_s = math.inf
        for other in range(snapshot.nodes.shape[0]):
            if snapshot.shape_node[shape, other].eligible == 0:
                continue
            move_s = estimates.edge_s(snapshot, edge.data_bytes, node, other)
            duration_s = estimates.runtime_s(snapshot, edge.task, other)
            ready_s = end_s
            if sends_ahead:
                ready_s += move_s
            else:
                duration_s += move_s
            start_s = timeline.earliest_start(snapshot, memory, shape, other, ready_s, duration_s)
            best_s = min(best_s, start_s + duration_s)
        latest_s = max(latest_s, best_s)
    return latest_s


@kernel
def what_to_plan(snapshot: Snapshot, memory: Memory, on_drift: bool) -> int:
    """UP_TO_DATE, ADDITION (workflows arrived) or EVERYTHING (nodes lost or returned, or drift).

    Drift: a quarter of the planned tasks (at least 32) has ended since everything was planned. It
    is heeded where runtimes are uncertain, and whenever workflows arrive.
    """
    status = snapshot.status[0]
    if memory.ints[_NODES] != status.nodes_version:
        return EVERYTHING
    ended = status.finished_version - memory.ints[_FINISHED]
    has_drifted = on_drift and ended >= max(32, memory.ints[_PLANNED] // 4)
    if memory.ints[_ARRIVED] != status.num_arrived:
        return EVERYTHING if has_drifted else ADDITION
    return EVERYTHING if has_drifted and snapshot.tasks[0].spread > 0.0 else UP_TO_DATE
