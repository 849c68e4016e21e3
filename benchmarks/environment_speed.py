"""Decisions a second of the lockstep environment on one core, policy excluded.

The mixed family at load 0.9 on the mixed cluster (20 nodes) and on five of it (100 nodes); eight
simulations side by side, answered with the first legal action. CPU seconds of the steps alone
count, the median of five runs.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from benchmarks._report import Report, parser
from dagsail.clusters.catalog import load_cluster
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import HOSTNAME_LABEL, Cluster
from dagsail.domain.scenario import Arrivals, Runtimes, Scenario
from dagsail.training.lockstep import Lockstep
from dagsail.workloads.workload import FamilyShare, Workload

WIDTH = 8
DECISIONS = 40_000
SCENARIO = Scenario(arrivals=Arrivals(kind="poisson", load=0.9), runtimes=Runtimes(noise=0.4))


def several(cluster: Cluster, times: int) -> Cluster:
    """A cluster with every node so many times."""
    nodes = [
        replace(
            node,
            name=f"{node.name}-{number}",
            labels={**node.labels, HOSTNAME_LABEL: f"{node.name}-{number}"},
        )
        for number in range(times)
        for node in cluster.nodes
    ]
    return replace(cluster, nodes=tuple(nodes))


def decisions_per_s(simulations: list[Simulation]) -> float:
    steps = Lockstep(WIDTH, lambda number: simulations[number % len(simulations)].twin())
    made, seconds = 0, 0.0
    while made < DECISIONS:
        actions = steps.observation.legal.reshape(WIDTH, -1).argmax(axis=1)
        begun = time.process_time()
        steps.step(actions)
        seconds += time.process_time() - begun
        made += WIDTH
    return made / seconds


def main() -> None:
    report = Report(as_json=parser(__doc__).parse_args().json)
    rows = []
    for times in (1, 5):
        cluster = several(load_cluster("mixed"), times)
        workload = Workload(families=(FamilyShare("mixed", 100 * times),))
        simulations = [
            Simulation(
                workload.arrivals(SCENARIO.arrivals, cluster, seed).arrivals,
                cluster,
                SCENARIO,
                seed,
            )
            for seed in range(2)
        ]
        decisions_per_s(simulations)
        speeds = [decisions_per_s(simulations) for _ in range(5)]
        rows.append(
            {
                "nodes": len(cluster.nodes),
                "decisions/s": round(float(np.median(speeds))),
                "least": round(min(speeds)),
                "most": round(max(speeds)),
            }
        )
    report.table("Decisions a second on one core, policy excluded", rows)
    report.close()


if __name__ == "__main__":
    main()
