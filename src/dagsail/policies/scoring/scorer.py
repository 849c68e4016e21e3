"""Scorer: the order of tasks, the choice of a node and waiting as weighted sums of features.

The waiting task of the highest sum goes first; it takes the node of the highest sum among those
with room, unless the sum of waiting is above 0: then it claims a busy node and is asked again
after a part of the expected wait, or when that node has room. A task can only wait for one that
runs, so something always ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import inlined, kernel
from dagsail.policies.rule import Rule, make_memory
from dagsail.policies.scoring import context, features, outlook
from dagsail.policies.scoring.schema import (
    NUM_CHANGING,
    NUM_GLOBAL,
    NUM_NODE,
    NUM_PAIR,
    NUM_TASK,
    NUM_WAIT,
)
from dagsail.policies.scoring.weights import Weights
from dagsail.scheduling import listing
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score

SHORT_LIST: Final = 24
"""Nodes with room among which a network's candidates are chosen, the quickest to finish first."""
_NUM_TYPICAL = 6
_LARGEST = max(NUM_TASK, NUM_PAIR, NUM_WAIT, NUM_NODE, NUM_GLOBAL)


def scorer(name: str, weights: Weights) -> Rule:
    """A rule with the given weights."""
    return Rule(
        name,
        key=task_sum,
        select=select,
        score=pair_sum,
        loop=listing.DYNAMIC_LIST,
        prepare_function=preparing(weights),
    )


def preparing(weights: Weights) -> Callable[[Snapshot, int], Memory]:
    """Makes the memory of a run with these weights."""

    def prepare(snapshot: Snapshot, seed: int) -> Memory:
        num_nodes, num_resources = snapshot.node_free.shape
        shape_node = snapshot.shape_node.shape
        counts = snapshot.shapes["num_tasks"]
        typical = np.argsort(-counts, kind="stable")[:_NUM_TYPICAL]
        return make_memory(seed).replace(
            weights=weights.copy(),
            lasting_sum=np.zeros(len(snapshot.tasks)),
            lasting_attempt=np.full(len(snapshot.tasks), -1, np.int64),
            features=np.zeros(_LARGEST),
            options=np.zeros(features.NUM_OPTIONS),
            capacity=snapshot.node_allocatable.sum(axis=0).astype(np.float64),
            surroundings=context.surroundings(snapshot),
            zone_share=context.zone_share(snapshot),
            node_rows=np.zeros((num_nodes, NUM_NODE)),
            node_versions=np.full(num_nodes, -1, np.int64),
            pair_rows=np.zeros((SHORT_LIST, NUM_PAIR)),
            growth=np.zeros(shape_node),
            growth_version=np.full(shape_node, -1, np.int64),
            typical=typical,
            typical_share=counts[typical] / max(int(counts[typical].sum()), 1),
            looked=np.full(1, -1, np.int64),
            first_leaver=np.full(num_nodes, -1, np.int64),
            next_leaver=np.full(len(snapshot.workers), -1, np.int64),
            leave_s=np.zeros(len(snapshot.workers)),
            room_s=np.zeros(shape_node),
            room_version=np.full(shape_node, -1, np.int64),
            returned=np.zeros(num_resources, np.int64),
            claims=np.zeros((num_nodes, num_resources), np.int64),
            num_claims=np.zeros(num_nodes, np.int64),
            claim_s=np.zeros(num_nodes),
            patient_s=np.full(len(snapshot.tasks), -math.inf),
            awaited=np.full(len(snapshot.tasks), -1, np.int64),
            awaited_s=np.zeros(len(snapshot.tasks)),
        )

    return prepare


@inlined
def _weigh(memory: Memory, part: int, first: int, last: int) -> float:
    """Weighted sum of the features `first` to `last` of the part whose weights begin at `part`."""
    total = 0.0
    for index in range(first, last):
        total += memory.weights[part + index] * memory.features[index]
    return total


@kernel
def order(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """The weighted sum of a task's features, negated: smaller goes first."""
    attempt = snapshot.tasks[task].attempt
    if memory.lasting_attempt[task] != attempt:
        memory.lasting_attempt[task] = attempt
        features.lasting_features(snapshot, memory, task, memory.features)
        memory.lasting_sum[task] = _weigh(memory, 0, NUM_CHANGING, NUM_TASK)
    features.changing_features(snapshot, task, memory.features)
    return -memory.lasting_sum[task] - _weigh(memory, 0, 0, NUM_CHANGING)


def task_sum(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Key: the order of a task."""
    return order(snapshot, memory, task)


def pair_sum(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """Score: the weighted sum of a pair's features."""
    features.find_options(snapshot, task, memory.options)
    features.pair_features(snapshot, memory, task, node, memory.options, memory.features)
    return _weigh(memory, NUM_TASK, 0, NUM_PAIR)


def select(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The node of the highest sum, or wait for a busy one."""
    if outlook.still_waits(snapshot, memory, task):
        outlook.renew_claim(snapshot, memory, task)
        return NOT_YET
    # 1. What its nodes offer.
    if not features.find_options(snapshot, task, memory.options):
        return NOWHERE
    here_s = memory.options[0]
    if here_s == math.inf:
        return NOT_YET
    # 2. Is it better to wait?
    target, start_s = features.wait_features(
        snapshot, memory, task, memory.options, here_s, memory.features
    )
    if target >= 0 and _weigh(memory, NUM_TASK + NUM_PAIR, 0, NUM_WAIT) > 0.0:
        outlook.claim(snapshot, memory, task, target, start_s)
        return NOT_YET
    # 3. The best of those with room.
    shape = snapshot.tasks[task].shape
    best = NOT_YET
    best_sum = -math.inf
    for node in range(snapshot.nodes.shape[0]):
        if not legality.fits(snapshot, shape, node) or not legality.is_open(snapshot, task, node):
            continue
        features.pair_features(snapshot, memory, task, node, memory.options, memory.features)
        total = _weigh(memory, NUM_TASK, 0, NUM_PAIR)
        if total > best_sum:
            best = node
            best_sum = total
    return best
