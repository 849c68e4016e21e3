from __future__ import annotations

import math

import numpy as np
import pytest

from dagsail.evaluation.statistics import (
    compare_paired,
    estimate,
    mean_interval,
    ratio_interval,
)


def interval_of(values: np.ndarray) -> tuple[float, float]:
    interval = mean_interval(values)
    assert interval is not None
    return interval


@pytest.mark.parametrize(
    ("draw", "mean", "least"),
    [
        (lambda rng, n: rng.normal(3.0, 2.0, n), 3.0, 0.93),
        (lambda rng, n: rng.uniform(0.0, 1.0, n), 0.5, 0.93),
        (lambda rng, n: rng.exponential(2.0, n), 2.0, 0.90),
    ],
    ids=["normal", "uniform", "exponential"],
)
def test_intervals_of_20_values_cover_the_true_mean(draw, mean, least):
    rng = np.random.default_rng(11)
    hits = 0
    for _ in range(600):
        low, high = interval_of(draw(rng, 20))
        hits += low <= mean <= high
    assert least <= hits / 600 <= 0.98


def test_intervals_are_close_to_those_of_students_t_for_normal_values():
    values = np.random.default_rng(4).normal(10.0, 1.0, 30)
    half = 2.0452 * values.std(ddof=1) / math.sqrt(30)  # t of 29 degrees
    low, high = interval_of(values)
    assert low == pytest.approx(values.mean() - half, abs=0.2 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.2 * half)


def test_an_interval_of_skewed_values_is_that_of_the_textbook_formula():
    # Quantiles of the exponential distribution; expected ends from 400,000 resamples of their own.
    values = -np.log(1 - (np.arange(30) + 0.5) / 30)
    low, high = interval_of(values)
    assert low == pytest.approx(0.6941, abs=0.003)
    assert high == pytest.approx(1.4389, abs=0.005)
    assert high - values.mean() > 1.5 * (values.mean() - low)


def test_the_same_values_give_the_same_interval():
    values = np.random.default_rng(6).normal(size=20)
    assert mean_interval(values) == mean_interval(values.copy())


def test_one_value_has_no_interval():
    assert estimate(np.array([7.0])) == estimate(np.array([7.0]))
    assert estimate(np.array([7.0])).ci95 is None
    assert estimate(np.array([7.0])).mean == 7


def test_equal_values_have_an_interval_of_no_width():
    assert mean_interval(np.full(20, 0.1)) == pytest.approx((0.1, 0.1))


def test_missing_values_are_left_out():
    found = estimate(np.array([1.0, np.nan, 3.0]))
    assert found.mean == 2
    assert math.isnan(found.per_seed[1])
    nothing = estimate(np.array([np.nan, np.nan]))
    assert math.isnan(nothing.mean)
    assert nothing.ci95 is None


def pairs(shift, noise=1.0, count=20, seed=2):
    rng = np.random.default_rng(seed)
    common = rng.normal(100.0, 30.0, count)
    return common + shift + rng.normal(0.0, noise, count), common


@pytest.mark.parametrize(
    ("shift", "better", "verdict"),
    [
        (-5.0, "lower", "better"),
        (-5.0, "higher", "worse"),
        (5.0, "lower", "worse"),
        (5.0, "higher", "better"),
        (0.0, "lower", "noise"),
    ],
)
def test_a_small_difference_shows_in_spite_of_large_spread_between_seeds(shift, better, verdict):
    first, second = pairs(shift)
    found = compare_paired(first, second, better)
    assert found.verdict == verdict
    assert found.difference.mean == pytest.approx(shift, abs=0.5)
    assert found.ratio == pytest.approx(first.mean() / second.mean())
    assert found.ratio_ci95 is not None
    low, high = found.ratio_ci95
    assert low <= found.ratio <= high


def test_equal_policies_are_called_different_in_about_one_of_twenty_cases():
    drawn = [pairs(0.0, seed=seed) for seed in range(400)]
    verdicts = [compare_paired(first, second, "lower").verdict for first, second in drawn]
    assert 0.02 <= 1 - verdicts.count("noise") / 400 <= 0.09


@pytest.mark.parametrize(("count", "verdict"), [(1, "noise"), (5, "noise"), (6, "better")])
def test_fewer_than_six_seeds_prove_nothing(count, verdict):
    first, second = pairs(-50.0, count=count)
    assert compare_paired(first, second, "lower").verdict == verdict


def test_values_that_differ_by_rounding_only_are_equal():
    second = np.random.default_rng(8).uniform(1.0, 2.0, 20)
    found = compare_paired(second * (1 + 1e-15), second, "lower")
    assert found.verdict == "noise"
    assert found.difference.ci95 == (0.0, 0.0)


def test_a_seed_without_a_value_for_one_policy_is_left_out():
    first, second = pairs(-5.0)
    first[3] = np.nan
    second[4] = np.nan
    found = compare_paired(first, second, "lower")
    kept = np.delete(np.arange(20), [3, 4])
    assert found.difference.mean == pytest.approx((first - second)[kept].mean())
    assert found.ratio == pytest.approx(first[kept].mean() / second[kept].mean())


def test_there_is_no_ratio_to_zero():
    found = compare_paired(np.ones(8), np.zeros(8), "lower")
    assert math.isnan(found.ratio)
    assert found.ratio_ci95 is None
    assert found.verdict == "worse"
    assert ratio_interval(np.ones(3), np.array([0.0, 0.0, 1.0])) is None
