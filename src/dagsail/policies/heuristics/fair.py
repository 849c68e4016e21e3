"""The workflow that holds least goes first, its tasks in the order in which they became ready.

Dominant resource fairness (Ghodsi et al., NSDI 2011) between workflows: what a workflow holds is
its largest share of any resource of the cluster. With tasks alike it shares the slots evenly, as
the fair scheduler of Spark does between jobs. Nodes by earliest expected finish.
"""

from __future__ import annotations

import math

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.policies.rule import Rule, make_memory
from dagsail.scheduling import arbiter, estimates, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import CUSTOM, Memory


def prepare(snapshot: Snapshot, seed: int) -> Memory:
    """`table`: what each workflow holds of each resource, in shares of the cluster."""
    return make_memory(seed, table=(len(snapshot.workflows), snapshot.node_free.shape[1])).replace(
        capacity=snapshot.node_allocatable.sum(axis=0).clip(1).astype(float)
    )


def decide(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Place up to `limit` ready tasks; returns how many."""
    queue.take_in(snapshot)
    memory.table[:] = 0.0
    for index in range(snapshot.status[0].num_bound):
        _hold(snapshot, memory, snapshot.bound[index])
    placed = 0
    while placed < limit:
        task = _first(snapshot, memory)
        if task < 0:
            break
        node = _quickest(snapshot, task)
        if node >= 0 and arbiter.place_group(snapshot, task, node):
            placed += 1
            _hold(snapshot, memory, task)
        else:
            snapshot.shapes[snapshot.tasks[task].shape].blocked = 1
    queue.reorder(snapshot)
    return placed


@kernel
def _hold(snapshot: Snapshot, memory: Memory, task: int) -> None:
    row = snapshot.tasks[task]
    for resource in range(memory.capacity.shape[0]):
        amount = snapshot.shape_request[row.shape, resource] * row.num_workers
        memory.table[row.workflow, resource] += amount / memory.capacity[resource]


@kernel
def _first(snapshot: Snapshot, memory: Memory) -> int:
    """Of all that may fit, a task of the workflow that holds least; starving ones before; or -1."""
    first = -1
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.active[index]
        if not queue.has_turn(snapshot, shape) or not legality.within_quota(snapshot, shape):
            continue
        row = snapshot.shapes[shape]
        for position in range(row.queue_size):
            task = snapshot.queue[row.queue_start + position]
            snapshot.tasks[task].key = memory.table[snapshot.tasks[task].workflow].max()
            if first < 0 or queue.goes_before(snapshot, task, first):
                first = task
    return first


@kernel
def _quickest(snapshot: Snapshot, task: int) -> int:
    """The node with room that is expected to finish the task first, or -1."""
    shape = snapshot.tasks[task].shape
    best = -1
    best_s = math.inf
    for node in range(snapshot.nodes.shape[0]):
        if legality.fits(snapshot, shape, node) and legality.is_open(snapshot, task, node):
            busy_s = estimates.busy_s(snapshot, task, node)
            if busy_s < best_s:
                best = node
                best_s = busy_s
    return best


POLICY = Rule("fair", loop=CUSTOM, decide_function=decide, prepare_function=prepare)
