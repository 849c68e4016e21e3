"""Returns: from the rewards of rollouts to the advantage of each decision.

Replicas of a world have the same arrivals and the same luck, so what they still have to pay at one
moment differs by what was decided only. The mean over them is therefore a baseline with little
variance (the input-driven baseline of Mao et al., ICLR 2019).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dagsail.policies.scoring.objective import NUM_AIMS
from dagsail.training.rollouts import Rollouts

_SMALL = 1e-9

Floats = NDArray[np.float64]


def scaled_rewards(rollouts: Rollouts, objectives: NDArray[np.float32], replicas: int) -> Floats:
    """One reward a decision: aims over what the replicas of its world pay for them, by objective.

    Completion, cost and balance of an episode then sum to about -1 each, and deadlines to the
    weighted share of workflows in time less that of late ones, halved. What counts beside them is
    measured by what is paid for completion. (D,)
    """
    totals = rollouts.totals()
    num_episodes = len(totals)
    groups = totals.reshape(num_episodes // replicas, replicas, NUM_AIMS).mean(axis=1)
    scale = np.repeat(np.abs(groups), replicas, axis=0)
    scale[:, 1] = 2.0 * rollouts.due
    shares = objectives / np.maximum(scale, _SMALL)
    shares[scale < _SMALL] = 0.0
    lengths = np.diff(rollouts.starts)
    by_aim = rollouts.rewards * np.repeat(shares, lengths, axis=0)
    extras = rollouts.extras / np.repeat(np.maximum(scale[:, 0], _SMALL), lengths)
    return np.asarray(by_aim.sum(axis=1) + extras)


def discounted(
    rewards: Floats, times_s: Floats, starts: NDArray[np.int64], horizon_s: Floats
) -> Floats:
    """Rewards from each decision to the end of its episode, discounted by simulated time.

    Args:
        rewards: of each decision. (D,)
        times_s: when it was made. (D,)
        starts: where each episode begins. (E + 1,)
        horizon_s: of each episode: after so much time a reward counts 1/e. (E,)
    """
    returns = np.empty(len(rewards))
    for episode, horizon in enumerate(horizon_s):
        first, last = starts[episode], starts[episode + 1]
        ahead = 0.0
        times = times_s[first:last]
        fade = np.exp(-np.diff(times, append=times[-1]) / horizon).tolist()
        mine = rewards[first:last].tolist()
        for index in range(last - first - 1, -1, -1):
            ahead = mine[index] + fade[index] * ahead
            returns[first + index] = ahead
    return returns


def against_replicas(
    returns: Floats, times_s: Floats, starts: NDArray[np.int64], horizon_s: Floats, replicas: int
) -> Floats:
    """What each decision's return has over the mean of the replicas' at the same moment."""
    advantages = np.empty(len(returns))
    num_episodes = len(starts) - 1
    for group in range(0, num_episodes, replicas):
        episodes = range(group, group + replicas)
        parts = [slice(starts[episode], starts[episode + 1]) for episode in episodes]
        for part in parts:
            moments = times_s[part]
            sums = np.zeros(len(moments))
            for other in parts:
                sums += _at(moments, times_s[other], returns[other], float(horizon_s[group]))
            advantages[part] = returns[part] - sums / replicas
    return advantages


def _at(moments: Floats, times_s: Floats, returns: Floats, horizon_s: float) -> Floats:
    """The return of an episode at given moments: between two decisions, in proportion."""
    after = np.searchsorted(times_s, moments, side="left")
    inside = np.minimum(after, len(times_s) - 1)
    fade = np.exp(-(times_s[inside] - moments) / horizon_s)
    coming = np.where(after < len(times_s), fade * returns[inside], 0.0)
    before = np.maximum(inside - 1, 0)
    gap_s = times_s[inside] - times_s[before]
    between = (after > 0) & (after < len(times_s)) & (gap_s > 0.0)
    share = np.where(between, (times_s[inside] - moments) / np.maximum(gap_s, _SMALL), 0.0)
    whole = np.exp(-gap_s / horizon_s) * returns[inside]
    paid = np.where(between, returns[before] - whole, 0.0)
    return np.asarray(coming + share * paid)


def against_critic(
    rollouts: Rollouts, rewards: Floats, gamma: float, gae_lambda: float
) -> tuple[Floats, Floats]:
    """Returns to learn and advantages by generalised advantage estimation. (D,) each.

    Schulman et al., "High-dimensional continuous control using generalized advantage estimation",
    ICLR 2016; the estimator is TorchRL's. Discounts count decisions, not time.
    """
    import torch
    from torchrl.objectives.value.functional import generalized_advantage_estimate

    size = len(rewards)
    done = torch.zeros(size, 1, dtype=torch.bool)
    done[rollouts.starts[1:] - 1] = True
    values = torch.from_numpy(rollouts.values.astype(np.float64))[:, None]
    following = torch.cat([values[1:], values.new_zeros(1, 1)])
    advantages, targets = generalized_advantage_estimate(
        gamma, gae_lambda, values, following, torch.from_numpy(rewards)[:, None], done, done
    )
    return targets[:, 0].numpy(), advantages[:, 0].numpy()
