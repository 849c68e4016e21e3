"""The network: from an observation to the logarithm of each action's probability, and a value.

Two heads. The first chooses among the offered tasks; the second, for a task, whether to wait or to
place it, and on which node: first the pool, then the node in it. With `p(pool)` in proportion to
`exp(pool bias)` times the sum of `exp(node logits)`, the two steps are one softmax over nodes whose
logits carry the bias of their pool, which is how they are computed. Each sum starts as the scorer's
and the network adds to it, so that an untrained one decides like the scorer. All parts share their
weights over tasks and nodes, whose number and order do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from dagsail.domain.cluster import POOLS
from dagsail.policies.scoring.objective import NUM_AIMS
from dagsail.policies.scoring.observation import MAX_NODES, MAX_TASKS, NUM_CHOICES
from dagsail.policies.scoring.schema import (
    NUM_GLOBAL,
    NUM_NODE,
    NUM_PAIR,
    NUM_TASK,
    NUM_WAIT,
    WAIT,
)

CRITIC: Final = "worth."
"""How the names of the critic's own parameters begin."""

_GAIN: Final = [feature.name for feature in WAIT].index("gain")
_NO_GAIN: Final = 5.0
"""What waiting that ends later loses at first; the scorer never waits then."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Widths of the network's parts."""

    hidden: int = 64
    summary: int = 32


def _layers(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
        nn.Linear(hidden, outputs),
    )  # fmt: skip


def _silent(module: nn.Sequential) -> nn.Sequential:
    """Make a part whose output is zero until it is trained."""
    last = module[-1]
    assert isinstance(last, nn.Linear)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return module


