"""Streams of Spark queries on ten executors, beside fair sharing, as Decima was judged.

50 TPC-H queries of 2, 50 and 100 GB arrive 25 s apart on average (exponential) on ten alike
executors that run a task each; run times vary by 40 % around their estimates. Mean completion time
and makespan over seeds, and completion time over that of `fair` with a 95 % interval.

Needs the profiles of Decima in `DAGSAIL_DATA`. They hold 17 of the 22 queries; each task takes the
mean of its stage, and an executor that changes between queries is not delayed.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

import dagsail
from benchmarks._report import Report, parser
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.compose import policies_of
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.scenario import Runtimes, Scenario
from dagsail.domain.units import CPU, GIB, MEMORY
from dagsail.domain.workflow import Arrival, Workflow
from dagsail.evaluation.statistics import compare_paired

POLICIES: Final = (
    "fifo", "fair", "kube-default@1.36", "critical-path", "least-remaining-work", "heft", "scorer",
    "learned",
)  # fmt: skip
REFERENCE: Final = "fair"
SIZES: Final = ("2g", "50g", "100g")
EXECUTORS: Final = 10
JOBS: Final = 50
MEAN_GAP_S: Final = 25.0


def queries(folder: Path) -> list[Workflow]:
    files = [str(folder / "spark-tpch" / f"tpch_{size}.json.gz") for size in SIZES]
    return list(dagsail.read(*files).workflows)


def executors(request: dict[str, int]) -> Cluster:
    """Nodes with room for one task each."""
    room = {CPU: request[CPU], MEMORY: max(request[MEMORY], GIB)}
    nodes = tuple(Node(name=f"executor-{i}", allocatable=room) for i in range(EXECUTORS))
    return Cluster(name=f"{EXECUTORS} executors", nodes=nodes)


def stream(pool: list[Workflow], seed: int) -> list[Arrival]:
    rng = np.random.default_rng(seed)
    times_s = np.cumsum(rng.exponential(MEAN_GAP_S, JOBS)).tolist()
    chosen = rng.integers(len(pool), size=JOBS).tolist()
    return [
        Arrival(time_s, replace(pool[index], id=f"{pool[index].id}-{number}"))
        for number, (time_s, index) in enumerate(zip(times_s, chosen, strict=True))
    ]


def measure(pool: list[Workflow], names: tuple[str, ...], seeds: int) -> list[dict[str, Any]]:
    cluster = executors(dict(pool[0].tasks[0].request))
    scenario = Scenario(runtimes=Runtimes(noise=0.4))
    jct_s = np.empty((len(names), seeds))
    makespan_s = np.empty((len(names), seeds))
    for seed in range(seeds):
        prepared = Simulation(stream(pool, seed), cluster, scenario, seed)
        for index, policy in enumerate(policies_of(names)):
            flows = prepared.twin().run(policy).snapshot.workflows
            jct_s[index, seed] = (flows["finish_s"] - flows["arrival_s"]).mean()
            makespan_s[index, seed] = flows["finish_s"].max() - flows["arrival_s"].min()
    reference = names.index(REFERENCE)
    rows = []
    for index, name in enumerate(names):
        pair = compare_paired(jct_s[index], jct_s[reference], "lower")
        low, high = pair.ratio_ci95 or (math.nan, math.nan)
        rows.append(
            {
                "policy": name,
                "mean JCT, s": float(jct_s[index].mean()),
                "makespan, s": float(makespan_s[index].mean()),
                f"JCT over {REFERENCE}": f"{pair.ratio:.3f} [{low:.3f} .. {high:.3f}]",
            }
        )
    return rows


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--seeds", type=int, default=20)
    options = made.parse_args()
    report = Report(as_json=options.json)
    if folder := os.environ.get("DAGSAIL_DATA"):
        pool = queries(Path(folder))
        title = f"{JOBS} TPC-H queries on {EXECUTORS} executors, {options.seeds} seeds"
        report.table(title, measure(pool, POLICIES, options.seeds))
    else:
        print("skipped: DAGSAIL_DATA is not set")
    report.close()


if __name__ == "__main__":
    main()
