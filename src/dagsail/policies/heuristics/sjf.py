"""Shortest job first: the task of the least expected run time, where it finishes earliest."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import Memory, fastest


def shortest(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Expected run time, averaged over the nodes that the task may use."""
    return snapshot.tasks[task].mean_s


POLICY = Rule("sjf", key=shortest, score=fastest)
