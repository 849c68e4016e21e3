"""Planners against published results, and plans against their execution."""

from __future__ import annotations

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster, Link, Network, Node
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.policies.offline import METHODS, follow, plan_offline

# Topcuoglu, Hariri and Wu 2002, figure 2: run times of ten tasks on three processors.
COSTS = [
    (14, 16, 9),
    (13, 19, 18),
    (11, 13, 19),
    (13, 8, 17),
    (12, 13, 10),
    (13, 16, 9),
    (7, 15, 11),
    (5, 11, 14),
    (18, 12, 20),
    (21, 7, 16),
]
EDGES = [
    *((1, 2, 18), (1, 3, 12), (1, 4, 9), (1, 5, 11), (1, 6, 14), (2, 8, 19), (2, 9, 16)),
    *((3, 7, 23), (4, 8, 27), (4, 9, 23), (5, 9, 13), (6, 8, 15), (7, 10, 17), (8, 10, 11)),
    (9, 10, 13),
]


def one_task_nodes(types: list[str]) -> Cluster:
    """Nodes that run one task at a time, one byte per second between any two of them."""
    link = Link(0.0, 1.0)
    return Cluster(
        name="processors",
        nodes=tuple(
            Node(name=f"p{i}", type=name, allocatable={"cpu": 1000, "memory": 1})
            for i, name in enumerate(types)
        ),
        network=Network(same_rack=link, same_zone=link, cross_zone=link),
    )


def topcuoglu() -> Workflow:
    return Workflow(
        id="topcuoglu",
        tasks=tuple(
            Task(
                id=str(i),
                runtime_s=0.0,
                runtime_s_by_node_type=dict(zip(("a", "b", "c"), costs, strict=True)),
                request={"cpu": 1000},
            )
            for i, costs in enumerate(COSTS, start=1)
        ),
        dependencies=tuple(Dependency(str(p), str(c), data) for p, c, data in EDGES),
    )


@pytest.mark.parametrize(("method", "makespan_s"), [("heft", 80.0), ("cpop", 86.0), ("peft", 85.0)])
def test_published_makespans(method: str, makespan_s: float) -> None:
    schedule = plan_offline(topcuoglu(), one_task_nodes(["a", "b", "c"]), method)
    assert schedule.makespan_s == pytest.approx(makespan_s)


def test_heft_places_the_published_tasks_on_the_published_processors() -> None:
    """Figure 3a of the paper: P1 {4, 8}... read off the chart, start by start."""
    schedule = plan_offline(topcuoglu(), one_task_nodes(["a", "b", "c"]), "heft")
    on = [[int(t) + 1 for t in np.flatnonzero(schedule.nodes == node)] for node in range(3)]
    assert on == [[2, 8], [4, 6, 9, 10], [1, 3, 5, 7]]


def random_workflow(rng: np.random.Generator, num_tasks: int, with_data: bool) -> Workflow:
    tasks = tuple(
        Task(id=f"t{i}", runtime_s=float(rng.uniform(1, 20)), request={"cpu": 1000})
        for i in range(num_tasks)
    )
    edges = {
        (int(rng.integers(0, child)), child)
        for child in range(1, num_tasks)
        for _ in range(int(rng.integers(0, 3)))
    }
    return Workflow(
        id="random",
        tasks=tasks,
        dependencies=tuple(
            Dependency(f"t{p}", f"t{c}", int(rng.integers(1, 30)) if with_data else 0)
            for p, c in sorted(edges)
        ),
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(4))
def test_a_plan_executes_as_planned_where_runtimes_are_known(method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    workflow = random_workflow(rng, 25, with_data=True)
    cluster = one_task_nodes(["x", "x", "x", "x"])
    schedule = plan_offline(workflow, cluster, method)
    policy = follow(schedule.nodes.tolist(), schedule.starts_s.tolist())
    run = Simulation([Arrival(0.0, workflow)], cluster).run(policy)
    ends = np.empty(len(workflow.tasks))
    ends[run.attempts["task"]] = run.attempts["end_s"]
    np.testing.assert_allclose(ends, schedule.ends_s, rtol=1e-12)


def test_several_tasks_share_a_node_in_a_plan() -> None:
    """Four one-core tasks of 10 s on a two-core node take 20 s, on a four-core node 10 s."""
    workflow = Workflow(
        id="bag",
        tasks=tuple(Task(id=f"t{i}", runtime_s=10.0, request={"cpu": 1000}) for i in range(4)),
    )
    for cores, makespan_s in ((2, 20.0), (4, 10.0)):
        node = Node(name="n", allocatable={"cpu": 1000 * cores, "memory": 1})
        plan = plan_offline(workflow, Cluster(name="c", nodes=(node,)))
        assert plan.makespan_s == makespan_s


def test_insertion_uses_a_gap_before_a_reserved_task() -> None:
    """A short independent task fits on the only node while the long chain waits for data."""
    workflow = Workflow(
        id="gap",
        tasks=(
            Task(id="first", runtime_s=10.0, request={"cpu": 1000}),
            Task(
                id="second",
                runtime_s=0.0,
                runtime_s_by_node_type={"x": 10.0, "y": 1000.0},
                request={"cpu": 1000},
            ),
            Task(id="filler", runtime_s=5.0, request={"cpu": 1000}),
        ),
        dependencies=(Dependency("first", "second", 20),),
    )
    plan = plan_offline(workflow, one_task_nodes(["x", "y"]))
    assert plan.makespan_s == 20.0
    assert plan.nodes[2] == 1 or plan.ends_s[2] <= plan.starts_s[1]
