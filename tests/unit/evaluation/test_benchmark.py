from __future__ import annotations

import json

import numpy as np
import pytest

from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import InputError, StuckError, UnknownNameError
from dagsail.domain.scenario import Runtimes, Scenario
from dagsail.domain.snapshot import Snapshot
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.evaluation.benchmark import compare
from dagsail.evaluation.comparison import HEADLINES
from dagsail.evaluation.metrics import METRICS
from dagsail.policies.heuristics.fifo import POLICY
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import NOWHERE, Memory, Score

SCENARIO = Scenario(name="noisy", runtimes=Runtimes(noise=0.3))


def longest_first(snapshot: Snapshot, memory: Memory, task: int) -> float:
    return -snapshot.tasks[task].mean_s


def shortest_first(snapshot: Snapshot, memory: Memory, task: int) -> float:
    return snapshot.tasks[task].mean_s


def nowhere(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    return NOWHERE


LONGEST = Rule("longest", key=longest_first, select=POLICY.select)
SHORTEST = Rule("shortest", key=shortest_first, select=POLICY.select)
LAZY = Rule("lazy", select=nowhere)


def make_arrivals(seed: int) -> list[Arrival]:
    rng = np.random.default_rng(seed)
    arrivals = []
    for number in range(20):
        runtimes = rng.lognormal(3.0, 1.0, 4)
        tasks = tuple(
            Task(id=f"t{i}", runtime_s=float(r), request={"cpu": 1000})
            for i, r in enumerate(runtimes)
        )
        workflow = Workflow(
            id=f"w{number}",
            tasks=tasks,
            dependencies=(Dependency("t0", "t1"),),
            deadline_s=1.5 * float(runtimes.sum()),
        )
        arrivals.append(Arrival(number * 25.0, workflow))
    return arrivals


@pytest.fixture
def cluster(node) -> Cluster:
    return Cluster(name="small", nodes=(node("n0"), node("n1")))


def without_timing(comparison) -> str:
    found = comparison.to_json()
    for metrics in found["policies"].values():
        del metrics["decision_p50_ms"], metrics["decision_p99_ms"]
    return json.dumps(found)


def test_the_result_has_the_form_of_the_contract(cluster):
    found = compare(make_arrivals, cluster, [POLICY, SHORTEST], SCENARIO, range(8), "fifo")
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert list(document) == ["policies", "paired", "scenario", "seeds"]
    assert document["seeds"] == list(range(8))
    assert list(document["policies"]) == ["fifo", "shortest"]
    for metrics in document["policies"].values():
        assert list(metrics) == [metric.name for metric in METRICS]
        jct = metrics["jct_mean_s"]
        assert jct["mean"] == pytest.approx(sum(jct["per_seed"]) / 8)
        low, high = jct["ci95"]
        assert low < jct["mean"] < high
        assert metrics["start_sla_ratio"] == {
            "mean": None,
            "ci95": None,
            "per_seed": [None] * 8,
        }
        assert metrics["decision_p99_ms"]["mean"] >= metrics["decision_p50_ms"]["mean"] > 0
    assert list(document["paired"]["against_reference"]) == ["shortest"]
    assert list(document["paired"]["best_per_instance"]) == ["fifo", "shortest"]
    assert list(document["paired"]["against_reference"]["shortest"]) == list(HEADLINES)
    assert document["scenario"]["name"] == "noisy"
    assert document["scenario"]["dominating"] == "cpu"
    assert document["scenario"]["offered_load"] > 0.5
    assert document["scenario"]["num_tasks"] == [80] * 8


def test_shortest_first_is_found_better_and_longest_first_worse(cluster):
    policies = [POLICY, SHORTEST, LONGEST]
    found = compare(make_arrivals, cluster, policies, SCENARIO, range(12), "fifo")
    assert found.paired("shortest", "wait_mean_s", "fifo").verdict == "better"
    assert found.paired("longest", "wait_mean_s", "fifo").verdict == "worse"
    assert found.paired("longest", "wait_mean_s", "best_per_instance").verdict == "worse"
    assert found.paired("fifo", "wait_mean_s", "fifo").verdict == "noise"
    assert found.wins("shortest", "wait_mean_s") == 12
    assert found.wins("longest", "wait_mean_s") == 0
    best = found.values("best_per_instance", "wait_mean_s")
    assert best.tolist() == found.values("shortest", "wait_mean_s").tolist()
    kept = np.array([found.values(name, "deadline_met_ratio") for name in found.policies])
    best_kept = found.values("best_per_instance", "deadline_met_ratio")
    assert best_kept.tolist() == kept.max(axis=0).tolist()
    assert (kept.max(axis=0) > kept.min(axis=0)).any()
    assert found.paired("longest", "deadline_met_ratio", "fifo").verdict == "worse"


def test_the_same_comparison_gives_the_same_numbers(cluster):
    policies = [POLICY, SHORTEST]
    once = compare(make_arrivals, cluster, policies, SCENARIO, range(3), "fifo")
    again = compare(make_arrivals, cluster, policies, SCENARIO, range(3), "fifo")
    assert without_timing(once) == without_timing(again)


def test_policies_meet_the_same_luck_whatever_their_company(cluster):
    alone = compare(make_arrivals, cluster, [SHORTEST], SCENARIO, [1, 2], "shortest")
    among = compare(make_arrivals, cluster, [POLICY, SHORTEST], SCENARIO, [1, 2], "fifo")
    for metric in METRICS:
        if not metric.name.startswith("decision_"):
            one, two = (c.values("shortest", metric.name) for c in (alone, among))
            assert np.array_equal(one, two, equal_nan=True)


def test_one_seed_has_no_intervals_and_is_warned_of(cluster):
    found = compare(make_arrivals, cluster, [POLICY, SHORTEST], SCENARIO, [3], "fifo").to_json()
    assert found["policies"]["fifo"]["jct_mean_s"]["ci95"] is None
    pair = found["paired"]["against_reference"]["shortest"]["wait_mean_s"]
    assert pair["difference"]["ci95"] is None
    assert pair["verdict"] == "noise"
    assert found["scenario"]["warnings"][0].startswith("1 seeds cannot tell")


def test_progress_is_told_after_each_run(cluster):
    told: list[tuple[int, int, str]] = []
    compare(
        make_arrivals,
        cluster,
        [POLICY, SHORTEST],
        SCENARIO,
        [4, 5],
        "fifo",
        lambda done, total, what: told.append((done, total, what)),
    )
    assert told == [
        (1, 4, "fifo, seed 4"),
        (2, 4, "shortest, seed 4"),
        (3, 4, "fifo, seed 5"),
        (4, 4, "shortest, seed 5"),
    ]


def test_a_policy_that_gets_stuck_is_named_with_its_seed(cluster):
    with pytest.raises(StuckError, match=r"policy 'lazy', seed 7: .*never starts"):
        compare(make_arrivals, cluster, [POLICY, LAZY], SCENARIO, [7], "fifo")


@pytest.mark.parametrize(
    ("policies", "seeds", "reference", "error", "words"),
    [
        ([], [0], "fifo", InputError, "at least one policy"),
        ([POLICY], [], "fifo", InputError, "one seed"),
        ([POLICY, POLICY], [0], "fifo", InputError, "'fifo' occurs more than once"),
        ([POLICY], [2, 2], "fifo", InputError, "seed '2' occurs more than once"),
        ([POLICY], [0], "heft", UnknownNameError, "'heft' is none of the policies"),
    ],
)
def test_impossible_wishes_are_refused(cluster, policies, seeds, reference, error, words):
    with pytest.raises(error, match=words):
        compare(make_arrivals, cluster, policies, SCENARIO, seeds, reference)


def test_a_load_that_never_makes_anything_wait_is_warned_of(node):
    roomy = Cluster(name="roomy", nodes=tuple(node(f"n{i}", cpu=8000) for i in range(4)))
    found = compare(make_arrivals, roomy, [POLICY, SHORTEST], SCENARIO, range(6), "fifo")
    assert [line[:34] for line in found.warnings()] == ["no queue formed at 6 of 6 seeds und"[:34]]
