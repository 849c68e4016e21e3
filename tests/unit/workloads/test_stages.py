"""Stages become tasks; barriers keep the number of dependencies small."""

from __future__ import annotations

from dagsail.domain.workflow import Dependency, Workflow, topological_order
from dagsail.workloads.stages import BARRIER_KIND, Stage, expand


def stage(name: str, num_tasks: int, *parents: str) -> Stage:
    return Stage(
        name=name,
        num_tasks=num_tasks,
        runtime_s=2.0,
        kind="k",
        request={"cpu": 1},
        parents=parents,
    )


def test_narrow_stages_are_joined_task_by_task():
    tasks, dependencies = expand([stage("a", 2), stage("b", 2, "a")])
    assert [task.id for task in tasks] == ["a[0]", "a[1]", "b[0]", "b[1]"]
    assert dependencies == (
        Dependency("a[0]", "b[0]"),
        Dependency("a[0]", "b[1]"),
        Dependency("a[1]", "b[0]"),
        Dependency("a[1]", "b[1]"),
    )


def test_a_barrier_stands_where_it_saves_dependencies():
    tasks, dependencies = expand([stage("a", 3), stage("b", 3, "a")])
    assert [task.id for task in tasks] == ["a[0]", "a[1]", "a[2]", "a-done", "b[0]", "b[1]", "b[2]"]
    barrier = tasks[3]
    assert (barrier.runtime_s, dict(barrier.request), barrier.kind) == (0.0, {}, BARRIER_KIND)
    assert len(dependencies) == 6
    assert set(dependencies) == {Dependency(f"a[{i}]", "a-done") for i in range(3)} | {
        Dependency("a-done", f"b[{i}]") for i in range(3)
    }


def test_one_barrier_serves_all_children():
    # 3 tasks before 1 + 2 children tasks: 9 dependencies without a barrier, 6 with it.
    tasks, dependencies = expand([stage("a", 3), stage("b", 1, "a"), stage("c", 2, "a")])
    assert [task.kind for task in tasks].count(BARRIER_KIND) == 1
    assert len(dependencies) == 6


def test_a_join_of_single_tasks_needs_no_barrier():
    tasks, dependencies = expand([stage("a", 1), stage("b", 1), stage("c", 40, "a", "b")])
    assert len(tasks) == 42
    assert len(dependencies) == 80


def test_children_may_come_before_their_parents():
    tasks, dependencies = expand([stage("b", 5, "a"), stage("a", 5)])
    order = topological_order(Workflow(id="w", tasks=tasks, dependencies=dependencies))
    assert max(order.index(f"a[{i}]") for i in range(5)) < order.index("a-done")
    assert order.index("a-done") < min(order.index(f"b[{i}]") for i in range(5))
