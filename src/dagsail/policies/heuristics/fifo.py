"""First come, first served on the first node with room (first fit)."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score


def first_fit(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The legal node of the lowest position."""
    shape = snapshot.tasks[task].shape
    answer = NOWHERE
    for node in range(snapshot.nodes.shape[0]):
        if legality.fits(snapshot, shape, node):
            if legality.is_open(snapshot, task, node):
                return node
            answer = NOT_YET
    return answer


def position(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """Lower positions are better."""
    return -float(node)


POLICY = Rule("fifo", select=first_fit, score=position)
