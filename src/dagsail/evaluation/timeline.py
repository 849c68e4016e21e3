"""Timeline: what ran where and when, one plain object for each attempt of each task."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dagsail.clusters.simulated.cluster import Run
from dagsail.clusters.simulated.world import OUTCOMES
from dagsail.files import writing


def timeline(run: Run) -> Iterator[dict[str, Any]]:
    """One object for each attempt, in order of ending; numbers are finite, absence is None.

    `attempt` counts from 0. `request` is what lies on `node`; an attempt of several workers also
    has `workers`, one `{"node", "request"}` each, the one on `node` included. `estimate_s` is the
    expected run time on `node` (of the slowest worker; the mean over possible nodes if there is
    none), without start-up, data and communication. `ready_s`, `start_s` and `node` are None for
    a task that was cancelled before it came that far. Amounts are in the units of the cluster's
    `allocatable`.
    """
    tasks, names = run.snapshot.tasks, run.names
    arrival_s = run.snapshot.workflows["arrival_s"].tolist()
    workflow_of = tasks["workflow"].tolist()
    workers_of = tasks["num_workers"].tolist()
    parents = run.snapshot.parents["task"].tolist()
    parent_start, parent_end = tasks["parent_start"].tolist(), tasks["parent_end"].tolist()
    requests = [_request(names.resources, row) for row in run.snapshot.shape_request.tolist()]
    estimates_s = _estimates_s(run).tolist()
    for row, estimate_s in zip(run.attempts.tolist(), estimates_s, strict=True):
        task, attempt, node, shape, outcome, worker_start, ready_s, start_s, end_s = row
        workflow = workflow_of[task]
        nodes = [node]
        if node >= 0 and workers_of[task] > 1:
            slots = slice(worker_start, worker_start + workers_of[task])
            nodes = run.attempt_workers[slots].tolist()
        on_node = nodes.count(node)
        entry = {
            "workflow": names.workflows[workflow],
            "task": names.tasks[task],
            "attempt": attempt,
            "parents": [names.tasks[p] for p in parents[parent_start[task] : parent_end[task]]],
            "node": names.nodes[node] if node >= 0 else None,
            "submitted_s": arrival_s[workflow],
            "ready_s": _finite(ready_s),
            "start_s": _finite(start_s),
            "end_s": end_s,
            "outcome": OUTCOMES[outcome],
            "request": {name: amount * on_node for name, amount in requests[shape].items()},
            "estimate_s": estimate_s,
        }
        if len(nodes) > 1:
            entry["workers"] = [
                {"node": names.nodes[other], "request": requests[shape]} for other in nodes
            ]
        yield entry


def write_timeline(run: Run, path: Path) -> None:
    """Write the timeline as JSON lines; the same run gives the same bytes.

    Raises:
        OutputError: if the file cannot be written.
    """
    import msgspec

    encoder = msgspec.json.Encoder()
    with writing(path, "wb") as stream:
        for entry in timeline(run):
            stream.write(encoder.encode(entry))
            stream.write(b"\n")


def _request(resources: tuple[str, ...], amounts: list[int]) -> dict[str, int]:
    return {name: amount for name, amount in zip(resources, amounts, strict=True) if amount}


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _estimates_s(run: Run) -> Any:
    """Expected run time of each attempt. float64 (A,)."""
    snapshot, attempts = run.snapshot, run.attempts
    tasks = snapshot.tasks[attempts["task"]]
    on_node = snapshot.runtime_factor[:, snapshot.nodes["type"]]
    estimate_s = tasks["estimate_s"] * on_node[tasks["runtime_row"], attempts["node"]]
    estimate_s[attempts["node"] < 0] = tasks["mean_s"][attempts["node"] < 0]
    for row in np.flatnonzero((tasks["num_workers"] > 1) & (attempts["node"] >= 0)):
        first, count = attempts["worker_start"][row], tasks["num_workers"][row]
        nodes = run.attempt_workers[first : first + count]
        slowest = on_node[tasks["runtime_row"][row], nodes].max()
        estimate_s[row] = tasks["estimate_s"][row] * slowest
    return estimate_s
