"""Gantt frame: what both kinds of Gantt chart share: time across, rows of nodes down."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dagsail.evaluation.report.chart_data import WIDTH, TimeUnit, rows, titled

if TYPE_CHECKING:
    import altair as alt

Floats = NDArray[np.float64]

GAP_PX: Final = 3.0
"""Between the rows of two nodes; part of the upper one."""


class Frame(NamedTuple):
    """Where the rows of each node are. Heights count in lanes; U nodes.

    Attributes:
        names: of the nodes, from top to bottom. (U,)
        top, size: of the rows of each node. (U,)
        lane_px: pixels of one lane.
    """

    names: Sequence[str]
    top: Floats
    size: Floats
    lane_px: float

    @property
    def lanes(self) -> float:
        """Height of all rows."""
        return float(self.top[-1] + self.size[-1]) if len(self.top) else 1.0

    @property
    def height_px(self) -> int:
        """The same in pixels."""
        return round(self.lanes * self.lane_px)


def time_axis(start_s: float, end_s: float, unit: TimeUnit) -> alt.X:
    """Field `start`, in the unit."""
    import altair as alt

    domain = [start_s / unit.seconds, end_s / unit.seconds]
    return alt.X(
        "start:Q",
        title=f"time ({unit.name})",
        scale=alt.Scale(domain=domain, nice=False),
        axis=alt.Axis(gridOpacity=0.4),
    )


def node_axis(frame: Frame) -> alt.Y:
    """Field `top`, in lanes; each node is named in the middle of its rows."""
    import altair as alt

    middles = np.round(frame.top + frame.size / 2, 3).tolist()
    names = json.dumps(list(frame.names))
    return alt.Y(
        "top:Q",
        title=None,
        scale=alt.Scale(domain=[0, frame.lanes], reverse=True, nice=False),
        axis=alt.Axis(
            values=middles,
            labelExpr=f"{names}[indexof({json.dumps(middles)}, datum.value)]",
            labelLimit=130,
            labelOverlap=False,
            grid=False,
            ticks=False,
            domain=False,
        ),
    )


def in_frame(bars: alt.Chart, frame: Frame, policy: str, subtitle: Sequence[str]) -> alt.LayerChart:
    """The bars over lines between the nodes, with a title."""
    import altair as alt

    between = np.round(frame.top[1:] - GAP_PX / frame.lane_px / 2, 3).tolist()
    lines: Any = (
        alt.Chart(rows({"top": between}))
        .mark_rule(color="#888", opacity=0.35, strokeWidth=0.5)
        .encode(y=node_axis(frame))
    )
    return alt.LayerChart(
        layer=[lines, bars],
        width=WIDTH,
        height=max(frame.height_px, 40),
        title=titled(f"Gantt chart: {policy}", subtitle),
    )
