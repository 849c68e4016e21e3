"""List scheduling: the loop that turns a task order and a node rule into placements.

A rule policy is two kernels: `key(snapshot, memory, task)`, smaller goes first, and
`score(snapshot, memory, task, node)`, larger is better. Tasks that fit nowhere are passed over,
as batch queues do (backfilling); a rule waits on purpose by scoring every node `WAIT`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Records, Snapshot
from dagsail.kernels import entry, kernel
from dagsail.scheduling import arbiter, estimates, queue
from dagsail.scheduling.constraints import legality
from dagsail.structs import Struct, array

WAIT: Final = -math.inf
"""Score of a pair that a policy refuses although it is legal."""

NOWHERE: Final = -1
"""Answer of a node rule: the task fits on no node now."""
NOT_YET: Final = -2
"""Answer of a node rule: the task fits, but waiting is better."""

STEP: Final = np.dtype([("time_s", "f8"), ("next", "i8")], align=True)
"""A point in time at which the planned use of a node changes; a linked list a node."""


class Memory(Struct):
    """What a policy keeps from one decision to the next; every policy states its own layout."""

    floats: NDArray[np.float64] = array(np.float64)
    ints: NDArray[np.int64] = array(np.int64)
    random: NDArray[np.uint64] = array(np.uint64)
    """(1,): state of the policy's own random numbers."""
    table: NDArray[np.float64] = array(np.float64, 2)
    """For planners: (T, node types)."""
    steps: Records = array(STEP)
    """For planners: pool of the nodes' time lines."""
    usage: NDArray[np.int64] = array(np.int64, 2)
    """For planners: (steps, R), planned use from each step on."""
    # For policies that weigh features; W workers, N nodes, S shapes.
    weights: NDArray[np.float64] = array(np.float64)
    """Of all features, in the order of their schema."""
    lasting_sum: NDArray[np.float64] = array(np.float64)
    """(T,): weighted sum of those features of a task that do not change while it waits."""
    lasting_attempt: NDArray[np.int64] = array(np.int64)
    """(T,): attempt for which it was computed."""
    features: NDArray[np.float64] = array(np.float64)
    """Room for the features of one question."""
    options: NDArray[np.float64] = array(np.float64)
    """Room for what the nodes of one task offer at best."""
    capacity: NDArray[np.float64] = array(np.float64)  # (R,): of the whole cluster
    surroundings: NDArray[np.float64] = array(np.float64)
    """The mean price of a node, then what is counted once an instant for global features."""
    zone_share: NDArray[np.float64] = array(np.float64)
    """(N,): nodes of a node's zone over all nodes."""
    node_rows: NDArray[np.float64] = array(np.float64, 2)
    """(N, F): features of each node, and for which state of it they were computed."""
    node_versions: NDArray[np.int64] = array(np.int64)
    pair_rows: NDArray[np.float64] = array(np.float64, 2)
    """Room for the features of several nodes for one task."""
    growth: NDArray[np.float64] = array(np.float64, 2)
    """(S, N): growth of fragmentation by one worker of a shape on a node."""
    growth_version: NDArray[np.int64] = array(np.int64, 2)
    """(S, N): version of the node for which it was computed."""
    typical: NDArray[np.int64] = array(np.int64)
    """The most frequent shapes."""
    typical_share: NDArray[np.float64] = array(np.float64)
    """Their shares of the tasks."""
    looked: NDArray[np.int64] = array(np.int64)
    """(1,): stamp of the instant whose outlook the following arrays hold."""
    first_leaver: NDArray[np.int64] = array(np.int64)
    """(N,): the worker that is expected to leave the node first, -1 = none."""
    next_leaver: NDArray[np.int64] = array(np.int64)  # (W,): the one that leaves after it
    leave_s: NDArray[np.float64] = array(np.float64)  # (W,): when a worker is expected to leave
    room_s: NDArray[np.float64] = array(np.float64, 2)
    """(S, N): when a shape is expected to fit on a node."""
    room_version: NDArray[np.int64] = array(np.int64, 2)
    """(S, N): of the outlook for which `room_s` was computed."""
    returned: NDArray[np.int64] = array(np.int64)
    """Room for one sum of resources."""
    claims: NDArray[np.int64] = array(np.int64, 2)
    """(N, R): what tasks that wait for a node will ask for."""
    num_claims: NDArray[np.int64] = array(np.int64)  # (N,)
    claim_s: NDArray[np.float64] = array(np.float64)
    """(N,): when the last claimant expects to start."""
    patient_s: NDArray[np.float64] = array(np.float64)
    """(T,): until when a task that waits is not asked again."""
    awaited: NDArray[np.int64] = array(np.int64)  # (T,): the node that it waits for
    awaited_s: NDArray[np.float64] = array(np.float64)  # (T,): when it expects to start there


