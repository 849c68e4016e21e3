"""The scorer: its features by hand and in range, waiting, claims, and files of weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.compose import setup_for
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.errors import FormatError
from dagsail.domain.scenario import Runtimes, Scenario
from dagsail.domain.snapshot import READY
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.policies.scoring import features, schema
from dagsail.policies.scoring.objective import objective_of
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import (
    blend,
    preset,
    preset_by_aim,
    read_weights,
    weights_of,
    write_weights,
)
from dagsail.scheduling.constraints import legality

EAGER = {"task": {"waiting": 1.0}, "pair": {"slower_now": -1.0}}
PATIENT = {**EAGER, "wait": {"constant": 1.0}}


def node(name: str, cpu: int = 1000, **more: Any) -> Node:
    return Node(name=name, allocatable={"cpu": cpu, "memory": 8 * GIB}, type=name, **more)


SLOW_AND_FAST = Cluster(name="c", nodes=(node("slow"), node("fast", speed=4.0)))


def flow(name: str, runtime_s: float) -> Workflow:
    task = Task(id="t", runtime_s=runtime_s, request={"cpu": 1000, "memory": GIB})
    return Workflow(id=name, tasks=(task,))


def run(named: dict[str, dict[str, float]], arrivals: list[Arrival]) -> Run:
    return Simulation(arrivals, SLOW_AND_FAST).run(scorer("s", weights_of(named)))


def ends(result: Run) -> dict[str, tuple[str, float]]:
    """Node and end of every workflow of one task."""
    return {
        result.names.workflows[int(result.snapshot.tasks[row["task"]]["workflow"])]: (
            result.names.nodes[int(row["node"])],
            float(row["end_s"]),
        )
        for row in result.attempts
    }


def test_waits_for_a_fast_node_that_soon_has_room() -> None:
    """`b` would take 100 s on the slow node; the fast one is free at 10 s and needs 25 s."""
    arrivals = [Arrival(0.0, flow("a", 40.0)), Arrival(1.0, flow("b", 100.0))]
    assert ends(run(PATIENT, arrivals)) == {"a": ("fast", 10.0), "b": ("fast", 35.0)}
    assert ends(run(EAGER, arrivals)) == {"a": ("fast", 10.0), "b": ("slow", 101.0)}


def test_never_waits_where_that_ends_later() -> None:
    """`b` ends at 41 s on the slow node, at 110 s after waiting."""
    arrivals = [Arrival(0.0, flow("a", 400.0)), Arrival(1.0, flow("b", 40.0))]
    assert ends(run(PATIENT, arrivals))["b"] == ("slow", 41.0)


def test_a_second_task_does_not_wait_for_room_that_the_first_has_claimed() -> None:
    """One place becomes free: who is second in line takes the slow node at once."""
    arrivals = [Arrival(0.0, flow("a", 40.0))] + [Arrival(1.0, flow(n, 100.0)) for n in "bc"]
    assert ends(run(PATIENT, arrivals)) == {
        "a": ("fast", 10.0),
        "b": ("fast", 35.0),
        "c": ("slow", 101.0),
    }


def test_an_overdue_task_makes_waiting_less_attractive() -> None:
    """`a` is expected to end at 10 s and still runs at 70 s: expected at 70 + 0.2 * 70 = 84 s."""
    cluster = Cluster(name="c", nodes=(node("slow", speed=2.0), node("fast", speed=4.0)))
    arrivals = [
        Arrival(0.0, flow("a", 800.0)),  # ends at 200 s
        Arrival(70.0, flow("b", 60.0)),  # slow: 100 s, fast: 84 + 15 = 99 s
        Arrival(71.0, flow("c", 56.0)),  # slow: 99 s, fast: 85.2 + 14 = 99.2 s
    ]

    def on_decision(snapshot: Any, memory: Any, decide: Any) -> int:
        placed = int(decide())
        if snapshot.status[0]["now_s"] == 0.0:
            snapshot.tasks["end_s"][0] = 10.0  # what was expected of `a`
        return placed

    result = Simulation(arrivals, cluster).run(scorer("s", weights_of(PATIENT)), on_decision)
    placed = ends(result)
    assert placed["c"] == ("slow", 99.0)
    assert placed["b"][0] == "slow"  # asked again at 99 s, when waiting has become worse


def instants(sources: list[str], cluster: str = "edge") -> list[dict[str, NDArray[np.float64]]]:
    """All features of all ready tasks at the first instants of a noisy run."""
    setup = setup_for(sources, cluster, Scenario(runtimes=Runtimes(noise=0.4)))
    rule = scorer("s", preset())
    rows: list[dict[str, NDArray[np.float64]]] = []

    def on_decision(snapshot: Any, memory: Any, decide: Any) -> int:
        if len(rows) < 400:
            rows.append(_features_of(snapshot, memory))
        return int(decide())

    Simulation(setup.arrivals(1), setup.cluster, setup.scenario, 1).run(rule, on_decision)
    return rows


def _features_of(snapshot: Any, memory: Any) -> dict[str, NDArray[np.float64]]:
    found: dict[str, list[NDArray[np.float64]]] = {"task": [], "pair": [], "wait": []}
    arrived = snapshot.workflows["first_task"][: snapshot.status[0]["num_arrived"]]
    for task in np.flatnonzero(snapshot.tasks["state"] == READY)[:20]:
        assert task >= arrived[0]
        out = np.full(schema.NUM_TASK, np.nan)
        features.task_features(snapshot, memory, int(task), out)
        found["task"].append(out)
        options = np.zeros(features.NUM_OPTIONS)
        if not features.find_options(snapshot, int(task), options) or np.isinf(options[0]):
            continue
        for place in range(len(snapshot.nodes)):
            if legality.verdict(snapshot, int(task), place) == legality.LEGAL:
                out = np.full(schema.NUM_PAIR, np.nan)
                features.pair_features(snapshot, memory, int(task), place, options, out)
                found["pair"].append(out)
        out = np.full(schema.NUM_WAIT, np.nan)
        target, _ = features.wait_features(snapshot, memory, int(task), options, options[0], out)
        if target >= 0:
            found["wait"].append(out)
    return {part: np.array(rows) for part, rows in found.items()}


@pytest.mark.parametrize("family", ["mixed", "ai-training"])
def test_every_feature_stays_in_the_range_that_the_schema_states(family: str) -> None:
    rows = instants([f"{family}:12"])
    for part, stated in (("task", schema.TASK), ("pair", schema.PAIR), ("wait", schema.WAIT)):
        values = np.concatenate([row[part] for row in rows if len(row[part])])
        assert len(values) > 20, part
        assert np.isfinite(values).all()
        for column, feature in zip(values.T, stated, strict=True):
            assert feature.low - 1e-9 <= column.min(), feature.name
            assert column.max() <= feature.high + 1e-9, feature.name


def test_task_features_by_hand() -> None:
    """A fork of 30 s before 60 s, deadline at 300 s, asked 100 s after submission."""
    tasks = tuple(
        Task(id=name, runtime_s=seconds, request={"cpu": 500, "memory": GIB})
        for name, seconds in (("a", 30.0), ("b", 60.0))
    )
    workflow = Workflow(id="w", tasks=tasks, dependencies=(Dependency("a", "b"),), deadline_s=300.0)
    cluster = Cluster(name="c", nodes=(node("n"),))
    simulation = Simulation([Arrival(0.0, workflow)], cluster)
    snapshot = simulation.snapshot
    snapshot.status[0]["now_s"] = 100.0
    snapshot.tasks["ready_s"][0] = 40.0
    memory = scorer("s", preset()).prepare(snapshot, 0)
    out = np.zeros(schema.NUM_TASK)
    features.task_features(snapshot, memory, 0, out)
    named = dict(zip((feature.name for feature in schema.TASK), out.tolist(), strict=True))
    day = np.log1p(86400)
    expected = {
        "remaining": np.log1p(90) / day,
        "upward": np.log1p(90) / day,
        "own": np.log1p(30) / day,
        "path_share": 1.0,
        "age": np.log1p(100) / day,
        "waiting": np.log1p(60) / day,
        "slack": (300 - 100 - 90) / 91 / 3,
        "gpu": 0.0,
        "share": np.log1p(50) / np.log1p(100),
        "tasks_left": 1.0,
        "children": np.log1p(1) / 5,
        "slowdown": np.log((100 + 90 + 1) / (90 + 1)) / 3,
        "work": np.log1p(30) / day,
    }
    for name, value in expected.items():
        assert named[name] == pytest.approx(value, abs=1e-6), name


def test_weights_for_an_objective_lie_between_those_of_its_aims() -> None:
    by_aim = read_weights(
        "apiVersion: dagsail.io/v1alpha1\nkind: ScorerWeights\nmetadata: {name: x}\n"
        f"spec: {{schemaVersion: {schema.VERSION}, task: {{remaining: -4}}, pair: {{}},"
        " byAim: {cost: {task: {remaining: 2}, pair: {cost: -8}}}}",
        "x.yaml",
    )
    weights = blend(by_aim, objective_of({"completion": 3, "cost": 1}))
    cost = schema.NUM_TASK + [feature.name for feature in schema.PAIR].index("cost")
    assert weights[0] == pytest.approx(-4 + 2 / 4)
    assert weights[cost] == pytest.approx(-8 / 4)
    assert np.count_nonzero(weights) == 2


def test_weights_survive_a_file_and_bad_files_are_refused() -> None:
    text = write_weights(preset_by_aim(), "mine")
    assert read_weights(text, "mine.yaml") == pytest.approx(preset_by_aim(), abs=2e-3)
    for old, new, message in (
        ("remaining:", "remainin:", r"spec\.task\.remainin: no such feature; did you mean"),
        (f"schemaVersion: {schema.VERSION}", "schemaVersion: 99", "found 99.*tune the weights"),
        ("gpu: -0.521", "gpu: .nan", r"spec\.task\.gpu: found nan"),
        (
            "    cost:\n      task",
            "    costs:\n      task",
            r"spec\.byAim\.costs: no such aim; did you",
        ),
        ("kind: ScorerWeights", "kind: Workflow", "expected 'ScorerWeights'"),
    ):
        assert old in text
        with pytest.raises(FormatError, match=message):
            read_weights(text.replace(old, new), "mine.yaml")


def test_waiting_ends_when_the_awaited_node_has_room() -> None:
    """Even if that is far sooner than expected, and nothing else will ever happen."""
    request = {"cpu": 1000, "memory": GIB}
    nodes = tuple(
        Node(name=name, allocatable=request, speed=speed)
        for name, speed in (("fast", 10.0), ("slow", 0.01))
    )
    arrivals = [
        Arrival(time_s, Workflow(id=name, tasks=(Task(id="t", runtime_s=1000.0, request=request),)))
        for time_s, name in ((0.0, "first"), (1.0, "second"))
    ]
    scenario = Scenario(runtimes=Runtimes(noise=3.0))
    early = 0
    for seed in range(30):
        cluster = Cluster(name="two", nodes=nodes)
        done = Simulation(arrivals, cluster, scenario, seed).run(scorer("s", preset()))
        assert done.attempts["node"].tolist() == [0, 0]
        assert done.attempts["start_s"][1] == pytest.approx(max(done.attempts["end_s"][0], 1.0))
        early += 1.0 < done.attempts["end_s"][0] < 20.0
    assert early > 3
