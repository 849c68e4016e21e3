"""Tables: the policies ranked, and all metrics, as HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Final

from dagsail.evaluation.metrics import METRICS
from dagsail.evaluation.report.chart_data import TimeUnit, time_unit

Json = Mapping[str, Any]

RANKED_BY: Final = "jct_mean_s"
_NOTHING: Final = "&ndash;"
_VERDICTS: Final = {"better": "▼ better", "worse": "▲ worse", "noise": "≈ noise"}


def rank(comparison: Json) -> list[str]:
    """Policies by mean completion time; those that finished nothing come last."""
    means = {name: row[RANKED_BY]["mean"] for name, row in comparison["policies"].items()}
    return sorted(means, key=lambda name: math.inf if means[name] is None else means[name])


def ranking(comparison: Json) -> str:
    """The table by which policies are judged; `≈` marks what is noise against the reference."""
    reference = comparison["paired"]["reference"]
    heads = (
        "rank",
        "policy",
        "mean completion time",
        f"against {reference}",
        "over lower bound",
        "95th percentile",
        "makespan",
        "deadlines met",
        "cost",
    )
    lines = ["<thead><tr>"]
    lines += [f'<th scope="col">{escape(head)}</th>' for head in heads]
    lines.append("</tr></thead><tbody>")
    units = {metric: _unit(comparison, metric) for metric in (RANKED_BY, "jct_p95_s", "makespan_s")}
    for place, name in enumerate(rank(comparison), 1):
        lines.append(_ranking_row(comparison, place, name, units))
    lines.append("</tbody>")
    return "<table>" + "\n".join(lines) + "</table>"


def _unit(comparison: Json, metric: str) -> TimeUnit:
    """One unit for a column, so that its numbers compare at a glance."""
    means = [row[metric]["mean"] for row in comparison["policies"].values()]
    return time_unit(min((mean for mean in means if mean is not None), default=0.0))


def _ranking_row(comparison: Json, place: int, name: str, units: Mapping[str, TimeUnit]) -> str:
    metrics = comparison["policies"][name]
    paired = comparison["paired"]["against_reference"].get(name, {})

    def cell(metric: str, show: Callable[[float], str]) -> str:
        mean = metrics[metric]["mean"]
        is_noise = paired.get(metric, {}).get("verdict") == "noise"
        mark = ' <span class="noise">≈</span>' if is_noise and mean is not None else ""
        return f"<td>{_NOTHING if mean is None else escape(show(mean)) + mark}</td>"

    def seconds(metric: str) -> str:
        unit = units[metric]
        return cell(metric, lambda mean: f"{_digits(mean / unit.seconds)} {unit.name}")

    is_reference = name == comparison["paired"]["reference"]
    role = ' <span class="chip">reference</span>' if is_reference else ""
    return (
        f'<tr><td>{place}</td><th scope="row">{escape(name)}{role}</th>'
        f"<td>{_mean_and_interval(metrics[RANKED_BY], units[RANKED_BY])}</td>"
        f"<td>{_against(paired.get(RANKED_BY))}</td>"
        f"<td>{_over_bound(metrics)}</td>"
        + seconds("jct_p95_s")
        + seconds("makespan_s")
        + cell("deadline_met_ratio", lambda ratio: f"{ratio:.1%}")
        + cell("cost_usd", lambda usd: f"${usd:,.2f}")
        + "</tr>"
    )


def _mean_and_interval(estimate: Json, unit: TimeUnit) -> str:
    mean, interval = estimate["mean"], estimate["ci95"]
    if mean is None:
        return _NOTHING
    shown = f"{_digits(mean / unit.seconds)} {unit.name}"
    if interval is None:
        return shown
    return shown + _interval(*(_digits(end / unit.seconds) for end in interval))


def _interval(low: str, high: str) -> str:
    return f' <span class="interval">[{low}, {high}]</span>'


def _digits(value: float) -> str:
    """Three digits, trailing zeros kept."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:#.3g}".rstrip(".")


def _against(paired: Json | None) -> str:
    if paired is None or paired["ratio"] is None:
        return _NOTHING
    verdict = paired["verdict"]
    shown = (
        f'{_percent(paired["ratio"])} % <span class="chip {verdict}">{_VERDICTS[verdict]}</span>'
    )
    if paired["ratio_ci95"] is None:
        return shown
    return shown + _interval(*map(_percent, paired["ratio_ci95"]))


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}".replace("-", "&minus;")


def _over_bound(metrics: Json) -> str:
    mean, bound = metrics[RANKED_BY]["mean"], metrics["jct_bound_s"]["mean"]
    return f"{mean / bound:.2f} x" if mean is not None and bound else _NOTHING


def verdict(comparison: Json) -> str:
    """Two sentences: which policy came first, and which ones cannot be told from the reference."""
    reference, count = comparison["paired"]["reference"], len(comparison["seeds"])
    pairs = comparison["paired"]["against_reference"]
    best = rank(comparison)[0]
    if best == reference:
        first = f"The reference, {reference}, has the lowest mean completion time"
    else:
        first = f"{best} has the lowest mean completion time"
        found = pairs[best][RANKED_BY]["verdict"]
        first += (
            ", but the difference from the reference is noise"
            if found == "noise"
            else f", {_below(pairs[best][RANKED_BY])} the reference, {reference}: more than noise"
        )
    alike = [
        name
        for name in rank(comparison)
        if name in pairs and pairs[name][RANKED_BY]["verdict"] == "noise"
    ]
    second = (
        f"Differences marked ≈ are noise: over {count} seed{'s' * (count != 1)} they cannot be"
        f" told from {reference}, because the 95 % interval of the paired difference contains 0"
        " or there are too few seeds"
    )
    third = f" By mean completion time that holds for {', '.join(alike)}." if alike else ""
    return f"{first}. {second}.{third}"


def _below(paired: Json) -> str:
    return "below" if paired["ratio"] is None else f"{1 - paired['ratio']:.0%} below"


def all_metrics(comparison: Json) -> str:
    """Means of all metrics, one row a metric."""
    policies = rank(comparison)
    lines = ['<table><thead><tr><th scope="col">metric</th><th scope="col">unit</th>']
    lines += [f'<th scope="col">{escape(name)}</th>' for name in policies]
    lines.append('<th scope="col">meaning</th></tr></thead><tbody>')
    for metric in METRICS:
        means = [comparison["policies"][name][metric.name]["mean"] for name in policies]
        cells = "".join(f"<td>{_NOTHING if m is None else f'{m:,.4g}'}</td>" for m in means)
        lines.append(
            f'<tr><th scope="row">{metric.name}</th><td>{metric.unit}</td>{cells}'
            f'<td class="text">{escape(metric.meaning)}</td></tr>'
        )
    lines.append("</tbody></table>")
    return "\n".join(lines)
