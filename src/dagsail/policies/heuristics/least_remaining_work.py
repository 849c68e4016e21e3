"""The workflow with the least work left goes first, its tasks by upward rank.

Shortest remaining processing time (Schrage, "A proof of the optimality of the shortest remaining
processing time discipline", Operations Research 16(3), 1968), applied to whole workflows; nodes by
earliest expected finish.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import DYNAMIC_LIST, Memory, fastest

_RANK_SHARE = 1e-3
"""Weight of the upward rank: decides among tasks of one workflow, hardly ever between two."""


def remaining(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Expected work left in the task's workflow, less a little for a long path behind it."""
    row = snapshot.tasks[task]
    return snapshot.workflows[row.workflow].remaining_s - _RANK_SHARE * row.upward_rank_s


POLICY = Rule("least-remaining-work", key=remaining, score=fastest, loop=DYNAMIC_LIST)
