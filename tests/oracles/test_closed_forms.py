"""Runs whose outcome a person can work out on paper."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.errors import StuckError
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
from dagsail.domain.workflow import Arrival, Priority
from dagsail.policies.heuristics.fifo import POLICY as FIFO
from dagsail.policies.rule import Rule
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score
from tests.oracles.building import (
    cluster,
    ends,
    makespan_s,
    node,
    rows,
    simulate,
    task,
    together,
    workflow,
)

# Order and room --------------------------------------------------------------------------------


def test_chain_on_one_node_takes_the_sum_of_its_runtimes() -> None:
    chain = workflow(
        [task(name, s) for name, s in zip("abcd", (1.5, 2.25, 4.0, 0.5), strict=True)],
        [("a", "b", 10**9), ("b", "c", 10**9), ("c", "d", 10**9)],
    )
    assert ends(simulate(chain, cluster(node("n")))) == {"a": 1.5, "b": 3.75, "c": 7.75, "d": 8.25}


@pytest.mark.parametrize(("branches", "slots"), [(1, 4), (4, 4), (5, 4), (9, 3), (7, 1)])
def test_fork_join_takes_as_many_rounds_as_its_branches_need(branches: int, slots: int) -> None:
    names = [f"b{i}" for i in range(branches)]
    fork_join = workflow(
        [task("s", 2.0), *(task(n, 3.0) for n in names), task("t", 5.0)],
        [*(("s", n) for n in names), *((n, "t") for n in names)],
    )
    run = simulate(fork_join, cluster(node("n", cpu=1000 * slots)))
    assert makespan_s(run) == 2.0 + 3.0 * math.ceil(branches / slots) + 5.0


def test_two_slots_serve_tasks_in_the_order_of_their_arrival() -> None:
    jobs = workflow([task(f"t{i}", s) for i, s in enumerate((5.0, 3.0, 2.0, 4.0, 1.0))])
    run = simulate(jobs, cluster(node("n", cpu=2000)))
    assert ends(run) == {"t1": 3.0, "t0": 5.0, "t2": 5.0, "t4": 6.0, "t3": 9.0}


@settings(max_examples=40, deadline=None)
@given(durations=st.lists(st.integers(1, 50), min_size=1, max_size=60), slots=st.integers(1, 9))
def test_one_node_equals_list_scheduling_on_its_slots(durations: list[int], slots: int) -> None:
    free_at = [0.0] * slots
    expected = []
    for seconds in durations:
        start = heapq.heappop(free_at)
        expected.append(start + seconds)
        heapq.heappush(free_at, start + seconds)
    jobs = workflow([task(f"t{i}", float(s)) for i, s in enumerate(durations)])
    found = ends(simulate(jobs, cluster(node("n", cpu=1000 * slots))))
    assert [found[f"t{i}"] for i in range(len(durations))] == expected


def test_the_scarcest_resource_limits_how_many_run_together() -> None:
    jobs = workflow([task(f"t{i}", 1.0, cpu=100, request={"memory": 3 * GIB}) for i in range(6)])
    run = simulate(jobs, cluster(node("n", cpu=10_000, memory=7 * GIB)))
    assert makespan_s(run) == 3.0


def test_a_task_without_request_runs_beside_any_number_of_others() -> None:
    jobs = workflow([task(f"t{i}", 1.0, cpu=0) for i in range(50)])
    assert makespan_s(simulate(jobs, cluster(node("n")))) == 1.0


def test_a_task_of_zero_seconds_ends_when_it_starts() -> None:
    jobs = workflow([task("a", 0.0), task("b", 0.0), task("c", 1.0)], [("a", "b"), ("b", "c")])
    assert ends(simulate(jobs, cluster(node("n")))) == {"a": 0.0, "b": 0.0, "c": 1.0}


def test_small_tasks_pass_a_large_one_that_does_not_fit_yet() -> None:
    jobs = workflow(
        [task("long", 10.0, cpu=600), task("large", 1.0, cpu=1000), task("small", 2.0, cpu=400)]
    )
    assert ends(simulate(jobs, cluster(node("n")))) == {"small": 2.0, "long": 10.0, "large": 11.0}


# Arrivals --------------------------------------------------------------------------------------


def test_workflows_start_when_they_arrive() -> None:
    arrivals = [
        Arrival(7.5, workflow([task("late", 1.0)], name="b")),
        Arrival(2.0, workflow([task("early", 1.0)], name="a")),
        Arrival(7.5, workflow([task("too", 1.0)], name="c")),
    ]
    run = simulate(arrivals, cluster(node("n", cpu=2000)))
    assert [(r.task, r.ready_s, r.start_s, r.end_s) for r in rows(run)] == [
        ("early", 2.0, 2.0, 3.0),
        ("late", 7.5, 7.5, 8.5),
        ("too", 7.5, 7.5, 8.5),
    ]


def test_arrival_and_finish_at_one_instant_share_the_freed_room() -> None:
    arrivals = [
        Arrival(0.0, workflow([task("first", 4.0)], name="a")),
        Arrival(4.0, workflow([task("second", 4.0)], name="b")),
    ]
    assert ends(simulate(arrivals, cluster(node("n")))) == {"first": 4.0, "second": 8.0}


def test_workflow_records_its_first_start_and_its_finish() -> None:
    arrivals = [
        Arrival(1.0, workflow([task("a", 4.0)], name="a")),
        Arrival(2.0, workflow([task("b", 3.0), task("c", 3.0)], [("b", "c")], name="b")),
    ]
    flows = simulate(arrivals, cluster(node("n"))).snapshot.workflows
    assert flows["arrival_s"].tolist() == [1.0, 2.0]
    assert flows["first_start_s"].tolist() == [1.0, 5.0]
    assert flows["finish_s"].tolist() == [5.0, 11.0]
    assert flows["remaining_s"].tolist() == pytest.approx([0.0, 0.0])


# Data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "rack", "nic_a", "nic_b", "expected_s"),
    [
        ("z", "r", 1000.0, 1000.0, 1.0 + 1000 / 100),
        ("z", "s", 1000.0, 1000.0, 2.0 + 1000 / 50),
        ("y", "r", 1000.0, 1000.0, 4.0 + 1000 / 20),
        ("z", "r", 40.0, 1000.0, 1.0 + 1000 / 40),
        ("z", "r", 1000.0, 25.0, 1.0 + 1000 / 25),
    ],
)
@pytest.mark.parametrize("fair_sharing", [False, True])
def test_transfer_takes_latency_and_bytes_over_the_narrowest_bandwidth(
    zone: str, rack: str, nic_a: float, nic_b: float, expected_s: float, fair_sharing: bool
) -> None:
    machines = cluster(
        node("a", nic_bytes_per_s=nic_a), node("b", zone=zone, rack=rack, nic_bytes_per_s=nic_b)
    )
    pair = workflow([task("p", 1.0, on="a"), task("c", 2.0, on="b")], [("p", "c", 1000)])
    scenario = Scenario(transfers=Transfers(fair_sharing=fair_sharing))
    run = simulate(pair, machines, scenario)
    assert ends(run)["c"] == pytest.approx(1.0 + expected_s + 2.0, rel=1e-9)
    assert rows(run)[-1].start_s == 1.0  # bound at once: staging counts as part of the attempt


@pytest.mark.parametrize("fair_sharing", [False, True])
def test_data_on_the_same_node_an_empty_edge_and_disabled_transfers_take_no_time(
    fair_sharing: bool,
) -> None:
    machines = cluster(node("a"), node("b"))
    scenario = Scenario(transfers=Transfers(fair_sharing=fair_sharing))
    off = Scenario(transfers=Transfers(enabled=False, fair_sharing=fair_sharing))
    tasks = [task("p", 1.0, on="a"), task("c", 2.0, on="b")]
    near = workflow([task("p", 1.0, on="a"), task("c", 2.0, on="a")], [("p", "c", 10**6)])
    assert makespan_s(simulate(near, machines, scenario)) == 3.0
    assert makespan_s(simulate(workflow(tasks, [("p", "c")]), machines, scenario)) == 3.0
    assert makespan_s(simulate(workflow(tasks, [("p", "c", 10**6)]), machines, off)) == 3.0


def test_without_sharing_transfers_run_side_by_side_and_the_longest_counts() -> None:
    machines = cluster(node("a"), node("b"), node("c", zone="y"))
    join = workflow(
        [task("p", 1.0, on="a"), task("q", 1.0, on="c"), task("t", 2.0, on="b")],
        [("p", "t", 3000), ("q", "t", 400)],
    )
    assert ends(simulate(join, machines))["t"] == 1.0 + max(1 + 30, 4 + 20) + 2.0


def test_fair_sharing_halves_the_rate_on_a_common_card_until_one_flow_ends() -> None:
    # Both flows leave node a (100 bytes/s) at 1 s + 1 s latency; 50 bytes/s each. The short one
    # (500 bytes) ends after 10 s; the long one has 1500 left and gets 100 bytes/s: 15 s more.
    machines = cluster(
        node("a", cpu=2000, nic_bytes_per_s=100.0), *(node(n, nic_bytes_per_s=1e6) for n in "bc")
    )
    fork = workflow(
        [task("p", 1.0, on="a"), task("s", 1.0, on="b"), task("l", 1.0, on="c")],
        [("p", "s", 500), ("p", "l", 2000)],
    )
    run = simulate(fork, machines, Scenario(transfers=Transfers(fair_sharing=True)))
    assert ends(run) == pytest.approx({"p": 1.0, "s": 13.0, "l": 28.0}, rel=1e-9)


def test_fair_sharing_is_max_min_over_cards_and_tiers() -> None:
    # Flows a->b and a->c and d->c. Cards: a 100, b 30, c 1000, d 1000; tier cap 100.
    # a->b is held to 30 by b, so a->c gets 70; d->c gets its cap of 100.
    machines = cluster(
        node("a", cpu=2000, nic_bytes_per_s=100.0),
        node("b", nic_bytes_per_s=30.0),
        node("c", cpu=2000, nic_bytes_per_s=1000.0),
        node("d", nic_bytes_per_s=1000.0),
    )
    graph = workflow(
        [
            *(task("p", 0.0, on="a"), task("q", 0.0, on="d")),
            *(task("x", 0.0, on="b"), task("y", 0.0, on="c"), task("z", 0.0, on="c")),
        ],
        [("p", "x", 300), ("p", "y", 700), ("q", "z", 1000)],
    )
    run = simulate(graph, machines, Scenario(transfers=Transfers(fair_sharing=True)))
    found = ends(run)
    assert [found[t] for t in "xyz"] == pytest.approx([11.0, 11.0, 11.0], rel=1e-9)


def test_full_duplex_cards_do_not_share_between_the_directions() -> None:
    machines = cluster(*(node(n, cpu=2000, nic_bytes_per_s=10.0) for n in "ab"))
    cross = workflow(
        [
            *(task("p", 0.0, on="a"), task("q", 0.0, on="b")),
            *(task("x", 0.0, on="b"), task("y", 0.0, on="a")),
        ],
        [("p", "x", 100), ("q", "y", 100)],
    )
    run = simulate(cross, machines, Scenario(transfers=Transfers(fair_sharing=True)))
    assert makespan_s(run) == pytest.approx(11.0, rel=1e-9)


def test_fair_sharing_ends_at_late_times_too() -> None:
    # Half a unit in the last place of 3e7 is 1.9 ns: at 1 GB/s a rounded transfer leaves bytes.
    machines = cluster(*(node(n, cpu=8000, nic_bytes_per_s=1.1e9) for n in "abc"))
    names = [f"c{i}" for i in range(7)]
    fork = workflow(
        [task("p", 1 / 3, on="a"), *(task(n, 0.1, on="bc"[i % 2]) for i, n in enumerate(names))],
        [("p", n, 10**9 + 12_345 * i) for i, n in enumerate(names)],
    )
    early = simulate([Arrival(0.0, fork)], machines, _FAIR)
    late = simulate([Arrival(3e7 + 0.1, fork)], machines, _FAIR)
    assert makespan_s(late) - (3e7 + 0.1) == pytest.approx(makespan_s(early), abs=1e-6)


_FAIR = Scenario(transfers=Transfers(fair_sharing=True))


@pytest.mark.parametrize("fair_sharing", [False, True])
def test_external_input_comes_from_storage_one_zone_away_beside_other_transfers(
    fair_sharing: bool,
) -> None:
    machines = cluster(node("a"), node("b"))
    pair = workflow(
        [task("p", 1.0, on="a", input_bytes=200), task("c", 1.0, on="b", input_bytes=400)],
        [("p", "c", 1500)],
    )
    scenario = Scenario(transfers=Transfers(stage_in=True, fair_sharing=fair_sharing))
    first = 4 + 200 / 20 + 1.0
    run = simulate(pair, machines, scenario)
    assert ends(run)["p"] == pytest.approx(first)
    assert ends(run)["c"] == pytest.approx(first + max(1 + 15, 4 + 20) + 1.0, rel=1e-9)


# Speed -----------------------------------------------------------------------------------------


def test_runtime_depends_on_the_speed_that_applies() -> None:
    machines = cluster(
        node("plain"),
        node("fast", speed=4.0, speed_by_kind={"sort": 8.0}),
        node("gpu", speed=0.5, gpu_speed=5.0, resources={"nvidia.com/gpu": 1}),
        node("big", type="xl", speed=2.0),
    )
    gpu = {"nvidia.com/gpu": 1}
    stated = {"xl": 7.0}
    cases = [
        (task("a", 40.0, on="plain"), 40.0),
        (task("b", 40.0, on="fast"), 10.0),
        (task("c", 40.0, on="fast", kind="sort"), 5.0),
        (task("d", 40.0, on="gpu"), 80.0),
        (task("e", 40.0, on="gpu", request=gpu), 8.0),
        (task("f", 40.0, on="big"), 20.0),
        (task("g", 40.0, on="big", runtime_s_by_node_type=stated), 7.0),
        (task("h", 40.0, on="fast", runtime_s_by_node_type=stated), 10.0),
    ]
    for job, expected_s in cases:
        assert makespan_s(simulate(workflow([job]), machines)) == expected_s, job.id


def test_workflows_that_share_their_tasks_keep_their_own_priorities() -> None:
    tasks = (task("t", 1.0),)
    low = workflow(tasks, name="low", priority=Priority.P3)
    high = workflow(tasks, name="high", priority=Priority.P0)
    run = simulate(together(low, high), cluster(node("n")))
    assert run.snapshot.tasks["priority"].tolist() == [3, 0]


# Start-up --------------------------------------------------------------------------------------


def test_every_container_pays_its_creation() -> None:
    chain = workflow([task("a", 1.0), task("b", 2.0)], [("a", "b")])
    run = simulate(chain, cluster(node("n")), Scenario(startup=Startup(container_s=0.5)))
    assert ends(run) == {"a": 1.5, "b": 4.0}


def test_start_up_comes_before_staging() -> None:
    machines = cluster(node("a"), node("b"))
    pair = workflow([task("p", 1.0, on="a"), task("c", 2.0, on="b")], [("p", "c", 1000)])
    for fair_sharing in (False, True):
        scenario = Scenario(
            startup=Startup(container_s=0.5), transfers=Transfers(fair_sharing=fair_sharing)
        )
        end = ends(simulate(pair, machines, scenario))["c"]
        assert end == pytest.approx(1.5 + 0.5 + 11.0 + 2.0, rel=1e-9)


def test_an_image_is_pulled_once_on_each_node() -> None:
    image: dict[str, Any] = {"image": "x:1", "image_bytes": 1000}
    jobs = workflow(
        [
            task("a", 1.0, on="m", **image),
            task("b", 1.0, on="m", **image),
            task("c", 1.0, on="n", **image),
            task("other", 1.0, on="n", image="y:1", image_bytes=200),
        ],
        [("a", "b"), ("c", "other")],
    )
    pull = Scenario(startup=Startup(image_pull=True, registry_bytes_per_s=100.0))
    run = simulate(jobs, cluster(node("m"), node("n")), pull)
    assert ends(run) == {"a": 11.0, "b": 12.0, "c": 11.0, "other": 14.0}


def test_a_second_container_waits_for_the_pull_that_is_under_way() -> None:
    image: dict[str, Any] = {"image": "x:1", "image_bytes": 1000}
    jobs = workflow([task("a", 1.0, **image), task("b", 1.0, **image)])
    pull = Scenario(startup=Startup(image_pull=True, registry_bytes_per_s=100.0))
    run = simulate(jobs, cluster(node("n", cpu=2000)), pull)
    assert ends(run) == {"a": 11.0, "b": 11.0}


# Failures --------------------------------------------------------------------------------------


def test_an_attempt_beyond_its_timeout_fails_and_ends_its_workflow() -> None:
    jobs = workflow(
        [task("slow", 9.0, timeout_s=4.0), task("next", 1.0), task("beside", 50.0, cpu=0)],
        [("slow", "next")],
    )
    run = simulate(jobs, cluster(node("n")))
    assert [(r.task, r.outcome, r.end_s) for r in rows(run)] == [
        ("slow", "failed", 4.0),
        ("next", "cancelled", 4.0),
        ("beside", "cancelled", 4.0),
    ]
    assert run.snapshot.workflows["finish_s"].tolist() == [4.0]


def test_a_task_within_its_timeout_finishes() -> None:
    assert ends(simulate(workflow([task("t", 4.0, timeout_s=4.0)]), cluster(node("n")))) == {
        "t": 4.0
    }


def test_a_timeout_counts_the_time_that_neighbours_cost() -> None:
    # Two tasks of full memory demand: slow-down 1 + 1 * 1 * (2 - 1) = 2, so 8 s take 16 s.
    loud: dict[str, Any] = {"memory_bandwidth_demand": 1.0}
    jobs = workflow([task("a", 8.0, timeout_s=10.0, **loud), task("b", 80.0, **loud)])
    run = simulate(
        jobs,
        cluster(node("n", cpu=2000)),
        Scenario(interference=Interference(memory_bandwidth=1.0)),
    )
    assert next((r.task, r.outcome, r.end_s) for r in rows(run)) == ("a", "failed", 10.0)


def test_a_timed_out_task_is_retried_as_often_as_it_says() -> None:
    jobs = workflow([task("t", 9.0, timeout_s=4.0, max_retries=2)])
    run = simulate(jobs, cluster(node("n")))
    assert [(r.attempt, r.outcome, r.start_s, r.end_s) for r in rows(run)] == [
        (0, "failed", 0.0, 4.0),
        (1, "failed", 4.0, 8.0),
        (2, "failed", 8.0, 12.0),
    ]


def test_certain_failure_uses_up_the_retries_and_cancels_only_its_own_workflow() -> None:
    bad = workflow([task("a", 5.0, max_retries=2), task("b", 1.0)], [("a", "b")], name="bad")
    run = simulate(bad, cluster(node("n")), Scenario(faults=Faults(task_failure_ratio=1.0)))
    found = [(r.task, r.attempt, r.outcome) for r in rows(run)]
    assert found == [
        ("a", 0, "failed"),
        ("a", 1, "failed"),
        ("a", 2, "failed"),
        ("b", 0, "cancelled"),
    ]
    for row in rows(run)[:3]:
        assert 0.0 < row.end_s - row.start_s < 5.0  # breaks at a random point of its run
    good = workflow([task("c", 100.0)], name="good")
    late = workflow([task("d", 9.0, timeout_s=1.0), task("e", 1.0)], [("d", "e")], name="late")
    both = simulate(together(late, good), cluster(node("m"), node("n")))
    assert {(r.task, r.outcome) for r in rows(both)} == {
        ("d", "failed"),
        ("e", "cancelled"),
        ("c", "finished"),
    }


def test_the_scenario_says_how_often_to_retry_where_the_task_does_not() -> None:
    scenario = Scenario(faults=Faults(task_failure_ratio=1.0, max_retries=4))
    run = simulate(workflow([task("a", 5.0)]), cluster(node("n")), scenario)
    assert [r.outcome for r in rows(run)] == ["failed"] * 5


def test_failures_occur_at_the_stated_rate() -> None:
    jobs = [workflow([task("t", 1.0, cpu=1)], name=f"w{i}") for i in range(3000)]
    scenario = Scenario(faults=Faults(task_failure_ratio=0.2, max_retries=50))
    run = simulate(together(*jobs), cluster(node("n", cpu=10**6)), scenario)
    first = [r.outcome for r in rows(run) if r.attempt == 0]
    assert first.count("failed") / 3000 == pytest.approx(0.2, abs=0.03)  # 4 standard errors
    assert len(ends(run)) == 1  # all tasks share one name
    assert sum(r.outcome == "finished" for r in rows(run)) == 3000


def test_an_oom_kill_grows_the_memory_request_until_the_task_fits() -> None:
    scenario = Scenario(faults=Faults(oom_ratio=1.0, oom_growth=2.0))
    job = workflow([task("t", 5.0, cpu=100, request={"memory": GIB}, max_retries=9)])
    run = simulate(job, cluster(node("n", memory=64 * GIB)), scenario)
    assert [(r.outcome, r.request["memory"] // GIB) for r in rows(run)] == [
        ("failed", 1),
        ("failed", 2),
        ("failed", 4),
        ("failed", 8),
        ("finished", 16),
    ]


def test_memory_grows_no_further_than_the_largest_node() -> None:
    scenario = Scenario(faults=Faults(oom_ratio=1.0, oom_growth=2.0))
    job = workflow([task("t", 5.0, cpu=100, request={"memory": 3 * GIB}, max_retries=9)])
    run = simulate(job, cluster(node("m"), node("n", memory=7 * GIB)), scenario)
    found = [(r.outcome, r.request["memory"] // GIB, r.node) for r in rows(run)]
    assert found[1:] == [("failed", 6, "n"), ("finished", 7, "n")]


# Several workers and GPUs ----------------------------------------------------------------------


def test_workers_start_together_or_not_at_all() -> None:
    jobs = workflow([task("busy", 5.0, on="b"), task("gang", 2.0, num_workers=2)])
    run = simulate(jobs, cluster(node("a"), node("b")))
    gang = next(r for r in rows(run) if r.task == "gang")
    assert (gang.start_s, gang.end_s, sorted(gang.workers)) == (5.0, 7.0, ["a", "b"])


def test_room_that_a_waiting_gang_cannot_use_goes_to_others() -> None:
    jobs = workflow([task("busy", 5.0, on="b"), task("gang", 2.0, num_workers=2), task("one", 3.0)])
    run = simulate(jobs, cluster(node("a"), node("b")))
    assert ends(run) == {"one": 3.0, "busy": 5.0, "gang": 7.0}


def test_workers_exchange_their_data_in_a_ring_over_the_slowest_link() -> None:
    # Three workers, one a node: 2 * (3 - 1) / 3 * 900 bytes over 50 bytes/s, latency 2 s.
    machines = cluster(node("a"), node("b"), node("c", rack="s"))
    gang = workflow([task("g", 10.0, num_workers=3, comm_bytes=900)])
    assert makespan_s(simulate(gang, machines)) == pytest.approx(10.0 + 2.0 + 1200 / 50)


def test_workers_on_one_node_exchange_their_data_over_its_gpu_link() -> None:
    machines = cluster(node("a", cpu=4000, gpu_link_bytes_per_s=300.0))
    gang = workflow([task("g", 10.0, num_workers=2, comm_bytes=900)])
    assert makespan_s(simulate(gang, machines)) == pytest.approx(10.0 + 900 / 300)


def test_a_gang_takes_as_long_as_its_slowest_worker() -> None:
    machines = cluster(node("a", speed=4.0), node("b", speed=0.5))
    gang = workflow([task("g", 10.0, num_workers=2)])
    assert makespan_s(simulate(gang, machines)) == 20.0


_SHARED = {"nvidia.com/gpu": 2, "gpu-milli": 2000}


def test_two_shares_above_one_half_do_not_share_a_device() -> None:
    machines = cluster(node("n", cpu=8000, resources=_SHARED))
    jobs = workflow([task(f"t{i}", 1.0, cpu=1, request={"gpu-milli": 600}) for i in range(3)])
    # 1800 of 2000 thousandths would fit by sum alone.
    assert sorted(ends(simulate(jobs, machines)).values()) == [1.0, 1.0, 2.0]


def test_small_shares_fill_one_device_and_leave_the_other_whole() -> None:
    machines = cluster(node("n", cpu=8000, resources=_SHARED))
    shares = [task(f"s{i}", 2.0, cpu=1, request={"gpu-milli": 250}) for i in range(4)]
    whole = task("whole", 3.0, cpu=1, request={"nvidia.com/gpu": 1})
    run = simulate(workflow([*shares, whole]), machines)
    assert ends(run) == {**{f"s{i}": 2.0 for i in range(4)}, "whole": 3.0}


def test_whole_gpus_wait_for_whole_devices() -> None:
    machines = cluster(node("n", cpu=8000, resources=_SHARED))
    jobs = workflow(
        [
            task("share", 5.0, cpu=1, request={"gpu-milli": 100}),
            task("two", 1.0, cpu=1, request={"nvidia.com/gpu": 2}),
            task("one", 2.0, cpu=1, request={"nvidia.com/gpu": 1}),
        ]
    )
    assert ends(simulate(jobs, machines)) == {"one": 2.0, "share": 5.0, "two": 6.0}


def test_eight_gpus_hold_eight_gpu_tasks() -> None:
    for resources in ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8, "gpu-milli": 8000}):
        machines = cluster(node("n", cpu=64_000, resources=resources))
        jobs = workflow(
            [task(f"t{i}", 1.0, cpu=1, request={"nvidia.com/gpu": 1}) for i in range(17)]
        )
        assert makespan_s(simulate(jobs, machines)) == 3.0


def test_a_share_takes_a_whole_device_where_devices_cannot_be_shared() -> None:
    machines = cluster(node("n", cpu=64_000, resources={"nvidia.com/gpu": 2}))
    jobs = workflow([task(f"t{i}", 1.0, cpu=1, request={"gpu-milli": 100}) for i in range(3)])
    assert makespan_s(simulate(jobs, machines)) == 2.0


# Nodes that come and go ------------------------------------------------------------------------


def test_a_node_serves_from_its_joining_on() -> None:
    machines = cluster(node("old", speed=0.1), node("new", type="late"))
    scenario = Scenario(node_changes=(NodeChange(node_type="late", joins_s=3.0),))
    jobs = workflow([task("a", 1.0), task("b", 1.0)])
    assert ends(simulate(jobs, machines, scenario)) == {"b": 4.0, "a": 10.0}


def test_a_leaving_node_evicts_its_tasks_which_start_anew_elsewhere() -> None:
    machines = cluster(node("going", type="short"), node("slow", speed=0.5))
    scenario = Scenario(node_changes=(NodeChange(node_type="short", leaves_s=6.0),))
    jobs = workflow([task("a", 10.0)])
    run = simulate(jobs, machines, scenario)
    assert [(r.node, r.outcome, r.start_s, r.end_s) for r in rows(run)] == [
        ("going", "evicted", 0.0, 6.0),
        ("slow", "finished", 6.0, 26.0),
    ]
    assert [r.ready_s for r in rows(run)] == [0.0, 6.0]


@pytest.mark.parametrize("num_tasks", [10, 63, 64, 65, 100, 700])
def test_many_tasks_evicted_at_once_start_anew_at_once(num_tasks: int) -> None:
    machines = cluster(node("going", cpu=10**6, type="short"), node("stays", cpu=10**6))
    scenario = Scenario(node_changes=(NodeChange(node_type="short", leaves_s=6.0),))
    jobs = workflow([task(f"t{i}", 10.0) for i in range(num_tasks)])
    found = rows(simulate(jobs, machines, scenario))
    assert [r.outcome for r in found] == ["evicted"] * num_tasks + ["finished"] * num_tasks
    assert {r.start_s for r in found if r.attempt == 1} == {6.0}


def test_eviction_is_no_failure_and_costs_no_retry() -> None:
    machines = cluster(node("going", type="short"), node("stays"))
    scenario = Scenario(
        faults=Faults(max_retries=0),
        node_changes=(NodeChange(node_type="short", leaves_s=6.0),),
    )
    assert ends(simulate(workflow([task("a", 10.0)]), machines, scenario)) == {"a": 16.0}


def test_a_lost_node_evicts_and_takes_no_task_until_it_returns() -> None:
    scenario = Scenario(faults=Faults(node_mtbf_s=60.0, node_mttr_s=30.0))
    jobs = workflow([task("a", 50.0)])
    evicted = 0
    for seed in range(30):
        found = rows(simulate(jobs, cluster(node("n")), scenario, seed=seed))
        assert [r.outcome for r in found] == ["evicted"] * (len(found) - 1) + ["finished"]
        assert found[-1].end_s - found[-1].start_s == pytest.approx(50.0)
        for before, after in itertools.pairwise(found):
            assert after.ready_s == before.end_s < after.start_s
        evicted += len(found) - 1
    # Each attempt survives 50 s with probability exp(-50/60): 1.3 evictions a run on average.
    assert evicted / 30 == pytest.approx(math.exp(50 / 60) - 1, abs=1.0)


def test_losses_are_exponential() -> None:
    machines = cluster(*(node(f"n{i}") for i in range(1000)))
    jobs = workflow([task(f"t{i}", 60.0) for i in range(1000)])
    run = simulate(jobs, machines, Scenario(faults=Faults(node_mtbf_s=60.0, node_mttr_s=1e5)))
    first = [r.outcome for r in rows(run) if r.attempt == 0]
    assert first.count("evicted") / 1000 == pytest.approx(1 - math.exp(-1), abs=0.06)


def test_a_spot_node_takes_nothing_new_between_its_notice_and_its_reclaim() -> None:
    machines = cluster(node("s", is_spot=True))
    scenario = Scenario(faults=Faults(spot_mtbf_s=300.0, spot_notice_s=120.0))
    names = [f"t{i}" for i in range(200)]
    chain = workflow([task(n, 7.0) for n in names], list(itertools.pairwise(names)))
    reclaims = 0
    for seed in range(5):
        long = rows(simulate(workflow([task("a", 500.0)]), machines, scenario, seed=seed))
        found = rows(simulate(chain, machines, scenario, seed=seed))
        for reclaim_s in (r.end_s for r in long if r.outcome == "evicted"):
            if reclaim_s > found[-1].end_s:
                continue
            reclaims += 1
            assert not [r for r in found if reclaim_s - 120.0 < r.start_s < reclaim_s]
            # The replacement arrives at once.
            assert min(r.start_s for r in found if r.start_s >= reclaim_s) == reclaim_s
    assert reclaims > 3


def test_nodes_that_are_not_spot_are_never_reclaimed() -> None:
    scenario = Scenario(faults=Faults(spot_mtbf_s=1.0))
    run = simulate(workflow([task("a", 500.0)]), cluster(node("n")), scenario)
    assert ends(run) == {"a": 500.0}


# Foreign load ----------------------------------------------------------------------------------


def test_foreign_load_takes_its_share_of_every_node() -> None:
    jobs = workflow([task(f"t{i}", 1.0, cpu=100) for i in range(20)])
    run = simulate(jobs, cluster(node("n")), Scenario(foreign_load=ForeignLoad(mean_ratio=0.5)))
    assert makespan_s(run) == 4.0  # 5 of 10 slots are left


def test_foreign_load_never_takes_what_a_task_holds() -> None:
    arrivals = [
        Arrival(float(i), workflow([task("t", 90.0, cpu=90)], name=f"w{i}")) for i in range(300)
    ]
    scenario = Scenario(
        foreign_load=ForeignLoad(mean_ratio=0.6, noise_ratio=0.4, tide_ratio=0.2, interval_s=5.0)
    )
    simulation = Simulation(arrivals, cluster(node("a"), node("b")), scenario, seed=1)
    seen = []

    def look(snapshot: object, memory: object, decide: Callable[[], int]) -> int:
        placed = decide()
        held = np.zeros_like(simulation.snapshot.node_free)
        tasks = simulation.snapshot.tasks
        for row in tasks[tasks["state"] == 3]:
            held[row["node"]] += simulation.snapshot.shape_request[row["shape"]]
        free = simulation.snapshot.node_free
        assert (free >= 0).all()
        assert (
            free + held + simulation.world.foreign == simulation.snapshot.node_allocatable
        ).all()
        seen.append(int(simulation.world.foreign[:, 0].sum()))
        return placed

    simulation.run(FIFO, look)
    assert max(seen) > 1000
    assert min(seen) < 800


def test_a_tide_alone_is_foreign_load_too() -> None:
    # sin peaks after 6 hours: 1000 * 0.5 are taken, so only one of two tasks runs at a time.
    jobs = workflow([task("a", 10.0, cpu=450), task("b", 10.0, cpu=450)])
    scenario = Scenario(foreign_load=ForeignLoad(tide_ratio=0.5))
    run = simulate([Arrival(21_700.0, jobs)], cluster(node("n")), scenario)
    assert makespan_s(run) == 21_720.0


# Fairness --------------------------------------------------------------------------------------


def test_a_tenant_holds_at_most_its_quota() -> None:
    arrivals = together(
        workflow([task(f"a{i}", 1.0, cpu=100) for i in range(10)], name="a", tenant="a"),
        workflow([task(f"b{i}", 1.0, cpu=100) for i in range(10)], name="b", tenant="b"),
    )
    scenario = Scenario(fairness=Fairness(tenant_quota={"a": 0.3}))
    found = ends(simulate(arrivals, cluster(node("m"), node("n", cpu=500)), scenario))
    # 450 of 1500 millicores: four tasks at a time, so 10 take three rounds.
    assert max(found[f"a{i}"] for i in range(10)) == 3.0
    assert max(found[f"b{i}"] for i in range(10)) == 1.0


def _stream(count: int, every_s: float, runtime_s: float, cpu: int) -> list[Arrival]:
    return [
        Arrival(i * every_s, workflow([task("small", runtime_s, cpu=cpu)], name=f"s{i}"))
        for i in range(count)
    ]


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_a_large_task_starves_among_small_ones_without_a_bound(num_nodes: int) -> None:
    machines = cluster(*(node(f"n{i}") for i in range(num_nodes)))
    stream = _stream(100 * num_nodes, 5.0 / num_nodes, 11.0, 500)
    arrivals = [*stream, Arrival(40.0, workflow([task("big", 1.0)]))]
    assert ends(simulate(arrivals, machines))["big"] > 500.0


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_a_starving_task_starts_soon_after_its_bound(num_nodes: int) -> None:
    machines = cluster(*(node(f"n{i}") for i in range(num_nodes)))
    stream = _stream(100 * num_nodes, 5.0 / num_nodes, 11.0, 500)
    arrivals = [*stream, Arrival(40.0, workflow([task("big", 1.0)]))]
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 60.0}))
    run = simulate(arrivals, machines, scenario)
    big = next(r for r in rows(run) if r.task == "big")
    # Its node is reserved at the first event after 100 s and is empty at most 11 s later.
    assert 100.0 < big.start_s <= 100.0 + 5.0 + 11.0
    assert (run.snapshot.nodes["reserved_for"] == -1).all()


def test_a_starving_gang_starts_soon_after_its_bound() -> None:
    machines = cluster(node("a"), node("b"))
    arrivals = [
        *_stream(200, 2.5, 11.0, 500),
        Arrival(40.0, workflow([task("gang", 1.0, num_workers=2)])),
    ]
    assert ends(simulate(arrivals, machines))["gang"] > 500.0
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 60.0}))
    gang = next(r for r in rows(simulate(arrivals, machines, scenario)) if r.task == "gang")
    assert 100.0 < gang.start_s <= 100.0 + 5.0 + 2 * 11.0


def test_a_reservation_ends_when_its_task_starts_elsewhere() -> None:
    # Both nodes are full when "big" starves at 10 s; y is expected to be free first (20 s, against
    # 30 s), so y is reserved. But x leaves early: its task times out. "big" then starts on x.
    machines = cluster(node("x"), node("y"))
    arrivals = [
        Arrival(0.0, workflow([task("u", 30.0, on="x", timeout_s=15.0)], name="u")),
        Arrival(0.0, workflow([task("v", 20.0, on="y")], name="v")),
        Arrival(1.0, workflow([task("big", 100.0)], name="big")),
        Arrival(12.0, workflow([task("tick", 1.0, on="y")], name="tick")),
        Arrival(50.0, workflow([task("after", 5.0, on="y")], name="after")),
    ]
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 9.0}))
    found = {r.task: r for r in rows(simulate(arrivals, machines, scenario))}
    assert (found["big"].node, found["big"].start_s) == ("x", 15.0)
    assert found["tick"].start_s == 20.0
    assert found["after"].start_s == 50.0


def test_a_reservation_ends_when_its_task_is_cancelled() -> None:
    machines = cluster(node("x"))
    arrivals = [
        Arrival(0.0, workflow([task("u", 20.0)], name="u")),
        Arrival(
            1.0,
            workflow([task("big", 1.0), task("doomed", 30.0, cpu=0, timeout_s=14.0)], name="big"),
        ),
        Arrival(12.0, workflow([task("tick", 1.0, cpu=0)], name="tick")),
        Arrival(50.0, workflow([task("after", 5.0)], name="after")),
    ]
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 9.0}))
    found = {r.task: r for r in rows(simulate(arrivals, machines, scenario))}
    assert found["big"].outcome == "cancelled"
    assert (found["after"].start_s, found["after"].outcome) == (50.0, "finished")


def test_starving_gangs_do_not_hold_each_other_up() -> None:
    # "one" starves first and has x reserved, so "gang" gets y alone; when "one" starts, x is open
    # again and "band" must not take it while "gang" keeps y.
    machines = cluster(node("x"), node("y"))
    arrivals = [
        *_stream(400, 2.5, 11.0, 500),
        Arrival(40.0, workflow([task("one", 20.0)], name="one")),
        Arrival(42.0, workflow([task("gang", 5.0, num_workers=2)], name="gang")),
        Arrival(44.0, workflow([task("band", 5.0, num_workers=2, cpu=999)], name="band")),
    ]
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 60.0}))
    found = ends(simulate(arrivals, machines, scenario))
    assert found["gang"] < 200.0
    assert found["band"] < 250.0


def test_an_opened_node_is_offered_to_a_gang_that_lacked_it() -> None:
    # y is reserved for "big" from 20 s on; at 40 s the workflow of "big" is cancelled. The gang has
    # room for one worker on each of x and y all the time.
    machines = cluster(node("x"), node("y"), node("z", cpu=100))
    arrivals = [
        Arrival(0.0, workflow([task("u", 100.0, cpu=500, on="x")], name="u")),
        Arrival(0.0, workflow([task("v", 100.0, cpu=500, on="y")], name="v")),
        Arrival(
            1.0,
            workflow(
                [task("big", 1.0, on="y"), task("doomed", 90.0, cpu=100, on="z", timeout_s=39.0)],
                name="big",
            ),
        ),
        Arrival(20.0, workflow([task("gang", 5.0, cpu=500, num_workers=2)], name="gang")),
    ]
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 9.0}))
    found = {r.task: r for r in rows(simulate(arrivals, machines, scenario))}
    assert found["big"].outcome == "cancelled"
    assert (found["gang"].start_s, found["gang"].outcome) == (40.0, "finished")


def _wanted(snapshot: Snapshot, memory: Memory, position: int, score: Score) -> int:
    """A choosy rule: the node that the task's input size names, or wait."""
    wanted = int(snapshot.tasks[position].input_bytes)
    answer = NOWHERE
    for place in range(snapshot.nodes.shape[0]):
        if legality.fits(snapshot, snapshot.tasks[position].shape, place):
            if place == wanted and legality.is_open(snapshot, position, place):
                return place
            answer = NOT_YET
    return answer


