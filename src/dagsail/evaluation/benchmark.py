"""Benchmark: runs many policies on the same seeds.

At one seed every policy meets the same arrivals and the same luck (true runtimes, faults), so
differences are paired: common random numbers leave only what the policies do differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import InputError, StuckError, UnknownNameError
from dagsail.domain.scenario import Scenario
from dagsail.domain.workflow import Arrival
from dagsail.evaluation.comparison import BEST, Comparison
from dagsail.evaluation.load import Load, load_of
from dagsail.evaluation.metrics import Metrics, measure
from dagsail.evaluation.timing import time_decisions
from dagsail.evaluation.window import steady_window
from dagsail.scheduling.ports import Policy

MakeArrivals = Callable[[int], Sequence[Arrival]]
Progress = Callable[[int, int, str], None]
"""Told after each run: how many are done, how many there are, and which it was."""


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
        # Prepared once: most of the cost of a short run.
        setting = _Setting(Simulation(arrivals, cluster, scenario, seed))
        for policy in policies:
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

    prepared: Simulation

    def run(self, policy: Policy, *, with_timing: bool) -> tuple[Metrics, Load]:
        try:
            run = self.prepared.twin().run(policy)
            window = steady_window(run)
            found = measure(run, window)
            if with_timing:
                found |= time_decisions(self.prepared.twin, policy)
        except StuckError as error:
            raise StuckError(
                f"policy '{policy.name}', seed {self.prepared.seed}: {error}"
            ) from error
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
