from __future__ import annotations

import math

import pytest

from dagsail.domain.scenario import Faults, Scenario
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.evaluation.metrics import METRICS, measure
from dagsail.evaluation.window import Window


def one_task(name="w", cpu=1000, runtime_s=10.0, task=None, **settings):
    request = {"cpu": cpu}
    only = Task(id="t", runtime_s=runtime_s, request=request, **(task or {}))
    return Workflow(id=name, tasks=(only,), **settings)


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("jct_mean_s", (55 + 45) / 2),
        ("jct_p50_s", 50),
        ("jct_p95_s", 54.5),
        ("jct_bound_s", 40),
        ("slowdown_mean", (55 / 40 + 45 / 40) / 2),
        ("makespan_s", 55),
        ("makespan_bound_s", 50),
        ("makespan_over_bound", 1.1),
        ("wait_mean_s", (5 + 15) / 4),
        ("wait_p95_s", 13.5),  # of 0, 0, 5, 15
        ("wait_max_s", 15),
        ("wait_max_s_p0", 15),
        ("wait_max_s_p1", 5),
        ("wait_max_s_p2", math.nan),
        ("queue_p95", 1),
        ("deadline_met_ratio", 0.5),
        ("deadline_met_ratio_p0", 0),
        ("deadline_met_ratio_p1", 1),
        ("deadline_met_ratio_p3", math.nan),
        ("start_sla_ratio", 0.5),
        ("start_sla_ratio_p0", 1),
        ("start_sla_ratio_p1", 0),
        ("failed_ratio", 0),
        ("evictions", 0),
        ("cost_usd", 50 * 0.001 + 50 * 0.01),
        ("gpu_cost_usd", 50 * 0.01),
        ("cost_by_cpu_usd", 0.55),
        ("cost_by_memory_usd", 0),
        ("cost_by_devices_usd", 0),
        ("utilisation", 100 / 110),
        ("node_load_std", (5 * 0.5 + 5 * 0.5) / 55),
        ("fragmentation", 0),
        ("soft_violation_ratio", math.nan),
        ("tenant_fairness", (55 + 45) ** 2 / (2 * (55**2 + 45**2))),
        ("decisions", 4),
        ("decision_p50_ms", math.nan),
    ],
)
def test_every_metric_of_a_run_by_hand(two_by_two, metric, value):
    assert measure(two_by_two)[metric] == pytest.approx(value, nan_ok=True)


def test_there_is_a_value_for_each_metric_and_a_meaning_for_each_value(two_by_two):
    assert list(measure(two_by_two)) == [metric.name for metric in METRICS]
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_all_values_are_plain_floats(two_by_two):
    assert {type(value) for value in measure(two_by_two).values()} == {float}


def test_a_window_leaves_out_early_workflows_and_the_time_outside(two_by_two):
    found = measure(two_by_two, Window(5.0, 45.0, first_workflow=1))
    assert found["jct_mean_s"] == 45  # of the second alone
    assert found["wait_max_s"] == 5
    assert found["deadline_met_ratio_p0"] != found["deadline_met_ratio_p0"]
    assert found["utilisation"] == pytest.approx(1.0)
    assert found["node_load_std"] == pytest.approx(0.0, abs=1e-6)
    assert found["makespan_s"] == 55  # of the whole run all the same


def test_a_free_amount_too_small_for_the_typical_request_is_fragmented(simulate, node):
    run = simulate([Arrival(0.0, one_task(cpu=1500))], [node("n0"), node("n1")])
    assert measure(run)["fragmentation"] == pytest.approx(500 / 2500)


def test_requests_weigh_by_popularity_in_fragmentation(simulate, node):
    small = [Arrival(0.0, one_task(f"s{i}", cpu=500)) for i in range(3)]
    run = simulate([*small, Arrival(0.0, one_task("big", cpu=2000))], [node("n0"), node("n1")])
    # Free are 500 of n0, where the big one (1 of 4) would not fit and a small one would.
    assert measure(run)["fragmentation"] == pytest.approx(0.25)


def test_a_node_that_a_request_could_never_use_is_not_fragmented(simulate, node):
    nodes = [node("small", cpu=1000), node("big", cpu=4000)]
    run = simulate([Arrival(0.0, one_task(cpu=1500))], nodes)
    assert measure(run)["fragmentation"] == 0


def test_a_node_costs_the_dominant_share_that_is_held(simulate, node):
    task = Task(id="t", runtime_s=3600, request={"cpu": 500, "memory": 4 * 1024**3})
    arrival = Arrival(0.0, Workflow(id="w", tasks=(task,)))
    found = measure(simulate([arrival], [node("n0", price_usd_per_h=2.0)]))
    assert found["cost_usd"] == pytest.approx(1.0)  # half of the memory, a quarter of the cpu
    assert found["cost_by_memory_usd"] == pytest.approx(1.0)


