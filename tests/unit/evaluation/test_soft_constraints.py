from __future__ import annotations

import math

import pytest

from dagsail.domain.cluster import ZONE_LABEL
from dagsail.domain.placement import Placement, Preference, Requirement, Term
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.evaluation.soft_constraints import violation_ratio


def wishful(placement, count=1, cpu=1000, kind=""):
    request = {"cpu": cpu}
    return tuple(
        Task(id=f"t{i}", runtime_s=10, request=request, placement=placement, kind=kind)
        for i in range(count)
    )


def ratio(simulate, tasks, nodes, dependencies=()):
    workflow = Workflow(id="w", tasks=tuple(tasks), dependencies=tuple(dependencies))
    return violation_ratio(simulate([Arrival(0.0, workflow)], nodes))


def zoned(node, name, zone, **settings):
    return node(name, labels={ZONE_LABEL: zone}, **settings)


def test_without_wishes_there_is_no_ratio(simulate, node):
    assert math.isnan(ratio(simulate, wishful(Placement()), [node("n0")]))


def test_a_local_ssd_counts_if_some_eligible_node_has_one(simulate, node):
    wish = Placement(wants_local_ssd=True)
    nodes = [node("n0"), node("n1", has_local_ssd=True)]
    # First fit: two on n0, the third on n1.
    assert ratio(simulate, wishful(wish, 3), nodes) == pytest.approx(2 / 3)
    assert math.isnan(ratio(simulate, wishful(wish, 3), [node("n0"), node("n1")]))


def test_the_best_liked_node_grants_a_preference(simulate, node):
    blue = Term((Requirement("colour", "In", ("blue",)),))
    wish = Placement(preferred=(Preference(10, blue),))
    nodes = [node("n0", labels={"colour": "red"}), node("n1", labels={"colour": "blue"})]
    assert ratio(simulate, wishful(wish, 3), nodes) == pytest.approx(2 / 3)
    assert math.isnan(ratio(simulate, wishful(wish, 3), nodes[:1]))


def test_near_parents_means_the_zone_with_most_of_the_input(simulate, node):
    nodes = [zoned(node, "n0", "a", cpu=1000), zoned(node, "n1", "b", cpu=2000)]
    little = Task(id="little", runtime_s=10, request={"cpu": 1000})  # on n0
    much = Task(id="much", runtime_s=10, request={"cpu": 2000})  # on n1
    child = Task(
        id="child", runtime_s=1, request={"cpu": 1000}, placement=Placement(near_parents=True)
    )  # first fit: on n0

    def edges(little_bytes, much_bytes):
        return [
            Dependency("little", "child", little_bytes),
            Dependency("much", "child", much_bytes),
        ]

    tasks = [little, much, child]
    assert ratio(simulate, tasks, nodes, edges(10, 1000)) == 1
    assert ratio(simulate, tasks, nodes, edges(1000, 10)) == 0
    big = Task(
        id="child", runtime_s=1, request={"cpu": 2000}, placement=Placement(near_parents=True)
    )  # cannot go to zone a at all
    assert ratio(simulate, [little, much, big], nodes, edges(1000, 10)) == 0


def test_tasks_of_a_kind_beyond_an_even_share_are_in_excess(simulate, node):
    wish = Placement(spread_over=ZONE_LABEL)
    nodes = [zoned(node, "n0", "a", cpu=3000), zoned(node, "n1", "b")]
    # First fit: three in zone a, one in zone b; two each would be even.
    assert ratio(simulate, wishful(wish, 4, kind="k"), nodes) == pytest.approx(1 / 4)
    assert ratio(simulate, wishful(wish, 4, kind="k"), [*nodes[:1], nodes[1]]) == 0.25


def test_kinds_spread_apart_from_each_other(simulate, node):
    wish = Placement(spread_over=ZONE_LABEL)
    nodes = [zoned(node, "n0", "a", cpu=2000), zoned(node, "n1", "b")]
    alike = wishful(wish, 2, kind="k")
    unlike = [
        Task(id=f"t{i}", runtime_s=10, request={"cpu": 1000}, placement=wish, kind=f"k{i}")
        for i in range(2)
    ]
    assert ratio(simulate, alike, nodes) == 0.5
    assert ratio(simulate, unlike, nodes) == 0
