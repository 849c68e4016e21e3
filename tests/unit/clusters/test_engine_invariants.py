"""What holds in every run, whatever goes on, checked on random workflows and scenarios."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from dagsail.clusters.simulated import world as truth
from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.domain import snapshot as states
from dagsail.domain.cluster import RACK_LABEL, ZONE_LABEL, Cluster, Link, Network, Node
from dagsail.domain.errors import StuckError
from dagsail.domain.placement import Placement
from dagsail.domain.scenario import (
    Fairness,
    Faults,
    ForeignLoad,
    Interference,
    NodeChange,
    Preemption,
    Runtimes,
    Scenario,
    Startup,
    Transfers,
)
from dagsail.domain.snapshot import Snapshot
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival, Dependency, Priority, Task, Workflow
from dagsail.policies.heuristics.fifo import POLICY as FIFO
from dagsail.policies.rule import make_memory
from dagsail.scheduling import arbiter
from dagsail.scheduling.listing import Memory

# Random inputs ---------------------------------------------------------------------------------

_FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
_NETWORK = Network(same_rack=Link(0.5, 400.0), same_zone=Link(1.0, 200.0), cross_zone=Link(2, 90.0))


def _node(position: int, kind: str, gpus: int, spot: bool) -> Node:
    devices = {"nvidia.com/gpu": gpus, "gpu-milli": 1000 * gpus}
    return Node(
        name=f"n{position}",
        type=kind,
        allocatable={"cpu": 4000, "memory": 8 * GIB, **(devices if gpus else {})},
        labels={ZONE_LABEL: f"z{position % 2}", RACK_LABEL: f"r{position % 3}"},
        speed=(1.0, 0.5, 2.0)[position % 3],
        nic_bytes_per_s=(1000.0, 150.0)[position % 2],
        is_spot=spot,
    )


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    # Two nodes always stay, so every task can run some time.
    nodes = [_node(0, "standard", 2, False), _node(1, "standard", 2, False)]
    for position in range(2, 2 + draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["standard", "short", "late"]))
        nodes.append(_node(position, kind, draw(st.integers(0, 2)), draw(st.booleans())))
    return Cluster(name="random", nodes=tuple(nodes), network=_NETWORK)


_REQUESTS: tuple[dict[str, int], ...] = (
    {"cpu": 500},
    {"cpu": 1000, "memory": GIB},
    {"cpu": 2000, "memory": 3 * GIB},
    {"cpu": 100, "gpu-milli": 300},
    {"cpu": 100, "gpu-milli": 700},
    {"cpu": 1000, "nvidia.com/gpu": 1},
    {"cpu": 1000, "nvidia.com/gpu": 2},
    {},
)


@st.composite
def tasks(draw: st.DrawFn, name: str, max_workers: int) -> Task:
    request = draw(st.sampled_from(_REQUESTS))
    most = min(max_workers, 2) if request.get("nvidia.com/gpu") == 2 else max_workers
    return Task(
        id=name,
        runtime_s=draw(st.sampled_from([0.0, 1.0, 2.5, 7.0, 20.0])),
        request=request,
        num_workers=draw(st.integers(1, most)) if draw(st.integers(0, 4)) == 0 else 1,
        comm_bytes=draw(st.sampled_from([0, 500])),
        input_bytes=draw(st.sampled_from([0, 300])),
        image=draw(st.sampled_from(["", "x:1", "y:2"])),
        image_bytes=150,
        priority=draw(st.sampled_from([None, *Priority])),
        io_demand=draw(st.sampled_from([0.0, 0.6, 1.0])),
        memory_bandwidth_demand=draw(st.sampled_from([0.0, 0.5, 1.0])),
        max_retries=draw(st.integers(0, 2)),
        timeout_s=draw(st.sampled_from([None, None, None, 15.0])),
    )


@st.composite
def workflows(draw: st.DrawFn, name: str, max_workers: int) -> Workflow:
    count = draw(st.integers(1, 7))
    made = tuple(draw(tasks(f"t{i}", max_workers)) for i in range(count))
    edges = tuple(
        Dependency(f"t{i}", f"t{j}", draw(st.sampled_from([0, 100, 1000])))
        for j in range(count)
        for i in range(j)
        if draw(st.integers(0, 3)) == 0
    )
    return Workflow(
        id=name,
        tasks=made,
        dependencies=edges,
        tenant=draw(st.sampled_from(["a", "b"])),
        priority=draw(st.sampled_from(list(Priority))),
    )


@st.composite
def arrivals(draw: st.DrawFn, max_workers: int = 3) -> list[Arrival]:
    return [
        Arrival(draw(st.sampled_from([0.0, 0.0, 3.0, 10.0])), draw(workflows(f"w{i}", max_workers)))
        for i in range(draw(st.integers(1, 5)))
    ]


def _maybe(draw: st.DrawFn, value: float) -> float:
    return value if draw(st.booleans()) else 0.0


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Every effect on or off."""
    changes = []
    if draw(st.booleans()):
        changes.append(NodeChange(node_type="short", leaves_s=draw(st.sampled_from([3.0, 9.0]))))
    if draw(st.booleans()):
        changes.append(NodeChange(node_type="late", joins_s=5.0, leaves_s=30.0))
    return Scenario(
        runtimes=Runtimes(
            noise=_maybe(draw, 0.4),
            straggler_ratio=_maybe(draw, 0.2),
            heavy_tail_ratio=_maybe(draw, 0.1),
        ),
        startup=Startup(
            container_s=_maybe(draw, 0.5),
            image_pull=draw(st.booleans()),
            registry_bytes_per_s=100.0,
        ),
        transfers=Transfers(
            enabled=draw(st.integers(0, 4)) > 0,
            fair_sharing=draw(st.booleans()),
            stage_in=draw(st.booleans()),
            latency_jitter=_maybe(draw, 0.3),
            bandwidth_jitter=_maybe(draw, 0.3),
        ),
        interference=Interference(
            memory_bandwidth=_maybe(draw, 0.5),
            disk=_maybe(draw, 0.5),
            disk_drift=_maybe(draw, 0.5),
            interval_s=3.0,
        ),
        faults=Faults(
            node_mtbf_s=_maybe(draw, 150.0),
            node_mttr_s=5.0,
            spot_mtbf_s=_maybe(draw, 60.0),
            spot_notice_s=4.0,
            task_failure_ratio=_maybe(draw, 0.2),
            oom_ratio=_maybe(draw, 0.2),
        ),
        foreign_load=ForeignLoad(
            mean_ratio=_maybe(draw, 0.2),
            tide_ratio=_maybe(draw, 0.1),
            noise_ratio=_maybe(draw, 0.1),
            interval_s=4.0,
        ),
        node_changes=tuple(changes),
        fairness=Fairness(
            max_wait_s={"P0": 5.0, "P2": 8.0} if draw(st.booleans()) else {},
            tenant_quota={"a": 0.8} if draw(st.booleans()) else {},
        ),
        preemption=Preemption(enabled=draw(st.booleans())),
    )


