"""Rollouts foretell what a noise-free simulation does; a portfolio follows its best rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.compose import setup_for
from dagsail.domain.scenario import Arrivals, Runtimes, Scenario, Transfers
from dagsail.domain.snapshot import Snapshot
from dagsail.policies import policy, rollout
from dagsail.policies.heuristics import fifo, least_remaining_work, sjf
from dagsail.policies.portfolio import Portfolio
from dagsail.policies.rule import Rule

UNLIMITED = 2**31 - 1


def rolled_out(
    snapshot: Snapshot, rule: Any, scratch: Snapshot, limit: int = UNLIMITED
) -> list[float]:
    out = np.zeros(rollout.NUM_OUTCOMES)
    heap = np.zeros(len(snapshot.tasks), np.int64)
    memory = rule.prepare(snapshot, 0)
    rollout.roll_out(scratch, memory, rule.compiled(), limit, heap, out)
    return out.tolist()


def simulation_of(source: str, noise: float, arrivals: Arrivals) -> Simulation:
    scenario = Scenario(
        runtimes=Runtimes(noise=noise), transfers=Transfers(enabled=False), arrivals=arrivals
    )
    setup = setup_for([source], "edge", scenario)
    return Simulation(setup.arrivals(3), setup.cluster, setup.scenario, 3)


def total_flow_s(simulation: Simulation, chosen: Any) -> float:
    flows = simulation.run(chosen).snapshot.workflows
    return float((flows["finish_s"] - flows["arrival_s"]).sum())


@pytest.mark.parametrize("name", ["fifo", "least-remaining-work", "min-min", "scorer", "tetris"])
def test_without_noise_and_arrivals_a_rollout_is_the_simulation(name: str) -> None:
    rule: Any = policy(name)
    simulation = simulation_of("etl:6", 0.0, Arrivals(kind="together"))
    foretold: list[float] = []

    def on_decision(snapshot: Any, memory: Any, decide: Any) -> int:
        if not foretold:
            before = snapshot.copy()
            foretold.extend(rolled_out(snapshot, rule, snapshot.copy()))
            for field in snapshot.fields:
                assert getattr(snapshot, field).tobytes() == getattr(before, field).tobytes()
        return int(decide())

    flows = simulation.run(rule, on_decision).snapshot.workflows
    assert foretold[rollout.COMPLETE] == 1.0
    total_s = float((flows["finish_s"] - flows["arrival_s"]).sum())
    assert foretold[rollout.FLOW_S] == pytest.approx(total_s, rel=1e-9)


def test_a_synchronised_copy_plays_as_a_fresh_one() -> None:
    simulation = simulation_of("mixed:30", 0.4, Arrivals(kind="poisson", load=1.0))
    scratch = simulation.snapshot.copy()
    outcomes = []

    def on_decision(snapshot: Any, memory: Any, decide: Any) -> int:
        if snapshot.status[0]["stamp"] % 50 == 0:
            for rule in (least_remaining_work.POLICY, sjf.POLICY):
                rollout.synchronise(snapshot, scratch)
                fresh = rolled_out(snapshot, rule, snapshot.copy())
                outcomes.append(fresh)
                assert rolled_out(snapshot, rule, scratch) == fresh
        return int(decide())

    simulation.run(policy("scorer"), on_decision)
    assert len(outcomes) > 20
    assert all(outcome[rollout.COMPLETE] == 1.0 for outcome in outcomes)


def test_a_rollout_that_is_cut_counts_the_longest_path_left() -> None:
    """No placement at all: every workflow ends after its critical path on mean nodes."""
    simulation = simulation_of("etl:4", 0.0, Arrivals(kind="together"))
    found: list[list[float]] = []

    def on_decision(snapshot: Any, memory: Any, decide: Any) -> int:
        if not found:
            found.append(rolled_out(snapshot, fifo.POLICY, snapshot.copy(), limit=0))
        return int(decide())

    run = simulation.run(fifo.POLICY, on_decision)
    ranks, owner = run.snapshot.tasks["upward_rank_s"], run.snapshot.tasks["workflow"]
    expected = sum(float(ranks[owner == index].max()) for index in range(4))
    assert found[0][rollout.FLOW_S] == pytest.approx(expected)


def test_follows_the_better_rule_whichever_stands_first() -> None:
    """Far from the worse rule, near the better one."""
    arrivals = Arrivals(kind="burst", load=1.2)
    rules = (fifo.POLICY, least_remaining_work.POLICY)
    simulation = simulation_of("etl:40", 0.2, arrivals)
    worse, better = (total_flow_s(simulation.twin(), rule) for rule in rules)
    assert worse > 1.3 * better
    for order in (rules, rules[::-1]):
        followed = total_flow_s(simulation.twin(), Portfolio("p", order))
        assert followed < 1.05 * better


def test_looks_are_spaced_by_time_and_placements() -> None:
    looks: list[tuple[float, int]] = []
    portfolio = Portfolio("p", (fifo.POLICY, Rule("again")))
    simulation = simulation_of("etl:20", 0.2, Arrivals(kind="poisson", load=0.9))

    def on_decision(snapshot: Any, state: Any, decide: Any) -> int:
        before = state.num_looks
        placed = int(decide())
        if state.num_looks > before:
            looks.append((float(snapshot.status[0]["now_s"]), state.num_looks))
        return placed

    run = simulation.run(portfolio, on_decision)
    times = [time_s for time_s, _ in looks]
    assert (np.diff(times) >= 2.0).all()
    assert 5 < len(times) < run.num_decisions
