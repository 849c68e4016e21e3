"""Tables that say who wins, by how much, and which differences are noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from dagsail.commands.output import table, width_of
from dagsail.commands.values import NOTHING, percent, shown
from dagsail.domain.units import format_number

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dagsail.evaluation.comparison import Comparison

RANKED_BY: Final = "jct_mean_s"
_COLORS: Final = {"better": "[green]better[/]", "worse": "[red]worse[/]", "noise": "noise"}
_UNITS: Final = (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


class _Column(NamedTuple):
    """A column, and how soon it is left out where the terminal is narrow (0: never)."""

    title: str
    cell: Callable[[Comparison, str], str]
    first_out: int = 0


def ranked(comparison: Comparison) -> list[str]:
    """Policies, the shortest mean completion time first; those without one last."""

    def mean_s(policy: str) -> float:
        value = comparison.estimate(policy, RANKED_BY).mean
        return value if math.isfinite(value) else math.inf

    return sorted(comparison.policies, key=mean_s)


def ranking(comparison: Comparison, title: str, console: Console) -> Table:
    """One row for each policy, best first; as many columns as the console has room for."""
    columns = _columns(comparison)
    for out in range(max(column.first_out for column in columns) + 1):
        kept = [column for column in columns if column.first_out == 0 or column.first_out > out]
        rows = [
            (str(place), *(column.cell(comparison, policy) for column in kept))
            for place, policy in enumerate(ranked(comparison), start=1)
        ]
        made = table(title, (">#", *(column.title for column in kept)), rows)
        if width_of(made, console) <= console.width:
            break
    return made


def _columns(comparison: Comparison) -> tuple[_Column, ...]:
    best_s = comparison.estimate(ranked(comparison)[0], RANKED_BY).mean
    unit, scale = next(
        (entry for entry in _UNITS if math.isfinite(best_s) and best_s >= 2 * entry[1]), _UNITS[-1]
    )

    def jct(found: Comparison, policy: str) -> str:
        value = found.estimate(policy, RANKED_BY)
        if not math.isfinite(value.mean):
            return NOTHING
        mean = format_number(value.mean / scale)
        if value.ci95 is None:
            return mean
        low, high = (format_number(end / scale) for end in value.ci95)
        return f"{mean} [{low} .. {high}]"

    def means(metric: str, unit: str) -> Callable[[Comparison, str], str]:
        return lambda found, policy: shown(found.estimate(policy, metric).mean, unit)

    def shares(metric: str) -> Callable[[Comparison, str], str]:
        return lambda found, policy: percent(found.estimate(policy, metric).mean)

    interval = " [95 %]" if len(comparison.seeds) > 1 else ""
    deadlines = _Column(">On time", shares("deadline_met_ratio"), 5)
    has_deadlines = math.isfinite(
        comparison.estimate(comparison.reference, "deadline_met_ratio").mean
    )
    return (
        _Column("Policy", lambda _, policy: policy),
        _Column(f">Mean JCT, {unit}{interval}", jct),
        _Column(f">vs reference{interval}", _change),
        _Column("Verdict", _verdict),
        _Column(">P95 JCT", means("jct_p95_s", "s"), 3),
        _Column(">Slowdown", means("slowdown_mean", "ratio"), 4),
        *((deadlines,) if has_deadlines else ()),
        _Column(">Cost", means("cost_usd", "USD"), 2),
        _Column(">Use", shares("utilisation"), 1),
    )


def _change(comparison: Comparison, policy: str) -> str:
    if policy == comparison.reference:
        return "reference"
    paired = comparison.paired(policy, RANKED_BY, comparison.reference)
    if not math.isfinite(paired.ratio):
        return NOTHING
    text = f"{100 * (paired.ratio - 1):+.1f} %"
    if paired.ratio_ci95 is None:
        return text
    low, high = (100 * (end - 1) for end in paired.ratio_ci95)
    return f"{text} [{low:+.0f} .. {high:+.0f}]"


def _verdict(comparison: Comparison, policy: str) -> str:
    if policy == comparison.reference:
        return ""
    return _COLORS[comparison.paired(policy, RANKED_BY, comparison.reference).verdict]


def explanation(comparison: Comparison) -> str:
    """What the columns mean, and what no policy can beat."""
    bound = comparison.estimate(comparison.reference, "jct_bound_s").mean
    seeds = len(comparison.seeds)
    return (
        f"JCT: job completion time, arrival to finish; the mean critical path on the fastest nodes"
        f" is {shown(bound, 's')}.\n"
        f"Reference: {comparison.reference}, on the same {seeds} seed{'s' * (seeds != 1)};"
        " 'noise': the difference may be chance.\n"
        "Slowdown: JCT over the workflow's own critical path. On time: of the workflows with a"
        " deadline. Use: of the scarcest resource."
    )
