"""CPU time of one decision on one thread: features, legality, choice and placement included.

A thousand independent tasks of 12 request sizes are ready at once on 100 and on 5,000 nodes; each
decision places one. P99 over all decisions until nothing more fits, five times over.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks._instances import mixed_nodes, random_workload
from benchmarks._report import Report, parser
from dagsail.clusters.simulated import engine
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.workflow import Arrival, Workflow
from dagsail.policies import policy

POLICIES = ("least-remaining-work", "kube-default@1.36", "scorer", "learned")
NODES = (100, 5_000)
NUM_TASKS = 1_000
REPETITIONS = 5


def independent_tasks() -> list[Arrival]:
    """The tasks of the layered DAGs, without their dependencies."""
    return [
        Arrival(0.0, Workflow(id=arrival.workflow.id, tasks=arrival.workflow.tasks))
        for arrival in random_workload(NUM_TASKS)
    ]


def decision_s(prepared: Simulation, name: str) -> list[float]:
    """Seconds of each placement of the first instant."""
    rule = policy(name)
    simulation = prepared.twin()
    assert engine.advance(simulation.snapshot, simulation.world) == engine.DECIDE
    memory = rule.prepare(simulation.snapshot, 0)
    seconds = []
    while True:
        begin = time.thread_time()
        placed = rule.decide(simulation.snapshot, memory, 1)
        seconds.append(time.thread_time() - begin)
        if placed == 0 or len(seconds) == NUM_TASKS:
            return seconds


def measure(num_nodes: int) -> list[dict[str, Any]]:
    prepared = Simulation(independent_tasks(), mixed_nodes(num_nodes))
    rows = []
    for name in POLICIES:
        decision_s(prepared, name)  # compiles
        found = np.array([s for _ in range(REPETITIONS) for s in decision_s(prepared, name)])
        rows.append(
            {
                "policy": name,
                "decisions": len(found) // REPETITIONS,
                "median, ms": 1e3 * float(np.median(found)),
                "P99, ms": 1e3 * float(np.quantile(found, 0.99)),
                "longest, ms": 1e3 * float(found.max()),
            }
        )
    return rows


def main() -> None:
    options = parser(__doc__).parse_args()
    report = Report(as_json=options.json)
    for num_nodes in NODES:
        report.table(f"{NUM_TASKS:,} ready tasks, {num_nodes:,} nodes", measure(num_nodes))
    report.close()


if __name__ == "__main__":
    main()
