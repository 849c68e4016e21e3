"""Small instances solved to the optimum by OR-Tools' CP-SAT: no schedule beats it, its own gets it.

The model: tasks with several resources on unlike nodes, no transfers, integer times.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from dagsail.domain.cluster import Cluster
from dagsail.domain.graph import critical_path_s, graph_of
from dagsail.domain.scenario import Scenario, Transfers
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Workflow
from dagsail.policies import policy
from dagsail.policies.offline import follow, plan_offline
from tests.oracles.building import cluster, makespan_s, node, simulate, task, workflow

cp_model = pytest.importorskip("ortools.sat.python.cp_model")

NO_TRANSFERS = Scenario(transfers=Transfers(enabled=False))
SEEDS = range(12)


@dataclass(frozen=True)
class Optimum:
    makespan_s: float
    nodes: list[int]
    starts_s: list[float]


def _instance(seed: int) -> tuple[Workflow, Cluster]:
    """Up to 8 tasks on 2 or 3 nodes; run times by node type are whole numbers."""
    random = np.random.default_rng(seed)
    count, num_nodes = int(random.integers(5, 9)), int(random.integers(2, 4))
    tasks = [
        task(
            f"t{i}",
            1.0,
            cpu=int(random.integers(1, 5)) * 500,
            request={"memory": int(random.integers(1, 4)) * GIB},
            runtime_s_by_node_type={f"k{n}": float(random.integers(1, 12)) for n in range(3)},
        )
        for i in range(count)
    ]
    edges = [(f"t{i}", f"t{j}") for j in range(count) for i in range(j) if random.integers(4) == 0]
    machines = [
        node(f"n{n}", cpu=2000 + 1000 * n, memory=(3 + n) * GIB, type=f"k{n}")
        for n in range(num_nodes)
    ]
    return workflow(tasks, edges), cluster(*machines)


def _seconds(flow: Workflow, machines: Cluster) -> list[list[int]]:
    return [
        [int(one.runtime_s_by_node_type[place.type]) for place in machines.nodes]
        for one in flow.tasks
    ]


@functools.cache
def _solve(seed: int) -> Optimum:
    flow, machines = _instance(seed)
    seconds = _seconds(flow, machines)
    horizon = sum(max(row) for row in seconds)
    model = cp_model.CpModel()
    starts, ends, chosen, boxes = [], [], [], []
    for row in seconds:
        start = model.new_int_var(0, horizon, "")
        end = model.new_int_var(0, horizon, "")
        here = [model.new_bool_var("") for _ in row]
        model.add_exactly_one(here)
        boxes.append(
            [
                model.new_optional_interval_var(start, length, end, here[n], "")
                for n, length in enumerate(row)
            ]
        )
        starts.append(start)
        ends.append(end)
        chosen.append(here)
    position = {one.id: i for i, one in enumerate(flow.tasks)}
    for edge in flow.dependencies:
        model.add(starts[position[edge.child]] >= ends[position[edge.parent]])
    for n, place in enumerate(machines.nodes):
        for resource, amount in place.allocatable.items():
            asked = [one.request.get(resource, 0) for one in flow.tasks]
            model.add_cumulative([row[n] for row in boxes], asked, amount)
    makespan = model.new_int_var(0, horizon, "")
    model.add_max_equality(makespan, ends)
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model) == cp_model.OPTIMAL
    nodes = [[solver.value(flag) for flag in here].index(1) for here in chosen]
    return Optimum(solver.value(makespan), nodes, [float(solver.value(start)) for start in starts])


def _bounds_s(flow: Workflow, machines: Cluster) -> float:
    """No schedule ends before the longest path, nor before the least work of each resource."""
    fastest = np.array([min(row) for row in _seconds(flow, machines)], float)
    bounds = [critical_path_s(graph_of(flow), fastest)]
    for resource in machines.resources:
        total = sum(place.allocatable[resource] for place in machines.nodes)
        asked = np.array([one.request.get(resource, 0) for one in flow.tasks])
        bounds.append(float((asked * fastest).sum() / total))
    return max(bounds)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_optimal_plan_takes_as_long_in_the_engine_as_on_paper(seed: int) -> None:
    flow, machines = _instance(seed)
    best = _solve(seed)
    plan = follow(best.nodes, best.starts_s)
    assert makespan_s(simulate(flow, machines, NO_TRANSFERS, plan)) == best.makespan_s


@pytest.mark.parametrize("name", ["fifo", "critical-path", "min-min", "heft", "sjf"])
def test_no_policy_beats_the_optimum(name: str) -> None:
    ratios = []
    for seed in SEEDS:
        flow, machines = _instance(seed)
        best_s = _solve(seed).makespan_s
        found_s = makespan_s(simulate(flow, machines, NO_TRANSFERS, policy(name)))
        assert found_s >= best_s >= _bounds_s(flow, machines)
        ratios.append(found_s / best_s)
    # A sanity check of the policy, too: on such small instances none is far off.
    assert math.prod(ratios) ** (1 / len(ratios)) < 1.6


@pytest.mark.parametrize("seed", SEEDS)
def test_a_heft_plan_is_kept_and_no_better_than_the_optimum(seed: int) -> None:
    flow, machines = _instance(seed)
    plan = plan_offline(flow, machines)
    run = simulate(
        flow, machines, NO_TRANSFERS, follow(plan.nodes.tolist(), plan.starts_s.tolist())
    )
    assert makespan_s(run) == plan.makespan_s >= _solve(seed).makespan_s
