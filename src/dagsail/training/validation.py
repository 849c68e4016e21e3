"""Validation: how policies fare on worlds that are never trained on, all by the same measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.evaluation.aims import aims, composite
from dagsail.policies import policy
from dagsail.policies.scoring.objective import AIMS, NUM_AIMS, Objective, objective_of
from dagsail.policies.scoring.scorer import scorer
from dagsail.policies.scoring.weights import ByAim, blend
from dagsail.training.settings import ObjectiveSettings
from dagsail.training.workers import Bench, Workers, shared
from dagsail.training.worlds import FIRST_VALIDATION

Floats = NDArray[np.float64]

_KEY: Final = 0x0B


def drawn_objective(settings: ObjectiveSettings, episode: int) -> Objective:
    """What an episode weighs: the default, one aim alone, or all of them at random."""
    rng = np.random.default_rng([episode, _KEY])
    if rng.random() < settings.default_ratio:
        return objective_of(settings.default)
    if rng.random() < 1 / 3:
        return objective_of({AIMS[int(rng.integers(NUM_AIMS))]: 1.0})
    return rng.dirichlet(np.ones(NUM_AIMS)).astype(np.float32)


class Validation:
    """Fixed worlds with fixed objectives, half of them the default."""

    def __init__(self, workers: Workers, count: int, settings: ObjectiveSettings) -> None:
        """Draw the worlds; what is found is compared with the scorer that comes with Dagsail."""
        self.workers = workers
        self.episodes = [FIRST_VALIDATION + number for number in range(count)]
        default = objective_of(settings.default)
        self.objectives = [
            default if number % 2 == 0 else drawn_objective(settings, episode)
            for number, episode in enumerate(self.episodes)
        ]
        self.reference = self.of_rule("scorer")

    def of_rule(self, name: str) -> Floats:
        """Aims under a policy by name. (worlds, NUM_AIMS)."""
        return self._collect(run_rule, name)

    def of_weights(self, weights: ByAim) -> Floats:
        """Aims under a scorer with these weights. (worlds, NUM_AIMS)."""
        return self._collect(run_scorer, weights)

    def _collect(self, job: Any, given: Any) -> Floats:
        count = self.workers.count
        worlds = list(zip(self.episodes, self.objectives, strict=True))
        parts = self.workers.call(job, [(given, part) for part in shared(worlds, count)])
        found = np.empty((len(worlds), NUM_AIMS))
        for index, part in enumerate(parts):
            found[index::count] = part
        return found

    def of_network(self, state: dict[str, Any], weights: ByAim) -> Floats:
        """Aims under a network that always does what is likeliest. (worlds, NUM_AIMS)."""
        from dagsail.training.rollouts import run_network

        return self._collect(run_network, (state, weights))

    def value_quantiles(self, state: dict[str, Any], weights: ByAim) -> list[float]:
        """Quantiles of the critic's value where the default is weighed, from 0 to 1 by 5 %."""
        from dagsail.training.rollouts import values_of

        count = self.workers.count
        worlds = list(zip(self.episodes, self.objectives, strict=True))[::2]
        jobs = [((state, weights), part) for part in shared(worlds, count)]
        values = np.concatenate(self.workers.call(values_of, jobs))
        return [float(value) for value in np.quantile(values, np.linspace(0.0, 1.0, 21))]

    def scores(self, found: Floats) -> Floats:
        """Composite of each world, less that of the reference: below 0 is better. (worlds,)."""
        rows = zip(found, self.reference, self.objectives, strict=True)
        return np.array([composite(f, r, o) - composite(r, r, o) for f, r, o in rows])

    def summary(self, found: Floats) -> dict[str, float]:
        """Mean score, over all and by kind of objective, and the worst with the default."""
        scores = self.scores(found)
        return {
            "score": float(scores.mean()),
            "score_default": float(scores[::2].mean()),
            "score_drawn": float(scores[1::2].mean()) if len(scores) > 1 else float("nan"),
            "worst_default": float(scores[::2].max()),
        }


def run_rule(bench: Bench, name: str, worlds: Sequence[tuple[int, Objective]]) -> Floats:
    """Job: aims of worlds under a policy by name."""
    rule = policy(name)
    return np.array([aims(bench.worlds.simulation(episode).run(rule)) for episode, _ in worlds])


def run_scorer(bench: Bench, weights: ByAim, worlds: Sequence[tuple[int, Objective]]) -> Floats:
    """Job: aims of worlds under a scorer."""
    return np.array(
        [
            aims(bench.worlds.simulation(episode).run(scorer("scorer", blend(weights, objective))))
            for episode, objective in worlds
        ]
    )
