from __future__ import annotations

import pytest

from dagsail.domain.workflow import Arrival, Task, Workflow
from dagsail.evaluation.load import load_of, load_warnings
from dagsail.evaluation.window import Window, mean_unfinished, steady_window, whole_run


def stream(count, gap_s, runtime_s=10.0, cpu=2000):
    task = Task(id="t", runtime_s=runtime_s, request={"cpu": cpu})
    return [Arrival(i * gap_s, Workflow(id=f"w{i}", tasks=(task,))) for i in range(count)]


def test_the_first_tenth_of_the_arrivals_and_the_drain_are_left_out(simulate, node):
    run = simulate(stream(40, 20.0), [node("n0")])
    assert steady_window(run) == Window(80.0, 780.0, 4)
    assert load_of(run, steady_window(run)).drain_s == 10


@pytest.mark.parametrize(("count", "gap_s"), [(40, 0.0), (9, 20.0), (40, 0.2)])
def test_without_arrivals_over_time_the_whole_run_is_measured(simulate, node, count, gap_s):
    run = simulate(stream(count, gap_s), [node("n0")])
    window = steady_window(run)
    assert window == whole_run(run)
    assert not window.is_steady
    assert load_of(run, window).offered is None


def test_mean_unfinished_workflows(two_by_two):
    assert mean_unfinished(two_by_two, 0.0, 55.0) == pytest.approx((55 + 45) / 55)
    assert mean_unfinished(two_by_two, 0.0, 10.0) == pytest.approx(1.5)


def test_offered_load_is_work_per_second_over_capacity(simulate, node):
    run = simulate(stream(40, 20.0, cpu=1000), [node("n0")])
    load = load_of(run, steady_window(run))
    assert load.dominating == "cpu"
    assert load.offered == pytest.approx(0.25)  # half of the cpu for 10 of 20 s
    assert load.by_resource["memory"] == 0


def test_a_run_in_which_nothing_waits_is_warned_of(simulate, node):
    run = simulate(stream(40, 20.0), [node("n0")])
    load = load_of(run, steady_window(run))
    assert not load.has_queue
    assert load.is_settled
    (line,) = load_warnings({"fifo": [load]})
    assert line.startswith("no queue formed at 1 of 1 seeds")


def test_a_growing_backlog_is_warned_of(simulate, node):
    run = simulate(stream(60, 5.0), [node("n0")])  # twice what the node can do
    load = load_of(run, steady_window(run))
    assert load.has_queue
    assert not load.is_settled
    overload, unsettled = load_warnings({"fifo": [load, load], "other": [load, load]})
    assert overload.startswith("overload: the offered load is 2.00 of the cluster's cpu")
    assert "fifo (2 of 2 seeds), other (2 of 2 seeds)" in unsettled


def test_a_large_backlog_that_hardly_grows_is_settled(simulate, node):
    arrivals = stream(40, 1.0, runtime_s=2400.0, cpu=1)
    late = [
        Arrival(240.0 + 200.0 * i, Workflow(id=f"late{i}", tasks=arrivals[0].workflow.tasks))
        for i in range(12)
    ]
    run = simulate([*arrivals, *late], [node("n0")])
    window = steady_window(run)
    assert window.is_steady
    assert load_of(run, window).is_settled


def test_a_queue_that_comes_and_goes_is_settled(simulate, node):
    pairs = [Arrival(a.time_s // 40 * 40, a.workflow) for a in stream(60, 20.0, runtime_s=15.0)]
    run = simulate(pairs, [node("n0")])
    load = load_of(run, steady_window(run))
    assert load.has_queue
    assert load.is_settled
    assert load_warnings({"fifo": [load]}) == ()
