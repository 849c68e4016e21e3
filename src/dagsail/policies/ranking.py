"""Orders of planners: upward rank, CPOP's priority, PEFT's optimistic costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import estimates
from dagsail.scheduling.listing import Memory


@kernel
def order_of(
    snapshot: Snapshot,
    memory: Memory,
    pending: NDArray[np.int64],
    by_both_ranks: bool,
    by_table: bool,
) -> NDArray[np.int64]:
    """Pending tasks in planning order, parents before children.

    By falling upward rank (HEFT); with `by_both_ranks` the task of the largest upward plus
    downward rank among those whose parents are planned (CPOP); with `by_table` likewise by the
    mean optimistic cost (PEFT).
    """
    count = pending.shape[0]
    rank = np.empty(count)
    hops = np.empty(count)
    for index in range(count):
        row = snapshot.tasks[pending[index]]
        rank[index] = row.upward_rank_s
        if by_both_ranks:
            rank[index] += row.downward_rank_s
        elif by_table:
            rank[index] = mean_optimistic_cost(snapshot, memory, pending[index])
        hops[index] = row.hops_to_exit
    if by_both_ranks or by_table:
        return _highest_ready_first(snapshot, pending, rank)
    # Stable sorts: equal ranks (tasks that cost nothing) stay parents first.
    by_hops = np.argsort(-hops, kind="mergesort")
    by_rank = np.argsort(-rank[by_hops], kind="mergesort")
    return pending[by_hops[by_rank]]


@kernel
def _highest_ready_first(
    snapshot: Snapshot, pending: NDArray[np.int64], rank: NDArray[np.float64]
) -> NDArray[np.int64]:
    """List order: always the highest-ranked task all of whose parents are listed."""
    count = pending.shape[0]
    place = np.full(snapshot.tasks.shape[0], -1, np.int64)
    for index in range(count):
        place[pending[index]] = index
    waiting = np.zeros(count, np.int64)
    for index in range(count):
        row = snapshot.tasks[pending[index]]
        for edge in range(row.parent_start, row.parent_end):
            if place[snapshot.parents[edge].task] >= 0:
                waiting[index] += 1
    heap = np.empty(count, np.int64)
    size = 0
    for index in range(count):
        if waiting[index] == 0:
            size = _heap_push(heap, size, index, rank)
    order = np.empty(count, np.int64)
    for listed in range(count):
        index = heap[0]
        size = _heap_pop(heap, size, rank)
        order[listed] = pending[index]
        row = snapshot.tasks[pending[index]]
        for edge in range(row.child_start, row.child_end):
            child = place[snapshot.children[edge].task]
            if child >= 0:
                waiting[child] -= 1
                if waiting[child] == 0:
                    size = _heap_push(heap, size, child, rank)
    return order


@kernel
def _above(rank: NDArray[np.float64], a: int, b: int) -> bool:
    return rank[a] > rank[b] or (rank[a] == rank[b] and a < b)


@kernel
def _heap_push(heap: NDArray[np.int64], size: int, item: int, rank: NDArray[np.float64]) -> int:
    position = size
    while position > 0 and _above(rank, item, heap[(position - 1) // 2]):
        heap[position] = heap[(position - 1) // 2]
        position = (position - 1) // 2
    heap[position] = item
    return size + 1


@kernel
def _heap_pop(heap: NDArray[np.int64], size: int, rank: NDArray[np.float64]) -> int:
    size -= 1
    item = heap[size]
    position = 0
    while 2 * position + 1 < size:
        below = 2 * position + 1
        if below + 1 < size and _above(rank, heap[below + 1], heap[below]):
            below += 1
        if not _above(rank, heap[below], item):
            break
        heap[position] = heap[below]
        position = below
    heap[position] = item
    return size


@kernel
def pin_critical_paths(snapshot: Snapshot, pinned: NDArray[np.int64]) -> None:
    """CPOP: the tasks on each workflow's critical path share the node that runs them fastest."""
    for index in range(snapshot.status[0].num_arrived):
        workflow = snapshot.workflows[index]
        if workflow.tasks_left == 0:
            continue
        path = np.empty(workflow.num_tasks, np.int64)
        length = _critical_path(snapshot, index, path)
        best = -1
        best_s = math.inf
        for node in range(snapshot.nodes.shape[0]):
            total_s = 0.0
            for step in range(length):
                shape = snapshot.tasks[path[step]].shape
                if snapshot.shape_node[shape, node].eligible == 0 or (
                    snapshot.nodes[node].state != 0
                ):
                    total_s = math.inf
                else:
                    total_s += estimates.runtime_s(snapshot, path[step], node)
            if total_s < best_s:
                best = node
                best_s = total_s
        for step in range(length):
            pinned[path[step]] = best


