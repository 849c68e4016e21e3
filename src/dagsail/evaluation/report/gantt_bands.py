"""Gantt bands: how full every node was, for runs of more attempts than a picture can show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dagsail.clusters.simulated.cluster import Run
from dagsail.evaluation.report.chart_data import PALETTE, SEAM_PX, rows, time_unit
from dagsail.evaluation.report.gantt_frame import Frame, in_frame, node_axis, time_axis
from dagsail.evaluation.report.usage import usage_of

if TYPE_CHECKING:
    import altair as alt

MAX_ROWS: Final = 60
NUM_STRETCHES: Final = 200
_ROW_PX: Final = 22.0


def bands(run: Run, reason: str) -> alt.LayerChart:
    """One band a node, as high as the share of its dominant resource in use.

    Args:
        run: finished.
        reason: why there are bands instead of bars; goes into the title.
    """
    import altair as alt

    use = usage_of(run, MAX_ROWS, NUM_STRETCHES)
    unit = time_unit(float(use.edges_s[-1]))
    frame = Frame(
        use.rows, np.arange(len(use.rows), dtype=np.float64), np.ones(len(use.rows)), _ROW_PX
    )
    row, stretch = np.nonzero(use.ratio > 0)
    ratio = use.ratio[row, stretch]
    edges = use.edges_s / unit.seconds
    columns = {
        "node": np.array(use.rows)[row].tolist(),
        "start": np.round(edges[stretch], 4).tolist(),
        "end": np.round(edges[stretch + 1], 4).tolist(),
        "use": np.round(ratio, 3).tolist(),
        "top": np.round(row + 0.95 - 0.9 * ratio.clip(0.0, 1.0), 3).tolist(),
        "bottom": (row + 0.95).tolist(),
    }
    chart = (
        alt.Chart(rows(columns))
        .mark_rect(color=PALETTE[0], x2Offset=SEAM_PX)
        .encode(
            x=time_axis(float(use.edges_s[0]), float(use.edges_s[-1]), unit),
            x2="end:Q",
            y=node_axis(frame),
            y2="bottom:Q",
            tooltip=[
                "node:N",
                alt.Tooltip("start:Q", title=f"from ({unit.name})", format=".4~f"),
                alt.Tooltip("end:Q", title=f"to ({unit.name})", format=".4~f"),
                alt.Tooltip("use:Q", title="in use", format=".1%"),
            ],
        )
    )
    height = "height of a band: share of the dominant resource in use"
    if use.nodes_a_row > 1:
        height += f"; each row is the mean of {use.nodes_a_row} of {len(run.names.nodes)} nodes"
    return in_frame(chart, frame, run.policy, [reason, height])
