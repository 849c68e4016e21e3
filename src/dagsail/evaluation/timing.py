"""Timing: how long one decision takes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Final

import numpy as np

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.snapshot import Snapshot
from dagsail.scheduling.listing import Memory
from dagsail.scheduling.ports import Policy

_WARM_UP: Final = 20


class _EnoughError(Exception):
    """Ends a simulation whose outcome is of no interest."""


def time_decisions(
    make_simulation: Callable[[], Simulation], policy: Policy, limit: int = 2000
) -> dict[str, float]:
    """Wall time of single placements in a simulation that asks for one at a time.

    The first calls, which load code and fill caches, are not counted; neither is what the
    simulator itself does in between. Waiting is a decision too.

    Args:
        make_simulation: makes a fresh simulation.
        policy: decides.
        limit: how many decisions to time; the simulation ends then, or when it is over.

    Returns:
        The metrics `decision_p50_ms` and `decision_p99_ms`; NaN if too few decisions were made.

    Raises:
        StuckError: if the simulation gets stuck before.
    """
    seconds: list[float] = []

    def record(_snapshot: Snapshot, _memory: Memory, decide: Callable[[], int]) -> int:
        begin = time.perf_counter()
        placed = decide()
        seconds.append(time.perf_counter() - begin)
        if len(seconds) >= _WARM_UP + limit:
            raise _EnoughError
        return placed

    with contextlib.suppress(_EnoughError):
        make_simulation().run(policy, record)
    timed = np.array(seconds[_WARM_UP:]) * 1000
    p50, p99 = np.percentile(timed, (50, 99)) if len(timed) else (np.nan, np.nan)
    return {"decision_p50_ms": float(p50), "decision_p99_ms": float(p99)}
