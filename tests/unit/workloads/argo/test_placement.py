"""nodeSelector, affinity and tolerations."""

from __future__ import annotations

from typing import Any

import pytest

from dagsail.domain.errors import FormatError
from dagsail.domain.placement import ANYWHERE, Placement, Preference, Requirement, Term, Toleration
from dagsail.workloads.argo.placement import read_placement
from dagsail.workloads.reading import Repairs

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def placement_of(pod: dict[str, Any], repairs: Repairs | None = None) -> Placement:
    return read_placement(pod, "template 'x'", repairs or Repairs("f"))


def required(*expressions: object, **more: object) -> dict[str, Any]:
    terms = [{"matchExpressions": list(expressions), **more}]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def test_no_rule_is_anywhere() -> None:
    assert placement_of({"affinity": None, "tolerations": []}) == ANYWHERE


def test_node_selectors_are_sorted() -> None:
    assert placement_of({"nodeSelector": {"b": "2", "a": "1"}}).node_selector == (
        ("a", "1"),
        ("b", "2"),
    )


def test_node_affinity() -> None:
    pod = required(
        {"key": "gpu", "operator": "In", "values": ["8", "10"]},
        matchFields=[{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}],
    )
    preference = {"matchExpressions": [{"key": "ssd", "operator": "Exists"}]}
    pod["affinity"]["nodeAffinity"][PREFERRED] = [{"weight": 7, "preference": preference}]
    placement = placement_of(pod)
    assert placement.required == (
        Term(
            (
                Requirement("gpu", "In", ("8", "10")),
                Requirement("metadata.name", "NotIn", ("n1",), is_field=True),
            )
        ),
    )
    assert placement.preferred == (Preference(7, Term((Requirement("ssd", "Exists"),))),)


def test_tolerations() -> None:
    entries = [
        {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
        {"operator": "Exists", "tolerationSeconds": 5},
    ]
    assert placement_of({"tolerations": entries}).tolerations == (
        Toleration("gpu", "Equal", "yes", "NoSchedule"),
        Toleration("", "Exists"),
    )


def test_anti_affinity_spreads_and_affinity_is_left_out_both_with_a_warning() -> None:
    repairs = Repairs("f")
    pod: dict[str, Any] = {
        "affinity": {
            "podAffinity": {REQUIRED: [{"topologyKey": "zone"}]},
            "podAntiAffinity": {
                PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "host"}}]
            },
        }
    }
    assert placement_of(pod, repairs).spread_over == "host"
    assert len(repairs.warnings()) == 2
    pod["affinity"]["podAntiAffinity"][REQUIRED] = [{"topologyKey": "zone"}]
    assert placement_of(pod).spread_over == "zone"


def test_unknown_parameters_drop_only_what_they_touch() -> None:
    repairs = Repairs("f")
    pod = required({"key": "a", "operator": "In", "values": ["{{x}}"]})
    pod["nodeSelector"] = {"pool": "{{x}}", "arch": "amd64"}
    pod["tolerations"] = [{"key": "a", "value": "{{x}}"}, {"key": "b", "operator": "Exists"}]
    placement = placement_of(pod, repairs)
    assert placement == Placement(
        node_selector=(("arch", "amd64"),), tolerations=(Toleration("b", "Exists"),)
    )
    assert "(3 x," in repairs.warnings()[0]


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        ({"nodeSelector": {"a": True}}, "nodeSelector.a: must be text, found the truth value true"),
        ({"nodeSelector": ["a"]}, "nodeSelector: must be a mapping, found a list"),
        ({"affinity": "x"}, "affinity: must be a mapping"),
        (required({"key": "a", "operator": "Is"}), "operator: is 'Is'; allowed are In, NotIn"),
        (required({"operator": "Exists"}), "key: is missing"),
        (required({"key": "a", "operator": "In"}), "In on 'a' needs values"),
        (required({"key": "a", "operator": "Exists", "values": ["x"]}), "takes no values"),
        (required({"key": "a", "operator": "Gt", "values": ["x"]}), "needs one whole number"),
        ({"tolerations": {"key": "a"}}, "tolerations: must be a list"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "effect is 'Never'; allowed are"),
        ({"tolerations": [{"key": "a", "operator": "In"}]}, "operator is 'In'"),
        ({"tolerations": [{"value": "a"}]}, "needs operator Exists"),
        (
            {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 0, "preference": {}}]}}},
            "weight: is 0; allowed are 1 to 100",
        ),
        ({"affinity": {"podAntiAffinity": {REQUIRED: [{}]}}}, "topologyKey: is missing"),
    ],
)
def test_malformed_rules_are_refused(pod: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        placement_of(pod)
