"""Returns and advantages, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dagsail.training import returns
from dagsail.training.rollouts import Rollouts


def rollouts(
    rewards: list[list[float]],
    starts: list[int],
    due: list[float],
    extras: list[float] | None = None,
) -> Rollouts:
    size = len(rewards)
    return Rollouts(
        asked={},
        actions=np.zeros(size, np.int64),
        logs=np.zeros(size, np.float32),
        values=np.zeros(size, np.float32),
        rewards=np.array(rewards),
        extras=np.zeros(size) if extras is None else np.array(extras),
        times_s=np.arange(size, dtype=np.float64),
        starts=np.array(starts),
        reference_s=np.ones(len(due)),
        due=np.array(due),
    )


def test_aims_are_measured_by_what_the_replicas_pay_for_them() -> None:
    played = rollouts(
        [[-1, 0, -8, 0], [-3, 1, 0, 0], [-4, -1, -8, 0], [-4, 1, 0, 0]], [0, 2, 4], [2.0, 2.0]
    )
    objectives = np.tile(np.array([0.5, 0.25, 0.25, 0.0], np.float32), (2, 1))
    # Completion: mean total 6; deadlines: twice the weight due, 4; cost: 8; balance: nothing.
    expected = [
        -1 / 6 * 0.5 - 8 / 8 * 0.25,
        -3 / 6 * 0.5 + 1 / 4 * 0.25,
        -4 / 6 * 0.5 - 1 / 4 * 0.25 - 8 / 8 * 0.25,
        -4 / 6 * 0.5 + 1 / 4 * 0.25,
    ]
    assert returns.scaled_rewards(played, objectives, 2) == pytest.approx(expected)


def test_what_counts_beside_the_aims_is_measured_by_completion() -> None:
    rewards = [[-1.0, 0, -8, 0], [-3.0, 1, 0, 0], [-4.0, -1, -8, 0], [-4.0, 1, 0, 0]]
    played = rollouts(rewards, [0, 2, 4], [2.0, 2.0], [-6.0, 0.0, 3.0, 0.0])
    nothing = np.zeros((2, 4), np.float32)
    assert returns.scaled_rewards(played, nothing, 2) == pytest.approx([-1.0, 0.0, 0.5, 0.0])
    completion = [row[0] for row in rewards]
    alike = rollouts(rewards, [0, 2, 4], [2.0, 2.0], completion)
    aim = np.tile(np.array([1, 0, 0, 0], np.float32), (2, 1))
    assert returns.scaled_rewards(alike, nothing, 2) == pytest.approx(
        returns.scaled_rewards(rollouts(rewards, [0, 2, 4], [2.0, 2.0]), aim, 2)
    )


def test_rewards_fade_with_simulated_time_and_end_with_the_episode() -> None:
    found = returns.discounted(
        np.array([1.0, 2.0, 4.0, 8.0]),
        np.array([0.0, 0.0, 10.0, 5.0]),
        np.array([0, 3, 4]),
        np.array([10.0, 10.0]),
    )
    late = 2.0 + 4.0 * np.exp(-1.0)
    assert found == pytest.approx([1.0 + late, late, 4.0, 8.0])


def test_replicas_are_compared_at_the_same_moment() -> None:
    """One replica pays 10 over 0..10 s, the other 10 over 0..20 s and 5 after that."""
    times_s = np.array([0.0, 10.0, 0.0, 20.0])
    starts = np.array([0, 2, 4])
    forever = np.array([1e12, 1e12])
    ahead = returns.discounted(np.array([-10.0, 0.0, -10.0, -5.0]), times_s, starts, forever)
    found = returns.against_replicas(ahead, times_s, starts, forever, 2)
    # At 0 s: -10 against -15. At 10 s: 0 against -5 - 10 / 2. At 20 s: nothing is left to pay.
    assert found == pytest.approx([2.5, 5.0, -2.5, -2.5])


def test_equal_replicas_have_no_advantage() -> None:
    rng = np.random.default_rng(1)
    times_s = np.tile(np.sort(rng.random(50) * 100), 3)
    starts = np.array([0, 50, 100, 150])
    horizon_s = np.full(3, 20.0)
    ahead = returns.discounted(np.tile(-rng.random(50), 3), times_s, starts, horizon_s)
    assert returns.against_replicas(ahead, times_s, starts, horizon_s, 3) == pytest.approx(
        np.zeros(150), abs=1e-9
    )


def test_the_critics_advantage_is_that_of_generalised_estimation() -> None:
    played = rollouts([[0.0] * 4] * 4, [0, 3, 4], [0.0, 0.0])
    played.values[:] = [1.0, 2.0, 3.0, 4.0]
    rewards = np.array([1.0, 1.0, 1.0, 1.0])
    gamma, fade = 0.9, 0.8
    targets, advantages = returns.against_critic(played, rewards, gamma, fade)
    third = 1.0 - 3.0
    second = 1.0 + gamma * 3.0 - 2.0 + gamma * fade * third
    first = 1.0 + gamma * 2.0 - 1.0 + gamma * fade * second
    assert advantages == pytest.approx([first, second, third, 1.0 - 4.0])
    assert targets == pytest.approx(advantages + played.values)
