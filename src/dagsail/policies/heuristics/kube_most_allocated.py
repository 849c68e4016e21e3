"""kube-scheduler 1.36 with the MostAllocated scoring strategy: pack instead of spread."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies import kube
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import Memory, Score


def order(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Priority first."""
    return kube.urgency(snapshot, memory, task)


def select(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """One scheduling cycle."""
    return kube.choose(snapshot, memory, task, 36, True)


POLICY = Rule("kube-most-allocated", key=order, select=select, prepare_function=kube.prepare)
