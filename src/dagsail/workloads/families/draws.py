"""Random draws that the parameters of a family are written in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from numpy.random import Generator

T = TypeVar("T")

Shares: TypeAlias = tuple[tuple[T, float], ...]
"""Options with their probabilities, which sum to 1."""


def pick(rng: Generator, shares: Shares[T]) -> T:
    """One of the options, at random by its share."""
    return choose(shares, float(rng.random()))


def choose(shares: Shares[T], fraction: float) -> T:
    """The option in whose part of the unit interval `fraction` lies."""
    for option, share in shares:
        fraction -= share
        if fraction < 0:
            return option
    return shares[-1][0]


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A log-normal amount, clipped to a range.

    Attributes:
        median: half of the draws lie below, in the unit of the parameter.
        sigma: standard deviation of the logarithm; the 95th percentile is median * e^(1.64 sigma).
        low: smallest value.
        high: largest value.
    """

    median: float
    sigma: float
    low: float
    high: float

    def draw(self, rng: Generator) -> float:
        """One value."""
        value = self.median * math.exp(self.sigma * float(rng.standard_normal()))
        return min(max(value, self.low), self.high)


def jitter(rng: Generator, sigma: float) -> float:
    """A log-normal factor with median 1."""
    return math.exp(sigma * float(rng.standard_normal()))
