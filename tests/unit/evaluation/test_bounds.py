from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.evaluation.bounds import fastest_s, makespan_bound
from dagsail.evaluation.metrics import measure
from dagsail.policies.heuristics.fifo import POLICY


def test_work_binds_where_the_cluster_is_full(two_by_two):
    assert makespan_bound(two_by_two) == (50.0, "cpu")


def test_the_path_binds_where_there_is_room(simulate, node):
    tasks = (Task(id="a", runtime_s=10, request={"cpu": 1}), Task(id="b", runtime_s=5))
    workflow = Workflow(id="w", tasks=tasks, dependencies=(Dependency("a", "b"),))
    run = simulate([Arrival(3.0, workflow), Arrival(7.0, workflow)], [node("n0")])
    assert makespan_bound(run) == (19.0, "path")


def test_work_that_arrives_late_cannot_be_done_early(simulate, node):
    task = Task(id="t", runtime_s=10, request={"cpu": 2000})
    early = Workflow(id="early", tasks=(task,))
    late = [Arrival(100.0, Workflow(id=f"late{i}", tasks=(task,))) for i in range(3)]
    run = simulate([Arrival(0.0, early), *late], [node("n0")])
    assert makespan_bound(run) == (130.0, "cpu")
    assert measure(run)["makespan_s"] == 130


def test_only_nodes_that_a_task_may_use_are_fast(simulate, node):
    nodes = [node("slow", cpu=4000), node("fast", cpu=1000, type="quick", speed=4.0)]
    big = Task(id="big", runtime_s=20, request={"cpu": 2000})
    small = Task(id="small", runtime_s=20, request={"cpu": 500})
    stated = Task(
        id="stated", runtime_s=20, request={"cpu": 500}, runtime_s_by_node_type={"standard": 3}
    )
    run = simulate([Arrival(0.0, Workflow(id="w", tasks=(big, small, stated)))], nodes)
    assert fastest_s(run.snapshot).tolist() == [20, 5, 3]


@st.composite
def dags(draw: st.DrawFn) -> Workflow:
    count = draw(st.integers(1, 6))
    tasks = tuple(
        Task(
            id=f"t{i}",
            runtime_s=draw(st.integers(0, 50)),
            request={"cpu": draw(st.sampled_from([0, 300, 1000, 1700]))},
            num_workers=draw(st.sampled_from([1, 1, 1, 2])),
        )
        for i in range(count)
    )
    edges = tuple(
        Dependency(f"t{i}", f"t{j}", draw(st.sampled_from([0, 10**9])))
        for j in range(count)
        for i in range(j)
        if draw(st.booleans())
    )
    return Workflow(id="w", tasks=tasks, dependencies=edges)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.integers(0, 60), dags()), min_size=1, max_size=4),
    st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=2, max_size=3),
)
def test_no_schedule_beats_its_bounds(
    submissions: list[tuple[int, Workflow]], speeds: list[float]
) -> None:
    nodes = tuple(
        Node(name=f"n{i}", type=f"type{i}", speed=s, allocatable={"cpu": 2000, "memory": 1})
        for i, s in enumerate(speeds)
    )
    arrivals = [Arrival(float(time_s), workflow) for time_s, workflow in submissions]
    run = Simulation(arrivals, Cluster(name="c", nodes=nodes)).run(POLICY)
    found = measure(run)
    assert found["makespan_s"] >= found["makespan_bound_s"] - 1e-9
    workflows = run.snapshot.workflows
    jct_s = workflows["finish_s"] - workflows["arrival_s"]
    assert (jct_s >= workflows["critical_path_s"] - 1e-9).all()
    assert not found["slowdown_mean"] < 1 - 1e-9


def test_the_bound_is_reached_by_a_perfect_schedule(simulate, node):
    tasks = tuple(Task(id=f"t{i}", runtime_s=10, request={"cpu": 1000}) for i in range(8))
    run = simulate([Arrival(0.0, Workflow(id="w", tasks=tasks))], [node("n0"), node("n1")])
    found = measure(run)
    assert found["makespan_s"] == pytest.approx(found["makespan_bound_s"])
