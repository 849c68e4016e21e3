"""HEFT against SAGA's: planning time and makespan on the same random layered DAGs, 32 nodes.

"arrays" is the time to turn a workflow and a cluster into arrays (Python), "plan" that of the
compiled planner, "total" both, from the same kind of objects that SAGA starts from. SAGA averages
the communication cost over all pairs of nodes, a node with itself included (at no cost), where the
paper averages over distinct pairs. "alike %" is the difference of makespans if ours does so too.
"""

from __future__ import annotations

import importlib.metadata
import logging
from typing import Any

from benchmarks._instances import BYTES_PER_S, layered_dag, one_slot_nodes
from benchmarks._report import Report, cpu_seconds, median_cpu_s, parser
from dagsail.domain.cluster import Cluster
from dagsail.domain.graph import graph_of, upward_rank
from dagsail.domain.scenario import Scenario
from dagsail.domain.workflow import Arrival, Workflow
from dagsail.policies.offline import plan_assembled, plan_offline
from dagsail.scheduling.assemble import assemble

NUM_NODES = 32
SIZES = (100, 500, 1000, 2000, 5000)
REPETITIONS = 7
_COMPARED = (
    "SAGA s",
    "SAGA/total",
    "SAGA/plan",
    "makespan",
    "SAGA makespan",
    "diff %",
    "alike %",
)


def saga_heft(workflow: Workflow, cluster: Cluster) -> tuple[float, float]:
    """CPU seconds and makespan of SAGA's HEFT; building its objects is not counted."""
    from saga import Network, TaskGraph
    from saga.schedulers.heft import HeftScheduler

    logging.getLogger().setLevel(logging.ERROR)  # it warns of every DAG with several entries
    nodes = cluster.nodes
    pairs = [(a.name, b.name, BYTES_PER_S) for i, a in enumerate(nodes) for b in nodes[i + 1 :]]
    network = Network.create([(node.name, node.speed) for node in nodes], pairs)
    graph = TaskGraph.create(
        [(task.id, task.runtime_s) for task in workflow.tasks],
        [(edge.parent, edge.child, float(edge.data_bytes)) for edge in workflow.dependencies],
    )
    seconds, schedule = cpu_seconds(lambda: HeftScheduler().schedule(network, graph))
    return seconds, float(schedule.makespan)


def makespan_with_saga_ranks(workflow: Workflow, cluster: Cluster) -> float:
    """Our makespan if transfer costs are averaged over all pairs, a node with itself included."""
    snapshot, _ = assemble([Arrival(0.0, workflow)], cluster, Scenario())
    count = len(cluster.nodes)
    share_of_distinct = (count - 1) / (count + 1)
    snapshot.tasks["upward_rank_s"] = upward_rank(
        graph_of(workflow), snapshot.tasks["mean_s"], share_of_distinct / BYTES_PER_S, 0.0
    )
    return plan_assembled(snapshot).makespan_s


def measure(num_tasks: int, largest_for_saga: int) -> dict[str, Any]:
    """One row of the table."""
    workflow, cluster = layered_dag(num_tasks, seed=num_tasks), one_slot_nodes(NUM_NODES, seed=1)
    arrivals = [Arrival(0.0, workflow)]
    snapshot, _ = assemble(arrivals, cluster, Scenario())
    plan_s = median_cpu_s(lambda: lambda: plan_assembled(snapshot), REPETITIONS)
    total_s = median_cpu_s(lambda: lambda: plan_offline(workflow, cluster), REPETITIONS)
    arrays_s = median_cpu_s(lambda: lambda: assemble(arrivals, cluster, Scenario()), REPETITIONS)
    makespan_s = plan_offline(workflow, cluster).makespan_s
    row: dict[str, Any] = {
        "tasks": num_tasks,
        "edges/task": len(workflow.dependencies) / num_tasks,
        "arrays s": arrays_s,
        "plan s": plan_s,
        "total s": total_s,
    }
    if num_tasks > largest_for_saga:
        return row | dict.fromkeys(_COMPARED) | {"makespan": makespan_s}
    saga_s, saga_makespan_s = saga_heft(workflow, cluster)
    alike_s = makespan_with_saga_ranks(workflow, cluster)
    compared = (
        saga_s,
        saga_s / total_s,
        saga_s / plan_s,
        makespan_s,
        saga_makespan_s,
        round(100 * (makespan_s / saga_makespan_s - 1), 6),
        round(100 * (alike_s / saga_makespan_s - 1), 6),
    )
    return row | dict(zip(_COMPARED, compared, strict=True))


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument(
        "--saga-up-to", type=int, default=2000, metavar="TASKS", help="largest DAG for SAGA"
    )
    options = arguments.parse_args()
    report = Report(as_json=options.json)
    version = importlib.metadata.version("anrg-saga")
    title = f"HEFT on {NUM_NODES} nodes, CPU seconds, against anrg-saga {version}"
    report.table(title, [measure(size, options.saga_up_to) for size in SIZES])
    report.close()


if __name__ == "__main__":
    main()
