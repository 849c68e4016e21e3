"""What is learned from attempts that ended: percentiles, means, deviations, use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.scenario import Faults, Scenario
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.policies import policy
from dagsail.policies.scoring import features, schema
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import preset


def flow(name: str, runtime_s: float, kind: str = "k") -> Workflow:
    task = Task(id="t", runtime_s=runtime_s, kind=kind, request={"cpu": 1000, "memory": GIB})
    return Workflow(id=name, tasks=(task,), family="f")


def run(runtimes_s: list[float], gap_s: float = 1000.0, **more: Any) -> Run:
    """Workflows of one task, one after the other, on one node of twice the reference speed."""
    node = Node(name="n", allocatable={"cpu": 1000, "memory": 4 * GIB}, speed=2.0)
    arrivals = [Arrival(gap_s * i, flow(f"w{i}", s)) for i, s in enumerate(runtimes_s)]
    cluster = Cluster(name="c", nodes=(node,))
    return Simulation(arrivals, cluster, Scenario(**more)).run(policy("fifo"))


def test_percentiles_are_those_of_the_ends_to_a_fifth() -> None:
    seconds = np.random.default_rng(1).lognormal(4, 0.5, 200)
    histories = run((2 * seconds).tolist()).snapshot.histories
    assert histories["count"].tolist() == [200, 200]  # the kind, then the family
    ordered = np.sort(seconds[:192])  # worked out anew every 16 ends
    for name, share in (("p95_s", 0.95), ("p99_s", 0.99)):
        true = ordered[int(np.ceil(share * 192)) - 1]
        assert true <= histories[name][0] <= 1.2 * true + 0.2


def test_what_is_older_than_seven_days_is_forgotten() -> None:
    day = 86400.0
    histories = run([2000.0] * 3 + [20.0] * 12, gap_s=day).snapshot.histories
    assert histories["p99_s"][0] < 13.0


def test_one_huge_task_leaves_the_others_their_spread() -> None:
    """Row A2: the P99 of a class hardly moves for one task a hundred times as long."""
    usual = np.random.default_rng(2).lognormal(4, 0.5, 200).tolist()

    def spread(runtimes_s: list[float]) -> float:
        done = run([2 * s for s in runtimes_s])
        snapshot, memory = done.snapshot, scorer("s", preset()).prepare(done.snapshot, 0)
        out = np.zeros(schema.NUM_TASK)
        place = [feature.name for feature in schema.TASK].index("typical")
        values = []
        for task in range(200):
            features.task_features(snapshot, memory, task, out)
            values.append(out[place])
        assert max(values) <= 1.0
        return float(np.std(values))

    huge = [*usual, 100 * max(usual)]
    assert spread(huge) > 0.9 * spread(usual)


def test_failures_of_a_node_are_counted() -> None:
    faults = Faults(task_failure_ratio=0.5, max_retries=50)
    node = run([10.0] * 60, faults=faults).snapshot.nodes[0]
    assert 0.3 < node["failures"] / node["starts"] < 0.7
    node = run([10.0] * 60).snapshot.nodes[0]
    assert node["failures"] == 0.0


def test_recent_use_follows_the_load_over_some_minutes() -> None:
    """Busy for 300 s from idle: 1 - 1/e; then idle for 600 s more before the next look."""
    snapshot = run([600.0, 0.0], gap_s=900.0).snapshot
    busy = 1.0 - np.exp(-1.0)
    assert snapshot.nodes["cpu_use"][0] == pytest.approx(busy * np.exp(-2.0), abs=1e-6)
