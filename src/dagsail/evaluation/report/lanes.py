"""Lanes: side by side rows for intervals that overlap."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def pack_lanes(group: Any, start: Any, end: Any) -> Ints:
    """The lane of each interval, counted from 0 in each group.

    Greedy by start, lowest free lane first: a group gets as many lanes as intervals overlap at
    once, which is the fewest possible (Kleinberg and Tardos, "Algorithm Design", section 4.1).
    Intervals are half-open, so one may start where another ends.

    Args:
        group: intervals of different groups do not meet. int (K,)
        start: of each interval. float (K,)
        end: likewise.

    Returns:
        int64 (K,)
    """
    lanes = np.zeros(len(group), np.int64)
    order = np.lexsort((end, start, group))
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    present = None
    rows = zip(order.tolist(), group[order].tolist(), start[order].tolist(), strict=True)
    for row, owner, begin in rows:
        if owner != present:
            present, busy, free = owner, [], []
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lane = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (float(end[row]), lane))
        lanes[row] = lane
    return lanes
