"""Observation: the question that a network is asked, as arrays of fixed size, and its answer.

One function computes it for training, simulation and service. It offers the first tasks in the
order of the scorer, for each of them the scorer's best nodes, and waiting where a busy node is
expected to have room; nothing illegal is offered. An action is one number,
`task * NUM_CHOICES + node`, where the last choice is to let the task wait for this instant.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import entry, kernel
from dagsail.policies.scoring import context, features, outlook
from dagsail.policies.scoring.schema import (
    NUM_GLOBAL,
    NUM_NODE,
    NUM_PAIR,
    NUM_TASK,
    NUM_WAIT,
    WAIT,
)
from dagsail.policies.scoring.scorer import SHORT_LIST, order
from dagsail.policies.scoring.weights import Weights
from dagsail.scheduling import arbiter, estimates, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory
from dagsail.structs import Struct, array

MAX_TASKS: Final = 8
MAX_NODES: Final = 8
NUM_CHOICES: Final = MAX_NODES + 1
"""For one task: its nodes, or to wait."""
NUM_ACTIONS: Final = MAX_TASKS * NUM_CHOICES

_PER_SHAPE: Final = 3
"""First tasks of each shape that are offered."""
_GAIN: Final = [feature.name for feature in WAIT].index("gain")
_PATIENCE: Final = 20.0
"""A busy node is worth a thought if it ends the task in at most so many times the time from now."""


class Observation(Struct):
    """Arrays of B observations; T = MAX_TASKS, N = MAX_NODES. Unused places hold zeros."""

    cluster: NDArray[np.float32] = array(np.float32, 2)  # (B, NUM_GLOBAL)
    tasks: NDArray[np.float32] = array(np.float32, 3)  # (B, T, NUM_TASK)
    pairs: NDArray[np.float32] = array(np.float32, 4)  # (B, T, N, NUM_PAIR)
    nodes: NDArray[np.float32] = array(np.float32, 4)  # (B, T, N, NUM_NODE)
    waits: NDArray[np.float32] = array(np.float32, 3)  # (B, T, NUM_WAIT)
    legal: NDArray[np.bool_] = array(np.bool_, 3)  # (B, T, N + 1)
    pools: NDArray[np.int64] = array(np.int64, 3)
    """(B, T, N): position in `cluster.POOLS`."""
    # What the places stand for; not for the network.
    task_ids: NDArray[np.int64] = array(np.int64, 2)  # (B, T)
    node_ids: NDArray[np.int64] = array(np.int64, 3)  # (B, T, N)
    targets: NDArray[np.int64] = array(np.int64, 2)
    """(B, T): the busy node that the task would wait for, -1 = none."""
    starts_s: NDArray[np.float64] = array(np.float64, 2)
    """(B, T): when it expects to start there."""
    looked: NDArray[np.int64] = array(np.int64)
    """(B,): instant of the last observation."""


def make_observation(count: int) -> Observation:
    """Empty room for so many observations."""
    shape = (count, MAX_TASKS)
    return Observation(
        cluster=np.zeros((count, NUM_GLOBAL), np.float32),
        tasks=np.zeros((*shape, NUM_TASK), np.float32),
        pairs=np.zeros((*shape, MAX_NODES, NUM_PAIR), np.float32),
        nodes=np.zeros((*shape, MAX_NODES, NUM_NODE), np.float32),
        waits=np.zeros((*shape, NUM_WAIT), np.float32),
        legal=np.zeros((*shape, NUM_CHOICES), np.bool_),
        pools=np.zeros((*shape, MAX_NODES), np.int64),
        task_ids=np.zeros(shape, np.int64),
        node_ids=np.zeros((*shape, MAX_NODES), np.int64),
        targets=np.zeros(shape, np.int64),
        starts_s=np.zeros(shape),
        looked=np.full(count, -1, np.int64),
    )


@entry
def observe(snapshot: Snapshot, memory: Memory, out: Observation, row: int) -> int:
    """Write what can be decided now into one row of `out`; returns how many tasks are offered.

    Args:
        snapshot: of the instant; tasks that fit nowhere are marked as blocked.
        memory: of a scorer, whose weights order tasks and nodes.
        out: the observations.
        row: which of them.
    """
    # 1. Once an instant: who is ready, in which order, and what goes on around.
    stamp = snapshot.status[0].stamp
    if out.looked[row] != stamp:
        out.looked[row] = stamp
        outlook.look_ahead(snapshot, memory)
        _queue_all(snapshot, memory)
        context.look_around(snapshot, memory)
    _clear(out, row)
    # 2. The first tasks that may start.
    count = 0
    heads = np.empty(MAX_TASKS, np.int64)
    while True:
        found = _first_tasks(snapshot, heads)
        for index in range(found):
            if _offer(snapshot, memory, heads[index], out, row, count):
                count += 1
            elif count == 0:
                break  # the next of its shape may go before the other heads
        if count > 0 or found == 0:
            break
    # 3. The whole cluster.
    if count > 0:
        context.global_features(snapshot, memory, memory.features)
        for index in range(NUM_GLOBAL):
            out.cluster[row, index] = memory.features[index]
    return count


@kernel
def _queue_all(snapshot: Snapshot, memory: Memory) -> None:
    """Queue what became ready and order all that waits by the scorer.

    As `listing.rekey`, which takes its order as a pointer; code that holds one is not cached.
    """
    queue.take_in(snapshot)
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.shapes[snapshot.active[index]]
        for position in range(shape.queue_size):
            task = snapshot.queue[shape.queue_start + position]
            snapshot.tasks[task].key = order(snapshot, memory, task)
    queue.reorder(snapshot)


@kernel
def _clear(out: Observation, row: int) -> None:
    out.cluster[row] = 0.0
    out.tasks[row] = 0.0
    out.pairs[row] = 0.0
    out.nodes[row] = 0.0
    out.waits[row] = 0.0
    out.legal[row] = False
    out.pools[row] = 0


@kernel
def _first_tasks(snapshot: Snapshot, heads: NDArray[np.int64]) -> int:
    """The tasks that go first among the heads of all shapes that may fit; returns how many."""
    count = 0
    stamp = snapshot.status[0].stamp
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.active[index]
        row = snapshot.shapes[shape]
        if not queue.has_turn(snapshot, shape):
            continue
        if not legality.within_quota(snapshot, shape):
            row.skipped = stamp
            continue
        for position in range(min(row.queue_size, _PER_SHAPE)):
            task = snapshot.queue[row.queue_start + position]
            place = count
            while place > 0 and queue.goes_before(snapshot, task, heads[place - 1]):
                if place < MAX_TASKS:
                    heads[place] = heads[place - 1]
                place -= 1
            if place < MAX_TASKS:
                heads[place] = task
                count = min(count + 1, MAX_TASKS)
    return count


@kernel
def _offer(
    snapshot: Snapshot, memory: Memory, task: int, out: Observation, row: int, place: int
) -> bool:
    """Write one task with its choices; False, and it is passed over, where it has none now."""
    shape = snapshot.tasks[task].shape
    if snapshot.shapes[shape].blocked == 1:
        return False
    if outlook.still_waits(snapshot, memory, task):
        if place == 0:  # those that go before it do not see its claim
            outlook.renew_claim(snapshot, memory, task)
            queue.pass_over(snapshot, task)
        return False
    # 1. Where it could go.
    if not features.find_options(snapshot, task, memory.options):
        snapshot.shapes[shape].blocked = 1
        return False
    if memory.options[0] == math.inf or not legality.group_fits(snapshot, task):
        queue.pass_over(snapshot, task)
        return False
    # 2. What it is, and whether it may wait.
    features.task_features(snapshot, memory, task, memory.features)
    for index in range(NUM_TASK):
        out.tasks[row, place, index] = memory.features[index]
    out.task_ids[row, place] = task
    _offer_waiting(snapshot, memory, task, out, row, place)
    # 3. Its nodes.
    _offer_nodes(snapshot, memory, task, out, row, place)
    return True


@kernel
def _offer_waiting(
    snapshot: Snapshot, memory: Memory, task: int, out: Observation, row: int, place: int
) -> None:
    limit_s = _PATIENCE * memory.options[0] + 1.0
    target, start_s = features.wait_features(
        snapshot, memory, task, memory.options, limit_s, memory.features
    )
    out.targets[row, place] = target
    out.starts_s[row, place] = start_s
    if target >= 0:
        out.legal[row, place, MAX_NODES] = True
        for index in range(NUM_WAIT):
            out.waits[row, place, index] = memory.features[index]


@kernel
def _offer_nodes(
    snapshot: Snapshot, memory: Memory, task: int, out: Observation, row: int, place: int
) -> None:
    """The nodes that the scorer likes best, of those that finish the task first."""
    # 1. The short list, by time to finish.
    nodes = np.empty(SHORT_LIST, np.int64)
    values = np.empty(SHORT_LIST)
    shape = snapshot.tasks[task].shape
    count = 0
    for node in range(snapshot.nodes.shape[0]):
        if legality.fits(snapshot, shape, node) and legality.is_open(snapshot, task, node):
            count = _enter(nodes, values, count, node, estimates.busy_s(snapshot, task, node))
    # 2. Its best by the scorer's sum.
    best = np.empty(MAX_NODES, np.int64)
    sums = np.empty(MAX_NODES)
    kept = 0
    for index in range(count):
        pair = memory.pair_rows[index]
        features.pair_features(snapshot, memory, task, nodes[index], memory.options, pair)
        total = 0.0
        for number in range(NUM_PAIR):
            total += memory.weights[NUM_TASK + number] * pair[number]
        kept = _enter(best, sums, kept, index, -total)
    # 3. Their features.
    for place_of_node in range(kept):
        index = best[place_of_node]
        node = nodes[index]
        out.node_ids[row, place, place_of_node] = node
        out.pools[row, place, place_of_node] = snapshot.nodes[node].pool
        out.legal[row, place, place_of_node] = True
        for number in range(NUM_PAIR):
            out.pairs[row, place, place_of_node, number] = memory.pair_rows[index, number]
        about = context.node_row(snapshot, memory, node)
        for number in range(NUM_NODE):
            out.nodes[row, place, place_of_node, number] = about[number]


@kernel
def _enter(
    items: NDArray[np.int64], values: NDArray[np.float64], count: int, item: int, value: float
) -> int:
    """Insert into a list sorted by value, the first of equals ahead; returns its length."""
    size = items.shape[0]
    if count == size and value >= values[size - 1]:
        return count
    place = min(count, size - 1)
    while place > 0 and value < values[place - 1]:
        items[place] = items[place - 1]
        values[place] = values[place - 1]
        place -= 1
    items[place] = item
    values[place] = value
    return min(count + 1, size)


@entry
def act(snapshot: Snapshot, memory: Memory, out: Observation, row: int, action: int) -> bool:
    """Carry out an action of the last observation; returns whether a task was placed."""
    place = action // NUM_CHOICES
    choice = action % NUM_CHOICES
    task = out.task_ids[row, place]
    if choice == MAX_NODES:
        target = out.targets[row, place]
        outlook.claim(snapshot, memory, task, target, out.starts_s[row, place])
        queue.pass_over(snapshot, task)
        return False
    return arbiter.place_group(snapshot, task, out.node_ids[row, place, choice])


def scorer_actions(asked: Observation, weights: Weights) -> NDArray[np.int64]:
    """What a scorer of these weights, which also chose the candidates, would do. (B,).

    The first task, which waits if the scorer would let it and else takes its first node.
    """
    patience = asked.waits[:, 0] @ weights[-NUM_WAIT:].astype(np.float32)
    waits = asked.legal[:, 0, MAX_NODES] & (patience > 0) & (asked.waits[:, 0, _GAIN] > 0)
    return np.where(waits, MAX_NODES, 0)


def arrays_of(observation: Observation) -> dict[str, Any]:
    """What a network reads, by name."""
    names = ("cluster", "tasks", "pairs", "nodes", "waits", "legal", "pools")
    return {name: getattr(observation, name) for name in names}
