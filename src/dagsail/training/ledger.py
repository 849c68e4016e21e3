"""Ledger: what each decision of a run brought about, by reward term."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.errors import InputError
from dagsail.policies.neural.learned import Learned
from dagsail.policies.scoring.observation import (
    MAX_NODES,
    NUM_CHOICES,
    Observation,
    arrays_of,
    scorer_actions,
)
from dagsail.policies.scoring.weights import Weights
from dagsail.scheduling.ports import Policy
from dagsail.training.lockstep import Lockstep
from dagsail.training.rewards import RewardSettings


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision.

    Attributes:
        time_s: when.
        workflow, task: what was decided about.
        node: where it went; None: it waits.
        value, pressure: what the critic said; NaN without one.
    """

    time_s: float
    workflow: str
    task: str
    node: str | None
    value: float
    pressure: float


@dataclass(frozen=True, slots=True)
class Ledger:
    """D decisions of a run.

    Attributes:
        decisions: in their order.
        terms: what each brought about until the next. float64 (D, NUM_TERMS)
        parts: the same times the weights. float64 (D, NUM_TERMS)
        rewards: their sums, clipped if so set. float64 (D,)
    """

    decisions: list[Decision]
    terms: NDArray[np.float64]
    parts: NDArray[np.float64]
    rewards: NDArray[np.float64]


def ledger(simulation: Simulation, policy: Policy, reward: RewardSettings) -> Ledger:
    """Run a simulation to its end and keep the terms of every decision.

    Args:
        simulation: used up.
        policy: a scorer or a network; other policies do not answer observations.
        reward: weights of the terms.

    Raises:
        InputError: if it is another policy.
        StuckError: if the simulation cannot go on.
        TrainingError: if a term is not a number; names it.
    """
    weights = _weights_of(policy, simulation)
    source = iter([simulation])
    steps = Lockstep(1, lambda _: next(source, None), lambda _: weights, by_class=reward.by_class)
    decisions, terms, pools, loads = [], [], [], []
    while len(steps.active):
        action, value = _answer(policy, steps.observation, weights)
        decisions.append(_decision(policy, simulation, steps.observation, action, value))
        actions = np.array([action])
        pools.append(steps.pools(actions))
        loads.append(steps.loads)
        steps.step(actions)
        terms.append(steps.terms.copy())
    if not decisions:
        raise InputError("the run has no decisions")
    given = np.concatenate(terms), np.concatenate(pools), np.concatenate(loads)
    return Ledger(decisions, given[0], reward.parts(*given), reward.totals(*given))


def _weights_of(policy: Policy, simulation: Simulation) -> Weights:
    """Of the scorer that chooses what is offered."""
    if isinstance(policy, Learned):
        return policy.weights
    memory = policy.prepare(simulation.snapshot, simulation.seed)
    weights: Weights = getattr(memory, "weights", np.zeros(0))
    if len(weights) == 0:
        raise InputError(
            f"{policy.name} does not answer observations; 'learned', 'scorer', a bundle's folder"
            " and a file of weights do"
        )
    return weights


def _answer(policy: Policy, asked: Observation, weights: Weights) -> tuple[int, float]:
    """The action, and the critic's value."""
    if isinstance(policy, Learned):
        action, _, value = policy.answer(arrays_of(asked))
        return action, value
    return int(scorer_actions(asked, weights)[0]), math.nan


def _decision(
    policy: Policy, simulation: Simulation, asked: Observation, action: int, value: float
) -> Decision:
    place, choice = divmod(action, NUM_CHOICES)
    task = int(asked.task_ids[0, place])
    snapshot, names = simulation.snapshot, simulation.names
    return Decision(
        time_s=float(snapshot.status[0]["now_s"]),
        workflow=names.workflows[int(snapshot.tasks[task]["workflow"])],
        task=names.tasks[task],
        node=names.nodes[int(asked.node_ids[0, place, choice])] if choice < MAX_NODES else None,
        value=value,
        pressure=policy.pressure(value) if isinstance(policy, Learned) else math.nan,
    )
