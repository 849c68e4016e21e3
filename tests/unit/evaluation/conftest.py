"""Small runs by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.domain.cluster import Cluster, Node
from dagsail.domain.scenario import Scenario
from dagsail.domain.units import GIB
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.policies.heuristics.fifo import POLICY
from dagsail.scheduling.ports import Policy

MakeNode = Callable[..., Node]
Simulate = Callable[..., Run]


def _node(name: str, cpu: int = 2000, **settings: object) -> Node:
    allocatable = {"cpu": cpu, "memory": 8 * GIB, **settings.pop("more", {})}  # type: ignore[dict-item]
    return Node(name=name, allocatable=allocatable, **settings)  # type: ignore[arg-type]


@pytest.fixture
def node() -> MakeNode:
    """Makes a node of 2 cores and 8 GiB, or as told."""
    return _node


@pytest.fixture
def simulate() -> Simulate:
    """Runs workflows with fifo, or as told."""

    def run(
        arrivals: Sequence[Arrival],
        nodes: Sequence[Node],
        scenario: Scenario | None = None,
        policy: Policy = POLICY,
        seed: int = 0,
    ) -> Run:
        cluster = Cluster(name="small", nodes=tuple(nodes))
        return Simulation(arrivals, cluster, scenario, seed).run(policy)

    return run


@pytest.fixture
def two_by_two(simulate: Simulate, node: MakeNode) -> Run:
    """Two workflows of two tasks on two nodes; every task fills a node.

    ```
    n0  a 0..10   d 10..50
    n1  b 5..25   c 25..55
    ```
    `first` (a, then c) arrives at 0, `second` (b and d) at 5. When a ends, d is ahead of c.
    """
    full = {"cpu": 2000}
    first = Workflow(
        id="first",
        tasks=(Task(id="a", runtime_s=10, request=full), Task(id="c", runtime_s=30, request=full)),
        dependencies=(Dependency("a", "c"),),
        priority=0,  # type: ignore[arg-type]
        tenant="blue",
        deadline_s=54,
        start_deadline_s=0,
    )
    second = Workflow(
        id="second",
        tasks=(
            Task(id="b", runtime_s=20, request=full),
            Task(id="d", runtime_s=40, request=full, start_deadline_s=4),
        ),
        priority=1,  # type: ignore[arg-type]
        tenant="green",
        deadline_s=45,
    )
    nodes = [
        node("n0", price_usd_per_h=3.6),
        node("n1", price_usd_per_h=36.0, more={"nvidia.com/gpu": 1}),
    ]
    return simulate([Arrival(0.0, first), Arrival(5.0, second)], nodes)
