"""Tetris: pack by alignment of request and free room, leaning to workflows with little work left.

Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014: the pair with the
highest `alignment + epsilon * (shortest remaining work first)` goes next, over the heads of all
shapes and all nodes with room.
"""

from __future__ import annotations

import math

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.packing import alignment, queue_by_remaining_work
from dagsail.policies.rule import Rule
from dagsail.scheduling import arbiter, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import CUSTOM, Memory

_LEAN = 0.3
"""Weight of remaining work against alignment; both lie between 0 and about 1."""


def score(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """Alignment of the task with a node."""
    return alignment(snapshot, snapshot.tasks[task].shape, node)


def decide(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Place up to `limit` ready tasks, the best pair first."""
    status = snapshot.status[0]
    queue_by_remaining_work(snapshot)
    placed = 0
    while placed < limit:
        best_task = -1
        best_node = -1
        best = -math.inf
        for index in range(status.num_active):
            shape = snapshot.active[index]
            if not queue.has_turn(snapshot, shape):
                continue
            if not legality.within_quota(snapshot, shape):
                continue
            task = snapshot.queue[snapshot.shapes[shape].queue_start]
            head = snapshot.tasks[task]
            left_s = snapshot.workflows[head.workflow].remaining_s
            lean = _LEAN / (1.0 + left_s / 3600.0) - 10.0 * head.boost
            some = False
            for node in range(snapshot.nodes.shape[0]):
                if not legality.fits(snapshot, shape, node):
                    continue
                some = True
                if not legality.is_open(snapshot, task, node):
                    continue
                value = alignment(snapshot, shape, node) + lean
                if value > best:
                    best = value
                    best_task = task
                    best_node = node
            if not some:
                snapshot.shapes[shape].blocked = 1
        if best_task < 0:
            break
        if arbiter.place_group(snapshot, best_task, best_node):
            placed += 1
        else:
            snapshot.shapes[snapshot.tasks[best_task].shape].blocked = 1
    return placed


POLICY = Rule("tetris", score=score, loop=CUSTOM, decide_function=decide)