def test_a_starving_task_takes_the_node_it_gets() -> None:
    # Both nodes are full until 20 s; "a" and "b" starve at 9 s, x is reserved for "a" and y for
    # "b". The policy wants them the other way round: each would wait for the other's node.
    machines = cluster(node("x"), node("y"))
    arrivals = [
        Arrival(0.0, workflow([task("u", 20.0, input_bytes=0)], name="u")),
        Arrival(0.0, workflow([task("v", 21.0, input_bytes=1)], name="v")),
        Arrival(0.0, workflow([task("a", 5.0, input_bytes=1)], name="a")),
        Arrival(0.0, workflow([task("b", 5.0, cpu=999, input_bytes=0)], name="b")),
        Arrival(10.0, workflow([task("tick", 1.0, cpu=0)], name="tick")),
    ]
    scenario = Scenario(fairness=Fairness(max_wait_s={"P2": 9.0}))
    found = ends(simulate(arrivals, machines, scenario, Rule("choosy", select=_wanted)))
    assert found["a"] < 30.0
    assert found["b"] < 30.0


# Preemption ------------------------------------------------------------------------------------

_PREEMPT = Scenario(preemption=Preemption(enabled=True))


@pytest.mark.parametrize(
    ("urgent", "victim", "evicts"),
    [(0, 3, True), (0, 2, True), (0, 1, False), (1, 3, True), (1, 2, False), (2, 3, False)],
)
def test_urgent_tasks_evict_others_at_least_two_levels_below(
    urgent: int, victim: int, evicts: bool
) -> None:
    arrivals = [
        Arrival(0.0, workflow([task("low", 100.0)], name="low", priority=Priority(victim))),
        Arrival(10.0, workflow([task("high", 5.0)], name="high", priority=Priority(urgent))),
    ]
    found = ends(simulate(arrivals, cluster(node("n")), _PREEMPT))
    expected = {"high": 15.0, "low": 115.0} if evicts else {"low": 100.0, "high": 105.0}
    assert found == expected
    assert ends(simulate(arrivals, cluster(node("n"))))["low"] == 100.0  # off by default


