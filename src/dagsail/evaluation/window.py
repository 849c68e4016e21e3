"""Window: which part of a run is measured, and whether that part shows what its load does.

Of arrivals over time, the first tenth of the workflows warms the cluster up and is not measured,
and the drain after the last arrival is kept apart: an emptying cluster makes every policy look
good. Where everything arrives together, the whole run is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dagsail.clusters.simulated.cluster import Run

WARM_UP_RATIO: Final = 0.1
_FEWEST_WORKFLOWS: Final = 10


@dataclass(frozen=True, slots=True)
class Window:
    """What is measured.

    Attributes:
        start_s, end_s: the time over which loads, queues and the like are averaged.
        first_workflow: workflows (by arrival) before this one are left out of averages over
            workflows and tasks.
    """

    start_s: float
    end_s: float
    first_workflow: int = 0

    @property
    def is_steady(self) -> bool:
        """Whether warm-up and drain are left out, because workflows arrive over time."""
        return self.first_workflow > 0


def whole_run(run: Run) -> Window:
    """From the first arrival to the last finish, all workflows."""
    workflows = run.snapshot.workflows
    return Window(float(workflows["arrival_s"][0]), float(workflows["finish_s"].max()))


def steady_window(run: Run) -> Window:
    """Without warm-up and drain, if workflows arrive over time; else the whole run.

    They do so if there are at least ten and the span of their arrivals is longer than an average
    workflow would take alone. The choice does not depend on the policy.
    """
    workflows = run.snapshot.workflows
    arrival = workflows["arrival_s"]
    first = int(WARM_UP_RATIO * len(arrival))
    span_s = float(arrival[-1] - arrival[0])
    is_short = span_s <= float(workflows["critical_path_s"].mean())
    if len(arrival) < _FEWEST_WORKFLOWS or is_short or arrival[first] == arrival[-1]:
        return whole_run(run)
    return Window(float(arrival[first]), float(arrival[-1]), first)


def mean_unfinished(run: Run, start_s: float, end_s: float) -> float:
    """Mean number of workflows in the system between two times."""
    workflows = run.snapshot.workflows
    begin = np.maximum(workflows["arrival_s"], start_s)
    end = np.minimum(workflows["finish_s"], end_s)
    return float((end - begin).clip(0.0).sum() / (end_s - start_s))
