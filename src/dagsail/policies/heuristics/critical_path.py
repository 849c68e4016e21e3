"""The task with the longest expected path behind it goes first, where it finishes earliest.

Highest level first (Adam, Chandy and Dickson, "A comparison of list schedules for parallel
processing systems", CACM 17(12), 1974) with the upward rank as level.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import Memory, fastest


def longest_path(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Upward rank, negated."""
    return -snapshot.tasks[task].upward_rank_s


POLICY = Rule("critical-path", key=longest_path, score=fastest)