def test_the_victim_is_the_one_with_the_least_lost_work() -> None:
    machines = cluster(node("a"), node("b"))
    arrivals = [
        Arrival(0.0, workflow([task("old", 100.0)], name="old", priority=Priority.P3)),
        Arrival(4.0, workflow([task("young", 100.0)], name="young", priority=Priority.P3)),
        Arrival(10.0, workflow([task("high", 5.0)], name="high", priority=Priority.P0)),
    ]
    found = ends(simulate(arrivals, machines, _PREEMPT))
    assert found == {"high": 15.0, "old": 100.0, "young": 115.0}


def test_an_urgent_task_passes_many_older_ones_that_are_just_like_it() -> None:
    low = [task(f"low{i}", 100.0) for i in range(70)]
    arrivals = [
        Arrival(0.0, workflow(low, name="low", priority=Priority.P3)),
        Arrival(10.0, workflow([task("high", 5.0)], name="high", priority=Priority.P0)),
    ]
    assert ends(simulate(arrivals, cluster(node("n")), _PREEMPT))["high"] == 15.0


def test_room_that_an_urgent_task_leaves_is_used_at_once() -> None:
    # "whole" fills the node; "rest" waits. "high" needs a quarter; "rest" fits beside it.
    arrivals = [
        Arrival(0.0, workflow([task("whole", 100.0)], name="whole", priority=Priority.P3)),
        Arrival(1.0, workflow([task("rest", 7.0, cpu=250)], name="rest", priority=Priority.P2)),
        Arrival(10.0, workflow([task("high", 5.0, cpu=250)], name="high", priority=Priority.P0)),
    ]
    found = ends(simulate(arrivals, cluster(node("n")), _PREEMPT))
    assert found == {"high": 15.0, "rest": 17.0, "whole": 117.0}


