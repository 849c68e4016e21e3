from __future__ import annotations

import math

import pytest

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster
from dagsail.domain.snapshot import Snapshot
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.evaluation.timing import time_decisions
from dagsail.policies.heuristics.fifo import POLICY
from dagsail.scheduling.listing import Memory


class Counting:
    """Like fifo, but counts."""

    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    def prepare(self, snapshot: Snapshot, seed: int) -> Memory:
        return POLICY.prepare(snapshot, seed)

    def decide(self, snapshot: Snapshot, memory: Memory, limit: int) -> int:
        self.calls += 1
        return POLICY.decide(snapshot, memory, limit)


def maker(node, count):
    tasks = tuple(Task(id=f"t{i}", runtime_s=10, request={"cpu": 1000}) for i in range(count))
    cluster = Cluster(name="c", nodes=(node("n0"),))
    return lambda: Simulation([Arrival(0.0, Workflow(id="w", tasks=tasks))], cluster)


def test_single_placements_are_timed(node):
    found = time_decisions(maker(node, 100), POLICY)
    assert 0 < found["decision_p50_ms"] <= found["decision_p99_ms"] < 1000


def test_a_long_simulation_is_cut_short(node):
    policy = Counting()
    time_decisions(maker(node, 400), policy, limit=30)
    assert policy.calls == pytest.approx(50)


def test_too_short_a_simulation_gives_no_time(node):
    assert math.isnan(time_decisions(maker(node, 1), POLICY)["decision_p50_ms"])
