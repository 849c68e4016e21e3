"""kube-scheduler's arithmetic, by hand, and which node it leads to."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Run, Simulation
from dagsail.domain.cluster import ZONE_LABEL, Cluster, Node
from dagsail.domain.placement import Placement, Preference, Requirement, Taint, Term
from dagsail.domain.scenario import Scenario, Startup
from dagsail.domain.units import GIB, MIB
from dagsail.domain.workflow import Arrival, Dependency, Priority, Task, Workflow
from dagsail.policies import kube, policy

VERSIONS = ("kube-default@1.34", "kube-default@1.35", "kube-default@1.36")


def python_of(kernel: Any) -> Any:
    """A kernel's own source, run by Python: scalar kernels have no wrapper for Python."""
    return kernel.py_func


def node(name: str, cpu: int = 4000, memory: int = 8 * GIB, **more: Any) -> Node:
    return Node(name=name, allocatable={"cpu": cpu, "memory": memory}, **more)


def single(name: str, cpu: int, memory: int, runtime_s: float = 1000.0, **more: Any) -> Workflow:
    task = Task(id="t", runtime_s=runtime_s, request={"cpu": cpu, "memory": memory}, **more)
    return Workflow(id=name, tasks=(task,))


def nodes_of(name: str, workflows: list[Workflow], nodes: list[Node], **more: Any) -> list[str]:
    """Where a policy puts workflows of one task that come a second apart, in their order."""
    arrivals = [Arrival(float(i), w) for i, w in enumerate(workflows)]
    run = Simulation(arrivals, Cluster(name="c", nodes=tuple(nodes)), **more).run(policy(name))
    return placements(run)


def placements(run: Run) -> list[str]:
    where = {int(row["task"]): run.names.nodes[int(row["node"])] for row in run.attempts}
    return [where[task] for task in sorted(where)]


@pytest.mark.parametrize(
    ("requested", "allocatable", "least", "most"),
    [(2000, 4000, 50, 50), (3 * GIB, 8 * GIB, 62, 37), (4001, 4000, 0, 0), (0, 3, 100, 0)],
)
def test_fit_scores_truncate(requested: int, allocatable: int, least: int, most: int) -> None:
    assert python_of(kube.least_allocated)(requested, allocatable) == least
    assert python_of(kube.most_allocated)(requested, allocatable) == most


@pytest.mark.parametrize(
    ("cpu", "memory", "score"),
    [
        (2000, 4 * GIB, 100),  # both half used
        (2000, 3 * GIB, 93),  # |0.5 - 0.375| / 2 = 0.0625
        (4000, 0, 50),
        (8000, 8 * GIB, 100),  # shares are clipped at 1
    ],
)
def test_balance_is_the_spread_of_two_shares(cpu: int, memory: int, score: int) -> None:
    assert python_of(kube.balance)(cpu, 4000, memory, 8 * GIB) == score


@pytest.mark.parametrize(
    ("before", "after", "score"), [(100, 100, 75), (50, 100, 100), (100, 50, 50), (100, 93, 71)]
)
def test_since_1_36_balance_counts_the_change(before: int, after: int, score: int) -> None:
    assert python_of(kube.balance_change)(before, after) == score


@pytest.mark.parametrize(
    ("nodes", "wanted"), [(5, 5), (99, 99), (100, 100), (200, 100), (1000, 420), (5000, 500)]
)
def test_large_clusters_are_sampled(nodes: int, wanted: int) -> None:
    assert python_of(kube._num_to_find)(nodes) == wanted


@pytest.mark.parametrize(
    ("scores", "root"),
    [([7, 7, 7], 0), ([1, 3, 3], 1), ([1, 2, 3, 3], 3), ([5, 9, 1, 9, 9], 1), ([2, 1], 0)],
)
def test_ties_follow_the_heap(scores: list[int], root: int) -> None:
    order = np.empty(len(scores), np.int64)
    assert python_of(kube.heap_root)(order, np.array(scores), len(scores)) == root


@pytest.mark.parametrize("name", VERSIONS)
def test_least_allocated_spreads(name: str) -> None:
    """Two equal nodes: the second task goes where the first is not."""
    tasks = [single(f"w{i}", 1000, 2 * GIB) for i in range(2)]
    assert sorted(nodes_of(name, tasks, [node("a"), node("b")])) == ["a", "b"]


def test_most_allocated_packs() -> None:
    tasks = [single(f"w{i}", 1000, 2 * GIB) for i in range(4)]
    found = nodes_of("kube-most-allocated", tasks, [node("a"), node("b")])
    assert len(set(found)) == 1