def test_nothing_is_evicted_where_no_device_would_come_free() -> None:
    # "u" needs 700 of one device. Without the P3 shares 400 would be free on each: not enough.
    machines = cluster(node("n", cpu=8000, resources=_SHARED))

    def share(name: str, milli: int) -> list:
        return [task(name, 100.0, cpu=1, request={"gpu-milli": milli})]

    arrivals = [
        Arrival(0.0, workflow(share("p", 600), name="p", priority=Priority.P1)),
        Arrival(0.0, workflow(share("q", 600), name="q", priority=Priority.P1)),
        Arrival(1.0, workflow(share("r", 400), name="r", priority=Priority.P3)),
        Arrival(1.0, workflow(share("s", 400), name="s", priority=Priority.P3)),
        Arrival(10.0, workflow(share("u", 700), name="u", priority=Priority.P0)),
        Arrival(300.0, workflow([task("last", 1.0)], name="last")),
    ]
    found = rows(simulate(arrivals, machines, _PREEMPT))
    assert [r.task for r in found if r.outcome == "evicted"] == []
    assert ends(simulate(arrivals, machines, _PREEMPT))["u"] == 201.0


def test_a_policy_that_refuses_the_cleared_node_cannot_make_time_stand_still() -> None:
    # "high" wants x, which is taken by a task that may not be evicted; y is cleared for it.
    machines = cluster(node("x"), node("y"))
    arrivals = [
        Arrival(
            0.0, workflow([task("busy", 100.0, input_bytes=0)], name="busy", priority=Priority.P1)
        ),
        Arrival(
            0.0, workflow([task("low", 100.0, input_bytes=1)], name="low", priority=Priority.P3)
        ),
        Arrival(
            10.0,
            workflow(
                [task("high", 5.0, cpu=900, input_bytes=0)], name="high", priority=Priority.P0
            ),
        ),
        *(Arrival(s, workflow([task("tick", 1.0, cpu=0)], name=f"t{s}")) for s in (11.0, 12.0)),
    ]
    simulation = Simulation(arrivals, machines, _PREEMPT)
    calls = []

    def count(snapshot: Snapshot, memory: Memory, decide: Callable[[], int]) -> int:
        calls.append(float(snapshot.status[0]["now_s"]))
        assert len(calls) < 200, f"endless at {calls[-1]} s"
        return decide()

    run = simulation.run(Rule("choosy", select=_wanted), count)
    assert len(ends(run)) == 4
    assert sum(r.outcome == "evicted" for r in rows(run)) <= 3


