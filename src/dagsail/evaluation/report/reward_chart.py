"""Reward chart: what each decision of a run brought about, term by term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.evaluation.report.chart_data import PALETTE, WIDTH, legend_above, rows, titled

if TYPE_CHECKING:
    import altair as alt

Floats = NDArray[np.float64]

MAX_DECISIONS: Final = 1500
"""So many are drawn, the first ones."""
_HUES: Final = (*PALETTE, "#ff9da6", "#79706e", "#bab0ac", "#88d27a", "#83bcb6", "#439894")


def reward_chart(
    title: str,
    terms: Sequence[str],
    decisions: Sequence[tuple[float, str, str]],
    values: Floats,
    parts: Floats,
) -> alt.VConcatChart:
    """Sums of the terms so far, and below them a picture of each decision in the chosen range.

    Args:
        title: of the whole.
        terms: names.
        decisions: time in seconds, task and node of each.
        values: of each decision and term. (D, T)
        parts: times the weights; colours show them, or the values where nothing is weighed. (D, T)
    """
    import altair as alt

    shown = slice(0, MAX_DECISIONS)
    values, parts = values[shown], parts[shown]
    used = [index for index in range(len(terms)) if np.any(values[:, index])]
    data = _data(terms, decisions[shown], values, parts, used)
    brush = alt.selection_interval(encodings=["x"])
    names = [terms[index] for index in used]
    sums = (
        alt.Chart(data, width=WIDTH, height=200)
        .mark_line(interpolate="step-after")
        .encode(
            x=alt.X(
                "decision:Q",
                title="decision (drag to choose those below)",
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y("so_far:Q", title="share of the term's sum"),
            color=alt.Color(
                "term:N",
                title=None,
                scale=alt.Scale(domain=names, range=list(_HUES[: len(names)])),
                legend=legend_above(),
            ),
        )
        .add_params(brush)
        .properties(title=titled(title, _subtitle(len(decisions))))
    )
    picture = (
        alt.Chart(data, width=WIDTH, height=22 * len(used))
        .mark_rect()
        .encode(
            x=alt.X("decision:O", title=None, axis=alt.Axis(labels=False, ticks=False)),
            y=alt.Y("term:N", title=None, sort=names),
            color=alt.Color(
                "strength:Q",
                title="of the term's largest",
                scale=alt.Scale(scheme="redblue", domain=[-1, 1]),
                legend=alt.Legend(orient="bottom"),
            ),
            tooltip=[
                alt.Tooltip("decision:Q"),
                alt.Tooltip("time:Q", title="time, s"),
                alt.Tooltip("task:N"),
                alt.Tooltip("node:N"),
                alt.Tooltip("term:N"),
                alt.Tooltip("value:Q", format=".4g"),
                alt.Tooltip("weighted:Q", format=".4g"),
            ],
        )
        .transform_filter(brush)
    )
    both: alt.VConcatChart = alt.vconcat(sums, picture).resolve_scale(color="independent")
    return both


def _subtitle(count: int) -> list[str]:
    drawn = f"the first {MAX_DECISIONS:,} of {count:,} decisions" if count > MAX_DECISIONS else ""
    return [drawn] if drawn else []


def _data(
    terms: Sequence[str],
    decisions: Sequence[tuple[float, str, str]],
    values: Floats,
    parts: Floats,
    used: Sequence[int],
) -> Any:
    count = len(decisions)
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "decision",
            "time",
            "task",
            "node",
            "term",
            "value",
            "weighted",
            "strength",
            "so_far",
        )
    }
    for index in used:
        value = values[:, index]
        total = max(float(np.abs(value).sum()), 1e-12)
        columns["decision"] += range(1, count + 1)
        columns["time"] += [round(time_s, 3) for time_s, _, _ in decisions]
        columns["task"] += [task for _, task, _ in decisions]
        columns["node"] += [node for _, _, node in decisions]
        columns["term"] += [terms[index]] * count
        columns["value"] += [float(f"{one:.6g}") for one in value]
        columns["weighted"] += [float(f"{one:.6g}") for one in parts[:, index]]
        columns["strength"] += [round(float(one), 4) for one in value / np.abs(value).max()]
        columns["so_far"] += [round(float(one), 5) for one in np.cumsum(value) / total]
    return rows(columns)
