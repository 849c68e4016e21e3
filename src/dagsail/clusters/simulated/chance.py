"""Random draws that depend only on what is drawn for, never on the order of drawing.

Each number is a hash of (seed, stream, subject, occasion), so the same task has the same luck
under every policy: common random numbers, which is what makes paired comparisons sharp.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dagsail.kernels import kernel

RUNTIME: Final = 1
TAIL: Final = 2
TAIL_SIZE: Final = 3
FAILURE: Final = 4
FAILURE_POINT: Final = 5
MEMORY: Final = 6
NODE_LOSS: Final = 7
NODE_RETURN: Final = 8
SPOT: Final = 9
FOREIGN: Final = 10
DISK: Final = 11
LATENCY: Final = 12
BANDWIDTH: Final = 13
_SECOND: Final = 64
"""Offset of the companion stream from which a second uniform is taken."""


@kernel
def _mix(z: np.uint64) -> np.uint64:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel
def uniform(seed: int, stream: int, subject: int, occasion: int) -> float:
    """A number in (0, 1), by the finaliser of SplitMix64 over all four arguments."""
    z = _mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    z = _mix(z ^ (np.uint64(stream) * np.uint64(0xD1B54A32D192ED03)))
    z = _mix(z ^ (np.uint64(subject) + np.uint64(0x8CB92BA72F3D8DD7)))
    z = _mix(z ^ (np.uint64(occasion) + np.uint64(0xABC98388FB8FAC03)))
    return ((z >> np.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)


@kernel
def normal(seed: int, stream: int, subject: int, occasion: int) -> float:
    """A standard normal number (Box and Muller, 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(seed, stream, subject, occasion)))
    return radius * math.cos(2.0 * math.pi * uniform(seed, stream + _SECOND, subject, occasion))


@kernel
def lognormal(seed: int, stream: int, subject: int, occasion: int, cv: float) -> float:
    """A lognormal factor of mean 1 and coefficient of variation `cv`."""
    if cv <= 0.0:
        return 1.0
    variance = math.log(1.0 + cv * cv)
    z = normal(seed, stream, subject, occasion)
    return math.exp(math.sqrt(variance) * z - 0.5 * variance)


@kernel
def exponential(seed: int, stream: int, subject: int, occasion: int, mean: float) -> float:
    """An exponential number of that mean."""
    return -mean * math.log(uniform(seed, stream, subject, occasion))
