"""CMA-ES: evolves the weights of the scorer.

Hansen, "The CMA evolution strategy: a tutorial", 2016, with separable covariance (Ros and Hansen,
PPSN 2008), as there are over a hundred weights. All candidates of a generation meet the same worlds
with the same luck; sets of worlds take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import cma
import numpy as np

from dagsail.domain.errors import StuckError
from dagsail.evaluation.aims import aims, composite
from dagsail.policies.scoring.objective import AIMS
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import ByAim, blend, preset
from dagsail.training.learner import Arrays, Learner, fresh
from dagsail.training.settings import CmaEs, Spec
from dagsail.training.validation import Floats, Validation, drawn_objective
from dagsail.training.workers import Bench, Workers, shared

_STUCK: Final = 10.0
"""Score of weights under which a world never ends."""


class Evolution:
    """CMA-ES over the weights of some aims."""

    def __init__(
        self, settings: CmaEs, learner: Learner, spec: Spec, workers: Workers, stage: int
    ) -> None:
        self.learner = learner
        self._settings, self._spec, self._workers, self._stage = settings, spec, workers, stage
        self._rows = [AIMS.index(name) for name in settings.aims]
        self._begin = learner.weights[self._rows]
        self._told: list[list[float]] = []
        self._strategy = self._fresh_strategy()

    def _fresh_strategy(self) -> Any:
        options = {
            "popsize": self._settings.population,
            "seed": self._spec.seed + 1,  # 0 would mean: by the clock
            "verbose": -9,
            "CMA_diagonal": True,
        }
        return cma.CMAEvolutionStrategy(
            np.zeros(self._begin.size), self._settings.step_size, options
        )

    def step(self, number: int) -> dict[str, float]:
        """One generation."""
        candidates = self._strategy.ask()
        size = self._settings.worlds
        first = (number % self._settings.rotation) * size
        worlds = [
            (episode, drawn_objective(self._spec.objective, episode))
            for episode in range(first, first + size)
        ]
        weights = [self._weights(candidate) for candidate in candidates]
        count = self._workers.count
        parts = self._workers.call(score, [(part, worlds) for part in shared(weights, count)])
        scores = [0.0] * len(candidates)
        for index, part in enumerate(parts):
            scores[index::count] = part
        self._tell(candidates, scores)
        return {
            "best": min(scores),
            "mean": float(np.mean(scores)),
            "step_size": float(self._strategy.sigma),
        }

    def _tell(self, candidates: Sequence[Any], scores: list[float]) -> None:
        self._strategy.tell(candidates, scores)
        self._told.append(scores)
        weights = self._weights(self._strategy.result.xfavorite)
        self.learner = fresh(weights, self._spec.network, self._spec.seed)

    def _weights(self, candidate: Any) -> ByAim:
        weights = self.learner.weights.copy()
        weights[self._rows] = self._begin + np.asarray(candidate).reshape(self._begin.shape)
        return weights

    def judge(self, validation: Validation) -> Floats:
        """Aims of the scorer with the weights in the middle of the population."""
        return validation.of_weights(self.learner.weights)

    def state(self) -> Arrays:
        """The scores of all generations: with the seed, they determine everything else."""
        told = np.array(self._told).reshape(-1, self._settings.population)
        return {"told": told, "begin": self._begin}

    def restore(self, learner: Learner, state: Arrays) -> None:
        """Ask and tell all generations again."""
        self._begin = state["begin"]
        self._told = []
        self._strategy = self._fresh_strategy()
        for scores in state["told"].tolist():
            self._tell(self._strategy.ask(), scores)
        self.learner = learner


def score(
    bench: Bench, candidates: Sequence[ByAim], worlds: Sequence[tuple[int, Any]]
) -> list[float]:
    """Job: mean composite of each candidate over worlds, less that of the preset scorer."""
    prepared = []
    for episode, objective in worlds:
        key = f"world {episode}"
        if key not in bench.kept:
            simulation = bench.worlds.simulation(episode)
            reference = aims(simulation.twin().run(scorer("preset", preset())))
            bench.kept[key] = (simulation, reference)
        prepared.append((*bench.kept[key], objective))
    return [
        float(np.mean([_score(weights, *world) for world in prepared])) for weights in candidates
    ]


def _score(weights: ByAim, simulation: Any, reference: Floats, objective: Any) -> float:
    try:
        found = aims(simulation.twin().run(scorer("candidate", blend(weights, objective))))
    except StuckError:
        return _STUCK
    return composite(found, reference, objective) - composite(reference, reference, objective)