Key = Callable[[Snapshot, Memory, int], float]
Score = Callable[[Snapshot, Memory, int, int], float]
Select = Callable[[Snapshot, Memory, int, Score], int]
Decide = Callable[[Snapshot, Memory, int], int]

STATIC_LIST: Final = 0
DYNAMIC_LIST: Final = 1
PLANNED_LIST: Final = 2
CUSTOM: Final = 3


class Rules(NamedTuple):
    """A policy as kernels see it: which loop it uses, and its functions as native pointers."""

    loop: int
    """STATIC_LIST; DYNAMIC_LIST, where keys change while tasks wait; PLANNED_LIST, where `decide`
    first brings a plan up to date and returns 1 if that changed keys; CUSTOM, where `decide` is
    everything."""
    decide: Decide
    key: Key
    select: Select
    score: Score


@kernel
def next_random(state: NDArray[np.uint64]) -> float:
    """A uniform number in [0, 1) (SplitMix64; Steele, Lea and Flood, OOPSLA 2014)."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


def best_node(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The legal node of the highest score, the first of equals; NOWHERE or NOT_YET if none."""
    shape = snapshot.tasks[task].shape
    best = NOWHERE
    best_score = WAIT
    some = False
    for node in range(snapshot.nodes.shape[0]):
        if not legality.fits(snapshot, shape, node):
            continue
        some = True
        if not legality.is_open(snapshot, task, node):
            continue
        value = score(snapshot, memory, task, node)
        if value > best_score:
            best = node
            best_score = value
    if best < 0 and some:
        return NOT_YET
    return best


def fastest(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """Score of the earliest expected finish: start-up, transfers and run time, negated."""
    return -estimates.busy_s(snapshot, task, node)


def in_turn(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Key of first come, first served."""
    return 0.0


@kernel
def drain_incoming(snapshot: Snapshot, memory: Memory, key: Key) -> None:
    """Queue the tasks that became ready since the last decision."""
    status = snapshot.status[0]
    for index in range(status.num_incoming):
        task = snapshot.incoming[index]
        snapshot.tasks[task].key = key(snapshot, memory, task)
        queue.push(snapshot, task)
    status.num_incoming = 0


@kernel
def rekey(snapshot: Snapshot, memory: Memory, key: Key) -> None:
    """Compute the keys of all queued tasks anew, for orders that change with time."""
    for index in range(snapshot.status[0].num_active):
        row = snapshot.shapes[snapshot.active[index]]
        for position in range(row.queue_size):
            task = snapshot.queue[row.queue_start + position]
            snapshot.tasks[task].key = key(snapshot, memory, task)
    queue.reorder(snapshot)


@entry
def decide(snapshot: Snapshot, memory: Memory, limit: int, rules: Rules) -> int:
    """One decision of any rule policy; returns how many tasks it placed."""
    if rules.loop == CUSTOM:
        return rules.decide(snapshot, memory, limit)
    return list_schedule(snapshot, memory, limit, rules)


@entry
def score_all(
    snapshot: Snapshot, memory: Memory, task: int, score: Score, out: NDArray[np.float64]
) -> None:
    """Write the score of every node for a task into `out`. float64 (N,)."""
    for node in range(out.shape[0]):
        out[node] = score(snapshot, memory, task, node)


def place_nothing(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Stands in where list scheduling decides."""
    return 0


@kernel
def list_schedule(snapshot: Snapshot, memory: Memory, limit: int, rules: Rules) -> int:
    """Place ready tasks in the order of their keys until nothing more fits; returns how many.

    Args:
        snapshot: changed by the placements.
        memory: of the policy.
        limit: most placements of this call.
        rules: order and node rule.
    """
    status = snapshot.status[0]
    # 1. Queue what became ready; bring changed keys up to date.
    drain_incoming(snapshot, memory, rules.key)
    if rules.loop == DYNAMIC_LIST or (
        rules.loop == PLANNED_LIST and rules.decide(snapshot, memory, limit) == 1
    ):
        rekey(snapshot, memory, rules.key)
    placed = 0
    while placed < limit:
        # 2. The first task among the heads of all shapes that may fit.
        shape = queue.first_shape(snapshot)
        if shape < 0:
            break
        task = snapshot.queue[snapshot.shapes[shape].queue_start]
        if not legality.within_quota(snapshot, shape):
            snapshot.shapes[shape].skipped = status.stamp
            continue
        # 3. Its nodes; all or none.
        node = rules.select(snapshot, memory, task, rules.score)
        if node >= 0 and arbiter.place_group(snapshot, task, node):
            placed += 1
        elif node != NOT_YET:
            snapshot.shapes[shape].blocked = 1
        else:
            # 4. It waits by choice: set it aside, so that its shape goes on.
            queue.pass_over(snapshot, task)
    return placed
