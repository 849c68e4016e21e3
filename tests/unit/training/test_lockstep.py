"""Lockstep and the Gymnasium environment: the same simulations, asked from outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.compose import setup_for
from dagsail.domain.cluster import POOLS
from dagsail.domain.errors import InputError, TrainingError
from dagsail.domain.scenario import Arrivals, Faults, Runtimes, Scenario
from dagsail.evaluation.aims import aims
from dagsail.evaluation.occupation import costs, occupation
from dagsail.policies import policy
from dagsail.policies.scoring import schema
from dagsail.policies.scoring.observation import MAX_NODES, NUM_CHOICES, scorer_actions
from dagsail.policies.scoring.weights import preset
from dagsail.training.environment import Environment
from dagsail.training.lockstep import Episode, Lockstep
from dagsail.training.rewards import NO_POOL, NUM_TERMS, TERMS, RewardSettings
from dagsail.training.settings import WorldSettings
from dagsail.training.worlds import FIRST_VALIDATION, Worlds

NAMES = [term.name for term in TERMS]
GPU = POOLS.index("gpu")


def simulation(
    seed: int, source: str = "mixed:12", cluster: str = "edge", node_mtbf_s: float = 40_000.0
) -> Simulation:
    scenario = Scenario(
        runtimes=Runtimes(noise=0.4),
        arrivals=Arrivals(kind="poisson", load=1.0),
        faults=Faults(node_mtbf_s=node_mtbf_s),
    )
    setup = setup_for([source], cluster, scenario)
    return Simulation(setup.arrivals(seed), setup.cluster, setup.scenario, seed)


def play(steps: Lockstep) -> list[Episode]:
    ended: list[Episode] = []
    while len(steps.active):
        ended += steps.step(scorer_actions(steps.observation, preset()))
    return sorted(ended, key=lambda episode: episode.number)


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    """Six simulations, three at a time."""
    source: Iterator[Simulation] = iter([simulation(seed) for seed in range(6)])
    return play(Lockstep(3, lambda _: next(source, None)))


def test_who_acts_as_the_scorer_gets_the_scorers_run(episodes: list[Episode]) -> None:
    assert [episode.number for episode in episodes] == list(range(6))
    for episode in episodes:
        run = simulation(episode.number).run(policy("scorer"))
        world = episode.simulation.world
        assert world.attempts[: world.law[0]["num_attempts"]].tobytes() == run.attempts.tobytes()
        assert episode.num_steps >= run.num_decisions


def test_those_behind_one_that_still_waits_keep_their_turn() -> None:
    """Seven nodes, many GPU tasks of one shape that wait: there the orders once parted."""
    worlds, episode = Worlds(WorldSettings()), FIRST_VALIDATION + 36
    source: Iterator[Simulation] = iter([worlds.simulation(episode)])
    (played,) = play(Lockstep(1, lambda _: next(source, None)))
    run = worlds.simulation(episode).run(policy("scorer"))
    world = played.simulation.world
    assert world.attempts[: world.law[0]["num_attempts"]].tobytes() == run.attempts.tobytes()


def test_terms_add_up_to_what_the_run_was_like(episodes: list[Episode]) -> None:
    for episode in episodes:
        terms = dict(zip(NAMES, episode.terms.tolist(), strict=True))
        run = simulation(episode.number).run(policy("scorer"))
        flows = run.snapshot.workflows
        reference_s = float(flows["critical_path_s"].mean())
        total_s = float((flows["finish_s"] - flows["arrival_s"]).sum())
        assert -terms["completion"] * reference_s == pytest.approx(total_s, rel=1e-9)
        spent = costs(occupation(run), run.snapshot)
        assert -(terms["cost_cpu"] + terms["cost_memory"] + terms["cost_gpu"]) == pytest.approx(
            spent.total_usd
        )
        evicted = run.attempts[run.attempts["outcome"] == 2]
        lost_s = float((evicted["end_s"] - evicted["start_s"]).sum())
        assert -terms["preemption"] * reference_s == pytest.approx(lost_s)
        has_deadline = flows["deadline_s"] < np.inf
        in_time = np.where(flows["finish_s"] <= flows["deadline_s"], 1.0, -1.0)
        weight = (4 - flows["priority"]) / 4
        assert terms["deadline"] == pytest.approx(float((in_time * weight)[has_deadline].sum()))


def test_balance_is_the_spread_of_load_over_the_whole_run() -> None:
    """Also through the instants at which nothing is ready and nobody is asked."""
    source = iter([simulation(3, "ai-training:6", node_mtbf_s=0.0)])
    (played,) = play(Lockstep(1, lambda _: next(source, None)))
    run = played.simulation.outcome("scorer")
    flows = run.snapshot.workflows
    span_s = float(flows["finish_s"].max() - flows["arrival_s"].min())
    found_s = -played.terms[NAMES.index("balance")] * float(flows["critical_path_s"].mean())
    assert found_s == pytest.approx(aims(run)[3] * span_s)


def test_any_legal_action_keeps_the_promises() -> None:
    """Random legal actions, waiting included: every task ends, nothing is placed illegally."""
    rng = np.random.default_rng(0)
    source = iter([simulation(seed, "ai-training:8", node_mtbf_s=0.0) for seed in range(4)])
    steps = Lockstep(2, lambda _: next(source, None))
    ended: list[Episode] = []
    waited = 0
    while len(active := steps.active):
        actions = np.zeros(2, np.int64)
        for row in active:
            legal = np.flatnonzero(steps.observation.legal[row].flatten())
            assert len(legal) > 0
            actions[row] = rng.choice(legal)
            waited += int(actions[row] % NUM_CHOICES == MAX_NODES)
        ended += steps.step(actions)
    assert len(ended) == 4
    assert waited > 20
    for episode in ended:
        snapshot = episode.simulation.snapshot
        assert (snapshot.workflows["tasks_left"] == 0).all()
        assert (snapshot.node_free == snapshot.node_allocatable).all()


@pytest.mark.parametrize("source", ["mixed:10", "streaming:20"])
def test_observed_features_stay_in_the_ranges_of_the_schema(source: str) -> None:
    steps = Lockstep(2, lambda number: simulation(number, source, "mixed"))
    stated = {
        "cluster": schema.GLOBAL,
        "tasks": schema.TASK,
        "pairs": schema.PAIR,
        "nodes": schema.NODE,
        "waits": schema.WAIT,
    }
    for _ in range(300):
        steps.step(scorer_actions(steps.observation, preset()))
        for name, listed in stated.items():
            values: Any = getattr(steps.observation, name).reshape(-1, len(listed))
            assert np.isfinite(values).all()
            for column, feature in zip(values.T, listed, strict=True):
                assert column.min() >= min(feature.low, 0.0) - 1e-6, feature.name
                assert column.max() <= feature.high + 1e-6, feature.name


@pytest.mark.filterwarnings("ignore:.*not within the observation space")
def test_gymnasium_accepts_the_environment() -> None:
    check_env(Environment(simulation), skip_render_check=True)


def test_an_episode_of_the_environment_is_that_of_its_seed() -> None:
    environment = Environment(simulation, RewardSettings(weights={"completion": 1.0}))
    returns = []
    for _ in range(2):
        asked, info = environment.reset(seed=3)
        total, is_over = 0.0, False
        while not is_over:
            assert info["action_mask"].reshape(asked["legal"].shape).tolist() == (
                asked["legal"].astype(bool).tolist()
            )
            asked, reward, is_over, _, info = environment.step(info["action_mask"].argmax())
            total += reward
        returns.append(total)
    flows = environment.simulation.snapshot.workflows
    total_s = float((flows["finish_s"] - flows["arrival_s"]).sum())
    assert returns[0] == returns[1]
    assert -returns[0] * flows["critical_path_s"].mean() == pytest.approx(total_s)


def test_an_illegal_action_is_replaced_and_reported() -> None:
    environment = Environment(simulation)
    _, info = environment.reset(seed=1)
    illegal = np.int64(np.flatnonzero(~info["action_mask"])[-1])
    assert environment.step(illegal)[4]["was_legal"] is False


def test_weights_depend_on_pool_and_load() -> None:
    settings = RewardSettings(
        weights={"completion": 1.0, "balance": 0.1},
        by_pool={"gpu": {"fragmentation": 0.5}},
        low_load={"balance": 0.4},
        high_load={"overuse": 1.0},
        limit=2.0,
    )
    place = {name: index for index, name in enumerate(NAMES)}
    normal, idle = settings.vector(None, 0.6), settings.vector("gpu", 0.2)
    assert (normal[place["balance"]], idle[place["balance"]]) == (0.1, 0.4)
    assert (normal[place["fragmentation"]], idle[place["fragmentation"]]) == (0.0, 0.5)
    assert settings.vector("cpu", 0.9)[place["overuse"]] == 1.0
    terms = np.zeros((4, NUM_TERMS))
    terms[0, place["completion"]] = -9.0
    terms[1:, place["balance"]] = -1.0
    terms[1:, place["fragmentation"]] = -2.0
    pools, loads = np.array([NO_POOL, GPU, NO_POOL, GPU]), np.array([0.6, 0.2, 0.2, 0.6])
    totals = settings.totals(terms, pools, loads)
    assert totals.tolist() == pytest.approx([-2.0, -1.4, -0.4, -1.1])


def test_bad_rewards_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="no term 'complete'; allowed are completion"):
        RewardSettings(weights={"complete": 1.0})
    with pytest.raises(InputError, match="no pool 'tpu'"):
        RewardSettings(by_pool={"tpu": {}})
    with pytest.raises(InputError, match="balance weighs nan"):
        RewardSettings(weights={"balance": float("nan")})
    with pytest.raises(InputError, match=r"low 0\.9 and high 0\.8 are not in order"):
        RewardSettings(low=0.9)
    terms = np.zeros((1, NUM_TERMS))
    terms[0, NAMES.index("energy")] = np.nan
    with pytest.raises(TrainingError, match="'energy' is not a number"):
        RewardSettings().totals(terms, np.array([NO_POOL]), np.array([0.5]))
