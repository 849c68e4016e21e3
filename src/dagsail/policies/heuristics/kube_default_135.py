"""kube-scheduler 1.35 with its default configuration: heap order among equal nodes."""

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
    return kube.choose(snapshot, memory, task, 35, False)


POLICY = Rule("kube-default@1.35", key=order, select=select, prepare_function=kube.prepare)
