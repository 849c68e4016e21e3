"""How weights change: one algorithm a file, by the class of its settings."""

from __future__ import annotations

from typing import Protocol

from dagsail.training.learner import Arrays, Learner
from dagsail.training.settings import CmaEs, Imitation, Lookahead, Ppo, Spec
from dagsail.training.validation import Floats, Validation
from dagsail.training.workers import Workers


class Algorithm(Protocol):
    """Improves a learner step by step.

    Attributes:
        learner: as it is now.
    """

    learner: Learner

    def step(self, number: int) -> dict[str, float]:
        """One step; returns what is worth a curve, by name.

        Raises:
            TrainingError: if it cannot go on.
        """
        ...

    def judge(self, validation: Validation) -> Floats:
        """Aims of the learner as it is now. (worlds, NUM_AIMS)."""
        ...

    def state(self) -> Arrays:
        """What it needs besides the learner to go on, for a checkpoint."""
        ...

    def restore(self, learner: Learner, state: Arrays) -> None:
        """Go on where a checkpoint was made."""
        ...


def algorithm_of(
    settings: CmaEs | Imitation | Lookahead | Ppo,
    learner: Learner,
    spec: Spec,
    workers: Workers,
    stage: int,
) -> Algorithm:
    """The algorithm of a stage."""
    algorithm: Algorithm
    if isinstance(settings, CmaEs):
        from dagsail.training.algorithms.cma_es import Evolution

        algorithm = Evolution(settings, learner, spec, workers, stage)
    elif isinstance(settings, Imitation):
        from dagsail.training.algorithms.imitation import Imitator

        algorithm = Imitator(settings, learner, spec, workers, stage)
    elif isinstance(settings, Lookahead):
        from dagsail.training.algorithms.lookahead import Looker

        algorithm = Looker(settings, learner, spec, workers, stage)
    else:
        from dagsail.training.algorithms.ppo import ProximalPolicy

        algorithm = ProximalPolicy(settings, learner, spec, workers, stage)
    return algorithm