def test_each_worker_of_a_task_counts_on_its_own_node(simulate, node):
    task = Task(id="t", runtime_s=3600, request={"cpu": 2000}, num_workers=2)
    arrival = Arrival(0.0, Workflow(id="w", tasks=(task,)))
    nodes = [node("n0", price_usd_per_h=1.0), node("n1", price_usd_per_h=10.0)]
    found = measure(simulate([arrival], nodes))
    assert found["cost_usd"] == pytest.approx(11.0)
    assert found["utilisation"] == pytest.approx(1.0)


def test_the_dominating_resource_is_the_one_that_work_fills_longest(simulate, node):
    task = Task(id="t", runtime_s=10, request={"cpu": 500, "memory": 6 * 1024**3})
    found = measure(simulate([Arrival(0.0, Workflow(id="w", tasks=(task,)))], [node("n0")]))
    assert found["utilisation"] == pytest.approx(0.75)


def test_a_workflow_that_fails_misses_its_deadline_and_has_no_completion_time(simulate, node):
    scenario = Scenario(faults=Faults(task_failure_ratio=1.0, max_retries=1))
    tasks = (Task(id="a", runtime_s=10), Task(id="b", runtime_s=10))
    workflow = Workflow(id="w", tasks=tasks, dependencies=(Dependency("a", "b"),), deadline_s=1000)
    found = measure(simulate([Arrival(0.0, workflow)], [node("n0")], scenario))
    assert found["failed_ratio"] == 1
    assert found["deadline_met_ratio"] == 0
    assert math.isnan(found["jct_mean_s"])
    assert found["makespan_bound_s"] == 0  # nothing was finished
    assert found["decisions"] == 2  # the first attempt and its retry


def test_waits_of_all_attempts_of_a_task_add_up(simulate, node):
    scenario = Scenario(faults=Faults(task_failure_ratio=1.0, max_retries=2))
    run = simulate(
        [Arrival(0.0, one_task("x", cpu=2000)), Arrival(0.0, one_task("y", cpu=2000))],
        [node("n0")],
        scenario,
    )
    busy_s = run.attempts["end_s"] - run.attempts["start_s"]
    # One node, always busy: what one task runs, the other waits, until the first one gives up.
    gave_up_s = min(run.snapshot.workflows["finish_s"])
    waited_s = measure(run)["wait_mean_s"] * 2
    overlap_s = sum(min(end, gave_up_s) for end in run.attempts["end_s"]) - sum(
        min(start, gave_up_s) for start in run.attempts["start_s"]
    )
    assert len(busy_s) == 6
    assert waited_s == pytest.approx(overlap_s)


def test_a_deadline_of_a_single_task_binds_its_workflow(simulate, node):
    late = one_task("late", task={"deadline_s": 5})
    on_time = one_task("on-time", task={"deadline_s": 10})
    without = one_task("without")
    nodes = [node("n0", cpu=4000)]
    found = measure(simulate([Arrival(0.0, w) for w in (late, on_time, without)], nodes))
    assert found["deadline_met_ratio"] == 0.5


def test_a_deadline_met_to_the_rounding_is_met(simulate, node):
    tasks = (Task(id="a", runtime_s=0.2), Task(id="b", runtime_s=0.3))
    workflow = Workflow(id="w", tasks=tasks, dependencies=(Dependency("a", "b"),), deadline_s=0.5)
    run = simulate([Arrival(0.1, workflow)], [node("n0")])
    assert run.snapshot.workflows["finish_s"][0] > run.snapshot.workflows["deadline_s"][0]
    assert measure(run)["deadline_met_ratio"] == 1


def test_a_workflow_that_starts_late_breaks_its_start_deadline(simulate, node):
    first = one_task("first", cpu=2000, start_deadline_s=0)
    late = one_task("late", cpu=2000, start_deadline_s=9)
    on_time = one_task("on-time", cpu=2000, start_deadline_s=20)
    arrivals = [Arrival(0.0, workflow) for workflow in (first, late, on_time)]
    assert measure(simulate(arrivals, [node("n0")]))["start_sla_ratio"] == pytest.approx(2 / 3)


def test_tasks_without_runtime_are_measured(simulate, node):
    found = measure(simulate([Arrival(0.0, one_task(runtime_s=0.0))], [node("n0")]))
    assert found["makespan_s"] == 0
    assert math.isnan(found["slowdown_mean"])
    assert math.isnan(found["utilisation"])
