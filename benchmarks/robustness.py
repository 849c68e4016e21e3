"""What wrong estimates and a burst do to the rules, on the five families and the mixed cluster.

Estimates: mean JCT with run times that vary by 40 % around what was estimated, over that with
exact estimates, same policy and seeds, with a 95 % interval: 1.05 is 5 % longer.

Burst: a tenth of the workflows arrive at 17 times the normal rate. Backlog is the largest number
of unfinished workflows, and how many times what was usual before; "drained" the minutes from the
end of the burst until it is back there (medians over seeds).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dagsail
from benchmarks._report import Report, parser
from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.compose import DEFAULT_CLUSTER
from dagsail.domain.scenario import Scenario
from dagsail.evaluation.statistics import compare_paired
from dagsail.policies import policy
from dagsail.workloads.families import FAMILIES

ESTIMATE_POLICIES = (
    "fifo", "round-robin", "min-min", "heft", "heft-static", "kube-default@1.36", "scorer",
    "learned",
)  # fmt: skip
BURST_POLICIES = ("fifo", "least-remaining-work", "deadline-slack", "heft", "kube-default@1.36")
LOAD = 0.7
NOISE = 0.4
SEEDS = 20


def by_estimates() -> list[dict[str, Any]]:
    exact, noisy = (dagsail.scenario(load=LOAD, noise=noise) for noise in (0.0, NOISE))
    rows = []
    for family in FAMILIES:
        workload = dagsail.read(family.name)
        before, after = (
            dagsail.compare(workload, policies=ESTIMATE_POLICIES, scenario=scenario, seeds=SEEDS)
            for scenario in (exact, noisy)
        )
        row = {"family": family.name}
        for name in ESTIMATE_POLICIES:
            pair = compare_paired(
                after.values(name, "jct_mean_s"), before.values(name, "jct_mean_s"), "lower"
            )
            low, high = pair.ratio_ci95 or (math.nan, math.nan)
            row[name] = f"{pair.ratio:.3f} [{low:.2f} .. {high:.2f}]"
        rows.append(row)
    return rows


def backlog(run: Run, scenario: Scenario) -> tuple[float, float, float]:
    """Peak of unfinished workflows, the same over the mean before, minutes to drain."""
    arrival_s = run.snapshot.workflows["arrival_s"]
    finish_s = np.sort(run.snapshot.workflows["finish_s"])
    count = len(arrival_s)
    num_burst = round(scenario.arrivals.burst_ratio * count)
    first = (count - num_burst) // 2
    times = np.sort(np.concatenate([arrival_s, finish_s]))
    unfinished = np.searchsorted(arrival_s, times, "right") - np.searchsorted(
        finish_s, times, "right"
    )
    begin_s, end_s = arrival_s[first - 1], arrival_s[first + num_burst - 1]
    before = (times >= arrival_s[count // 10]) & (times <= begin_s)
    usual = float(np.average(unfinished[before][:-1], weights=np.diff(times[before])))
    peak = float(unfinished[times >= begin_s].max())
    back = times[(times > end_s) & (unfinished <= usual)]
    return peak, peak / usual, float(back[0] - end_s) / 60


def by_burst() -> list[dict[str, Any]]:
    scenario = dagsail.scenario(load=LOAD, arrivals="burst", noise=NOISE)
    cluster = dagsail.cluster(DEFAULT_CLUSTER)
    rows = []
    for family in FAMILIES:
        workload = dagsail.read(family.name)
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in BURST_POLICIES}
        for seed in range(SEEDS):
            plan = workload.arrivals(scenario.arrivals, cluster, seed)
            prepared = Simulation(plan.arrivals, cluster, scenario, seed)
            for name, values in found.items():
                values.append(backlog(prepared.twin().run(policy(name)), scenario))
        for name, values in found.items():
            peak, times, drained_min = np.median(np.array(values), axis=0).tolist()
            rows.append(
                {
                    "family": family.name,
                    "policy": name,
                    "backlog": round(peak),
                    "times usual": times,
                    "drained, min": drained_min,
                }
            )
    return rows


def main() -> None:
    options = parser(__doc__).parse_args()
    report = Report(as_json=options.json)
    report.table(
        f"JCT, estimates off by {100 * NOISE:.0f} % over exact ones, load {LOAD}, {SEEDS} seeds",
        by_estimates(),
    )
    report.table(
        f"17-fold burst at load {LOAD}, estimates off by {100 * NOISE:.0f} %, {SEEDS} seeds",
        by_burst(),
    )
    report.close()


if __name__ == "__main__":
    main()
