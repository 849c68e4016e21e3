"""Run: the stages of a training one after the other, with validations, checkpoints and curves."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from dagsail.policies.neural.bundle import read_bundle
from dagsail.policies.scoring.weights import preset_by_aim
from dagsail.training import checkpoint as checkpoints
from dagsail.training.algorithms import Algorithm, algorithm_of
from dagsail.training.checkpoint import Checkpoint, Progress
from dagsail.training.export import read_network
from dagsail.training.learner import Learner, fresh
from dagsail.training.settings import Training
from dagsail.training.validation import Validation
from dagsail.training.workers import Workers, crew
from dagsail.training.worlds import Worlds

CURVES: Final = "curves"
"""Folder of what TensorBoard shows."""


class Curves(Protocol):
    """Where numbers go while it trains."""

    def add_scalar(self, tag: str, value: float, step: int) -> None:
        """One point of a curve."""
        ...


@dataclass(frozen=True, slots=True)
class News:
    """What is told after each step.

    Attributes:
        stage, algorithm, step, steps: where it is.
        left_s: expected time to the end of the stage.
        validation: of this step, if there was one; `is_best` tells whether it is the best.
    """

    stage: int
    algorithm: str
    step: int
    steps: int
    left_s: float
    metrics: dict[str, float]
    validation: dict[str, float] | None = None
    is_best: bool = False


@dataclass(frozen=True, slots=True)
class Trained:
    """What came of a training.

    Attributes:
        learner: the best that was found.
        curve: all validations.
        table: summary of the validation worlds by policy.
        value_quantiles: of what the critic expects in them, in steps of 5 %.
    """

    learner: Learner
    curve: tuple[dict[str, Any], ...]
    table: dict[str, dict[str, float]]
    value_quantiles: list[float]


def train(
    training: Training,
    folder: Path,
    curves: Curves,
    tell: Callable[[News], None],
    resume: bool = False,
) -> Trained:
    """Train as the settings say.

    Args:
        training: settings.
        folder: for checkpoints; exists.
        curves: where numbers go.
        tell: called after each step.
        resume: go on from the folder's checkpoint.

    Raises:
        InputError: if a checkpoint, bundle, workload or backend cannot be used.
        TrainingError: if a reward or loss is not a number.
    """
    spec = training.spec
    start = checkpoints.load(folder, training) if resume else None
    learner = _first(training) if start is None else start.learner
    with crew(spec) as workers:
        validation = Validation(workers, spec.validation.worlds, spec.objective)
        point = start or Checkpoint(Progress(), learner, learner, {})
        for stage in range(point.progress.stage, len(spec.stages)):
            point = _Stage(training, stage, workers, validation, point).run(folder, curves, tell)
        table = _table(training, validation, point.best)
        quantiles = validation.value_quantiles(point.best.network, point.best.weights)
    return Trained(point.best, point.progress.curve, table, quantiles)


def check(training: Training, folder: Path, resume: bool) -> None:
    """Find what cannot work before anything is written.

    Raises:
        InputError: if a workload, bundle or checkpoint cannot be used.
    """
    spec = training.spec
    Worlds(spec.worlds, spec.workloads, spec.clusters).simulation(0)
    if resume:
        checkpoints.load(folder, training)
    else:
        _first(training)


def _first(training: Training) -> Learner:
    """What the first stage begins with."""
    spec = training.spec
    if spec.start is None:
        return fresh(preset_by_aim(), spec.network, spec.seed)
    bundle = read_bundle(Path(spec.start))
    network = read_network(bundle.network, spec.network, spec.start)
    return Learner(bundle.weights, network)


class _Stage:
    """One algorithm, from where a checkpoint was made to the end of its steps."""

    def __init__(
        self,
        training: Training,
        stage: int,
        workers: Workers,
        validation: Validation,
        point: Checkpoint,
    ) -> None:
        self._training, self._stage, self._validation = training, stage, validation
        settings = training.spec.stages[stage]
        self._name = str(type(settings).__struct_config__.tag)
        self._steps = settings.steps
        self._algorithm: Algorithm = algorithm_of(
            settings, point.learner, training.spec, workers, stage
        )
        if point.progress.step > 0:
            self._algorithm.restore(point.learner, point.state)
        self._progress = replace(point.progress, stage=stage)
        self._best = point.best

    def run(self, folder: Path, curves: Curves, tell: Callable[[News], None]) -> Checkpoint:
        """All steps that are left; returns the point at which the next stage begins."""
        rules = self._training.spec.validation
        if self._progress.step == 0:
            self._judge(0)
        began, done = time.monotonic(), self._progress.step
        for number in range(done, self._steps):
            # 1. One step.
            metrics = self._algorithm.step(number)
            step = number + 1
            for name, value in metrics.items():
                curves.add_scalar(f"{self._stage}-{self._name}/{name}", value, step)
            # 2. Does it help?
            is_last = step == self._steps
            found = self._judge(step) if step % rules.every == 0 or is_last else None
            for name, value in (found or {}).items():
                curves.add_scalar(f"{self._stage}-{self._name}/validation_{name}", value, step)
            # 3. Keep it and tell.
            self._progress = replace(self._progress, step=step)
            if found is not None:
                checkpoints.save(folder, self._point(), self._training)
            left_s = (time.monotonic() - began) / (step - done) * (self._steps - step)
            is_best = found is not None and self._progress.misses == 0
            tell(News(self._stage, self._name, step, self._steps, left_s, metrics, found, is_best))
            if self._progress.misses >= rules.patience:
                break
        after = Progress(stage=self._stage + 1, curve=self._progress.curve)
        point = Checkpoint(after, self._best, self._best, {})
        checkpoints.save(folder, point, self._training)
        return point

    def _point(self) -> Checkpoint:
        return Checkpoint(
            self._progress, self._algorithm.learner, self._best, self._algorithm.state()
        )

    def _judge(self, step: int) -> dict[str, float]:
        """Validate; remember the learner if it is the best of its stage."""
        found = self._validation.summary(self._algorithm.judge(self._validation))
        is_best = found["score"] <= self._progress.best_score
        if is_best:
            self._best = self._algorithm.learner
        entry = {"stage": self._stage, "algorithm": self._name, "step": step, **found}
        self._progress = replace(
            self._progress,
            best_score=min(found["score"], self._progress.best_score),
            misses=0 if is_best else self._progress.misses + 1,
            curve=(*self._progress.curve, entry),
        )
        return found


def _table(training: Training, validation: Validation, best: Learner) -> dict[str, Any]:
    """The learner beside the rules on the validation worlds."""
    found = {name: validation.of_rule(name) for name in training.spec.validation.rules}
    found["scorer, this objective"] = validation.of_weights(best.weights)
    found["learned"] = validation.of_network(best.network, best.weights)
    return {
        name: {
            key: value for key, value in validation.summary(aims).items() if not math.isnan(value)
        }
        for name, aims in found.items()
    }
