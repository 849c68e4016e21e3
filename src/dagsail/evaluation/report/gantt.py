"""Gantt chart: what ran where and when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from dagsail.clusters.simulated.cluster import Run
from dagsail.evaluation.occupation import occupation
from dagsail.evaluation.report import gantt_bands, gantt_bars
from dagsail.evaluation.report.render import write_chart

if TYPE_CHECKING:
    import altair as alt

MAX_BARS: Final = 5_000
"""More than this, and single tasks are too thin to see."""
MAX_HEIGHT_PX: Final = 2_000
"""Likewise where the rows of the nodes would be taller together."""


def gantt(run: Run) -> alt.LayerChart:
    """Bars of all attempts by node, side by side where they overlap, coloured by workflow.

    Attempts that failed, were evicted or were cancelled have a colour of their own. Above
    `MAX_BARS` bars or `MAX_HEIGHT_PX` the chart shows how full each node was instead, and says so.
    """
    held = occupation(run)
    if len(held.node) > MAX_BARS:
        return gantt_bands.bands(run, f"{len(held.node):,} bars are too many to draw one by one")
    frame, top = gantt_bars.place(run, held)
    if frame.height_px > MAX_HEIGHT_PX:
        count = len(frame.names)
        return gantt_bands.bands(run, f"{count:,} busy nodes are too many to draw task by task")
    return gantt_bars.bars(run, held, frame, top)


def write_gantt(run: Run, path: Path) -> None:
    """Draw the Gantt chart of a run as `.png`, `.svg` or `.html`, by the suffix of the path.

    Raises:
        OutputError: on another suffix, or if the file cannot be written.
    """
    write_chart(lambda: gantt(run).to_dict(), path)