def test_the_balance_formula_of_1_36_changes_a_decision() -> None:
    """Scores by hand, for a task of 1000m and 1 GiB and two nodes with one task each.

    a (4000m, 8 GiB; 1000m, 2 GiB used): least (50 + 62) / 2 = 56; balance 93, before 100: 71.
    b (8000m, 8 GiB; 500m, 4 GiB used): least (81 + 37) / 2 = 59; balance 78, before 78: 75; so
    1.35 prefers a (56 + 93 = 149 over 59 + 78), 1.36 prefers b (59 + 75 = 134 over 56 + 71).
    """
    machines = [
        node("a", 4000, 8 * GIB, labels={"own": "a"}),
        node("b", 8000, 8 * GIB, labels={"own": "b"}),
    ]
    first = [
        single("fa", 1000, 2 * GIB, placement=Placement(node_selector=(("own", "a"),))),
        single("fb", 500, 4 * GIB, placement=Placement(node_selector=(("own", "b"),))),
    ]
    after_a = python_of(kube.balance)(2000, 4000, 3 * GIB, 8 * GIB)
    after_b = python_of(kube.balance)(1500, 8000, 5 * GIB, 8 * GIB)
    before_b = python_of(kube.balance)(500, 8000, 4 * GIB, 8 * GIB)
    assert (after_a, after_b, before_b) == (93, 78, 78)
    last = single("last", 1000, 1 * GIB)
    assert nodes_of("kube-default@1.35", [*first, last], machines)[2] == "a"
    assert nodes_of("kube-default@1.36", [*first, last], machines)[2] == "b"


def one_at_a_time(name: str) -> Counter[str]:
    """Forty tasks on ten equal nodes, each gone before the next comes."""
    tasks = [single(f"w{i}", 1000, GIB, runtime_s=0.5) for i in range(40)]
    return Counter(nodes_of(name, tasks, [node(f"n{i}") for i in range(10)]))


def test_ties_are_random_up_to_1_34_and_not_since() -> None:
    assert len(one_at_a_time("kube-default@1.34")) > 5
    assert one_at_a_time("kube-default@1.35") == {"n0": 40}
    assert one_at_a_time("kube-default@1.36") == {"n0": 40}


def test_priority_goes_first() -> None:
    """Both wait for the one node; P0 came later and goes first."""
    workflows = [
        single("busy", 4000, GIB, runtime_s=10.0),
        single("low", 4000, GIB, runtime_s=10.0, priority=Priority.P3),
        single("high", 4000, GIB, runtime_s=10.0, priority=Priority.P0),
    ]
    arrivals = [Arrival(float(i), w) for i, w in enumerate(workflows)]
    cluster = Cluster(name="c", nodes=(node("n"),))
    run = Simulation(arrivals, cluster).run(policy("kube-default@1.36"))
    assert [int(task) for task in run.attempts["task"]] == [0, 2, 1]


def test_preferences_and_soft_taints_outweigh_the_spread() -> None:
    """NodeAffinity counts twice, TaintToleration thrice 0..100."""
    fast = Term((Requirement("disk", "In", ("fast",)),))
    wish = Placement(preferred=(Preference(10, fast),))
    machines = [node("a"), node("b", labels={"disk": "fast"})]
    found = nodes_of(
        "kube-default@1.36", [single(f"w{i}", 500, GIB, placement=wish) for i in range(3)], machines
    )
    assert found == ["b", "b", "b"]
    tainted = [node("a", taints=(Taint("old", "", "PreferNoSchedule"),)), node("b")]
    found = nodes_of("kube-default@1.36", [single(f"w{i}", 500, GIB) for i in range(3)], tainted)
    assert found == ["b", "b", "b"]


def test_a_large_image_draws_tasks_to_its_node() -> None:
    """After one pull, 1 of 2 nodes has 1.5 GiB: (768 - 23) * 100 // 977 = 76 points."""
    image = {"image": "big:1", "image_bytes": 1536 * MIB}
    chain = Workflow(
        id="w",
        tasks=tuple(
            Task(id=f"t{i}", runtime_s=1.0, request={"cpu": 100, "memory": GIB}, **image)  # type: ignore[arg-type]
            for i in range(2)
        ),
        dependencies=(Dependency("t0", "t1"),),
    )
    blocker = single("blocker", 3000, 6 * GIB, placement=Placement(node_selector=(("x", "a"),)))
    machines = [node("a", labels={"x": "a"}), node("b")]
    pull = Scenario(startup=Startup(image_pull=True))
    found = nodes_of("kube-default@1.36", [chain, blocker], machines, scenario=pull)
    assert found[0] == found[1]


def test_the_search_alternates_between_zones() -> None:
    """200 empty nodes, 100 in each zone: a search ends at 100, half of them of each zone."""
    machines = [node(f"n{i}", labels={ZONE_LABEL: "a" if i < 100 else "b"}) for i in range(200)]
    tasks = [single(f"w{i}", 100, MIB) for i in range(4)]
    found = nodes_of("kube-default@1.36", tasks, machines)
    # The first search looks at n0, n100, n1, n101, ... n49, n149; the second goes on with n50.
    assert found[:2] == ["n0", "n50"]
