"""A uniformly random legal node for each task in order of arrival."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score, next_random


def any_node(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """One of the legal nodes, each equally likely (reservoir sampling of size 1)."""
    shape = snapshot.tasks[task].shape
    answer = NOWHERE
    seen = 0
    for node in range(snapshot.nodes.shape[0]):
        if legality.fits(snapshot, shape, node):
            if legality.is_open(snapshot, task, node):
                seen += 1
                if next_random(memory.random) * seen < 1.0:
                    answer = node
            elif answer == NOWHERE:
                answer = NOT_YET
    return answer


POLICY = Rule("random", select=any_node)
