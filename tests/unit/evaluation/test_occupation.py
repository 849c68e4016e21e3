"""The running sums against a slow count of every moment, on a random run."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.scenario import Faults, Runtimes, Scenario
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.evaluation.metrics import measure
from dagsail.evaluation.timeline import timeline
from dagsail.evaluation.waiting import queue_percentile
from dagsail.evaluation.window import Window


@pytest.fixture
def random_run(simulate, node) -> Run:
    rng = np.random.default_rng(8)

    def workflow(name: str) -> Workflow:
        tasks = tuple(
            Task(
                id=f"t{i}",
                runtime_s=float(rng.integers(1, 60)),
                request={"cpu": int(rng.integers(1, 18)) * 100, "memory": int(rng.integers(3))},
                num_workers=int(rng.integers(1, 3)),
            )
            for i in range(5)
        )
        edges = tuple(Dependency(f"t{int(rng.integers(i))}", f"t{i}") for i in range(1, 5))
        return Workflow(id=name, tasks=tasks, dependencies=edges)

    arrivals = [Arrival(20.0 * i, workflow(f"w{i}")) for i in range(12)]
    nodes = [node("n0"), node("n1", cpu=3000), node("n2", cpu=2500)]
    faults = Faults(task_failure_ratio=0.1, node_mtbf_s=900, node_mttr_s=30)
    scenario = Scenario(runtimes=Runtimes(noise=0.5), faults=faults)
    run: Run = simulate(arrivals, nodes, scenario, seed=2)
    return run


def moments(run: Run, window: Window):
    """Length, used amounts (nodes, resources) and queue length of each moment between changes."""
    entries = list(timeline(run))
    times = {window.start_s, window.end_s}
    for entry in entries:
        times |= {entry["end_s"], entry["ready_s"], entry["start_s"]} - {None}
    inside = sorted(time for time in times if window.start_s <= time <= window.end_s)
    position = {name: i for i, name in enumerate(run.names.nodes)}
    for begin, end in pairwise(inside):
        used = np.zeros((len(position), len(run.names.resources)))
        queue = 0
        for entry in entries:
            start = entry["end_s"] if entry["start_s"] is None else entry["start_s"]
            if start <= begin and end <= entry["end_s"]:
                for worker in entry.get("workers", [entry]):
                    for column, name in enumerate(run.names.resources):
                        used[position[worker["node"]], column] += worker["request"].get(name, 0)
            if entry["ready_s"] is not None:
                queue += entry["ready_s"] <= begin and end <= start
        yield end - begin, used, queue


@pytest.mark.parametrize("window", [Window(0.0, 500.0), Window(33.3, 190.0)])
def test_averages_over_time_agree_with_a_count_of_every_moment(random_run, window):
    run = random_run
    snapshot = run.snapshot
    allocatable = snapshot.node_allocatable
    total = busy = spread = lost = offered = 0.0
    queue_s: dict[int, float] = {}
    for seconds, used, queue in moments(run, window):
        total += seconds
        busy += seconds * used[:, 0].sum() / allocatable[:, 0].sum()
        load = (used / np.maximum(allocatable, 1)).max(axis=1)
        spread += seconds * load.std()
        queue_s[queue] = queue_s.get(queue, 0.0) + seconds
        free = allocatable - used
        by_count = np.argsort(-snapshot.shapes["num_tasks"], kind="stable")[:32]
        for shape in by_count:
            request = snapshot.shape_request[shape]
            for row, capacity in zip(free, allocatable, strict=True):
                if (request <= capacity).all():
                    weight = snapshot.shapes["num_tasks"][shape] * seconds * row[0]
                    offered += weight
                    lost += weight * bool((request > row).any())
    found = measure(run, window)
    assert found["evictions"] > 0
    assert found["utilisation"] == pytest.approx(busy / total)
    assert found["node_load_std"] == pytest.approx(spread / total)
    assert 0 < found["fragmentation"] == pytest.approx(lost / offered)
    cumulated = np.cumsum([queue_s[length] for length in sorted(queue_s)])
    expected = sorted(queue_s)[int(np.argmax(cumulated >= 0.6 * total))]
    assert queue_percentile(run, window, 60) == expected > 0
