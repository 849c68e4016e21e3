"""Imitation: the network learns to decide like a rule (behaviour cloning).

The rule plays the worlds. Before each of its placements the network's question is asked, and the
placement is the answer to learn; those that were not among the candidates teach nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dagsail.domain.errors import TrainingError
from dagsail.domain.snapshot import Snapshot
from dagsail.policies import policy
from dagsail.policies.neural.model import INPUTS
from dagsail.policies.scoring import observation
from dagsail.policies.scoring.observation import MAX_NODES, NUM_CHOICES, arrays_of
from dagsail.policies.scoring.scorer import preparing
from dagsail.policies.scoring.weights import ByAim, blend
from dagsail.scheduling.listing import Memory
from dagsail.scheduling.ports import Policy
from dagsail.training.algorithms.by_gradient import ByGradient
from dagsail.training.learner import Arrays, Learner, network_of
from dagsail.training.settings import Imitation, Spec
from dagsail.training.updates import gradients_of, mean_of
from dagsail.training.validation import drawn_objective
from dagsail.training.workers import Bench, Workers


class Imitator(ByGradient):
    """Behaviour cloning of a rule."""

    def __init__(
        self, settings: Imitation, learner: Learner, spec: Spec, workers: Workers, stage: int
    ) -> None:
        super().__init__(settings, learner, spec, workers, stage)
        self._settings = settings

    def step(self, number: int) -> dict[str, float]:
        """Let the rule play some worlds, then learn from it."""
        settings, count = self._settings, self.workers.count
        given = (settings.teacher, self.learner.weights)
        sizes = self.workers.call(watch, [(*given, part) for part in self.worlds_of(number)])
        updates = max(1, min(sizes) * count // settings.batch)
        found: list[dict[str, float]] = []
        for epoch in range(settings.epochs):
            for update in range(updates):
                place = (epoch, update, updates)
                results = self.workers.call(
                    gradient, [(self.adam.weights, place, seed) for seed in self.seeds_of(number)]
                )
                self.adam.update([result[0] for result in results])
                found += [result[1] for result in results]
        self.keep()
        return {**mean_of(found), "decisions": float(sum(sizes))}


class _Watcher:
    """A policy that decides like a teacher and notes the questions and its answers."""

    def __init__(self, teacher: Policy, weights: Any, objective: Any) -> None:
        self.name = teacher.name
        self.rows: list[dict[str, Any]] = []
        self._teacher, self._objective = teacher, objective
        self._prepare = preparing(weights)

    def prepare(self, snapshot: Snapshot, seed: int) -> tuple[Any, Memory, Any]:
        question = observation.make_observation(1)
        return self._teacher.prepare(snapshot, seed), self._prepare(snapshot, seed), question

    def decide(self, snapshot: Snapshot, memory: tuple[Any, Memory, Any], limit: int) -> int:
        teacher, own, question = memory
        placed = 0
        while placed < limit and snapshot.status[0]["num_ready"] > 0:
            # The question is asked on a copy: asking orders the queue, which is the teacher's.
            if observation.observe(snapshot.copy(), own, question, 0) == 0:
                return placed + self._teacher.decide(snapshot, teacher, limit - placed)
            question.looked[0] = -1
            before = int(snapshot.status[0]["num_bound"])
            if self._teacher.decide(snapshot, teacher, 1) == 0:
                return placed
            placed += 1
            self._note(question, snapshot, int(snapshot.bound[before]))
        return placed

    def _note(self, question: Any, snapshot: Snapshot, task: int) -> None:
        slot = int(snapshot.tasks[task]["worker_start"])
        node = int(snapshot.workers[slot]["node"])
        legal = question.legal[0, :, :MAX_NODES]
        same = (question.task_ids[0][:, None] == task) & (question.node_ids[0] == node) & legal
        for place, choice in np.argwhere(same)[:1].tolist():
            row = {name: array[0].copy() for name, array in arrays_of(question).items()}
            row["objective"] = self._objective
            row["action"] = place * NUM_CHOICES + choice
            self.rows.append(row)


def watch(bench: Bench, teacher: str, weights: ByAim, episodes: list[int]) -> int:
    """Job: let a rule play worlds, keep what it did; returns how many decisions."""
    rows: list[dict[str, Any]] = []
    for episode in episodes:
        objective = drawn_objective(bench.spec.objective, episode)
        watcher = _Watcher(policy(teacher), blend(weights, objective), objective)
        bench.worlds.simulation(episode).run(watcher)
        rows += watcher.rows
    if not rows:
        raise TrainingError(
            f"imitation: none of the decisions of '{teacher}' was among the network's candidates;"
            " take more worlds, or another teacher"
        )
    bench.kept["seen"] = {
        name: torch.from_numpy(np.array([row[name] for row in rows])) for name in rows[0]
    }
    return len(rows)


def gradient(
    bench: Bench, state: Arrays, place: tuple[int, int, int], seed: list[int]
) -> tuple[Arrays, dict[str, float]]:
    """Job: gradient of the cross-entropy over one batch of what was seen."""
    columns = bench.kept["seen"]
    epoch, number, count = place
    size = len(columns["action"])
    order = np.random.default_rng([*seed, epoch]).permutation(size)
    rows = order[number * size // count : (number + 1) * size // count]
    network = network_of(state, bench.spec.network)
    logs, _ = network(**{name: columns[name][rows] for name in INPUTS})
    action = columns["action"][rows]
    loss = -logs.gather(1, action[:, None]).clamp(min=-50.0).mean()
    loss.backward()
    agreement = float((logs.argmax(dim=1) == action).float().mean())
    return gradients_of(network), {"loss": float(loss.detach()), "agreement": agreement}