# Interference ----------------------------------------------------------------------------------


def test_memory_bandwidth_slows_neighbours_while_they_overlap() -> None:
    # Demands 0.8 and 0.7 exceed 1 by 0.5. Strength 2: slow-down of a 1 + 2 * 0.8 * 0.5 = 1.8,
    # of b 1 + 2 * 0.7 * 0.5 = 1.7. Alone from 0 to 4 s, a has 16 s of work left; b runs 10 s of
    # work in 17 s, until 21 s, in which a does 17 / 1.8; the rest of a goes at full speed.
    machines = cluster(node("n", cpu=2000))
    arrivals = [
        Arrival(0.0, workflow([task("a", 20.0, memory_bandwidth_demand=0.8)], name="a")),
        Arrival(4.0, workflow([task("b", 10.0, memory_bandwidth_demand=0.7)], name="b")),
    ]
    run = simulate(arrivals, machines, Scenario(interference=Interference(memory_bandwidth=2.0)))
    assert ends(run) == pytest.approx({"b": 21.0, "a": 21.0 + 16.0 - 17.0 / 1.8}, rel=1e-12)


def test_demands_within_the_node_and_other_nodes_do_not_disturb() -> None:
    quiet = workflow(
        [
            task("a", 20.0, on="m", memory_bandwidth_demand=0.5, io_demand=0.9),
            task("b", 20.0, on="m", memory_bandwidth_demand=0.5),
            task("c", 20.0, on="n", memory_bandwidth_demand=1.0, io_demand=1.0),
        ]
    )
    scenario = Scenario(interference=Interference(memory_bandwidth=2.0, disk=2.0))
    run = simulate(quiet, cluster(node("m", cpu=2000), node("n")), scenario)
    assert makespan_s(run) == 20.0


