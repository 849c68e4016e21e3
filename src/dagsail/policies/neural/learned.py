"""Learned: the network of a bundle decides, one question a decision.

It is drawn from at a low temperature among the few likeliest actions. The draw is seeded by what
the network was asked, so that the same snapshot gives the same decision, in any process.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import math
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.neural.bundle import Bundle, Sampling, read_bundle
from dagsail.policies.neural.model import Model
from dagsail.policies.scoring import observation
from dagsail.policies.scoring.objective import Objective
from dagsail.policies.scoring.observation import NUM_CHOICES, Observation, arrays_of
from dagsail.policies.scoring.scorer import preparing
from dagsail.policies.scoring.weights import blend
from dagsail.scheduling.listing import Memory


@dataclass(slots=True)
class State:
    """What the policy keeps between decisions of a run.

    Attributes:
        memory: of the scorer that chooses candidates.
        question: the observation, one row; `asked` are the arrays of it.
        logs: log-probabilities of the actions at the last question. (NUM_ACTIONS,)
        value: the critic's value there; NaN before the first.
    """

    memory: Memory
    question: Observation
    asked: dict[str, NDArray[Any]] = field(repr=False)
    logs: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    value: float = np.nan

    def copy(self) -> State:
        """The same question and answer."""
        return copy.copy(self)


class Learned:
    """A policy that asks a network."""

    def __init__(
        self,
        name: str,
        bundle: Bundle,
        objective: Objective | None = None,
        sampling: Sampling | None = None,
    ) -> None:
        """Load the network of a bundle.

        Args:
            name: under which users choose it.
            bundle: verified.
            objective: what to weigh; the bundle's own if None. float32 (NUM_AIMS,)
            sampling: how to draw from the network; the bundle's own if None.

        Raises:
            FormatError: if the bundle's network cannot be run.
        """
        self.name = name
        self.bundle = bundle
        self.objective = bundle.objective if objective is None else objective
        self.sampling = bundle.spec.sampling if sampling is None else sampling
        self.model = Model(bundle)
        self.weights = blend(bundle.weights, self.objective)
        self._prepare = preparing(self.weights)

    def prepare(self, snapshot: Snapshot, seed: int) -> State:
        """A fresh state for one run."""
        question = observation.make_observation(1)
        return State(self._prepare(snapshot, seed), question, arrays_of(question))

    def decide(self, snapshot: Snapshot, state: State, limit: int) -> int:
        """Place up to `limit` ready tasks; returns how many."""
        placed = 0
        while placed < limit and snapshot.status[0]["num_ready"] > 0:
            if observation.observe(snapshot, state.memory, state.question, 0) == 0:
                break
            action, state.logs, state.value = self.answer(state.asked)
            placed += observation.act(snapshot, state.memory, state.question, 0, action)
        return placed

    def answer(self, asked: dict[str, NDArray[Any]]) -> tuple[int, NDArray[np.float32], float]:
        """The action for one question, the log-probabilities of all, and the critic's value.

        Args:
            asked: arrays of an observation of one row.
        """
        question = {**asked, "objective": self.objective[None]}
        logs, values = self.model(question)
        return self._draw(logs[0], question), logs[0], float(values[0])

    def pressure(self, value: float) -> float:
        """How hard pressed the cluster is, by the critic's value: 0 at ease, 1 as bad as ever seen.

        It is 1 less the quantile of the value among those of the bundle's validation, which were
        taken with the bundle's own objective: NaN for another one, or without any.
        """
        quantiles = self.bundle.spec.value_quantiles
        if not quantiles or not np.array_equal(self.objective, self.bundle.objective):
            return math.nan
        return 1.0 - float(np.interp(value, quantiles, np.linspace(0.0, 1.0, len(quantiles))))

    def scores(self, snapshot: Snapshot, state: State, task: int) -> NDArray[np.float64]:
        """Log-probability of each node at the last question, NaN where it was not offered. (N,)."""
        scores = np.full(len(snapshot.nodes), np.nan)
        logs = state.logs.reshape(-1, NUM_CHOICES)
        legal = state.question.legal[0]
        for place in np.flatnonzero(legal.any(axis=1) & (state.question.task_ids[0] == task)):
            offered = np.flatnonzero(legal[place, :-1])
            scores[state.question.node_ids[0, place, offered]] = logs[place, offered]
        return scores

    def _draw(self, logs: NDArray[np.float32], asked: dict[str, NDArray[Any]]) -> int:
        temperature, top_k = self.sampling.temperature, self.sampling.top_k
        if temperature == 0.0 or top_k == 1:
            return int(logs.argmax())
        likeliest = np.argsort(-logs, kind="stable")[:top_k]
        weights = np.exp((logs[likeliest] - logs[likeliest[0]]) / temperature)
        share = np.cumsum(weights / weights.sum())
        share[-1] = 1.0
        return int(likeliest[int(np.searchsorted(share, _random(asked), side="right"))])


def _random(asked: dict[str, NDArray[Any]]) -> float:
    """A number in [0, 1) that depends on the question alone."""
    digest = hashlib.blake2b(digest_size=8)
    for array in asked.values():
        digest.update(array.tobytes())
    return int.from_bytes(digest.digest(), "big") / 2.0**64


@functools.cache
def default_bundle() -> Bundle:
    """The bundle that comes with Dagsail."""
    return read_bundle(Path(str(resources.files("dagsail.policies.neural") / "default")))


def default_policy() -> Learned:
    """`learned`, by the bundle that comes with Dagsail."""
    return Learned("learned", default_bundle())
