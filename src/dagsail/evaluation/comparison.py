"""Comparison: policies over seeds, with intervals, and which differences are more than noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dagsail.evaluation.aims import AIM_METRICS, composite
from dagsail.evaluation.load import Load, load_warnings, mean_of
from dagsail.evaluation.metrics import METRICS, Metrics
from dagsail.evaluation.statistics import (
    FEWEST_FOR_VERDICT,
    Estimate,
    Paired,
    compare_paired,
    estimate,
)
from dagsail.policies.scoring.objective import Objective

Floats = NDArray[np.float64]

BEST: Final = "best_per_instance"
"""The policy that chooses the best one for each seed, by hindsight."""
HEADLINES: Final = (
    "jct_mean_s",
    "jct_p95_s",
    "makespan_s",
    "slowdown_mean",
    "wait_mean_s",
    "wait_p95_s",
    "deadline_met_ratio",
    "start_sla_ratio",
    "cost_usd",
    "gpu_cost_usd",
    "node_load_std",
    "fragmentation",
)
"""Metrics in which policies are compared in pairs."""

_BETTER: Final = {metric.name: metric.better for metric in METRICS}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of a benchmark.

    Attributes:
        scenario: name of what was simulated.
        seeds: in the order of all values by seed.
        reference: the policy that the others are compared with.
        metrics: by policy: the metrics of each seed.
        loads: by policy: the load of each seed.
        num_workflows, num_tasks: of each seed.
    """

    scenario: str
    seeds: tuple[int, ...]
    reference: str
    metrics: Mapping[str, tuple[Metrics, ...]]
    loads: Mapping[str, tuple[Load, ...]]
    num_workflows: tuple[int, ...]
    num_tasks: tuple[int, ...]

    @property
    def policies(self) -> tuple[str, ...]:
        """Names, in the order in which they were asked for."""
        return tuple(self.metrics)

    def values(self, policy: str, metric: str) -> Floats:
        """One value a seed; NaN where there is none. (seeds,)."""
        if policy == BEST:
            return self._best(metric)
        return np.array([metrics[metric] for metrics in self.metrics[policy]])

    def _best(self, metric: str) -> Floats:
        table = np.array([self.values(policy, metric) for policy in self.policies])
        # Unlike min and max, these ignore a policy without a value unless all are.
        best: Floats = (np.fmax if _BETTER[metric] == "higher" else np.fmin).reduce(table)
        return best

    def estimate(self, policy: str, metric: str) -> Estimate:
        """Mean over the seeds, with its interval."""
        return estimate(self.values(policy, metric))

    def paired(self, policy: str, metric: str, against: str) -> Paired:
        """How a policy differs from another, or from `BEST`, in one of the headlines."""
        better = cast(Literal["lower", "higher"], _BETTER[metric])
        return compare_paired(self.values(policy, metric), self.values(against, metric), better)

    def composite(self, policy: str, objective: Objective, reference: str) -> Floats:
        """Weighted sum of the aims over those of another policy, by seed. (seeds,)."""
        found, others = (
            np.column_stack([self.values(name, metric) for metric in AIM_METRICS])
            for name in (policy, reference)
        )
        return np.array([composite(f, o, objective) for f, o in zip(found, others, strict=True)])

    def wins(self, policy: str, metric: str) -> int:
        """At how many seeds no other policy was better."""
        return int(np.isclose(self.values(policy, metric), self._best(metric), rtol=1e-9).sum())

    def warnings(self) -> tuple[str, ...]:
        """Why the numbers may say less than they seem to; one line each."""
        return tuple(
            line
            for line in (
                _too_few_seeds(len(self.seeds)),
                *load_warnings(self.loads),
            )
            if line
        )

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain objects; NaN becomes None."""
        return {
            "policies": {
                policy: {
                    metric.name: _estimate_json(self.estimate(policy, metric.name))
                    for metric in METRICS
                }
                for policy in self.policies
            },
            "paired": {
                "reference": self.reference,
                "against_reference": self._pairs_json(self.reference),
                BEST: self._pairs_json(BEST),
            },
            "scenario": self._scenario_json(),
            "seeds": list(self.seeds),
        }

    def _pairs_json(self, against: str) -> dict[str, Any]:
        return {
            policy: {
                metric: _paired_json(self.paired(policy, metric, against))
                | ({"wins": self.wins(policy, metric)} if against == BEST else {})
                for metric in HEADLINES
            }
            for policy in self.policies
            if policy != against
        }

    def _scenario_json(self) -> dict[str, Any]:
        loads = self.loads[self.reference]
        names = sorted({name for load in loads for name in load.by_resource})
        return {
            "name": self.scenario,
            "num_workflows": list(self.num_workflows),
            "num_tasks": list(self.num_tasks),
            "dominating": loads[0].dominating,
            "offered_load": mean_of([load.offered for load in loads]),
            "offered_load_by_resource": {
                name: mean_of([load.by_resource.get(name) for load in loads]) for name in names
            },
            "drain_s": {
                policy: mean_of([load.drain_s for load in self.loads[policy]])
                for policy in self.policies
            },
            "warnings": list(self.warnings()),
        }


def _too_few_seeds(count: int) -> str:
    if count >= FEWEST_FOR_VERDICT:
        return ""
    return (
        f"{count} seeds cannot tell a difference from noise; use at least {FEWEST_FOR_VERDICT},"
        " better 20"
    )


def _estimate_json(found: Estimate) -> dict[str, Any]:
    return {
        "mean": _finite(found.mean),
        "ci95": None if found.ci95 is None else list(found.ci95),
        "per_seed": [_finite(value) for value in found.per_seed],
    }


def _paired_json(found: Paired) -> dict[str, Any]:
    return {
        "difference": _estimate_json(found.difference),
        "ratio": _finite(found.ratio),
        "ratio_ci95": None if found.ratio_ci95 is None else list(found.ratio_ci95),
        "verdict": found.verdict,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
