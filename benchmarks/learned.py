"""`scorer`, `portfolio` and `learned` beside the best rule, on workloads that nothing was tuned on.

Scenarios: the five families, recipes (with the package wfcommons) and real instances (with
`DAGSAIL_DATA`), on the clusters edge, mixed and large, at loads 0.6, 0.9 and 1.2 and with a burst
of 17 times the normal rate; run times vary by 40 % around their estimates. At each seed all
policies meet the same workflows and the same luck. The best rule of a scenario is known with
hindsight: the least mean completion time over all seeds. Ratios have 95 % intervals over seeds.

The whole suite takes hours on two cores; `--clusters`, `--sources` and `--seeds` choose parts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import dagsail
from benchmarks._report import Report, parser
from dagsail.domain.errors import InputError
from dagsail.domain.scenario import Arrivals, Runtimes, Scenario
from dagsail.evaluation.comparison import Comparison
from dagsail.evaluation.judgement import Judgement, judge
from dagsail.evaluation.statistics import estimate
from dagsail.policies import DEFAULT_POLICIES
from dagsail.policies.scoring.objective import objective_of
from dagsail.workloads.families import DEFAULT_COUNTS, FAMILIES

REFERENCE: Final = "kube-default@1.36"
OURS: Final = ("scorer", "portfolio", "learned")
RULES: Final = tuple(name for name in DEFAULT_POLICIES if name not in OURS)
CLUSTERS: Final = ("edge", "mixed", "large")
LOADS: Final = (0.6, 0.9, 1.2, "burst")
RECIPES: Final = ("recipe:montage:100", "recipe:blast:100", "recipe:epigenomics:100")
COMPOSITE: Final = {"completion": 0.5, "deadline": 0.3, "cost": 0.2}
LARGE_FACTOR: Final = 4
"""So many times the workflows on `large`, where a queue takes longer to form."""


@dataclass(frozen=True)
class Case:
    """One scenario, by names."""

    source: str
    cluster: str
    load: float | str
    seeds: int

    @property
    def name(self) -> str:
        return f"{Path(self.source).stem} on {self.cluster}, {self.load}"


def sources() -> list[str]:
    """Families, recipes where they can be had, and real instances where they are at hand."""
    found = [family.name for family in FAMILIES]
    try:
        dagsail.read(RECIPES[0])
        found += RECIPES
    except InputError:
        pass
    if os.environ.get("DAGSAIL_DATA"):
        folder = Path(os.environ["DAGSAIL_DATA"]) / "wfinstances-1.5"
        found += sorted(str(path) for path in folder.iterdir() if path.is_dir())
    return found


def scenario_of(load: float | str) -> Scenario:
    if load == "burst":
        arrivals = Arrivals(kind="burst", load=0.7)
    else:
        arrivals = Arrivals(kind="poisson", load=float(load))
    return Scenario(arrivals=arrivals, runtimes=Runtimes(noise=0.4))


def compare(case: Case) -> Comparison:
    source = [case.source]
    if case.source in DEFAULT_COUNTS:
        count = DEFAULT_COUNTS[case.source] * (LARGE_FACTOR if case.cluster == "large" else 1)
        source = [f"{case.source}:{count}"]
    elif Path(case.source).is_dir():
        source = sorted(str(path) for path in Path(case.source).glob("*.json*"))
    names = (*RULES, *(name for name in OURS if name not in RULES))
    return dagsail.compare(
        dagsail.read(*source),
        cluster=case.cluster,
        policies=names,
        scenario=scenario_of(case.load),
        seeds=case.seeds,
        reference=REFERENCE,
    )


def study(case: Case) -> tuple[Case, list[Judgement], dict[str, dict[str, float]]] | None:
    """Judgements and mean metrics; None where the workload does not fit the cluster."""
    try:
        comparison = compare(case)
    except InputError as error:
        print(f"left out: {case.name}: {error}", flush=True)
        return None
    objective = objective_of(COMPOSITE)
    judged = [judge(comparison, case.name, name, RULES, REFERENCE, objective) for name in OURS]
    metrics = (
        "makespan_s",
        "gpu_cost_usd",
        "node_load_std",
        "deadline_met_ratio_p0",
        "start_sla_ratio",
    )
    means = {
        name: {metric: comparison.estimate(name, metric).mean for metric in metrics}
        for name in comparison.policies
    }
    return case, judged, means


def row(case: Case, judged: list[Judgement]) -> dict[str, Any]:
    first = judged[0]
    return {
        "scenario": case.name,
        "kube/bound": first.reference_jct_s / first.bound_s,
        "best/bound": first.best_jct_s / first.bound_s,
        "best rule": first.best_rule,
        **{one.policy: _interval(one.against_best) for one in judged},
        **{f"{one.policy}, composite": _interval(one.composite) for one in judged},
    }


def _interval(pair: Any) -> str:
    low, high = pair.ratio_ci95 or (float("nan"), float("nan"))
    return f"{pair.ratio:.3f} [{low:.3f} .. {high:.3f}]"


def summary(found: list[Any]) -> list[dict[str, Any]]:
    """Means over scenarios, and the worst of them, for each of our policies."""
    rows = []
    for index, policy in enumerate(OURS):
        judged = [judgements[index] for _, judgements, _ in found]
        contended = [one for one in judged if one.is_contended]
        rows.append(
            {
                "policy": policy,
                "scenarios": len(judged),
                "against best rule": _mean([one.against_best.ratio for one in judged]),
                "worst": max(one.against_best.ratio for one in judged),
                "contended": len(contended),
                "against best rule there": _mean([one.against_best.ratio for one in contended]),
                "against kube": _mean([one.against_reference.ratio for one in judged]),
                "gap to bound closed": _mean([one.gap_closed for one in judged]),
                "composite against best": _mean([one.composite.ratio for one in judged]),
            }
        )
    return rows


def claims(found: list[Any]) -> list[dict[str, Any]]:
    """Ratios to kube-default of what others have published, as means over scenarios."""
    rows = []
    for policy in (*OURS, *RULES):
        values: dict[str, list[float]] = {}
        for _, _, means in found:
            mine, theirs = means[policy], means[REFERENCE]
            for metric in ("makespan_s", "gpu_cost_usd", "node_load_std"):
                if theirs[metric] > 0:
                    values.setdefault(metric, []).append(mine[metric] / theirs[metric])
            for metric in ("deadline_met_ratio_p0", "start_sla_ratio"):
                if np.isfinite(mine[metric]):
                    values.setdefault(metric, []).append(mine[metric])
        rows.append({"policy": policy, **{name: _mean(found) for name, found in values.items()}})
    return rows


def _mean(values: list[float]) -> str:
    if not values:
        return "-"
    found = estimate(np.array(values))
    low, high = found.ci95 or (float("nan"), float("nan"))
    return f"{found.mean:.3f} [{low:.3f} .. {high:.3f}]"


def _options() -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--clusters", nargs="+", default=CLUSTERS)
    made.add_argument("--sources", nargs="+", help="families, recipes or folders of instances")
    made.add_argument("--loads", nargs="+", default=LOADS)
    made.add_argument("--seeds", type=int, default=20)
    made.add_argument("--processes", type=int, default=os.cpu_count())
    return made.parse_args()


def main() -> None:
    options = _options()
    cases = [
        Case(source, cluster, load, options.seeds)
        for cluster in options.clusters
        for source in options.sources or sources()
        for load in options.loads
    ]
    report = Report(as_json=options.json)
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        found = [one for one in pool.imap(study, cases, chunksize=1) if one is not None]
    report.table(
        "Completion time and composite over those of the best rule",
        [row(c, j) for c, j, _ in found],
    )
    report.table("Means over scenarios", summary(found))
    report.table(
        "Ratios to kube-default@1.36, and shares kept; means over scenarios", claims(found)
    )
    report.close()


if __name__ == "__main__":
    main()
