"""Waiting: how long tasks are ready without running, and how many are at a time.

A wait begins when an attempt becomes ready (parents done, or the last attempt lost) and ends when
it is placed or cancelled. Starting a container and staging data come after it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.evaluation.window import Window

Floats = NDArray[np.float64]


def _intervals(run: Run) -> tuple[Any, Floats, Floats]:
    """Task, begin and end of the wait of each attempt that was ever ready."""
    ready = np.isfinite(run.attempts["ready_s"])
    rows = run.attempts[ready]
    return rows["task"], rows["ready_s"], np.minimum(rows["start_s"], rows["end_s"])


def waits_s(run: Run) -> Floats:
    """Seconds that each task waited, all its attempts together; NaN if never ready. (T,)."""
    task, begin_s, end_s = _intervals(run)
    count = len(run.snapshot.tasks)
    total = np.bincount(task, end_s - begin_s, minlength=count)
    return np.where(np.bincount(task, minlength=count) > 0, total, np.nan)


def queue_percentile(run: Run, window: Window, percent: float) -> float:
    """Number of waiting tasks that is not exceeded for that share of the window.

    Returns:
        NaN for a window of no length.
    """
    _, begin_s, end_s = _intervals(run)
    begin_s = begin_s.clip(window.start_s, window.end_s)
    end_s = end_s.clip(window.start_s, window.end_s)
    time = np.concatenate([[window.start_s], begin_s, end_s])
    change = np.zeros(len(time), np.int64)
    change[1 : len(begin_s) + 1] = 1
    change[len(begin_s) + 1 :] = -1
    order = np.argsort(time, kind="stable")
    length = np.cumsum(change[order])
    seconds = np.diff(time[order], append=window.end_s)
    total = float(seconds.sum())
    if total <= 0:
        return float("nan")
    by_length = np.bincount(length[seconds > 0], seconds[seconds > 0])
    # The tolerance keeps rounding of the sum from pushing the answer past the longest queue.
    reached = np.cumsum(by_length) >= (percent / 100 - 1e-12) * total
    return float(np.argmax(reached))
