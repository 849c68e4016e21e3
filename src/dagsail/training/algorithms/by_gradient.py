"""By gradient: what algorithms share that change the network with Adam."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from dagsail.training.learner import Arrays, Learner
from dagsail.training.settings import Spec
from dagsail.training.updates import Adam
from dagsail.training.validation import Floats, Validation
from dagsail.training.workers import Workers, shared

_EPISODES: Final = 1_000_000
"""Each stage has a range of so many worlds of its own."""


class _Settings(Protocol):
    @property
    def worlds(self) -> int: ...

    @property
    def learning_rate(self) -> float: ...


class ByGradient:
    """Weights go out to the workers, gradients come back."""

    def __init__(
        self,
        settings: _Settings,
        learner: Learner,
        spec: Spec,
        workers: Workers,
        stage: int,
        max_gradient: float = np.inf,
    ) -> None:
        self.learner = learner
        self.spec, self.workers = spec, workers
        self._worlds, self._stage = settings.worlds, stage
        self.adam = Adam(learner.network, settings.learning_rate, max_gradient)

    def worlds_of(self, number: int) -> list[list[int]]:
        """Worlds of a step, for each worker."""
        first = _EPISODES * (self._stage + 1) + number * self._worlds
        return shared(range(first, first + self._worlds), self.workers.count)

    def seeds_of(self, number: int) -> list[list[int]]:
        """A seed of a step for each worker."""
        return [[self.spec.seed, self._stage, number, i] for i in range(self.workers.count)]

    def keep(self) -> None:
        """Let the learner have the weights as they are now."""
        self.learner = Learner(self.learner.weights, self.adam.weights)

    def judge(self, validation: Validation) -> Floats:
        """Aims of the network."""
        return validation.of_network(self.learner.network, self.learner.weights)

    def state(self) -> Arrays:
        """Moments of the optimiser."""
        return self.adam.state()

    def restore(self, learner: Learner, state: Arrays) -> None:
        """Go on with weights and moments."""
        self.learner = learner
        self.adam.restore(learner.network, state)
