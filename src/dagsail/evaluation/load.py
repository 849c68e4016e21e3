"""Load: how hard a run pressed on its cluster, and whether it ran long enough to show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dagsail.clusters.simulated.cluster import Run
from dagsail.evaluation.occupation import expected_work
from dagsail.evaluation.waiting import queue_percentile
from dagsail.evaluation.window import Window, mean_unfinished

_GROWTH: Final = 1.5
_FEWEST_MORE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Load:
    """What a run was up against.

    Attributes:
        dominating: the resource that the expected work fills for longest.
        by_resource: offered load: expected work that arrives per second over the cluster's
            amount; above 1 the queue grows without bound. Empty where the whole run is measured.
        drain_s: from the last arrival to the last finish.
        has_queue: whether tasks wait during more than a twentieth of the window; without waiting
            there is nothing to decide but the node, and policies look alike.
        is_settled: False if the backlog grew until the last arrival: the mean number of unfinished
            workflows in the last third of the window is at least 1.5 times that of the middle
            third, and higher by at least 2. (From an empty start, a steady growth gives 1.67.)
            True where the whole run is measured.
    """

    dominating: str
    by_resource: Mapping[str, float]
    drain_s: float
    has_queue: bool
    is_settled: bool

    @property
    def offered(self) -> float | None:
        """Load on the dominating resource; None where the whole run is measured."""
        return self.by_resource.get(self.dominating)


def load_of(run: Run, window: Window) -> Load:
    """Measure the load of a run, over the window of its metrics."""
    arrival = run.snapshot.workflows["arrival_s"]
    capacity = run.snapshot.node_allocatable.sum(axis=0)
    work = expected_work(run.snapshot).sum(axis=0)
    busy_s = {
        name: float(held / total)
        for name, held, total in zip(run.names.resources, work, capacity, strict=True)
        if total > 0
    }
    span_s = float(arrival[-1] - arrival[0])
    # As many gaps as arrivals but one lie in the span.
    per_s = (1 - 1 / len(arrival)) / span_s if window.is_steady else 0.0
    return Load(
        dominating=max(busy_s, key=lambda name: busy_s[name]),
        by_resource={name: per_s * seconds for name, seconds in busy_s.items() if per_s > 0},
        drain_s=float(run.snapshot.workflows["finish_s"].max() - arrival[-1]),
        has_queue=queue_percentile(run, window, 95) > 0,
        is_settled=_is_settled(run, window),
    )


def _is_settled(run: Run, window: Window) -> bool:
    if not window.is_steady:
        return True
    third_s = (window.end_s - window.start_s) / 3
    middle = mean_unfinished(run, window.start_s + third_s, window.end_s - third_s)
    last = mean_unfinished(run, window.end_s - third_s, window.end_s)
    return last < _GROWTH * middle or last - middle < _FEWEST_MORE


def load_warnings(loads: Mapping[str, Sequence[Load]]) -> tuple[str, ...]:
    """Why runs say less about their policies than they seem to; one line each.

    Args:
        loads: by policy, one for each seed; all policies met the same arrivals.
    """
    found = (_overload(next(iter(loads.values()))), _no_queue(loads), _unsettled(loads))
    return tuple(line for line in found if line)


def _overload(loads: Sequence[Load]) -> str:
    offered = mean_of([load.offered for load in loads])
    if offered is None or offered < 1:
        return ""
    return (
        f"overload: the offered load is {offered:.2f} of the cluster's {loads[0].dominating},"
        " so the queue grows for as long as workflows arrive; lower it to below 1"
    )


def _no_queue(loads: Mapping[str, Sequence[Load]]) -> str:
    """Counts seeds at which tasks hardly ever waited, whatever the policy."""
    by_seed = list(zip(*loads.values(), strict=True))
    quiet = sum(not any(load.has_queue for load in row) for row in by_seed)
    if not quiet:
        return ""
    return (
        f"no queue formed at {quiet} of {len(by_seed)} seeds under any policy (95th percentile of"
        " waiting tasks is 0): policies will look alike; raise the load or submit more workflows"
    )


def _unsettled(loads: Mapping[str, Sequence[Load]]) -> str:
    """Names the policies whose backlog grew until the last arrival, at most of the seeds."""
    count = len(next(iter(loads.values())))
    grew = {name: sum(not load.is_settled for load in rows) for name, rows in loads.items()}
    often = [f"{name} ({n} of {count} seeds)" for name, n in grew.items() if 2 * n > count]
    if not often:
        return ""
    return (
        f"never settled: the backlog still grew at the last arrival under {', '.join(often)};"
        " submit more workflows or lower the load"
    )


def mean_of(values: Sequence[float | None]) -> float | None:
    """Mean of what is known; None if nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
