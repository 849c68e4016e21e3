"""Judgement: how a policy fares in a scenario beside the best rule, known with hindsight."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dagsail.evaluation.comparison import Comparison
from dagsail.evaluation.statistics import Paired, compare_paired
from dagsail.policies.scoring.objective import Objective

CONTENDED: Final = 1.3
"""From this ratio of the best rule's completion time to its bound on, a scenario is contended."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One policy in one scenario.

    Attributes:
        policy, scenario: what was judged, and where.
        jct_s, bound_s: mean completion time, and its lower bound, over the seeds.
        best_rule, best_jct_s: the rule of the least mean completion time, and that.
        reference_jct_s: of the reference.
        against_best, against_reference: completion times in pairs.
        best_composite: the rule of the least composite.
        composite: in pairs against that rule.
    """

    policy: str
    scenario: str
    jct_s: float
    bound_s: float
    best_rule: str
    best_jct_s: float
    reference_jct_s: float
    against_best: Paired
    against_reference: Paired
    best_composite: str
    composite: Paired

    @property
    def is_contended(self) -> bool:
        """Whether even the best rule is far from the bound."""
        return self.best_jct_s >= CONTENDED * self.bound_s

    @property
    def gap_closed(self) -> float:
        """Share of the reference's distance to the bound that is closed; NaN without any."""
        distance_s = self.reference_jct_s - self.bound_s
        return (self.reference_jct_s - self.jct_s) / distance_s if distance_s > 0 else math.nan

    def to_json(self) -> dict[str, Any]:
        """Plain objects."""
        return {
            "policy": self.policy,
            "scenario": self.scenario,
            "jct_mean_s": self.jct_s,
            "jct_bound_s": self.bound_s,
            "contended": self.is_contended,
            "gap_closed_ratio": self.gap_closed,
            "best_rule": self.best_rule,
            "against_best_rule": _pair(self.against_best),
            "against_reference": _pair(self.against_reference),
            "best_rule_by_composite": self.best_composite,
            "composite_against_best_rule": _pair(self.composite),
        }


def judge(
    comparison: Comparison,
    scenario: str,
    policy: str,
    rules: Sequence[str],
    reference: str,
    objective: Objective,
    by_objective: str | None = None,
) -> Judgement:
    """Judge a policy by the runs of a comparison.

    Args:
        comparison: with the policy, the rules and the reference.
        scenario: what to call it.
        policy: to judge.
        rules: of which the best is chosen afterwards, one for all seeds.
        reference: what users have now.
        objective: weights of the composite.
        by_objective: the policy with these weights as its own objective, whose composite is judged;
            None: `policy` itself.
    """
    weighed = policy if by_objective is None else by_objective
    jct_s = {name: comparison.estimate(name, "jct_mean_s").mean for name in comparison.policies}
    best = min(rules, key=lambda name: jct_s[name])
    composites = {
        name: comparison.composite(name, objective, reference) for name in (*rules, weighed)
    }
    best_composite = min(rules, key=lambda name: float(composites[name].mean()))
    return Judgement(
        policy=policy,
        scenario=scenario,
        jct_s=jct_s[policy],
        bound_s=comparison.estimate(policy, "jct_bound_s").mean,
        best_rule=best,
        best_jct_s=jct_s[best],
        reference_jct_s=jct_s[reference],
        against_best=comparison.paired(policy, "jct_mean_s", best),
        against_reference=comparison.paired(policy, "jct_mean_s", reference),
        best_composite=best_composite,
        composite=compare_paired(composites[weighed], composites[best_composite], "lower"),
    )


def _pair(found: Paired) -> dict[str, Any]:
    return {
        "ratio": found.ratio,
        "ratio_ci95": None if found.ratio_ci95 is None else list(found.ratio_ci95),
        "verdict": found.verdict,
    }
