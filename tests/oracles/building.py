"""Small clusters and workflows, and runs of them as rows with names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.clusters.simulated.world import OUTCOMES
from dagsail.domain.cluster import (
    HOSTNAME_LABEL,
    RACK_LABEL,
    ZONE_LABEL,
    Cluster,
    Link,
    Network,
    Node,
)
from dagsail.domain.placement import Placement
from dagsail.domain.scenario import Scenario
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.policies.heuristics.fifo import POLICY as FIFO
from dagsail.scheduling.ports import Policy

ROUND_NUMBERS = Network(
    same_rack=Link(1.0, 100.0), same_zone=Link(2.0, 50.0), cross_zone=Link(4.0, 20.0)
)
"""A network slow enough to work out by hand: latency 1, 2, 4 s; 100, 50, 20 bytes/s."""


class Attempt(NamedTuple):
    workflow: str
    task: str
    attempt: int
    node: str
    outcome: str
    ready_s: float
    start_s: float
    end_s: float
    request: Mapping[str, int]
    workers: tuple[str, ...]


def node(
    name: str,
    cpu: int = 1000,
    memory: int = 4 * GIB,
    zone: str = "z",
    rack: str = "r",
    resources: Mapping[str, int] | None = None,
    **more: Any,
) -> Node:
    return Node(
        name=name,
        allocatable={"cpu": cpu, "memory": memory, **(resources or {})},
        labels={HOSTNAME_LABEL: name, ZONE_LABEL: zone, RACK_LABEL: rack},
        **more,
    )


def cluster(*nodes: Node, network: Network = ROUND_NUMBERS) -> Cluster:
    return Cluster(name="small", nodes=nodes, network=network)


def task(name: str, runtime_s: float, cpu: int = 1000, on: str = "", **more: Any) -> Task:
    """A task; `on` pins it to a node, `request` adds resources."""
    request = {"cpu": cpu, **more.pop("request", {})}
    if on:
        more["placement"] = Placement(node_selector=((HOSTNAME_LABEL, on),))
    return Task(id=name, runtime_s=runtime_s, request=request, **more)


def workflow(
    tasks: Iterable[Task],
    edges: Iterable[tuple[str, str] | tuple[str, str, int]] = (),
    name: str = "w",
    **more: Any,
) -> Workflow:
    return Workflow(
        id=name,
        tasks=tuple(tasks),
        dependencies=tuple(Dependency(*edge) for edge in edges),
        **more,
    )


def together(*workflows: Workflow) -> list[Arrival]:
    return [Arrival(0.0, one) for one in workflows]


def simulate(
    arrivals: Workflow | list[Arrival],
    machines: Cluster,
    scenario: Scenario | None = None,
    policy: Policy = FIFO,
    seed: int = 0,
) -> Run:
    if isinstance(arrivals, Workflow):
        arrivals = together(arrivals)
    return Simulation(arrivals, machines, scenario, seed).run(policy)


def rows(run: Run) -> list[Attempt]:
    """The attempts with names, in order of ending."""
    names = run.names
    owner = run.snapshot.tasks["workflow"]
    counts = run.snapshot.tasks["num_workers"]
    found = []
    for row in run.attempts:
        position = int(row["task"])
        place = int(row["node"])
        first = int(row["worker_start"])
        if place < 0:
            workers: tuple[str, ...] = ()
        elif counts[position] == 1:
            workers = (names.nodes[place],)
        else:
            nodes = run.attempt_workers[first : first + int(counts[position])]
            workers = tuple(names.nodes[int(n)] for n in nodes)
        amounts = run.snapshot.shape_request[int(row["shape"])].tolist()
        found.append(
            Attempt(
                names.workflows[int(owner[position])],
                names.tasks[position],
                int(row["attempt"]),
                names.nodes[place] if place >= 0 else "",
                OUTCOMES[int(row["outcome"])],
                float(row["ready_s"]),
                float(row["start_s"]),
                float(row["end_s"]),
                dict(zip(names.resources, amounts, strict=True)),
                workers,
            )
        )
    return found


def ends(run: Run) -> dict[str, float]:
    """When each task finished, by name; only of tasks that did."""
    return {row.task: row.end_s for row in rows(run) if row.outcome == "finished"}


def makespan_s(run: Run) -> float:
    return float(run.attempts["end_s"].max())
