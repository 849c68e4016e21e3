"""Page: the report of a comparison as one HTML file."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.errors import OutputError
from dagsail.evaluation.report import charts
from dagsail.evaluation.report.gantt import MAX_BARS, gantt
from dagsail.evaluation.report.heatmap import use_heatmap
from dagsail.evaluation.report.render import script
from dagsail.evaluation.report.setting import describe
from dagsail.evaluation.report.tables import all_metrics, rank, ranking, verdict
from dagsail.files import writing

if TYPE_CHECKING:
    import altair as alt

    AnyChart = alt.Chart | alt.LayerChart

MAX_DRAWN: Final = 8
"""Policies in charts that have a line or bar for each; the table has all."""
MAX_TIMELINE_BARS: Final = 40_000
"""Bars of all Gantt charts together; keeps the page below 3 MB."""

_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


def write_report(runs: Mapping[str, Run], comparison: Mapping[str, Any], folder: Path) -> Path:
    """Write `index.html` into a folder, which is made if it is missing.

    Args:
        runs: one representative run by policy, all of the same arrivals.
        comparison: `Comparison.to_json()`; holds all policies of `runs`.
        folder: where to.

    Returns:
        The path of the page.

    Raises:
        OutputError: if it cannot be written there.
    """
    text = page(runs, comparison)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be made a folder ({error.strerror or error})"
        ) from None
    path = folder / "index.html"
    with writing(path) as stream:
        stream.write(text)
    return path


def page(runs: Mapping[str, Run], comparison: Mapping[str, Any]) -> str:
    """The page as text; the same input gives the same text."""
    reference = comparison["paired"]["reference"]
    ranked = [name for name in rank(comparison) if name in runs]
    drawn = _first(ranked, reference, MAX_DRAWN)
    timed = _timed(runs, ranked, reference)
    parts = {
        "setting": _setting(describe(runs[ranked[0]], comparison)),
        "warnings": _warnings(comparison["scenario"]["warnings"]),
        "verdict": escape(verdict(comparison)),
        "ranking": ranking(comparison),
        "metrics": all_metrics(comparison),
        "seed": str(runs[ranked[0]].seed),
        "drawn": _left_out(len(drawn), len(ranked)),
        "timed": _left_out(len(timed), len(ranked)),
        "options": "".join(f"<option>{escape(name)}</option>" for name in timed),
        "data": _packed(
            {
                "figures": _figures({name: runs[name] for name in drawn}, comparison, ranked),
                "timelines": {
                    name: {"use": _spec(use_heatmap(runs[name])), "gantt": _spec(gantt(runs[name]))}
                    for name in timed
                },
            }
        ),
        "script": script(),
    }
    template = files("dagsail.evaluation.report").joinpath("page.html").read_text("utf-8")
    return _PLACE.sub(lambda match: parts[match[1]], template)


def _first(ranked: list[str], reference: str, count: int) -> list[str]:
    """The best, and the reference in any case."""
    if reference not in ranked[count:]:
        return ranked[:count]
    return [*ranked[: count - 1], reference]


def _timed(runs: Mapping[str, Run], ranked: list[str], reference: str) -> list[str]:
    """Best and reference, then the others for as long as there is room."""
    first = [name for name in ranked if name in (ranked[0], reference)]
    total = 0
    chosen = []
    for name in [*first, *(name for name in ranked if name not in first)]:
        total += min(len(runs[name].attempts), MAX_BARS)
        if name in first or total <= MAX_TIMELINE_BARS:
            chosen.append(name)
    return chosen


def _figures(
    runs: Mapping[str, Run], comparison: Mapping[str, Any], ranked: list[str]
) -> dict[str, Any]:
    policies = comparison["policies"]
    drawn = {name: policies[name] for name in runs}
    found: dict[str, AnyChart | None] = {
        "jct": charts.jct_distribution(runs),
        "deadlines": charts.deadlines_by_priority(drawn, next(iter(runs.values()))),
        "cost": charts.costs({name: policies[name] for name in ranked}),
        "wait": charts.waits_by_priority(runs),
    }
    return {name: None if chart is None else _spec(chart) for name, chart in found.items()}


def _spec(chart: AnyChart) -> dict[str, Any]:
    """The chart without what the page sets itself: title, width and colours of the theme."""
    spec: dict[str, Any] = chart.to_dict()
    title = spec.pop("title")
    spec.pop("config", None)
    spec["width"] = "container"
    note = " ".join(f"{line[0].upper()}{line[1:]}." for line in title.get("subtitle", []))
    return {"note": note, "spec": spec}


def _setting(lines: Mapping[str, str]) -> str:
    return "".join(f"<dt>{escape(key)}</dt><dd>{escape(text)}</dd>" for key, text in lines.items())


def _warnings(lines: list[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<aside class="warnings"><h2>Warnings</h2><ul>{items}</ul></aside>'


def _left_out(count: int, of: int) -> str:
    if count == of:
        return ""
    return f" Shown are {count} of {of} policies: the best, and the reference in any case."


def _packed(value: Any) -> str:
    """JSON, zipped to about a fifth and in letters that HTML leaves alone."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