def test_a_gang_goes_at_the_pace_of_its_most_disturbed_worker() -> None:
    # The gang's workers sit on a and b; on b a neighbour of demand 1 makes the sum 1.5.
    # Slow-down of the gang 1 + 4 * 0.5 * 0.5 = 2, of the neighbour 1 + 4 * 1 * 0.5 = 3.
    machines = cluster(node("a"), node("b", cpu=2000))
    jobs = workflow(
        [
            task("gang", 10.0, num_workers=2, memory_bandwidth_demand=0.5),
            task("loud", 40.0, on="b", memory_bandwidth_demand=1.0),
        ]
    )
    run = simulate(jobs, machines, Scenario(interference=Interference(memory_bandwidth=4.0)))
    assert ends(run) == pytest.approx({"gang": 20.0, "loud": 20.0 + 40.0 - 20.0 / 3})


def test_disk_speed_drifts_within_its_bounds() -> None:
    arrivals = [Arrival(10.0 * i, workflow([task("t", 1.0)], name=f"w{i}")) for i in range(300)]
    scenario = Scenario(interference=Interference(disk=1.0, disk_drift=0.6, interval_s=10.0))
    simulation = Simulation(arrivals, cluster(node("a"), node("b")), scenario, seed=5)
    seen: list[float] = []

    def look(snapshot: object, memory: object, decide: Callable[[], int]) -> int:
        seen.extend(simulation.world.machines["disk_speed"].tolist())
        return decide()

    simulation.run(FIFO, look)
    assert min(seen) == pytest.approx(0.4)
    assert max(seen) == 1.0
    assert len(set(seen)) > 100


