"""What every registered policy must do, whatever it thinks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.domain.cluster import RACK_LABEL, ZONE_LABEL, Cluster, Node
from dagsail.domain.placement import Placement, Taint
from dagsail.domain.scenario import Faults, Runtimes, Scenario
from dagsail.domain.snapshot import FINISHED
from dagsail.domain.units import GIB, GPU
from dagsail.domain.workflow import Arrival, Dependency, Priority, Task, Workflow
from dagsail.policies import DEFAULT_POLICIES, POLICIES, policy

NAMES = [entry.name for entry in POLICIES]
NOISY = Scenario(runtimes=Runtimes(noise=0.4))


def small_cluster() -> Cluster:
    """Six unlike nodes in two zones, one of them with GPUs, one tainted."""
    nodes = []
    for i in range(6):
        allocatable = {"cpu": 4000 + 2000 * (i % 3), "memory": 16 * GIB}
        if i == 5:
            allocatable[GPU] = 2
        nodes.append(
            Node(
                name=f"n{i}",
                type=f"type-{i % 3}",
                allocatable=allocatable,
                speed=1.0 + 0.5 * (i % 3),
                labels={ZONE_LABEL: f"z{i % 2}", RACK_LABEL: f"r{i // 2}"},
                taints=(Taint("dedicated", "x"),) if i == 0 else (),
            )
        )
    return Cluster(name="small", nodes=tuple(nodes))


def layered(index: int, rng: np.random.Generator, num_tasks: int = 30) -> Workflow:
    """Random layers, three request sizes, some GPU tasks, one group of workers, data on edges."""
    tasks = []
    for i in range(num_tasks):
        request = {"cpu": int(rng.choice([500, 1000, 3000])), "memory": GIB}
        if i % 11 == 5:
            request[GPU] = 1
        tasks.append(
            Task(
                id=f"t{i}",
                runtime_s=float(rng.lognormal(3, 1)),
                kind=f"kind-{i % 4}",
                request=request,
                num_workers=3 if i % 13 == 7 and GPU not in request else 1,
                comm_bytes=10**8,
                placement=Placement(near_parents=i % 5 == 0),
            )
        )
    edges = {
        (int(rng.integers(max(0, c - 10), c)), c)
        for c in range(3, num_tasks)
        for _ in range(int(rng.integers(1, 3)))
    }
    return Workflow(
        id=f"w{index}",
        tasks=tuple(tasks),
        dependencies=tuple(
            Dependency(f"t{p}", f"t{c}", int(rng.integers(0, 10**9))) for p, c in sorted(edges)
        ),
        priority=Priority(index % 4),
        deadline_s=600.0 if index % 2 else None,
    )


def arrivals(count: int = 8, seed: int = 0) -> list[Arrival]:
    rng = np.random.default_rng(seed)
    return [Arrival(20.0 * i, layered(i, rng)) for i in range(count)]


def run(name: str, scenario: Scenario = NOISY, seed: int = 1) -> Run:
    return Simulation(arrivals(), small_cluster(), scenario, seed).run(policy(name))


def test_the_defaults_are_registered() -> None:
    assert set(DEFAULT_POLICIES) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_task_ends_once_after_its_parents_without_overcommit(name: str) -> None:
    result = run(name, Scenario(runtimes=Runtimes(noise=0.4), faults=Faults(node_mtbf_s=900.0)))
    attempts, snapshot = result.attempts, result.snapshot
    finished = attempts[attempts["outcome"] == 0]
    assert sorted(finished["task"]) == list(range(len(snapshot.tasks)))
    assert (snapshot.tasks["state"] == FINISHED).all()
    start = np.empty(len(snapshot.tasks))
    start[finished["task"]] = finished["start_s"]
    for task, row in enumerate(snapshot.tasks):
        for edge in snapshot.parents[row["parent_start"] : row["parent_end"]]:
            assert snapshot.tasks[edge["task"]]["end_s"] <= start[task] + 1e-9
    assert_no_overcommit(result)


def assert_no_overcommit(result: Run) -> None:
    """Sum the requests of everything that runs on a node, at every start."""
    workers: list[list[int]] = []
    for row in result.attempts:
        count = int(result.snapshot.tasks[row["task"]]["num_workers"])
        first = int(row["worker_start"])
        several = [int(n) for n in result.attempt_workers[first : first + count]]
        workers.append(several if count > 1 else [int(row["node"])])
    for at in result.attempts:
        used = np.zeros_like(result.snapshot.node_allocatable)
        for row, nodes in zip(result.attempts, workers, strict=True):
            if row["start_s"] <= at["start_s"] < row["end_s"]:
                for node in nodes:
                    used[node] += result.snapshot.shape_request[row["shape"]]
        assert (used <= result.snapshot.node_allocatable).all()


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_run_and_stepwise_equals_compiled(name: str) -> None:
    first = run(name)
    again = run(name)
    stepwise = Simulation(arrivals(), small_cluster(), NOISY, 1).run(
        policy(name), on_decision=lambda _snapshot, _memory, decide: decide()
    )
    assert first.attempts.tobytes() == again.attempts.tobytes()
    assert first.attempts.tobytes() == stepwise.attempts.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_decisions_do_not_depend_on_workflows_that_have_not_arrived(name: str) -> None:
    """Cutting off the last arrivals leaves everything before them as it was.

    The known mix of requests is the same in both, since later workflows repeat earlier ones.
    """
    rng = np.random.default_rng(3)
    known = [layered(i, rng) for i in range(4)]
    first = [Arrival(20.0 * i, w) for i, w in enumerate(known)]
    later_s = 150.0
    later = [
        Arrival(
            later_s,
            Workflow(id=f"later{i}", tasks=w.tasks, dependencies=w.dependencies),
        )
        for i, w in enumerate(known)
    ]
    short = Simulation(first, small_cluster(), NOISY, 1).run(policy(name))
    long = Simulation(first + later, small_cluster(), NOISY, 1).run(policy(name))

    def early(result: Run) -> list[tuple[int, int, float]]:
        rows = result.attempts[result.attempts["start_s"] < later_s]
        return sorted((int(r["task"]), int(r["node"]), float(r["start_s"])) for r in rows)

    assert early(short) == early(long)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_never_sees_a_true_runtime(name: str) -> None:
    """Two worlds with equal estimates and unlike truths: equal until the first task ends."""
    runs = [
        Simulation(arrivals(1), small_cluster(), NOISY, seed).run(_unseeded(name))
        for seed in (1, 2)
    ]
    first_end = min(float(r.attempts["end_s"].min()) for r in runs)
    early = [
        sorted(
            (int(row["task"]), int(row["node"]))
            for row in r.attempts[r.attempts["start_s"] < first_end]
        )
        for r in runs
    ]
    assert early[0] == early[1]
    assert not np.array_equal(runs[0].attempts["end_s"], runs[1].attempts["end_s"])


def _unseeded(name: str) -> Any:
    """The policy with its own random numbers fixed, so that only the world's seed differs."""
    inner = policy(name)

    class Fixed:
        name = inner.name

        def prepare(self, snapshot: object, seed: int) -> object:
            return inner.prepare(snapshot, 0)  # type: ignore[arg-type]

        def decide(self, snapshot: object, memory: object, limit: int) -> int:
            return inner.decide(snapshot, memory, limit)  # type: ignore[arg-type]

    return Fixed()


@pytest.mark.parametrize("name", NAMES)
def test_one_free_node_and_one_task_is_never_left_waiting(name: str) -> None:
    workflow = Workflow(
        id="w", tasks=(Task(id="t", runtime_s=5.0, request={"cpu": 1000, "memory": GIB}),)
    )
    cluster = Cluster(name="one", nodes=(Node(name="n", allocatable={"cpu": 1000, "memory": GIB}),))
    result = Simulation([Arrival(7.0, workflow)], cluster).run(policy(name))
    assert float(result.attempts["start_s"][0]) == 7.0
    assert float(result.attempts["end_s"][0]) == 12.0


_HASH_PROGRAM = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from test_policies import NAMES, run
digest = hashlib.sha256()
for name in NAMES:
    digest.update(run(name).attempts.tobytes())
print(digest.hexdigest())
"""


def test_hash_seed_does_not_matter() -> None:
    program = _HASH_PROGRAM.format(folder=str(Path(__file__).parent))
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert len(outputs) == 1