@kernel
def _critical_path(snapshot: Snapshot, workflow: int, path: NDArray[np.int64]) -> int:
    """From the entry of the highest priority down along the children of the highest priority."""
    row = snapshot.workflows[workflow]
    task = -1
    for candidate in range(row.first_task, row.first_task + row.num_tasks):
        here = snapshot.tasks[candidate]
        if here.parent_start == here.parent_end and (
            task < 0 or here.upward_rank_s > snapshot.tasks[task].upward_rank_s
        ):
            task = candidate
    length = 0
    while task >= 0:
        path[length] = task
        length += 1
        here = snapshot.tasks[task]
        task = -1
        best = -math.inf
        for index in range(here.child_start, here.child_end):
            child = snapshot.tasks[snapshot.children[index].task]
            if child.upward_rank_s + child.downward_rank_s > best:
                best = child.upward_rank_s + child.downward_rank_s
                task = snapshot.children[index].task
    return length


@kernel
def optimistic_costs(snapshot: Snapshot, memory: Memory, pending: NDArray[np.int64]) -> None:
    """PEFT's table: least expected time from the end of each task to the end of its workflow.

    `OCT(t, p) = max over children c of min over nodes w of OCT(c, w) + runtime(c, w) + comm(t, c)`
    with `comm` the mean transfer time, 0 if `w` is `p`. It depends on `p` only through its type.
    Arabnejad and Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic
    cost table", IEEE TPDS 25(3), 2014.
    """
    count = pending.shape[0]
    hops = np.empty(count)
    for index in range(count):
        hops[index] = snapshot.tasks[pending[index]].hops_to_exit
    exits_first = np.argsort(hops, kind="mergesort")
    num_types = snapshot.runtime_factor.shape[1]
    latency_s, s_per_byte = _mean_network(snapshot)
    for index in range(count):
        task = pending[exits_first[index]]
        row = snapshot.tasks[task]
        for kind in range(num_types):
            memory.table[task, kind] = 0.0
        for edge in range(row.child_start, row.child_end):
            child = snapshot.children[edge].task
            data_bytes = snapshot.children[edge].data_bytes
            comm_s = latency_s + data_bytes * s_per_byte if data_bytes > 0.0 else 0.0
            here = snapshot.tasks[child]
            least = math.inf
            for kind in range(num_types):
                factor = snapshot.runtime_factor[here.runtime_row, kind]
                least = min(least, memory.table[child, kind] + here.estimate_s * factor)
            for kind in range(num_types):
                factor = snapshot.runtime_factor[here.runtime_row, kind]
                stay = memory.table[child, kind] + here.estimate_s * factor
                cost = min(stay, least + comm_s)
                memory.table[task, kind] = max(memory.table[task, kind], cost)


@kernel
def mean_optimistic_cost(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """PEFT's rank: the table's row averaged over the nodes."""
    total = 0.0
    for node in range(snapshot.nodes.shape[0]):
        total += memory.table[task, snapshot.nodes[node].type]
    return total / snapshot.nodes.shape[0]


@kernel
def _mean_network(snapshot: Snapshot) -> tuple[float, float]:
    """Mean latency and seconds per byte over distinct pairs of nodes."""
    count = snapshot.nodes.shape[0]
    latency_s = 0.0
    s_per_byte = 0.0
    for a in range(count):
        for b in range(count):
            if a != b:
                latency_s += snapshot.links[estimates.tier(snapshot, a, b)].latency_s
                s_per_byte += 1.0 / estimates.bandwidth(snapshot, a, b)
    pairs = max(count * (count - 1), 1)
    return latency_s / pairs, s_per_byte / pairs