def test_a_slow_disk_is_a_congested_disk() -> None:
    # One task of full demand on a disk at speed v: slow-down 1 + 1 * 1 * (1 / v - 1) = 1 / v.
    scenario = Scenario(interference=Interference(disk=1.0, disk_drift=0.5, interval_s=10.0))
    jobs = workflow([task("t", 1000.0, io_demand=1.0)])
    run = simulate(jobs, cluster(node("n")), scenario, seed=2)
    assert 1000.0 < makespan_s(run) <= 2000.0
    off = Scenario(interference=Interference(disk=1.0))
    assert makespan_s(simulate(jobs, cluster(node("n")), off)) == 1000.0


# Runtimes --------------------------------------------------------------------------------------


def _factors(runtimes: Runtimes, seed: int = 0) -> np.ndarray:
    jobs = workflow([task(f"t{i}", 10.0, cpu=1) for i in range(5000)])
    machines = cluster(node("n", cpu=10**6))
    attempts = simulate(jobs, machines, Scenario(runtimes=runtimes), seed=seed).attempts
    by_task = np.empty(5000)
    by_task[attempts["task"]] = (attempts["end_s"] - attempts["start_s"]) / 10.0
    return by_task


def test_noise_has_mean_one_and_the_stated_variation() -> None:
    factors = _factors(Runtimes(noise=0.4))
    assert factors.mean() == pytest.approx(1.0, abs=4 * 0.4 / math.sqrt(5000))
    assert factors.std() == pytest.approx(0.4, abs=0.04)
    assert np.log(factors).std() == pytest.approx(math.sqrt(math.log(1.16)), abs=0.02)


