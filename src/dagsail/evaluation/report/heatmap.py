"""Heat map: how full every node was over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from dagsail.clusters.simulated.cluster import Run
from dagsail.evaluation.report.chart_data import SEAM_PX, WIDTH, rows, time_unit, titled
from dagsail.evaluation.report.usage import usage_of

if TYPE_CHECKING:
    import altair as alt

MAX_ROWS: Final = 60
NUM_STRETCHES: Final = 120
_ROW_PX: Final = 16


def use_heatmap(run: Run) -> alt.Chart:
    """Nodes x time, coloured by the share of the node's dominant resource that tasks hold.

    Above `MAX_ROWS` nodes, a row is the mean over neighbours; the subtitle says so.
    """
    import altair as alt

    use = usage_of(run, MAX_ROWS, NUM_STRETCHES)
    unit = time_unit(float(use.edges_s[-1]))
    edges = np.round(use.edges_s / unit.seconds, 4)
    num_rows = len(use.rows)
    data = rows(
        {
            "node": np.repeat(use.rows, NUM_STRETCHES).tolist(),
            "start": np.tile(edges[:-1], num_rows).tolist(),
            "end": np.tile(edges[1:], num_rows).tolist(),
            "use": np.round(use.ratio, 3).reshape(-1).tolist(),
            "resource": np.array(run.names.resources)[use.resource.reshape(-1)].tolist(),
        }
    )
    subtitle = "share of the dominant resource that running tasks requested"
    if use.nodes_a_row > 1:
        subtitle += f"; {len(run.names.nodes)} nodes, each row the mean of {use.nodes_a_row}"
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_rect(x2Offset=SEAM_PX)
        .encode(
            x=alt.X(
                "start:Q",
                title=f"time ({unit.name})",
                scale=alt.Scale(domain=[float(edges[0]), float(edges[-1])], nice=False),
                axis=alt.Axis(grid=False),
            ),
            x2="end:Q",
            y=alt.Y("node:N", sort=None, title=None, axis=alt.Axis(labelLimit=130)),
            color=alt.Color(
                "use:Q",
                title="in use",
                scale=alt.Scale(domain=[0, 1], scheme="viridis", clamp=True),
                legend=alt.Legend(format=".0%", orient="top", gradientLength=160),
            ),
            tooltip=[
                alt.Tooltip("node:N"),
                alt.Tooltip("start:Q", title=f"from ({unit.name})", format=".4~f"),
                alt.Tooltip("end:Q", title=f"to ({unit.name})", format=".4~f"),
                alt.Tooltip("use:Q", title="in use", format=".1%"),
                alt.Tooltip("resource:N", title="dominant"),
            ],
        )
        .properties(
            width=WIDTH,
            height=_ROW_PX * num_rows,
            title=titled(f"Node use over time: {run.policy}", [subtitle]),
        )
    )
    return chart
