"""Chart data: how numbers get into charts, and in which unit of time they are shown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    import altair as alt

WIDTH: Final = 900
"""Pixels of a chart that no page stretches."""
SEAM_PX: Final = 0.6
"""Areas reach so far into the next one: those that only touch show a hairline between them."""
PALETTE: Final = (
    "#4c78a8",
    "#f58518",
    "#54a24b",
    "#b279a2",
    "#72b7b2",
    "#9d755d",
    "#e45756",
    "#d6a300",
    "#7f8c99",
    "#d67195",
)
"""Tableau's hues: apart from each other for most colour-blind eyes, fair on black and white."""


class TimeUnit(NamedTuple):
    """A unit that keeps the numbers of an axis short."""

    name: str
    seconds: float


def time_unit(longest_s: float) -> TimeUnit:
    """The largest unit of which the longest time has at least two."""
    for unit in (TimeUnit("d", 86400.0), TimeUnit("h", 3600.0), TimeUnit("min", 60.0)):
        if longest_s >= 2 * unit.seconds:
            return unit
    return TimeUnit("s", 1.0)


def rows(columns: Mapping[str, Sequence[Any]]) -> alt.InlineData:
    """Columns of equal length as inline CSV, which is short and quick to check.

    Columns of text stay text even where they look like numbers; NaN becomes a missing value.
    """
    import altair as alt

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(_cells(values) for values in columns.values()), strict=True))
    kinds = {
        name: "string" if values and isinstance(values[0], str) else "number"
        for name, values in columns.items()
    }
    return alt.InlineData(values=text.getvalue(), format=alt.CsvDataFormat(type="csv", parse=kinds))


def _cells(values: Sequence[Any]) -> list[Any]:
    return ["" if isinstance(v, float) and math.isnan(v) else v for v in values]


def logarithmic(values: Sequence[float]) -> bool:
    """Whether positive values span so much that a linear axis would hide most of them."""
    positive = [value for value in values if value > 0]
    return bool(positive) and max(positive) > 30 * min(positive)


def policy_color(policies: Sequence[str]) -> alt.Color:
    """The same hue for a policy in every chart of a report."""
    import altair as alt

    hues = [PALETTE[i % len(PALETTE)] for i in range(len(policies))]
    return alt.Color(
        "policy:N",
        title=None,
        scale=alt.Scale(domain=list(policies), range=hues),
        legend=legend_above(),
    )


def legend_above(**options: Any) -> alt.Legend:
    """A legend over the chart, in columns; a page sets how many fit its width."""
    import altair as alt

    return alt.Legend(orient="top", columns=WIDTH // 170, labelLimit=150, offset=8, **options)


def titled(text: str, subtitle: Sequence[str] = ()) -> alt.TitleParams:
    """A title at the left edge."""
    import altair as alt

    return alt.TitleParams(text, subtitle=list(subtitle), anchor="start", frame="group")
