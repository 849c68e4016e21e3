"""Bounds: how fast any scheduler could be at best.

Bounds rest on expected runtimes, on each task's fastest eligible node, without transfers, start-up
or disturbance. Where a scenario draws true runtimes around the estimates (`runtimes.noise`, tails),
a lucky run may beat them: they then bound a run of expected length, and a ratio to them compares
policies, not a policy with the impossible. Only what finished is counted, so that a run in which
workflows fail does not seem to beat them either.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.snapshot import FINISHED, Snapshot

Floats = NDArray[np.float64]


class MakespanBound(NamedTuple):
    """A makespan that no schedule undercuts, and why."""

    seconds: float
    binding: str
    """`path`, or the resource whose work binds."""


def fastest_s(snapshot: Snapshot) -> Floats:
    """Expected runtime of each task on the fastest node that it may use. (T,)."""
    tasks = snapshot.tasks
    num_rows = len(snapshot.runtime_factor)
    pair = tasks["shape"] * num_rows + tasks["runtime_row"]
    distinct, inverse = np.unique(pair, return_inverse=True)
    on_node = snapshot.runtime_factor[:, snapshot.nodes["type"]]
    best = np.array(
        [
            on_node[row][snapshot.shape_node[shape]["eligible"] == 1].min()
            for shape, row in zip(distinct // num_rows, distinct % num_rows, strict=True)
        ]
    )
    result: Floats = tasks["estimate_s"] * best[inverse.reshape(-1)]
    return result


def makespan_bound(run: Run) -> MakespanBound:
    """The larger of two bounds on the time from the first arrival to the last finish.

    By path: no workflow ends before its arrival plus its critical path. By work: of each resource,
    what arrives from some time on is worked off after that time, at most with all of the
    cluster's amount at once; the worst such time counts.
    """
    workflows = run.snapshot.workflows
    finished = workflows["state"] == FINISHED
    start_s = float(workflows["arrival_s"][0])
    path_s = np.where(finished, workflows["arrival_s"] + workflows["critical_path_s"], start_s)
    bounds = {"path": float(path_s.max()) - start_s}
    work = _work_by_workflow(run.snapshot)
    capacity = run.snapshot.node_allocatable.sum(axis=0)
    for column, resource in enumerate(run.names.resources):
        if capacity[column] > 0:
            left_s = np.cumsum(work[::-1, column])[::-1] / capacity[column]
            end_s = np.where(left_s > 0, workflows["arrival_s"] + left_s, start_s)
            bounds[resource] = float(end_s.max()) - start_s
    binding = max(bounds, key=lambda name: bounds[name])
    return MakespanBound(bounds[binding], binding)


def _work_by_workflow(snapshot: Snapshot) -> Floats:
    """Request x workers x fastest runtime over the finished tasks of each workflow. (W, R)."""
    tasks = snapshot.tasks
    done: Any = tasks["state"] == FINISHED
    seconds = np.where(done, fastest_s(snapshot) * tasks["num_workers"], 0.0)
    work = seconds[:, None] * snapshot.shape_request[tasks["shape"]]
    return np.add.reduceat(work, snapshot.workflows["first_task"], axis=0)
