"""Benchmark: many policies on the same seeds, with intervals, and which differences are noise.

At one seed every policy meets the same arrivals and the same luck (true runtimes, faults), so
differences are paired: common random numbers leave only what the policies do differently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import NDArray

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import InputError, StuckError, UnknownNameError
from dagsail.domain.scenario import Scenario
from dagsail.evaluation.load import Load, load_of
from dagsail.evaluation.metrics import METRICS, Metrics, measure
from dagsail.evaluation.statistics import (
    FEWEST_FOR_VERDICT,
    Estimate,
    Paired,
    compare_paired,
    estimate,
)
from dagsail.evaluation.timing import time_decisions
from dagsail.evaluation.window import steady_window
from dagsail.scheduling.assemble import Arrival
from dagsail.scheduling.ports import Policy

Floats = NDArray[np.float64]
MakeArrivals = Callable[[int], Sequence[Arrival]]
Progress = Callable[[int, int, str], None]
"""Told after each run: how many are done, how many there are, and which it was."""

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
    "utilisation",
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

    def wins(self, policy: str, metric: str) -> int:
        """At how many seeds no other policy was better."""
        return int(np.isclose(self.values(policy, metric), self._best(metric), rtol=1e-9).sum())

    def warnings(self) -> tuple[str, ...]:
        """Why the numbers may say less than they seem to; one line each."""
        return tuple(
            line
            for line in (
                _too_few_seeds(len(self.seeds)),
                _overload(self.loads[self.reference]),
                _no_queue(self.loads),
                _unsettled(self.loads),
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
            "offered_load": _mean([load.offered for load in loads]),
            "offered_load_by_resource": {
                name: _mean([load.by_resource.get(name) for load in loads]) for name in names
            },
            "drain_s": {
                policy: _mean([load.drain_s for load in self.loads[policy]])
                for policy in self.policies
            },
            "warnings": list(self.warnings()),
        }


def compare(
    make_arrivals: MakeArrivals,
    cluster: Cluster,
    policies: Sequence[Policy],
    scenario: Scenario,
    seeds: Sequence[int],
    reference: str,
    progress: Progress | None = None,
) -> Comparison:
    """Run every policy at every seed, and measure.

    Args:
        make_arrivals: the workflows and their times, by seed.
        cluster: the nodes.
        policies: of different names.
        scenario: effects to model.
        seeds: of arrivals and of the simulated world alike; different ones.
        reference: name of the policy that the others are compared with.
        progress: told after each run.

    Raises:
        UnknownNameError: if the reference is none of the policies.
        InputError: if there is no policy or seed, or one occurs twice.
        InfeasibleError: if a task fits on no node.
        StuckError: if a simulation gets stuck; names the policy and the seed.
    """
    names = [policy.name for policy in policies]
    _check(names, seeds, reference)
    metrics: dict[str, list[Metrics]] = {name: [] for name in names}
    loads: dict[str, list[Load]] = {name: [] for name in names}
    sizes = []
    for number, seed in enumerate(seeds):
        arrivals = tuple(make_arrivals(seed))
        sizes.append((len(arrivals), sum(len(arrival.workflow.tasks) for arrival in arrivals)))
        for policy in policies:
            setting = _Setting(arrivals, cluster, scenario, seed)
            found, load = setting.run(policy, with_timing=number == 0)
            metrics[policy.name].append(found)
            loads[policy.name].append(load)
            if progress is not None:
                done = sum(len(rows) for rows in metrics.values())
                progress(done, len(names) * len(seeds), f"{policy.name}, seed {seed}")
    return Comparison(
        scenario.name,
        tuple(seeds),
        reference,
        {name: tuple(rows) for name, rows in metrics.items()},
        {name: tuple(rows) for name, rows in loads.items()},
        tuple(size[0] for size in sizes),
        tuple(size[1] for size in sizes),
    )


@dataclass(frozen=True, slots=True)
class _Setting:
    """All that one run depends on but the policy."""

    arrivals: tuple[Arrival, ...]
    cluster: Cluster
    scenario: Scenario
    seed: int

    def simulation(self) -> Simulation:
        return Simulation(self.arrivals, self.cluster, self.scenario, self.seed)

    def run(self, policy: Policy, *, with_timing: bool) -> tuple[Metrics, Load]:
        try:
            run = self.simulation().run(policy)
            window = steady_window(run)
            found = measure(run, window)
            if with_timing:
                found |= time_decisions(self.simulation, policy)
        except StuckError as error:
            raise StuckError(f"policy '{policy.name}', seed {self.seed}: {error}") from error
        return found, load_of(run, window)


def _check(names: Sequence[str], seeds: Sequence[int], reference: str) -> None:
    if not names or not seeds:
        raise InputError("compare: at least one policy and one seed are needed")
    for kind, values in (("policy", names), ("seed", [str(seed) for seed in seeds])):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise InputError(f"compare: {kind} '{twice[0]}' occurs more than once; name it once")
    if BEST in names:
        raise InputError(f"compare: no policy may be called '{BEST}'; rename it")
    if reference not in names:
        raise UnknownNameError(
            f"compare: reference '{reference}' is none of the policies ({', '.join(names)})"
        )


def _too_few_seeds(count: int) -> str:
    if count >= FEWEST_FOR_VERDICT:
        return ""
    return (
        f"{count} seeds cannot tell a difference from noise; use at least {FEWEST_FOR_VERDICT},"
        " better 20"
    )


def _overload(loads: Sequence[Load]) -> str:
    offered = _mean([load.offered for load in loads])
    if offered is None or offered < 1:
        return ""
    return (
        f"overload: the offered load is {offered:.2f} of the cluster's {loads[0].dominating},"
        " so the queue grows for as long as workflows arrive; lower it to below 1"
    )


def _no_queue(loads: Mapping[str, Sequence[Load]]) -> str:
    """Counts seeds at which tasks hardly ever waited, whatever the policy."""
    by_seed = list(zip(*loads.values(), strict=True))
    quiet = sum(not any(load.has_queue for load in row) for row in by_seed)
    if not quiet:
        return ""
    return (
        f"no queue formed at {quiet} of {len(by_seed)} seeds under any policy (95th percentile of"
        " waiting tasks is 0): policies will look alike; raise the load or submit more workflows"
    )


def _unsettled(loads: Mapping[str, Sequence[Load]]) -> str:
    """Names the policies whose backlog grew until the last arrival, at half of the seeds or more."""
    count = len(next(iter(loads.values())))
    grew = {name: sum(not load.is_settled for load in rows) for name, rows in loads.items()}
    often = [
        f"{name} ({seeds} of {count} seeds)" for name, seeds in grew.items() if 2 * seeds >= count
    ]
    if not often:
        return ""
    return (
        f"never settled: the backlog still grew at the last arrival under {', '.join(often)};"
        " submit more workflows or lower the load"
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


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