def test_stragglers_are_as_many_and_as_slow_as_stated() -> None:
    factors = _factors(Runtimes(straggler_ratio=0.1, straggler_factor=5.0))
    assert set(factors.round(9)) == {1.0, 5.0}
    assert (factors > 2).mean() == pytest.approx(0.1, abs=0.017)


def test_heavy_tails_follow_pareto() -> None:
    factors = _factors(Runtimes(heavy_tail_ratio=1.0, heavy_tail_alpha=1.5))
    assert factors.min() >= 1.0
    for size in (2.0, 4.0, 8.0):
        assert (factors > size).mean() == pytest.approx(size**-1.5, abs=0.03)


def test_a_task_has_the_same_luck_on_every_cluster_and_another_under_another_seed() -> None:
    jobs = workflow([task(f"t{i}", 10.0) for i in range(20)])
    scenario = Scenario(runtimes=Runtimes(noise=0.5))

    def runtimes(machines, seed):
        found = rows(simulate(jobs, machines, scenario, seed=seed))
        return {r.task: pytest.approx(r.end_s - r.start_s) for r in found}

    alone = runtimes(cluster(node("n")), 1)
    assert runtimes(cluster(*(node(f"n{i}") for i in range(5))), 1) == alone
    assert runtimes(cluster(node("n")), 2) != alone


# Stuck -----------------------------------------------------------------------------------------


def test_a_stuck_run_names_the_task_and_the_reason() -> None:
    machines = cluster(node("small", cpu=500), node("large", type="short"))
    scenario = Scenario(node_changes=(NodeChange(node_type="short", leaves_s=5.0),))
    jobs = workflow([task("a", 3.0), task("b", 1.0), task("c", 9.0)], [("a", "c"), ("c", "b")])
    with pytest.raises(
        StuckError, match=r"task 'c' of workflow 'w'.*node is down.*2 tasks are left"
    ):
        simulate(jobs, machines, scenario)


def test_a_stuck_gang_is_told_apart_from_a_waiting_policy() -> None:
    machines = cluster(node("a"), node("b", type="short"))
    scenario = Scenario(node_changes=(NodeChange(node_type="short", leaves_s=5.0),))
    jobs = workflow([task("a", 6.0, on="a"), task("gang", 1.0, num_workers=2)], [("a", "gang")])
    with pytest.raises(StuckError, match="gang") as caught:
        simulate(jobs, machines, scenario)
    assert "policy waits" not in str(caught.value)


def test_a_quota_too_small_for_a_task_is_named() -> None:
    scenario = Scenario(fairness=Fairness(tenant_quota={"default": 0.5}))
    with pytest.raises(StuckError, match=r"task 't' of workflow 'w'.*quota"):
        simulate(workflow([task("t", 1.0)]), cluster(node("n")), scenario)


@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_takes_very_long_is_not_stuck(seed: int) -> None:
    scenario = Scenario(
        runtimes=Runtimes(heavy_tail_ratio=1.0, heavy_tail_alpha=0.5),
        foreign_load=ForeignLoad(mean_ratio=0.1, interval_s=86_400.0),
    )
    jobs = workflow([task(f"t{i}", 1e6, cpu=1) for i in range(30)])
    run = simulate(jobs, cluster(node("n")), scenario, seed=seed)
    assert makespan_s(run) > 6e7  # patience is 30 days and 20 times 1e6 s
    assert len(ends(run)) == 30


def test_a_run_that_waits_for_a_node_to_join_is_not_stuck() -> None:
    machines = cluster(node("small", cpu=500), node("large", type="late"))
    joins_s = 60 * 86_400.0
    scenario = Scenario(
        node_changes=(NodeChange(node_type="late", joins_s=joins_s),),
        foreign_load=ForeignLoad(mean_ratio=0.1, interval_s=86_400.0),
    )
    run = simulate(workflow([task("t", 1.0, cpu=800)]), machines, scenario)
    assert ends(run) == {"t": joins_s + 1.0}


def test_a_task_that_outlives_no_node_is_stuck() -> None:
    scenario = Scenario(faults=Faults(node_mtbf_s=1000.0, node_mttr_s=1000.0))
    with pytest.raises(StuckError, match="task 't' of workflow 'w'"):
        simulate(workflow([task("t", 1e6)]), cluster(node("n")), scenario)


def test_nodes_that_come_and_go_do_not_hide_a_stuck_run() -> None:
    scenario = Scenario(
        fairness=Fairness(tenant_quota={"default": 0.5}),
        faults=Faults(node_mtbf_s=100_000.0, node_mttr_s=100_000.0),
    )
    with pytest.raises(StuckError, match=r"task 't' of workflow 'w'"):
        simulate(workflow([task("t", 1.0)]), cluster(node("n")), scenario)
