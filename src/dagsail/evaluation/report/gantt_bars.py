"""Gantt bars: every attempt as one bar, side by side with those that ran at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Run
from dagsail.clusters.simulated.world import FINISHED, OUTCOMES
from dagsail.domain.units import EPHEMERAL_STORAGE, MEMORY, format_bytes
from dagsail.evaluation.occupation import Occupation
from dagsail.evaluation.report.chart_data import PALETTE, legend_above, rows, time_unit
from dagsail.evaluation.report.gantt_frame import GAP_PX, Frame, in_frame, node_axis, time_axis
from dagsail.evaluation.report.lanes import pack_lanes
from dagsail.evaluation.window import whole_run

if TYPE_CHECKING:
    import altair as alt

Floats = NDArray[np.float64]

_HEIGHT_PX: Final = 900
_LANE_PX: Final = (3.0, 14.0)
_LABEL_PX: Final = 12.0
_OUTCOME_HUES: Final = {"failed": "#e45756", "evicted": "#f58518", "cancelled": "#b5a642"}
_WORKFLOW_HUES: Final = tuple(h for h in PALETTE if h not in _OUTCOME_HUES.values())
"""Few enough workflows have one each and a legend; more of them share hues."""


def place(run: Run, held: Occupation) -> tuple[Frame, Floats]:
    """Rows for the nodes that ran something, and the top of each bar, in lanes. (K,)."""
    lane = pack_lanes(held.node, held.start_s, held.end_s)
    node, position = np.unique(held.node, return_inverse=True)
    lanes = np.zeros(len(node), np.int64)
    np.maximum.at(lanes, position, lane + 1)
    lane_px = float(np.clip(_HEIGHT_PX / max(lanes.sum(), 1), *_LANE_PX))
    size = np.maximum(lanes, _LABEL_PX / lane_px) + GAP_PX / lane_px
    top = np.cumsum(size) - size
    names = [run.names.nodes[i] for i in node.tolist()]
    return Frame(names, top, size, lane_px), top[position] + lane


def bars(run: Run, held: Occupation, frame: Frame, top: Floats) -> alt.LayerChart:
    """One bar for each worker of each attempt, from its placement to its end."""
    import altair as alt

    window = whole_run(run)
    unit = time_unit(window.end_s)
    is_named = len(run.names.workflows) <= len(_WORKFLOW_HUES)
    height = 0.85 if frame.lane_px > 5 else 1.0
    columns = {
        **_columns(run, held, is_named=is_named),
        "top": np.round(top, 3).tolist(),
        "bottom": np.round(top + height, 3).tolist(),
    }
    hover = alt.selection_point(on="pointerover", fields=["workflow"])
    chart = (
        alt.Chart(rows(columns))
        .transform_calculate(
            start=f"datum.start_s / {unit.seconds:g}", end=f"datum.end_s / {unit.seconds:g}"
        )
        .mark_rect()
        .encode(
            x=time_axis(window.start_s, window.end_s, unit),
            x2="end:Q",
            y=node_axis(frame),
            y2="bottom:Q",
            color=_color(run, held, is_named=is_named),
            opacity=alt.condition(hover, alt.value(1.0), alt.value(0.2)),
            tooltip=[
                *("workflow:N", "task:N", "attempt:Q", "outcome:N"),
                alt.Tooltip("start_s:Q", title="start (s)", format=",.3~f"),
                alt.Tooltip("end_s:Q", title="end (s)", format=",.3~f"),
                *("request:N", "node:N"),
            ],
        )
        .add_params(hover)
    )
    return in_frame(chart, frame, run.policy, _subtitle(run, frame, is_named=is_named))


def _subtitle(run: Run, frame: Frame, *, is_named: bool) -> list[str]:
    lines = ["from placement to end of each attempt; a colour for each workflow"]
    lines[0] += "" if is_named else " (repeating)"
    idle = len(run.names.nodes) - len(frame.names)
    if idle:
        lines.append(f"{idle} of {len(run.names.nodes)} nodes ran nothing and are left out")
    return lines


def _columns(run: Run, held: Occupation, *, is_named: bool) -> dict[str, list[Any]]:
    attempts = run.attempts[held.attempt]
    workflow = run.snapshot.tasks["workflow"][attempts["task"]]
    workflows = np.array(run.names.workflows)[workflow]
    hue = workflows if is_named else _shared_hue_names()[workflow % len(_WORKFLOW_HUES)]
    outcome = np.array(OUTCOMES)[attempts["outcome"]]
    requests = np.array([_request(run.names.resources, r) for r in run.snapshot.shape_request])
    columns = {
        "workflow": workflows,
        "task": np.array(run.names.tasks)[attempts["task"]],
        "attempt": attempts["attempt"],
        "outcome": outcome,
        "colour": np.where(attempts["outcome"] == FINISHED, hue, outcome),
        "start_s": np.round(held.start_s, 3),
        "end_s": np.round(held.end_s, 3),
        "request": requests[attempts["shape"]],
        "node": np.array(run.names.nodes)[held.node],
    }
    return {name: values.tolist() for name, values in columns.items()}


def _shared_hue_names() -> Any:
    return np.array([f"hue {i}" for i in range(len(_WORKFLOW_HUES))])


def _request(resources: tuple[str, ...], amounts: Any) -> str:
    texts = []
    for name, amount in zip(resources, amounts.tolist(), strict=True):
        if name == "cpu":
            texts.append(f"cpu {amount / 1000:g}")
        elif amount:
            is_bytes = name in (MEMORY, EPHEMERAL_STORAGE)
            texts.append(f"{name} {format_bytes(amount) if is_bytes else amount}")
    return ", ".join(texts)


def _color(run: Run, held: Occupation, *, is_named: bool) -> alt.Color:
    import altair as alt

    seen = np.unique(run.attempts["outcome"][held.attempt]).tolist()
    outcomes = [OUTCOMES[code] for code in seen if code != FINISHED]
    names = list(run.names.workflows) if is_named else _shared_hue_names().tolist()
    hues = [*_WORKFLOW_HUES[: len(names)], *(_OUTCOME_HUES[name] for name in outcomes)]
    shown = [*(names if is_named else ()), *outcomes]
    return alt.Color(
        "colour:N",
        title=None,
        scale=alt.Scale(domain=[*names, *outcomes], range=hues),
        legend=legend_above(values=shown) if shown else None,
    )