# Checks while it runs --------------------------------------------------------------------------


def _held(snapshot: Snapshot) -> tuple[Any, Any]:
    """What bound tasks hold: resources (N, R) and thousandths of devices (N, D)."""
    resources = np.zeros_like(snapshot.node_free)
    devices = np.zeros_like(snapshot.node_devices)
    for task in np.flatnonzero(snapshot.tasks["state"] == states.BOUND):
        row = snapshot.tasks[task]
        shape = int(row["shape"])
        milli = int(snapshot.shapes[shape]["gpu_milli"])
        first = int(row["worker_start"])
        for worker in snapshot.workers[first : first + int(row["num_workers"])]:
            resources[worker["node"]] += snapshot.shape_request[shape]
            used = [d for d in range(devices.shape[1]) if int(worker["devices"]) >> d & 1]
            assert len(used) == -(-milli // 1000)
            for device in used:
                devices[worker["node"], device] += min(milli, 1000)
    return resources, devices


def _check_room(simulation: Simulation) -> None:
    snapshot = simulation.snapshot
    resources, devices = _held(snapshot)
    assert (snapshot.node_free >= 0).all()
    assert (snapshot.node_free + resources + simulation.world.foreign).tolist() == (
        snapshot.node_allocatable.tolist()
    )
    whole = snapshot.node_allocatable[:, simulation.names.resources.index("gpu-milli")]
    for node, milli in enumerate(whole.tolist()):
        expected = [1000 if d < milli // 1000 else 0 for d in range(devices.shape[1])]
        assert (snapshot.node_devices[node] + devices[node]).tolist() == expected
        assert (snapshot.node_devices[node] >= 0).all()


def _check_queue(snapshot: Snapshot) -> None:
    status, rows = snapshot.status[0], snapshot.tasks
    bound = snapshot.bound[: int(status["num_bound"])]
    assert sorted(bound.tolist()) == np.flatnonzero(rows["state"] == states.BOUND).tolist()
    assert (rows["bound_position"][bound] == np.arange(len(bound))).all()
    queued = []
    for index in range(int(status["num_active"])):
        shape = int(snapshot.active[index])
        row = snapshot.shapes[shape]
        assert row["active_position"] == index
        assert row["queue_size"] > 0
        start, size = int(row["queue_start"]), int(row["queue_size"])
        heap = snapshot.queue[start : start + size].tolist()
        queued += heap
        order = [(rows[t]["boost"], rows[t]["key"], rows[t]["sequence"]) for t in heap]
        for position, task in enumerate(heap):
            assert rows[task]["queue_position"] == position
            assert rows[task]["shape"] == shape
            assert position == 0 or order[(position - 1) // 2] < order[position]
    queued += snapshot.incoming[: int(status["num_incoming"])].tolist()
    queued += snapshot.deferred[: int(status["num_deferred"])].tolist()
    assert sorted(queued) == np.flatnonzero(rows["state"] == states.READY).tolist()
    assert status["num_ready"] == len(queued)
    for node in snapshot.nodes:
        if node["reserved_for"] >= 0:
            assert rows[node["reserved_for"]]["state"] == states.READY


def _check_timers(simulation: Simulation) -> None:
    world = simulation.world
    size = int(world.law[0]["num_timers"])
    heap = world.timer_heap[:size].tolist()
    order = [(float(world.timers[t]["time_s"]), t) for t in heap]
    assert all(order[(i - 1) // 2] < order[i] for i in range(1, size))
    assert [int(world.timers[t]["position"]) for t in heap] == list(range(size))
    assert int((world.timers["position"] >= 0).sum()) == size


def _check_nodes(simulation: Simulation) -> None:
    """The lists of workers on nodes, and the pressure that they exert."""
    snapshot, world = simulation.snapshot, simulation.world
    bound = np.flatnonzero(snapshot.tasks["state"] == states.BOUND)
    expected = defaultdict(list)
    for task in bound:
        first = int(snapshot.tasks[task]["worker_start"])
        for slot in range(first, first + int(snapshot.tasks[task]["num_workers"])):
            expected[int(snapshot.workers[slot]["node"])].append(slot)
    for node, machine in enumerate(world.machines):
        assert snapshot.nodes[node]["num_running"] == len(expected[node])
        placed = snapshot.placed[: int(snapshot.status[0]["num_placed"])]
        found, slot = [], int(machine["first_slot"])
        while slot >= 0:
            found.append(slot)
            slot = int(world.slots[slot]["next"])
        not_started = [s for s in expected[node] if world.slots[s]["task"] in placed]
        assert sorted(found) == sorted(set(expected[node]) - set(not_started))
        if simulation.world.law[0]["interferes"]:
            owners = [int(world.slots[s]["task"]) for s in found]
            running = [t for t in owners if world.runs[t]["phase"] == truth.RUNNING]
            demand = snapshot.tasks["memory_bandwidth_demand"][running].sum()
            assert abs(machine["memory_pressure"] - demand) < 1e-9


def _check_blocked(snapshot: Snapshot) -> None:
    """A shape that counts as blocked really fits on no node."""
    for index in range(int(snapshot.status[0]["num_active"])):
        shape = int(snapshot.active[index])
        row = snapshot.shapes[shape]
        if row["blocked"] == 0 or row["num_workers"] > 1:
            continue
        for node in range(len(snapshot.nodes)):
            fits = (
                snapshot.shape_node[shape, node]["eligible"] == 1
                and snapshot.nodes[node]["state"] == states.NODE_UP
                and (snapshot.shape_request[shape] <= snapshot.node_free[node]).all()
            )
            milli, free = int(row["gpu_milli"]), snapshot.node_devices[node]
            if 0 < milli < 1000:
                fits = fits and free.max(initial=0) >= milli
            elif milli:
                fits = fits and (free == 1000).sum() * 1000 >= milli
            assert not fits


class Watch:
    """Checks the state around every placement."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation

    def __call__(self, snapshot: Snapshot, memory: Memory, decide: Callable[[], int]) -> int:
        self._check(snapshot)
        placed = decide()
        self._check(snapshot)
        for task in snapshot.placed[: int(snapshot.status[0]["num_placed"])].tolist():
            first = int(snapshot.tasks[task]["worker_start"])
            count = int(snapshot.tasks[task]["num_workers"])
            for worker in snapshot.workers[first : first + count]:
                shape = int(snapshot.tasks[task]["shape"])
                assert snapshot.nodes[worker["node"]]["state"] == states.NODE_UP
                assert snapshot.shape_node[shape, worker["node"]]["eligible"] == 1
        assert (snapshot.tenant_used <= snapshot.tenant_limit).all()
        if placed == 0:
            _check_blocked(snapshot)
        return placed

    def _check(self, snapshot: Snapshot) -> None:
        _check_room(self.simulation)
        _check_queue(snapshot)
        _check_timers(self.simulation)
        _check_nodes(self.simulation)


# Checks of what came of it ---------------------------------------------------------------------


def check_run(run: Run) -> None:
    by_task: dict[int, list[Any]] = {t: [] for t in range(len(run.snapshot.tasks))}
    for row in run.attempts:
        by_task[int(row["task"])].append(row)
    for task, rows in by_task.items():
        _check_task(run, task, rows)
    _check_precedence(run, by_task)
    _check_workflows(run)
    _check_sweep(run)


def _check_task(run: Run, task: int, rows: list[Any]) -> None:
    """A task ends exactly once, after attempts that follow one another."""
    state = int(run.snapshot.tasks[task]["state"])
    outcomes = [truth.OUTCOMES[int(r["outcome"])] for r in rows]
    last = {states.FINISHED: "finished", states.FAILED: "failed", states.CANCELLED: "cancelled"}
    assert outcomes[-1] == last[state]
    assert all(outcome in ("failed", "evicted") for outcome in outcomes[:-1])
    assert [int(r["attempt"]) for r in rows] == list(range(len(rows)))
    for row in rows:
        if outcomes[int(row["attempt"])] != "cancelled" or row["node"] >= 0:
            assert row["ready_s"] <= row["start_s"] <= row["end_s"] < np.inf
    for before, after in itertools.pairwise(rows):
        assert after["ready_s"] == before["end_s"] or after["ready_s"] == np.inf
    definition = [t for a in run.arrivals for t in a.workflow.tasks][task]
    faults = run.scenario.faults
    chance = faults.task_failure_ratio > 0 or faults.oom_ratio > 0
    allowed = definition.max_retries or (faults.max_retries if chance else 0)
    failures = outcomes.count("failed")
    assert failures == allowed + 1 if state == states.FAILED else failures <= allowed


def _check_precedence(run: Run, by_task: dict[int, list[Any]]) -> None:
    snapshot = run.snapshot
    for child, rows in by_task.items():
        row = snapshot.tasks[child]
        arrival_s = snapshot.workflows[int(row["workflow"])]["arrival_s"]
        for parent in snapshot.parents[int(row["parent_start"]) : int(row["parent_end"])]["task"]:
            for attempt in rows:
                if attempt["start_s"] < np.inf:
                    assert snapshot.tasks[parent]["state"] == states.FINISHED
                    assert by_task[int(parent)][-1]["end_s"] <= attempt["ready_s"]
        assert all(attempt["ready_s"] >= arrival_s for attempt in rows)


def _check_workflows(run: Run) -> None:
    for flow in run.snapshot.workflows:
        mine = run.snapshot.tasks[int(flow["first_task"]) :][: int(flow["num_tasks"])]
        assert flow["tasks_left"] == 0
        assert flow["finish_s"] == mine["end_s"].max()
        whole = (mine["state"] == states.FINISHED).all()
        assert flow["state"] == (states.FINISHED if whole else states.CANCELLED)
        assert whole or (mine["state"] == states.FAILED).any()
        assert abs(flow["remaining_s"]) < 1e-6


def _check_sweep(run: Run) -> None:
    """At no time do the attempts on a node ask for more than it has."""
    changes: dict[int, list[Any]] = defaultdict(list)
    counts = run.snapshot.tasks["num_workers"]
    for row in run.attempts:
        if row["node"] < 0 or row["start_s"] == row["end_s"]:
            continue
        nodes = [int(row["node"])]
        if counts[row["task"]] > 1:
            first = int(row["worker_start"])
            nodes = run.attempt_workers[first : first + int(counts[row["task"]])].tolist()
            assert nodes[0] == row["node"]
        amounts = run.snapshot.shape_request[int(row["shape"])]
        for node in nodes:
            changes[node] += [(row["start_s"], 1, amounts), (row["end_s"], 0, -amounts)]
    for node, steps in changes.items():
        used = np.zeros(len(run.names.resources), np.int64)
        for _, _, amounts in sorted(steps, key=lambda step: step[:2]):
            used += amounts
            assert (used >= 0).all()
            assert (used <= run.snapshot.node_allocatable[node]).all()
        assert (used == 0).all()


def check_all_is_free(simulation: Simulation) -> None:
    snapshot, status = simulation.snapshot, simulation.snapshot.status[0]
    _check_room(simulation)
    assert not (snapshot.tasks["state"] == states.BOUND).any()
    assert (snapshot.tenant_used == 0).all()
    for name in ("num_running", "cpu_default", "memory_default"):
        assert (snapshot.nodes[name] == 0).all()
    assert (snapshot.nodes["reserved_for"] == -1).all()
    assert (status["num_ready"], status["num_incoming"], status["num_active"]) == (0, 0, 0)
    law = simulation.world.law[0]
    assert (status["num_bound"], status["num_deferred"], law["num_active_flows"]) == (0, 0, 0)
    assert (simulation.world.runs["flows_left"] == 0).all()
    assert abs(simulation.world.machines["memory_pressure"]).max() < 1e-9


def fingerprint(run: Run) -> str:
    digest = hashlib.sha256(run.attempts.tobytes())
    digest.update(run.attempt_workers.tobytes())
    digest.update(run.snapshot.workflows.tobytes())
    return digest.hexdigest()


# Tests -----------------------------------------------------------------------------------------


def _prepare(work: list[Arrival], machines: Cluster, scenario: Scenario, seed: int) -> Simulation:
    simulation = Simulation(work, machines, scenario, seed)
    simulation.world.law["patience_s"] = 1000.0  # keeps runs that are stuck for good short
    return simulation


def _may_get_stuck(scenario: Scenario) -> bool:
    """Whether a task may lack room for good: all of them fit on the two nodes that always stay."""
    foreign = scenario.foreign_load
    return bool(
        foreign.mean_ratio
        or foreign.tide_ratio
        or foreign.noise_ratio
        or scenario.fairness.tenant_quota
        or scenario.faults.oom_ratio
    )


@_FEW
@given(arrivals(), clusters(), scenarios(), st.integers(0, 3))
def test_every_run_keeps_its_promises(
    work: list[Arrival], machines: Cluster, scenario: Scenario, seed: int
) -> None:
    watched = _prepare(work, machines, scenario, seed)
    try:
        stepwise = watched.run(FIFO, Watch(watched))
    except StuckError as stuck:
        event("stuck")
        assert _may_get_stuck(scenario)
        with pytest.raises(StuckError, match=re.escape(str(stuck))):
            _prepare(work, machines, scenario, seed).run(FIFO)
        return
    event("done")
    check_run(stepwise)
    check_all_is_free(watched)
    compiled = _prepare(work, machines, scenario, seed).run(FIFO)
    assert fingerprint(compiled) == fingerprint(stepwise)
    assert compiled.num_decisions == stepwise.num_decisions
    again = _prepare(work, machines, scenario, seed).run(FIFO)
    assert fingerprint(again) == fingerprint(compiled)


class Capricious:
    """A policy in Python that tries pairs at random, legal or not, and often just waits."""

    name = "capricious"

    def __init__(self, patience: float) -> None:
        self.patience = patience

    def prepare(self, snapshot: Snapshot, seed: int) -> Memory:
        self.random = np.random.default_rng(seed)
        return make_memory(seed)

    def decide(self, snapshot: Snapshot, memory: Memory, limit: int) -> int:
        ready = np.flatnonzero(snapshot.tasks["state"] == states.READY)
        placed = 0
        for _ in range(2 * len(ready)):
            if placed == limit:
                return placed
            task = int(self.random.choice(ready))
            node = int(self.random.integers(len(snapshot.nodes)))
            placed += bool(arbiter.place(snapshot, task, node))
        snapshot.status[0]["wake_s"] = snapshot.status[0]["now_s"] + self.patience
        return placed


@_FEW
@given(
    arrivals(max_workers=1),
    clusters(),
    scenarios(),
    st.integers(0, 3),
    st.sampled_from([0.25, 1.0, 5.0]),
)
def test_no_policy_can_break_them(
    work: list[Arrival], machines: Cluster, scenario: Scenario, seed: int, patience: float
) -> None:
    simulation = _prepare(work, machines, scenario, seed)
    try:
        run = simulation.run(Capricious(patience))
    except StuckError:
        assert _may_get_stuck(scenario)
        return
    check_run(run)
    check_all_is_free(simulation)


_PROGRAM = """
import sys
sys.path.insert(0, "src")
from tests.unit.clusters.test_engine_invariants import fingerprint, storm
print(fingerprint(storm(7)))
"""


def storm(seed: int) -> Run:
    """A run in which everything happens."""
    random = np.random.default_rng(seed)
    work = []
    for number in range(30):
        made = tuple(
            Task(
                id=f"t{i}",
                runtime_s=float(random.integers(1, 30)),
                request=_REQUESTS[int(random.integers(len(_REQUESTS)))],
                num_workers=1 + int(random.integers(8) == 0),
                image=("", "x:1", "y:2")[int(random.integers(3))],
                image_bytes=100,
                io_demand=0.6,
                memory_bandwidth_demand=0.5,
                placement=Placement(node_selector=((ZONE_LABEL, "z0"),) if i % 5 == 0 else ()),
            )
            for i in range(8)
        )
        edges = tuple(
            Dependency(f"t{i}", f"t{j}", int(random.integers(2000)))
            for j in range(8)
            for i in range(j)
            if random.integers(3) == 0
        )
        work.append(
            Arrival(
                float(random.integers(100)),
                Workflow(
                    id=f"w{number}",
                    tasks=made,
                    dependencies=edges,
                    tenant="ab"[number % 2],
                    priority=Priority(number % 4),
                ),
            )
        )
    kinds = ("standard", "standard", "short", "late", "standard", "standard")
    machines = Cluster(
        name="storm",
        nodes=tuple(_node(i, kind, (2, 1, 2, 0, 1, 2)[i], i > 3) for i, kind in enumerate(kinds)),
        network=_NETWORK,
    )
    scenario = Scenario(
        runtimes=Runtimes(noise=0.4, straggler_ratio=0.1, heavy_tail_ratio=0.05),
        startup=Startup(container_s=0.5, image_pull=True, registry_bytes_per_s=100.0),
        transfers=Transfers(
            fair_sharing=True, stage_in=True, latency_jitter=0.2, bandwidth_jitter=0.2
        ),
        interference=Interference(memory_bandwidth=0.5, disk=0.5, disk_drift=0.5, interval_s=5.0),
        faults=Faults(
            node_mtbf_s=300.0,
            node_mttr_s=10.0,
            spot_mtbf_s=100.0,
            spot_notice_s=10.0,
            task_failure_ratio=0.1,
            oom_ratio=0.1,
            max_retries=1,
        ),
        foreign_load=ForeignLoad(mean_ratio=0.2, noise_ratio=0.1, interval_s=7.0),
        node_changes=(
            NodeChange(node_type="short", leaves_s=60.0),
            NodeChange(node_type="late", joins_s=40.0),
        ),
        fairness=Fairness(max_wait_s={"P0": 20.0, "P3": 90.0}, tenant_quota={"a": 0.6}),
        preemption=Preemption(enabled=True),
    )
    return Simulation(work, machines, scenario, seed).run(FIFO)


def test_a_storm_keeps_its_promises() -> None:
    run = storm(7)
    check_run(run)
    outcomes = [truth.OUTCOMES[int(o)] for o in run.attempts["outcome"]]
    assert {"finished", "failed", "evicted", "cancelled"} == set(outcomes)


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_the_same_seed_gives_the_same_bytes_whatever_the_hash_seed(hash_seed: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert answer.stdout.strip() == fingerprint(storm(7))


def test_another_seed_gives_another_run() -> None:
    assert fingerprint(storm(7)) != fingerprint(storm(8))


def test_a_copy_of_the_state_is_independent() -> None:
    run = storm(7)
    copy = run.snapshot.copy()
    copy.tasks["state"] = states.ABSENT
    assert (run.snapshot.tasks["state"] != states.ABSENT).all()
