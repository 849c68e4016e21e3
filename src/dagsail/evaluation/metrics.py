"""Metrics: the numbers by which runs are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.clusters.simulated.world import EVICTED
from dagsail.domain.snapshot import CANCELLED, FINISHED, Snapshot
from dagsail.domain.units import CPU, MEMORY
from dagsail.evaluation import occupation as occupations
from dagsail.evaluation import soft_constraints
from dagsail.evaluation.aims import late_ratio
from dagsail.evaluation.bounds import makespan_bound
from dagsail.evaluation.waiting import queue_percentile, waits_s
from dagsail.evaluation.window import Window, whole_run

Floats = NDArray[np.float64]
Metrics = dict[str, float]
"""Values by name, in the order of `METRICS`; NaN where a run has nothing to measure."""
Better = Literal["lower", "higher", ""]

PRIORITIES: Final = (0, 1, 2, 3)
_TOLERANCE_S: Final = 1e-6
"""A deadline missed by less is met: times are sums of floating-point numbers."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What a number means."""

    name: str
    unit: str
    meaning: str
    better: Better = "lower"
    """Which direction is better; empty where neither is, or where it does not depend on policy."""


def _by_priority(name: str, unit: str, meaning: str, better: Better) -> Iterator[Metric]:
    yield Metric(name, unit, meaning, better)
    for priority in PRIORITIES:
        yield Metric(f"{name}_p{priority}", unit, f"{name} of priority P{priority}", better)


METRICS: Final = (
    Metric("jct_mean_s", "s", "mean job completion time: arrival to finish, finished workflows"),
    Metric("jct_p50_s", "s", "median of it"),
    Metric("jct_p95_s", "s", "95th percentile of it"),
    Metric("jct_bound_s", "s", "mean critical path on the fastest nodes, without transfers", ""),
    Metric("slowdown_mean", "ratio", "mean of completion time over own bound"),
    Metric("makespan_s", "s", "first arrival to last finish"),
    Metric("makespan_bound_s", "s", "what no schedule undercuts, by path or by work", ""),
    Metric("makespan_over_bound", "ratio", "makespan_s over makespan_bound_s"),
    Metric("wait_mean_s", "s", "mean time that a task is ready but not placed, over all attempts"),
    Metric("wait_p95_s", "s", "95th percentile of it"),
    *_by_priority("wait_max_s", "s", "longest of it", "lower"),
    Metric("queue_p95", "tasks", "ready tasks that wait: 95th percentile over time"),
    *_by_priority(
        "deadline_met_ratio",
        "ratio",
        "share of workflows with a deadline (own or of a task) that met all of them",
        "higher",
    ),
    Metric("late_ratio", "ratio", "late workflows over those with a deadline, weighted 4 3 2 1"),
    *_by_priority(
        "start_sla_ratio",
        "ratio",
        "share of workflows with a start deadline (own or of a task) that met all of them",
        "higher",
    ),
    Metric("failed_ratio", "ratio", "share of workflows cancelled after a task failed for good"),
    Metric("evictions", "attempts", "attempts that lost their node"),
    Metric("cost_usd", "USD", "dominant share of the node x its price x time, all attempts"),
    Metric("gpu_cost_usd", "USD", "part of cost_usd on nodes with GPUs"),
    Metric("cost_by_cpu_usd", "USD", "part of cost_usd where cpu is the dominant share", ""),
    Metric("cost_by_memory_usd", "USD", "part of cost_usd where memory is", ""),
    Metric("cost_by_devices_usd", "USD", "part of cost_usd where any other resource is", ""),
    Metric(
        "utilisation",
        "ratio",
        "share of the dominating resource held, over time; slow nodes hold it longer",
        "",
    ),
    Metric("node_load_std", "ratio", "spread of load over nodes (dominant share), over time"),
    Metric(
        "fragmentation",
        "ratio",
        "share of free dominating resource that typical requests cannot use, over time",
    ),
    Metric("soft_violation_ratio", "ratio", "share of grantable placement wishes ignored"),
    Metric(
        "tenant_fairness",
        "ratio",
        "Jain index of mean slowdowns of the tenants; 1 is even",
        "higher",
    ),
    Metric("decisions", "placements", "placements made", ""),
    Metric("decision_p50_ms", "ms", "median wall time of one placement"),
    Metric("decision_p99_ms", "ms", "99th percentile of it"),
)


def measure(run: Run, window: Window | None = None) -> Metrics:
    """All metrics of a run; those of decision time are NaN (see `evaluation.timing`).

    Averages over workflows and tasks leave out the warm-up, averages over time cover the window;
    makespan, cost, evictions and decisions are of the whole run.

    Args:
        run: finished.
        window: what to measure; the whole run if None.
    """
    window = whole_run(run) if window is None else window
    values = {
        **_completion(run, window),
        **_makespan(run),
        **_waiting(run, window),
        **_promises(run, window),
        **_resources(run, window),
        "soft_violation_ratio": soft_constraints.violation_ratio(run),
        "evictions": float((run.attempts["outcome"] == EVICTED).sum()),
        "decisions": float(run.num_decisions),
    }
    return {metric.name: values.get(metric.name, float("nan")) for metric in METRICS}


