"""What is kept and shown of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dagsail.commands.output import console, table, warn, write_json
from dagsail.commands.values import plural, shown

if TYPE_CHECKING:
    from dagsail.clusters.simulated.cluster import Run
    from dagsail.evaluation.load import Load

_SHOWN: Final = (
    "makespan_s",
    "makespan_over_bound",
    "jct_mean_s",
    "jct_p95_s",
    "jct_bound_s",
    "slowdown_mean",
    "wait_mean_s",
    "wait_p95_s",
    "deadline_met_ratio",
    "start_sla_ratio",
    "failed_ratio",
    "evictions",
    "utilisation",
    "node_load_std",
    "fragmentation",
    "cost_usd",
    "gpu_cost_usd",
)


def keep(
    run: Run,
    warnings: Sequence[str],
    *,
    timeline: Path | None,
    gantt: Path | None,
    json_target: Path | str | None,
) -> None:
    """Write what was asked for, and print the metrics."""
    if timeline is not None:
        from dagsail.evaluation.timeline import write_timeline

        write_timeline(run, timeline)
    if gantt is not None:
        from dagsail.evaluation.report.gantt import write_gantt

        write_gantt(run, gantt)
    _show(run, warnings, json_target)
    if json_target != "-":
        for path in (timeline, gantt, json_target):
            if path is not None:
                click.echo(f"written: {path}")


def _show(run: Run, warnings: Sequence[str], json_target: Path | str | None) -> None:
    """Print the metrics of a run as a table, or write them as JSON."""
    from dagsail.evaluation.load import load_of, load_warnings
    from dagsail.evaluation.metrics import METRICS, measure
    from dagsail.evaluation.window import steady_window

    window = steady_window(run)
    metrics, load = measure(run, window), load_of(run, window)
    # That nothing waits makes policies look alike: a matter of comparisons, not of one run.
    said = [line for line in load_warnings({run.policy: [load]}) if not line.startswith("no queue")]
    warn(said)
    document = {
        "policy": run.policy,
        "cluster": run.cluster.name,
        "scenario": run.scenario.name,
        "seed": run.seed,
        "workflows": len(run.arrivals),
        "tasks": len(run.snapshot.tasks),
        "offered_load": load.offered,
        "dominating": load.dominating,
        "metrics": metrics,
        "warnings": [*warnings, *said],
    }
    if json_target is not None:
        write_json(document, json_target)
    if json_target == "-":
        return
    rows = [
        (metric.name, shown(metrics[metric.name], metric.unit), metric.meaning)
        for metric in METRICS
        if metric.name in _SHOWN and math.isfinite(metrics[metric.name])
    ]
    console().print(table(_title(run, load), ("Metric", ">Value", "Meaning"), rows))


def _title(run: Run, load: Load) -> str:
    nodes, workflows, tasks = len(run.cluster.nodes), len(run.arrivals), len(run.snapshot.tasks)
    offered = "" if load.offered is None else f", offered load {load.offered:.2f}"
    return (
        f"{run.policy} on {run.cluster.name} ({plural(nodes, 'node')}):"
        f" {plural(workflows, 'workflow')}, {plural(tasks, 'task')},"
        f" arrivals {run.scenario.arrivals.kind}{offered}, seed {run.seed}"
    )
