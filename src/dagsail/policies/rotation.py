"""The node rule of all round-robin policies."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score


def next_in_turn(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The first legal node after the one used last; `memory.ints[0]` is where to look next."""
    shape = snapshot.tasks[task].shape
    count = snapshot.nodes.shape[0]
    answer = NOWHERE
    for offset in range(count):
        node = (memory.ints[0] + offset) % count
        if legality.fits(snapshot, shape, node):
            if legality.is_open(snapshot, task, node):
                memory.ints[0] = (node + 1) % count
                return node
            answer = NOT_YET
    return answer