def _completion(run: Run, window: Window) -> Metrics:
    measured = run.snapshot.workflows[window.first_workflow :]
    done = measured[measured["state"] == FINISHED]
    jct_s = done["finish_s"] - done["arrival_s"]
    has_bound = done["critical_path_s"] > 0
    slowdown = jct_s[has_bound] / done["critical_path_s"][has_bound]
    return {
        "jct_mean_s": _mean(jct_s),
        "jct_p50_s": _percentile(jct_s, 50),
        "jct_p95_s": _percentile(jct_s, 95),
        "jct_bound_s": _mean(done["critical_path_s"]),
        "slowdown_mean": _mean(slowdown),
        "tenant_fairness": _jain(done["tenant"][has_bound], slowdown),
        "late_ratio": late_ratio(measured),
        "failed_ratio": float((measured["state"] == CANCELLED).mean()),
    }


def _makespan(run: Run) -> Metrics:
    workflows = run.snapshot.workflows
    makespan_s = float(workflows["finish_s"].max() - workflows["arrival_s"][0])
    bound_s = makespan_bound(run).seconds
    return {
        "makespan_s": makespan_s,
        "makespan_bound_s": bound_s,
        "makespan_over_bound": makespan_s / bound_s if bound_s > 0 else float("nan"),
    }


def _waiting(run: Run, window: Window) -> Metrics:
    first_task = int(run.snapshot.workflows["first_task"][window.first_workflow])
    waits = waits_s(run)[first_task:]
    priority = run.snapshot.tasks["priority"][first_task:]
    known = waits[np.isfinite(waits)]
    return {
        "wait_mean_s": _mean(known),
        "wait_p95_s": _percentile(known, 95),
        "wait_max_s": _largest(waits),
        **{f"wait_max_s_p{p}": _largest(waits[priority == p]) for p in PRIORITIES},
        "queue_p95": queue_percentile(run, window, 95),
    }


def _promises(run: Run, window: Window) -> Metrics:
    """A workflow keeps its promise if it and all of its tasks keep theirs."""
    tasks, workflows = run.snapshot.tasks, run.snapshot.workflows
    end_s = np.where(tasks["state"] == FINISHED, tasks["end_s"], np.inf)
    # Tasks carry the deadline of their workflow where their own is not earlier.
    has_deadline, met_deadline = _kept(workflows, end_s, tasks["deadline_s"])
    has_start, met_start = _kept(workflows, _first_starts_s(run), tasks["start_deadline_s"])
    has_start |= np.isfinite(workflows["start_deadline_s"])
    late = workflows["first_start_s"] > workflows["start_deadline_s"] + _TOLERANCE_S
    met_start &= ~late
    values: Metrics = {}
    for name, has, met in (
        ("deadline_met_ratio", has_deadline, met_deadline),
        ("start_sla_ratio", has_start, met_start),
    ):
        has[: window.first_workflow] = False
        values[name] = _mean(met[has])
        for p in PRIORITIES:
            values[f"{name}_p{p}"] = _mean(met[has & (workflows["priority"] == p)])
    return values


def _kept(workflows: Any, time_s: Floats, limit_s: Floats) -> tuple[Any, Any]:
    """Which workflows have a task with a limit, and in which no task is past its limit. (W,)."""
    has_limit = np.isfinite(limit_s)
    is_late = has_limit & (time_s > limit_s + _TOLERANCE_S)
    first = workflows["first_task"]
    return np.logical_or.reduceat(has_limit, first), ~np.logical_or.reduceat(is_late, first)


def _first_starts_s(run: Run) -> Floats:
    """When the first attempt of each task was placed; inf if none was. (T,)."""
    starts = np.full(len(run.snapshot.tasks), np.inf)
    np.minimum.at(starts, run.attempts["task"], run.attempts["start_s"])
    return starts


def _resources(run: Run, window: Window) -> Metrics:
    snapshot: Snapshot = run.snapshot
    held = occupations.occupation(run)
    resource = occupations.dominating_resource(snapshot)
    changes = occupations.steps(held, len(snapshot.nodes), window)
    costs = occupations.costs(held, snapshot)
    columns = [run.names.resources.index(name) for name in (CPU, MEMORY)]
    by_cpu, by_memory = costs.by_resource_usd[columns].tolist()
    return {
        "cost_usd": costs.total_usd,
        "gpu_cost_usd": costs.gpu_nodes_usd,
        "cost_by_cpu_usd": by_cpu,
        "cost_by_memory_usd": by_memory,
        "cost_by_devices_usd": float(np.delete(costs.by_resource_usd, columns).sum()),
        "utilisation": occupations.utilisation(changes, snapshot, resource),
        "node_load_std": occupations.node_load_std(changes, snapshot),
        "fragmentation": occupations.fragmentation(changes, snapshot, resource),
    }


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _percentile(values: Any, percent: float) -> float:
    return float(np.percentile(values, percent)) if len(values) else float("nan")


def _largest(values: Floats) -> float:
    return float(np.fmax.reduce(values)) if len(values) else float("nan")


def _jain(tenant: Any, slowdown: Floats) -> float:
    """Jain, Chiu and Hawe, "A quantitative measure of fairness", DEC TR-301, 1984."""
    distinct, position = np.unique(tenant, return_inverse=True)
    if len(distinct) < 2:
        return float("nan")
    position = position.reshape(-1)
    means = np.bincount(position, slowdown) / np.bincount(position)
    return float(means.sum() ** 2 / (len(means) * (means**2).sum()))
