"""PPO: proximal policy optimisation (Schulman et al., 2017) with worlds played several times.

What was played stays with the worker that played it; weights go out and gradients come back.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from dagsail.domain.errors import TrainingError
from dagsail.policies.neural.network import CRITIC, Network
from dagsail.policies.scoring.weights import ByAim
from dagsail.training import returns
from dagsail.training.algorithms.by_gradient import ByGradient
from dagsail.training.learner import Arrays, Learner, network_of
from dagsail.training.rollouts import Rollouts, explore, inputs_of, play
from dagsail.training.settings import Ppo, Spec
from dagsail.training.updates import gradients_of, mean_of, schedule
from dagsail.training.validation import Floats, drawn_objective
from dagsail.training.workers import Bench, Workers

_MOST: Final = 5.0
"""Advantages are cut at so many standard deviations."""


class ProximalPolicy(ByGradient):
    """PPO over the whole network."""

    def __init__(
        self, settings: Ppo, learner: Learner, spec: Spec, workers: Workers, stage: int
    ) -> None:
        super().__init__(settings, learner, spec, workers, stage, settings.max_gradient)
        self._settings = settings

    def step(self, number: int) -> dict[str, float]:
        """Play some worlds, then learn from them."""
        settings, count = self._settings, self.workers.count
        progress = number / max(settings.steps - 1, 1)
        exploration = schedule(settings.exploration_start, settings.exploration_end, progress)
        # 1. Play.
        seeds = self.seeds_of(number)
        given = (self.learner.network, self.learner.weights, settings, exploration, progress)
        played = self.workers.call(
            collect,
            [
                (*given, part, seed)
                for part, seed in zip(self.worlds_of(number), seeds, strict=True)
            ],
        )
        # 2. Learn.
        scale = float(np.sqrt(sum(p["squares"] for p in played) / sum(p["size"] for p in played)))
        spread = float(np.mean([p["value_scale"] for p in played]))
        updates = max(1, min(int(p["size"]) for p in played) * count // settings.batch)
        found: list[dict[str, float]] = []
        entropy = schedule(settings.entropy_start, settings.entropy_end, progress)
        for epoch in range(settings.epochs):
            for update in range(updates):
                call = (self.adam.weights, (epoch, update, updates), max(scale, 1e-9), entropy)
                parts = self.workers.call(gradient, [(*call, seed) for seed in seeds])
                self.adam.update([part[0] for part in parts])
                found += [part[1] for part in parts]
        self.keep()
        curves = mean_of(found)
        return {
            **curves,
            "decisions": float(sum(p["size"] for p in played)),
            "cost": float(np.mean([p["cost"] for p in played])),
            "spread": float(np.mean([p["spread"] for p in played])),
            "explained": 1.0 - curves["value_loss"] / max(spread, 1e-9),
        }


def _max_tasks(settings: Ppo, progress: float) -> int | None:
    for part in settings.curriculum:
        if progress < part.until:
            return part.max_tasks
    return None


def collect(
    bench: Bench,
    state: Arrays,
    weights: ByAim,
    settings: Ppo,
    exploration: float,
    progress: float,
    episodes: list[int],
    seed: list[int],
) -> dict[str, float]:
    """Job: play worlds with all replicas and keep what was played; returns how it went."""
    bench.kept.pop("played", None)
    network = network_of(state, bench.spec.network)
    limit = _max_tasks(settings, progress)
    simulations, objectives = [], []
    for episode in episodes:
        simulation = bench.worlds.simulation(episode, limit)
        simulations += [simulation.twin() for _ in range(settings.replicas)]
        objectives += [drawn_objective(bench.spec.objective, episode)] * settings.replicas
    shares = np.array(objectives)
    generator = torch.Generator().manual_seed(_mixed(seed))
    reward = bench.spec.rewards.settings()
    rollouts = play(network, weights, simulations, shares, generator, exploration, reward)
    scaled = returns.scaled_rewards(rollouts, shares, settings.replicas)
    ahead, advantages = _advantages(rollouts, scaled, settings)
    bench.kept["played"] = _tensors(rollouts, ahead, advantages, exploration)
    bench.kept["settings"] = settings
    costs = -np.add.reduceat(scaled, rollouts.starts[:-1]).reshape(-1, settings.replicas)
    return {
        "size": len(advantages),
        "squares": float((advantages**2).sum()),
        "value_scale": float(ahead.var()),
        "cost": float(costs.mean()),
        "spread": float(costs.std(axis=1).mean()),
    }


def _advantages(rollouts: Rollouts, scaled: Floats, settings: Ppo) -> tuple[Floats, Floats]:
    """What the critic is to expect, and by how much each decision beat its baseline. (D,) each."""
    if settings.baseline == "critic":
        return returns.against_critic(rollouts, scaled, settings.gamma, settings.gae_lambda)
    horizon_s = settings.horizon * rollouts.reference_s
    ahead = returns.discounted(scaled, rollouts.times_s, rollouts.starts, horizon_s)
    advantages = returns.against_replicas(
        ahead, rollouts.times_s, rollouts.starts, horizon_s, settings.replicas
    )
    return ahead, advantages


def _tensors(
    rollouts: Rollouts, ahead: Floats, advantages: Floats, exploration: float
) -> dict[str, Any]:
    columns = {
        **rollouts.asked,
        "action": rollouts.actions,
        "log": rollouts.logs,
        "ahead": ahead.astype(np.float32),
        "advantage": advantages.astype(np.float32),
    }
    return {
        "columns": {name: torch.from_numpy(column) for name, column in columns.items()},
        "exploration": exploration,
    }


def _mixed(seed: list[int]) -> int:
    return int(np.random.SeedSequence(seed).generate_state(1)[0])


def gradient(
    bench: Bench,
    state: Arrays,
    place: tuple[int, int, int],
    scale: float,
    entropy_weight: float,
    seed: list[int],
) -> tuple[Arrays, dict[str, float]]:
    """Job: gradient of the loss over one batch of what was played, and its parts.

    Args:
        bench: with what was played.
        state: weights of the network.
        place: epoch, batch in it, and how many batches it has.
        scale: advantages are divided by it.
        entropy_weight: of the bonus.
        seed: of the order of decisions.

    Raises:
        TrainingError: if the loss is not a number.
    """
    settings: Ppo = bench.kept["settings"]
    columns = bench.kept["played"]["columns"]
    rows, weight = _batch(columns["advantage"], place, settings.priority, seed)
    network = network_of(state, bench.spec.network)
    if settings.critic_only:
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name.startswith(CRITIC))
    batch = {name: column[rows] for name, column in columns.items()}
    exploration = bench.kept["played"]["exploration"]
    loss, parts = _loss(network, batch, weight, scale, entropy_weight, exploration, settings)
    if not torch.isfinite(loss):
        bad = next((name for name, value in parts.items() if not np.isfinite(value)), "loss")
        raise TrainingError(f"training: '{bad}' is not a number; try a smaller learningRate")
    loss.backward()  # type: ignore[no-untyped-call]
    return gradients_of(network), parts


def _batch(
    advantages: torch.Tensor, place: tuple[int, int, int], priority: float, seed: list[int]
) -> tuple[NDArray[np.int64], torch.Tensor]:
    """Rows of a batch and the weight of each: in random order, or the decisive more often."""
    epoch, number, count = place
    size = len(advantages)
    rng = np.random.default_rng([*seed, epoch])
    if priority == 0.0:
        rows = rng.permutation(size)[number * size // count : (number + 1) * size // count]
        return rows, torch.ones(len(rows))
    chance = np.abs(advantages.numpy().astype(np.float64)) ** priority + 1e-6
    chance /= chance.sum()
    rng = np.random.default_rng([*seed, epoch, number])
    rows = rng.choice(size, size // count, p=chance)
    weight = 1.0 / (size * chance[rows])
    return rows, torch.from_numpy((weight / weight.mean()).astype(np.float32))


def _loss(
    network: Network,
    batch: dict[str, torch.Tensor],
    weight: torch.Tensor,
    scale: float,
    entropy_weight: float,
    exploration: float,
    settings: Ppo,
) -> tuple[torch.Tensor, dict[str, float]]:
    logs, values = network(**inputs_of(batch))
    if exploration > 0.0:
        logs = explore(logs, exploration)
    log_ratio = logs.gather(1, batch["action"][:, None])[:, 0] - batch["log"]
    ratio = log_ratio.exp()
    advantage = (batch["advantage"] / scale).clamp(-_MOST, _MOST)
    cut = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
    gain = (weight * torch.min(ratio * advantage, cut * advantage)).mean()
    finite = torch.where(torch.isfinite(logs), logs, torch.zeros_like(logs))
    entropy = -(weight * (logs.exp() * finite).sum(dim=1)).mean()
    value_loss = (weight * (values - batch["ahead"]) ** 2).mean()
    loss = settings.value_weight * value_loss
    if not settings.critic_only:
        loss = loss - gain - entropy_weight * entropy
    with torch.no_grad():
        parts = {
            "gain": float(gain),
            "value_loss": float(value_loss),
            "entropy": float(entropy),
            "divergence": float((ratio - 1.0 - log_ratio).mean()),
            "clipped": float(((ratio - 1.0).abs() > settings.clip).float().mean()),
        }
    return loss, parts
