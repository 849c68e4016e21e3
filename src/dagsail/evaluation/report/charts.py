"""Charts that compare policies: completion times, deadlines, cost and waits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.snapshot import FINISHED
from dagsail.evaluation.metrics import PRIORITIES
from dagsail.evaluation.report.chart_data import (
    WIDTH,
    legend_above,
    logarithmic,
    policy_color,
    rows,
    time_unit,
    titled,
)
from dagsail.evaluation.waiting import waits_s
from dagsail.evaluation.window import steady_window

if TYPE_CHECKING:
    import altair as alt

Floats = NDArray[np.float64]

_ROW_PX: Final = 24
_MAX_POINTS: Final = 400
_DASHES: Final = ([1, 0], [7, 2], [2, 2])
"""Where curves lie on each other, the gaps show the one below."""
_PRIORITY_HUES: Final = ("#c8323c", "#e8862e", "#4c78a8", "#8fa3ad")
_COST_HUES: Final = {"nodes without GPU": "#4c78a8", "nodes with GPU": "#54a24b"}


def jct_distribution(runs: Mapping[str, Run]) -> alt.Chart:
    """Share of all workflows that finished within a time of their arrival, by policy.

    A curve ends below 1 where workflows failed. Of many workflows, `_MAX_POINTS` are drawn.

    Args:
        runs: of the same workflows, by the name to show.
    """
    import altair as alt

    curves = {name: _curve(run) for name, run in runs.items()}
    longest_s = max((float(jct_s.max()) for jct_s, _ in curves.values() if len(jct_s)), default=0)
    unit = time_unit(longest_s / 10)
    times = [t for jct_s, _ in curves.values() for t in (jct_s / unit.seconds).tolist()]
    data = rows(
        {
            "policy": [name for name, (jct_s, _) in curves.items() for _ in jct_s],
            "jct": [round(t, 6) for t in times],
            "share": [round(s, 4) for _, share in curves.values() for s in share.tolist()],
        }
    )
    is_log = logarithmic(times) and min(times) > 0
    chosen = alt.selection_point(fields=["policy"], bind="legend")
    dashes = [_DASHES[i % len(_DASHES)] for i in range(len(runs))]
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X(
                "jct:Q",
                title=f"completion time ({unit.name}{', log scale' if is_log else ''})",
                scale=alt.Scale(type="log" if is_log else "linear", nice=False),
                axis=alt.Axis(gridOpacity=0.4),
            ),
            y=alt.Y(
                "share:Q",
                title="share of workflows",
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%"),
            ),
            color=policy_color(list(runs)),
            strokeDash=alt.StrokeDash(
                "policy:N",
                title=None,
                scale=alt.Scale(domain=list(runs), range=dashes),
                legend=legend_above(),
            ),
            opacity=alt.condition(chosen, alt.value(1.0), alt.value(0.1)),
            tooltip=["policy:N", alt.Tooltip("jct:Q", title=f"within ({unit.name})"), "share:Q"],
        )
        .add_params(chosen)
        .properties(width=WIDTH, height=300, title=titled("Completion times"))
    )
    return chart


def _curve(run: Run) -> tuple[Floats, Floats]:
    """Completion times, ascending, and the share of all workflows done by then."""
    workflows = run.snapshot.workflows
    done = workflows[workflows["state"] == FINISHED]
    jct_s = np.sort(done["finish_s"] - done["arrival_s"])
    share = np.arange(1, len(jct_s) + 1) / len(workflows)
    if len(jct_s) > _MAX_POINTS:
        kept = np.linspace(0, len(jct_s) - 1, _MAX_POINTS).round().astype(np.int64)
        jct_s, share = jct_s[kept], share[kept]
    return jct_s, share


def deadlines_by_priority(
    policies: Mapping[str, Mapping[str, Any]], run: Run
) -> alt.LayerChart | None:
    """Share of workflows that met all their deadlines, by priority and policy, with intervals.

    Args:
        policies: `Comparison.to_json()["policies"]`, in the order to draw.
        run: one of them; how many of its workflows have a deadline stands below the bars.

    Returns:
        None if no workflow has a deadline.
    """
    import altair as alt

    columns: dict[str, list[Any]] = {k: [] for k in ("policy", "priority", "met", "low", "high")}
    counts = _with_deadline(run)
    for name, metrics in policies.items():
        for priority in PRIORITIES:
            estimate = metrics[f"deadline_met_ratio_p{priority}"]
            if estimate["mean"] is None:
                continue
            low, high = estimate["ci95"] or (estimate["mean"],) * 2
            label = f"P{priority} (n = {counts[priority]})"
            for key, value in zip(columns, (name, label, estimate["mean"], low, high), strict=True):
                columns[key].append(round(value, 4) if isinstance(value, float) else value)
    if not columns["met"]:
        return None
    data = rows(columns)
    x = alt.X("priority:N", title=None, axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("policy:N", sort=list(policies))
    bars = (
        alt.Chart(data)
        .mark_bar()
        .encode(
            x=x,
            xOffset=offset,
            y=alt.Y(
                "met:Q",
                title="deadlines met",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=policy_color(list(policies)),
            tooltip=[
                "policy:N",
                "priority:N",
                *(alt.Tooltip(f"{k}:Q", format=".1%") for k in ("met", "low", "high")),
            ],
        )
    )
    # Dark on light, to be seen on any bar and on any background.
    intervals = (
        alt.Chart(data)
        .mark_rule(color=color, strokeWidth=width)
        .encode(x=x, xOffset=offset, y="low:Q", y2="high:Q")
        for color, width in (("#ffffff", 4.0), ("#222222", 1.5))
    )
    return alt.LayerChart(
        layer=[bars, *intervals],
        width=WIDTH,
        height=260,
        title=titled("Deadlines met by priority"),
    )


def _with_deadline(run: Run) -> list[int]:
    """How many measured workflows of each priority have a deadline, own or of a task. (4,)."""
    workflows = run.snapshot.workflows
    has = np.logical_or.reduceat(
        np.isfinite(run.snapshot.tasks["deadline_s"]), workflows["first_task"]
    )
    has[: steady_window(run).first_workflow] = False
    counts: list[int] = np.bincount(workflows["priority"][has], minlength=len(PRIORITIES)).tolist()
    return counts


def costs(policies: Mapping[str, Mapping[str, Any]]) -> alt.Chart | None:
    """Mean cost of a run by policy, split into nodes with and without GPU.

    Args:
        policies: `Comparison.to_json()["policies"]`, in the order to draw.

    Returns:
        None if the nodes have no price.
    """
    import altair as alt

    columns: dict[str, list[Any]] = {"policy": [], "part": [], "usd": []}
    for name, metrics in policies.items():
        total, gpu = (metrics[key]["mean"] or 0.0 for key in ("cost_usd", "gpu_cost_usd"))
        columns["policy"] += [name, name]
        columns["part"] += _COST_HUES
        columns["usd"] += [round(total - gpu, 4), round(gpu, 4)]
    if not any(columns["usd"]):
        return None
    chart: alt.Chart = (
        alt.Chart(rows(columns))
        .mark_bar()
        .encode(
            y=alt.Y("policy:N", sort=list(policies), title=None),
            x=alt.X("usd:Q", title="USD"),
            color=alt.Color(
                "part:N",
                title=None,
                scale=alt.Scale(domain=list(_COST_HUES), range=list(_COST_HUES.values())),
                legend=legend_above(),
            ),
            tooltip=["policy:N", "part:N", alt.Tooltip("usd:Q", format=",.2f")],
        )
        .properties(width=WIDTH, height=_ROW_PX * len(policies), title=titled("Cost"))
    )
    return chart


def waits_by_priority(runs: Mapping[str, Run]) -> alt.LayerChart:
    """How long tasks waited, by policy and priority: a dot at the mean, a line to the 95th.

    Args:
        runs: of the same workflows, by the name to show.
    """
    import altair as alt

    found = [
        (name, f"P{priority}", *_mean_and_p95(waits))
        for name, run in runs.items()
        for priority, waits in _waits(run)
    ]
    unit = time_unit(max((high for *_, high in found), default=0.0) / 10)
    values = [time_s / unit.seconds for *_, mean, high in found for time_s in (mean, high)]
    data = rows(
        {
            "policy": [row[0] for row in found],
            "priority": [row[1] for row in found],
            "mean": [round(mean, 5) for mean in values[::2]],
            "high": [round(high, 5) for high in values[1::2]],
        }
    )
    is_log = logarithmic(values)
    title = f"wait ({unit.name}{', log scale' if is_log else ''})"
    y = alt.Y("policy:N", sort=list(runs), title=None)
    offset = alt.YOffset("priority:N", sort="ascending")
    color = alt.Color(
        "priority:N",
        title=None,
        scale=alt.Scale(domain=[f"P{p}" for p in PRIORITIES], range=list(_PRIORITY_HUES)),
        legend=legend_above(),
    )
    x = alt.X("mean:Q", title=title)
    if is_log:
        shortest = min(value for value in values if value > 0)
        x = alt.X(
            "mean:Q",
            title=title,
            # Linear up to the shortest wait, so that 0 has a place.
            scale=alt.Scale(type="symlog", constant=shortest, nice=False),
            axis=alt.Axis(values=[0.0, *_decades(shortest, max(values))], format=".4~g"),
        )
    base = alt.Chart(data).encode(
        y=y,
        yOffset=offset,
        color=color,
        tooltip=[
            "policy:N",
            "priority:N",
            alt.Tooltip("mean:Q", title=f"mean ({unit.name})", format=".4~g"),
            alt.Tooltip("high:Q", title=f"95th percentile ({unit.name})", format=".4~g"),
        ],
    )
    return alt.LayerChart(
        layer=[
            base.mark_rule(strokeWidth=1.5).encode(x=x, x2="high:Q"),
            base.mark_tick(thickness=1.5, size=7, opacity=1).encode(x=alt.X("high:Q")),
            base.mark_point(filled=True, size=45, opacity=1).encode(x=x),
        ],
        width=WIDTH,
        height=2 * _ROW_PX * len(runs),
        title=titled("Waiting by priority"),
    )


def _decades(low: float, high: float) -> list[float]:
    """Powers of ten between two positive values, and the one below."""
    return [10.0**i for i in range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)]


def _waits(run: Run) -> Iterable[tuple[int, Floats]]:
    """Waits of the tasks of each priority that has any."""
    waits, priority = waits_s(run), run.snapshot.tasks["priority"]
    for p in PRIORITIES:
        of_priority = waits[(priority == p) & np.isfinite(waits)]
        if len(of_priority):
            yield p, of_priority


def _mean_and_p95(waits: Floats) -> tuple[float, float]:
    return float(waits.mean()), float(np.percentile(waits, 95))
