from __future__ import annotations

import json

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import OutputError
from dagsail.domain.scenario import Faults, Runtimes, Scenario
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.evaluation.timeline import timeline, write_timeline
from dagsail.policies.heuristics.fifo import POLICY


def test_one_entry_for_each_attempt_in_order_of_ending(two_by_two):
    entries = list(timeline(two_by_two))
    assert [entry["task"] for entry in entries] == ["a", "b", "d", "c"]
    assert entries[-1] == {
        "workflow": "first",
        "task": "c",
        "attempt": 0,
        "parents": ["a"],
        "node": "n1",
        "submitted_s": 0.0,
        "ready_s": 10.0,
        "start_s": 25.0,
        "end_s": 55.0,
        "outcome": "finished",
        "request": {"cpu": 2000},
        "estimate_s": 30.0,
    }


def test_the_estimate_is_that_of_the_node(simulate, node):
    task = Task(id="t", runtime_s=30, request={"cpu": 2000})
    arrivals = [Arrival(0.0, Workflow(id=name, tasks=(task,))) for name in "xy"]
    run = simulate(arrivals, [node("n0"), node("n1", type="quick", speed=3.0)])
    assert {e["node"]: e["estimate_s"] for e in timeline(run)} == {"n0": 30.0, "n1": 10.0}


def test_workers_are_listed_one_by_one_and_summed_on_the_node(simulate, node):
    task = Task(id="t", runtime_s=12, request={"cpu": 1000}, num_workers=3)
    nodes = [node("n0"), node("n1", type="slow", speed=0.5)]
    (entry,) = timeline(simulate([Arrival(0.0, Workflow(id="w", tasks=(task,)))], nodes))
    assert entry["node"] == "n0"
    assert entry["request"] == {"cpu": 2000}
    assert entry["workers"] == [
        {"node": name, "request": {"cpu": 1000}} for name in ("n0", "n0", "n1")
    ]
    assert entry["estimate_s"] == 24.0  # of the slowest worker
    assert entry["end_s"] == 24.0


def failing_run(simulate, node):
    scenario = Scenario(faults=Faults(task_failure_ratio=1.0, max_retries=1))
    tasks = (Task(id="a", runtime_s=10), Task(id="b", runtime_s=10))
    workflow = Workflow(id="w", tasks=tasks, dependencies=(Dependency("a", "b"),))
    return simulate([Arrival(0.0, workflow)], [node("n0")], scenario)


def test_what_never_started_has_no_node_and_no_start(simulate, node):
    entries = list(timeline(failing_run(simulate, node)))
    assert [(e["task"], e["attempt"], e["outcome"]) for e in entries] == [
        ("a", 0, "failed"),
        ("a", 1, "failed"),
        ("b", 0, "cancelled"),
    ]
    last = entries[-1]
    assert last["node"] is None
    assert last["start_s"] is None
    assert last["ready_s"] is None
    assert last["end_s"] == entries[1]["end_s"]


def test_written_lines_are_strict_json_and_the_same_again(simulate, node, tmp_path):
    run = failing_run(simulate, node)
    write_timeline(run, tmp_path / "one.jsonl")
    write_timeline(failing_run(simulate, node), tmp_path / "two.jsonl")
    text = (tmp_path / "one.jsonl").read_bytes()
    assert text == (tmp_path / "two.jsonl").read_bytes()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    lines = [json.loads(line, parse_constant=refuse) for line in text.splitlines()]
    assert lines == list(timeline(run))


def test_an_unwritable_place_is_refused(two_by_two, tmp_path):
    with pytest.raises(OutputError):
        write_timeline(two_by_two, tmp_path / "missing" / "out.jsonl")


def random_workflow(name: str, rng: np.random.Generator) -> Workflow:
    tasks = tuple(
        Task(
            id=f"t{i}",
            runtime_s=float(rng.integers(1, 100)),
            request={"cpu": int(rng.integers(0, 2000)), "memory": int(rng.integers(0, 8)) << 30},
            num_workers=int(rng.integers(1, 4)),
        )
        for i in range(12)
    )
    edges = tuple(Dependency(f"t{int(rng.integers(i))}", f"t{i}") for i in range(1, 12))
    return Workflow(id=name, tasks=tasks, dependencies=edges)


def test_what_lies_on_a_node_never_exceeds_it_and_parents_end_first(node):
    rng = np.random.default_rng(3)
    arrivals = [Arrival(float(i), random_workflow(f"w{i}", rng)) for i in range(30)]
    nodes = (node("n0"), node("n1", cpu=3000), node("n2", cpu=5000))
    scenario = Scenario(
        runtimes=Runtimes(noise=0.5),
        faults=Faults(node_mtbf_s=600, node_mttr_s=60, task_failure_ratio=0.1),
    )
    run = Simulation(arrivals, Cluster(name="c", nodes=nodes), scenario, 5).run(POLICY)
    entries = [entry for entry in timeline(run) if entry["start_s"] is not None]
    assert {entry["outcome"] for entry in entries} >= {"finished", "failed", "evicted"}
    for machine in nodes:
        for resource, limit in machine.allocatable.items():
            changes = []
            for entry in entries:
                for worker in entry.get("workers", [entry]):
                    if worker["node"] == machine.name:
                        amount = worker["request"].get(resource, 0)
                        changes += [(entry["start_s"], amount), (entry["end_s"], -amount)]
            held = np.cumsum([amount for _, amount in sorted(changes)])
            assert held.max() <= limit
            assert held[-1] == 0
    ends = {(e["workflow"], e["task"]): e["end_s"] for e in entries if e["outcome"] == "finished"}
    for entry in entries:
        for parent in entry["parents"]:
            assert ends[entry["workflow"], parent] <= entry["ready_s"] <= entry["start_s"]
