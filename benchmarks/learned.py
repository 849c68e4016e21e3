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
import json
import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import dagsail
from benchmarks._report import Report, parser
from dagsail.compose import policies_of
from dagsail.domain.errors import InputError
from dagsail.domain.scenario import Arrivals, Runtimes, Scenario
from dagsail.evaluation.comparison import Comparison
from dagsail.evaluation.judgement import judge
from dagsail.evaluation.statistics import estimate
from dagsail.policies import DEFAULT_POLICIES
from dagsail.policies.scoring.objective import objective_of
from dagsail.workloads.families import DEFAULT_COUNTS, FAMILIES

REFERENCE: Final = "kube-default@1.36"
COMPOSITE: Final = {"completion": 0.5, "deadline": 0.3, "cost": 0.2}
BY_COMPLETION: Final = ("scorer", "portfolio", "learned")
BY_COMPOSITE: Final = {
    name: f"{name}:" + "+".join(f"{aim}={share}" for aim, share in COMPOSITE.items())
    for name in ("scorer", "learned")
}
"""The same with the composite as their objective."""
OURS: Final = (*BY_COMPLETION, *BY_COMPOSITE.values())
RULES: Final = tuple(name for name in DEFAULT_POLICIES if name not in OURS)
RATIOS: Final = ("makespan_s", "gpu_cost_usd", "node_load_std")
SHARES: Final = ("deadline_met_ratio_p0", "start_sla_ratio")
METRICS: Final = ("jct_mean_s", *RATIOS, *SHARES)
CLUSTERS: Final = ("edge", "mixed", "large")
LOADS: Final = (0.6, 0.9, 1.2, "burst")
RECIPES: Final = ("recipe:montage:100", "recipe:blast:100", "recipe:epigenomics:100")
SHARE: Final = {"edge": 0.25, "mixed": 0.5, "large": 2.0}
"""Of a family's usual number of workflows: on more nodes it takes more until a queue forms."""

Found = dict[str, Any]
"""A case and what came of it, as plain objects."""


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
        count = DEFAULT_COUNTS[case.source] * SHARE.get(case.cluster, 1.0)
        source = [f"{case.source}:{round(count)}"]
    elif Path(case.source).is_dir():
        source = sorted(str(path) for path in Path(case.source).glob("*.json*"))
    return dagsail.compare(
        dagsail.read(*source),
        cluster=case.cluster,
        policies=policies_of([*RULES, *OURS]),
        scenario=scenario_of(case.load),
        seeds=case.seeds,
        reference=REFERENCE,
    )


def study(case: Case) -> Found:
    """Judgements and mean metrics, as plain objects; the reason where it cannot be run."""
    try:
        comparison = compare(case)
    except InputError as error:
        return {"case": asdict(case), "left_out": str(error)}
    judged = {
        name: judge(
            comparison, case.name, name, RULES, REFERENCE, objective_of(COMPOSITE)
        ).to_json()
        for name in OURS
    }
    means = {
        name: {metric: comparison.estimate(name, metric).mean for metric in METRICS}
        for name in comparison.policies
    }
    return {"case": asdict(case), "judged": judged, "means": means}


def studies(cases: Sequence[Case], processes: int, path: Path | None) -> list[Found]:
    """Every case; those in the file already are taken from it, the others are added to it."""
    lines = path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []
    known = {Case(**found["case"]): found for found in map(json.loads, lines)}
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        missing = [case for case in cases if case not in known]
        for found in pool.imap_unordered(study, missing, chunksize=1):
            known[Case(**found["case"])] = found
            if path:
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(found) + "\n")
    return [known[case] for case in cases]


def row(found: Found) -> dict[str, Any]:
    judged = found["judged"]
    first = judged[OURS[0]]
    columns = {
        "scenario": Case(**found["case"]).name,
        "kube/bound": found["means"][REFERENCE]["jct_mean_s"] / first["jct_bound_s"],
        "best/bound": _best_to_bound(first),
        "best rule": first["best_rule"],
    }
    for name in BY_COMPLETION:
        columns[name] = _interval(judged[name]["against_best_rule"])
    columns["best composite"] = first["best_rule_by_composite"]
    for name, policy in BY_COMPOSITE.items():
        columns[f"{name}, composite"] = _interval(judged[policy]["composite_against_best_rule"])
    return columns


def _best_to_bound(judged: dict[str, Any]) -> float:
    best_s: float = judged["jct_mean_s"] / judged["against_best_rule"]["ratio"]
    return best_s / float(judged["jct_bound_s"])


def _interval(pair: dict[str, Any]) -> str:
    low, high = pair["ratio_ci95"] or (float("nan"), float("nan"))
    return f"{pair['ratio']:.3f} [{low:.3f} .. {high:.3f}]"


def summary(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Means over scenarios, and the worst of them, for each of our policies."""
    rows = []
    for name in BY_COMPLETION:
        judged = [one["judged"][name] for one in found]
        best = [one["against_best_rule"]["ratio"] for one in judged]
        contended = [one["against_best_rule"]["ratio"] for one in judged if one["contended"]]
        composite = BY_COMPOSITE.get(name, name)
        rows.append(
            {
                "policy": name,
                "scenarios": len(judged),
                "against best rule": _mean(best),
                "worst": max(best),
                "contended": len(contended),
                "against best rule there": _mean(contended),
                "against kube": _mean([one["against_reference"]["ratio"] for one in judged]),
                "worst against kube": max(one["against_reference"]["ratio"] for one in judged),
                "gap to bound closed": _mean([one["gap_closed_ratio"] for one in judged]),
                "composite against best": _mean(
                    [
                        one["judged"][composite]["composite_against_best_rule"]["ratio"]
                        for one in found
                    ]
                ),
            }
        )
    return rows


def claims(found: Sequence[Found]) -> list[dict[str, Any]]:
    """Ratios to kube-default of what others have published, as means over scenarios."""
    rows = []
    for policy in (*OURS, *RULES):
        values: dict[str, list[float]] = {}
        for one in found:
            mine, theirs = one["means"][policy], one["means"][REFERENCE]
            for metric in RATIOS:
                if theirs[metric] > 0:
                    values.setdefault(metric, []).append(mine[metric] / theirs[metric])
            for metric in SHARES:
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
    made.add_argument("--save", type=Path, help="JSON lines: finished scenarios, not run again")
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
    everything = studies(cases, options.processes, options.save)
    found = [one for one in everything if "judged" in one]
    report.table(
        "Completion time and composite over those of the best rule", [row(one) for one in found]
    )
    report.table("Means over scenarios", summary(found))
    report.table(
        "Ratios to kube-default@1.36, and shares kept; means over scenarios", claims(found)
    )
    left_out = [one for one in everything if "left_out" in one]
    if left_out:
        rows = [{"scenario": Case(**one["case"]).name, "why": one["left_out"]} for one in left_out]
        report.table("Left out", rows)
    report.close()


if __name__ == "__main__":
    main()