class Network(nn.Module):
    """Scores of actions; B observations, T tasks, N nodes, shapes as in `Observation`."""

    def __init__(self, weights: NDArray[np.float64], sharpness: float, sizes: Sizes) -> None:
        """Start as a scorer.

        Args:
            weights: of the scorer, by aim. float64 (NUM_AIMS, NUM_TASK + NUM_PAIR + NUM_WAIT)
            sharpness: factor on its sums: the larger, the less an untrained network explores.
            sizes: widths.
        """
        super().__init__()
        self.by_aim = nn.Parameter(torch.tensor(weights * sharpness, dtype=torch.float32))
        hidden, summary = sizes.hidden, sizes.summary
        surroundings = NUM_GLOBAL + NUM_AIMS
        self.task_part = _layers(NUM_TASK + surroundings, hidden, summary)
        self.pair_part = _layers(NUM_PAIR + NUM_NODE + summary, hidden, summary)
        self.urgency = _silent(_layers(3 * summary, hidden, 1))
        self.suitability = _silent(_layers(2 * summary, hidden, 1))
        self.pool_bias = _silent(_layers(summary, hidden, len(POOLS)))
        self.patience = _silent(_layers(NUM_WAIT + 2 * summary, hidden, 1))
        self.worth = _silent(_layers(2 * summary + surroundings, hidden, 1))
        self.no_gain = nn.Parameter(torch.tensor(_NO_GAIN))

    def forward(
        self,
        cluster: Tensor,
        tasks: Tensor,
        pairs: Tensor,
        nodes: Tensor,
        waits: Tensor,
        legal: Tensor,
        pools: Tensor,
        objective: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities (B, T * (N + 1)), -inf where illegal, and values (B,)."""
        offered = legal.any(dim=2)
        placeable = legal[:, :, :-1]
        # 1. What each task is, and what its nodes have to offer.
        surroundings = torch.cat([cluster, objective], dim=1)
        around = surroundings[:, None].expand(-1, tasks.shape[1], -1)
        task_view = _apply(self.task_part, (tasks, around), offered)
        spread = task_view[:, :, None].expand(-1, -1, pairs.shape[2], -1)
        pair_view = _apply(self.pair_part, (pairs, nodes, spread), placeable)
        node_view = _mean(pair_view, placeable)
        crowd_view = _mean(task_view, offered)
        # The scorer's sums are large beside what tells actions apart: single precision would show.
        weights = objective.double() @ self.by_aim.double()
        parts = torch.split(weights, [NUM_TASK, NUM_PAIR, NUM_WAIT], dim=1)
        task_weights, pair_weights, wait_weights = parts
        # 2. Which task.
        crowd = crowd_view[:, None].expand_as(task_view)
        urgency = _apply(self.urgency, (task_view, node_view, crowd), offered)[..., 0]
        urgency = urgency + (tasks.double() * task_weights[:, None]).sum(dim=2)
        task_log = _log_softmax(urgency, offered)
        # 3. Wait, or place it.
        patience = _apply(self.patience, (waits, task_view, node_view), legal[:, :, -1])[..., 0]
        is_loss = (waits[..., _GAIN] <= 0.0).to(waits.dtype)
        patience = patience + (waits.double() * wait_weights[:, None]).sum(dim=2)
        patience = patience - self.no_gain * is_loss
        patience = torch.where(legal[:, :, -1], patience, torch.full_like(patience, -1e9))
        wait_log = _log_sigmoid(patience)
        place_log = _log_sigmoid(-patience)
        # 4. On which node.
        suitability = _apply(self.suitability, (pair_view, spread), placeable)[..., 0]
        bias = self.pool_bias(task_view)
        suitability = suitability + torch.gather(bias, 2, pools)
        suitability = suitability + (pairs.double() * pair_weights[:, None, None]).sum(dim=3)
        node_log = _log_softmax(suitability, placeable)
        # 5. All together.
        placing = (task_log + place_log)[:, :, None] + node_log
        waiting = (task_log + wait_log)[:, :, None]
        logs = torch.cat([placing, waiting], dim=2)
        logs = torch.where(legal, logs, torch.full_like(logs, -torch.inf)).float()
        value = self.worth(torch.cat([crowd_view, node_view.mean(dim=1), surroundings], dim=1))
        return logs.flatten(1), value[:, 0]


def example(count: int) -> dict[str, Tensor]:
    """Inputs of the right names, types and shapes, with everything legal."""
    shape = (count, MAX_TASKS)
    return {
        "cluster": torch.zeros(count, NUM_GLOBAL),
        "tasks": torch.zeros(*shape, NUM_TASK),
        "pairs": torch.zeros(*shape, MAX_NODES, NUM_PAIR),
        "nodes": torch.zeros(*shape, MAX_NODES, NUM_NODE),
        "waits": torch.zeros(*shape, NUM_WAIT),
        "legal": torch.ones(*shape, NUM_CHOICES, dtype=torch.bool),
        "pools": torch.zeros(*shape, MAX_NODES, dtype=torch.int64),
        "objective": torch.full((count, NUM_AIMS), 1.0 / NUM_AIMS),
    }


def _apply(part: nn.Module, inputs: tuple[Tensor, ...], mask: Tensor) -> Tensor:
    """A part applied wherever the mask is True, zeros elsewhere; few places are in use."""
    if torch.compiler.is_exporting():
        whole: Tensor = part(torch.cat(inputs, dim=-1))
        return whole * mask[..., None].to(whole.dtype)
    places = mask.flatten().nonzero()[:, 0]
    rows = torch.cat([values.flatten(0, -2)[places] for values in inputs], dim=1)
    found: Tensor = part(rows)
    room = found.new_zeros((mask.numel(), found.shape[1]))
    return room.index_copy(0, places, found).view(*mask.shape, -1)


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the last dimension but one of what the mask admits; 0 where it admits nothing."""
    weight = mask.to(values.dtype)[..., None]
    return (values * weight).sum(dim=-2) / weight.sum(dim=-2).clamp(min=1.0)


def _log_sigmoid(values: Tensor) -> Tensor:
    """Written so that ONNX Runtime, too, computes it for values of any size."""
    return values.clamp(max=0.0) - torch.log1p(torch.exp(-values.abs()))


def _log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-softmax over the last dimension; large negative numbers where the mask is False."""
    masked = torch.where(mask, logits, torch.full_like(logits, -1e9))
    return torch.log_softmax(masked, dim=-1)
