"""Tables that say who wins, by how much, and which differences are noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from dagsail.commands.output import table
from dagsail.commands.values import NOTHING, percent, shown
from dagsail.domain.units import format_seconds

if TYPE_CHECKING:
    from rich.table import Table

    from dagsail.evaluation.comparison import Comparison
    from dagsail.evaluation.statistics import Estimate, Paired

RANKED_BY: Final = "jct_mean_s"
_COLUMNS: Final = (
    ">#",
    "Policy",
    ">Mean JCT",
    ">95 % interval",
    ">vs reference",
    ">95 % interval",
    "Verdict",
    ">P95 JCT",
    ">Slowdown",
    ">Deadlines met",
    ">Cost",
    ">Use",
)
_COLORS: Final = {"better": "[green]better[/]", "worse": "[red]worse[/]", "noise": "noise"}


def ranked(comparison: Comparison) -> list[str]:
    """Policies, the shortest mean completion time first; those without one last."""

    def mean_s(policy: str) -> float:
        value = comparison.estimate(policy, RANKED_BY).mean
        return value if math.isfinite(value) else math.inf

    return sorted(comparison.policies, key=mean_s)


def ranking(comparison: Comparison, title: str) -> Table:
    """One row for each policy, best first."""
    rows = [
        (str(place), *_row(comparison, policy))
        for place, policy in enumerate(ranked(comparison), start=1)
    ]
    return table(title, _COLUMNS, rows)


def _row(comparison: Comparison, policy: str) -> tuple[str, ...]:
    def mean(metric: str) -> float:
        return comparison.estimate(policy, metric).mean

    jct = comparison.estimate(policy, RANKED_BY)
    if policy == comparison.reference:
        against = ("reference", "", "")
    else:
        paired = comparison.paired(policy, RANKED_BY, comparison.reference)
        against = (_change(paired.ratio), _change_interval(paired), _COLORS[paired.verdict])
    return (
        policy,
        shown(jct.mean, "s"),
        _interval(jct),
        *against,
        shown(mean("jct_p95_s"), "s"),
        shown(mean("slowdown_mean"), "ratio"),
        percent(mean("deadline_met_ratio")),
        shown(mean("cost_usd"), "USD"),
        percent(mean("utilisation")),
    )


def _interval(found: Estimate) -> str:
    if found.ci95 is None:
        return NOTHING
    return " .. ".join(format_seconds(end) for end in found.ci95)


def _change(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %" if math.isfinite(ratio) else NOTHING


def _change_interval(paired: Paired) -> str:
    if paired.ratio_ci95 is None:
        return NOTHING
    low, high = paired.ratio_ci95
    return f"{100 * (low - 1):+.1f} .. {100 * (high - 1):+.1f} %"


def explanation(comparison: Comparison) -> str:
    """What the columns mean, and what no policy can beat."""
    bound = comparison.estimate(comparison.reference, "jct_bound_s").mean
    return (
        f"JCT: job completion time, arrival to finish; no schedule has a mean below"
        f" {shown(bound, 's')} (critical paths on the fastest nodes).\n"
        f"Reference: {comparison.reference}, on the same {len(comparison.seeds)} seeds; 'noise': the"
        " interval of the difference holds 0. Use: of the scarcest resource."
    )
