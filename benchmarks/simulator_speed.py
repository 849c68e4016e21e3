"""Simulated tasks a second, building the arrays and compiling excluded, on one core.

Real workloads are read from the folder in DAGSAIL_DATA; without it only generated ones are run.
Workloads submitted all at once keep thousands of tasks queued, which is the hard case; those
submitted near capacity keep few. Exponents are slopes of log(time) over log(size): 1 is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._instances import mixed_nodes, num_tasks_of, random_workload, real_workloads
from benchmarks._report import Report, median_cpu_s, parser
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import Cluster
from dagsail.domain.scenario import Scenario, Transfers
from dagsail.domain.workflow import Arrival
from dagsail.policies import POLICIES, policy

MAIN_POLICIES = ("fifo", "kube-default@1.36")
NUM_NODES = 100
REPETITIONS = 3
POLICY_TASKS = 2000
TASK_COUNTS = (1000, 3000, 10_000, 30_000, 100_000)
NODE_COUNTS = (10, 30, 100, 300, 1000)
S_PER_TASK = 0.045
"""Time between submissions over tasks submitted: about what 100 mixed nodes can just do."""

FAIR_SHARING = Scenario(name="fair sharing", transfers=Transfers(fair_sharing=True))


def run_s(
    arrivals: Sequence[Arrival],
    cluster: Cluster,
    name: str,
    scenario: Scenario | None = None,
    repetitions: int = REPETITIONS,
) -> float:
    """Median CPU seconds of a run from assembled arrays to the end."""
    chosen = policy(name)

    def make_call() -> Any:
        simulation = Simulation(arrivals, cluster, scenario)
        return lambda: simulation.run(chosen)

    return median_cpu_s(make_call, repetitions)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """Slope of log(time) over log(size), by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def by_workload() -> list[dict[str, Any]]:
    workloads = real_workloads()
    workloads["layered DAGs, near capacity"] = random_workload(10_000, S_PER_TASK)
    workloads["layered DAGs, all at once"] = random_workload(10_000)
    cluster = mixed_nodes(NUM_NODES)
    rows = []
    for title, arrivals in workloads.items():
        count = num_tasks_of(arrivals)
        rates = {
            f"{name}, tasks/s": count / run_s(arrivals, cluster, name) for name in MAIN_POLICIES
        }
        rows.append({"workload": title, "tasks": count, **rates})
    return rows


def by_policy() -> list[dict[str, Any]]:
    """Planners make a new plan at every arrival, so near capacity they plan a hundred times."""
    cluster = mixed_nodes(NUM_NODES)
    streams = {
        "near capacity, tasks/s": random_workload(POLICY_TASKS, S_PER_TASK),
        "all at once, tasks/s": random_workload(POLICY_TASKS),
    }
    rows = []
    for entry in POLICIES:
        rates = {
            title: POLICY_TASKS / run_s(arrivals, cluster, entry.name, repetitions=1)
            for title, arrivals in streams.items()
        }
        rows.append({"policy": entry.name, **rates})
    return rows


def by_tasks() -> list[dict[str, Any]]:
    """The cluster stays, the stream gets longer."""
    cluster = mixed_nodes(NUM_NODES)
    streams = [random_workload(count, S_PER_TASK) for count in TASK_COUNTS]
    seconds = {name: [run_s(stream, cluster, name) for stream in streams] for name in MAIN_POLICIES}
    return _curve("tasks", TASK_COUNTS, seconds)


def by_nodes() -> list[dict[str, Any]]:
    """The workload stays, submitted all at once, so that tasks queue on clusters of any size."""
    arrivals = random_workload(20_000)
    clusters = [mixed_nodes(count) for count in NODE_COUNTS]
    seconds = {
        name: [run_s(arrivals, cluster, name) for cluster in clusters] for name in MAIN_POLICIES
    }
    return _curve("nodes", NODE_COUNTS, seconds)


def _curve(
    what: str, sizes: Sequence[int], seconds: dict[str, list[float]]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {what: f"{size:,}", **{f"{name} s": times[i] for name, times in seconds.items()}}
        for i, size in enumerate(sizes)
    ]
    slopes = {f"{name} s": exponent(sizes, times) for name, times in seconds.items()}
    return [*rows, {what: "exponent", **slopes}]


def by_network() -> list[dict[str, Any]]:
    """What the fair-sharing network costs over full bandwidth for every transfer."""
    workloads = {
        title: arrivals
        for title, arrivals in real_workloads().items()
        if not title.startswith("Alibaba")  # its edges carry no data
    }
    workloads["layered DAGs, near capacity"] = random_workload(10_000, S_PER_TASK)
    cluster = mixed_nodes(NUM_NODES)
    rows = []
    for title, arrivals in workloads.items():
        plain_s = run_s(arrivals, cluster, "fifo")
        shared_s = run_s(arrivals, cluster, "fifo", FAIR_SHARING, repetitions=1)
        count = num_tasks_of(arrivals)
        rows.append(
            {
                "workload": title,
                "full bandwidth, tasks/s": count / plain_s,
                "fair sharing, tasks/s": count / shared_s,
                "times slower": shared_s / plain_s,
            }
        )
    return rows


def main() -> None:
    options = parser(__doc__).parse_args()
    report = Report(as_json=options.json)
    report.table(f"{NUM_NODES} nodes, by workload", by_workload())
    report.table(
        f"all policies, {POLICY_TASKS:,} tasks of layered DAGs, {NUM_NODES} nodes", by_policy()
    )
    report.table(f"CPU seconds by number of tasks, {NUM_NODES} nodes", by_tasks())
    report.table("CPU seconds by number of nodes, 20,000 tasks", by_nodes())
    report.table("fair-sharing network, fifo", by_network())
    report.close()


if __name__ == "__main__":
    main()
