"""Placement rules of a pod: nodeSelector, affinity and tolerations into a `Placement`.

Field names and checks are those of the Kubernetes pod spec (core/v1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from dagsail.domain.errors import FormatError
from dagsail.domain.placement import (
    EFFECTS,
    OPERATORS,
    Operator,
    Placement,
    Preference,
    Requirement,
    Term,
    Toleration,
)
from dagsail.workloads.argo.fields import integer, mapping, name, sequence, text
from dagsail.workloads.argo.values import is_known
from dagsail.workloads.reading import Repairs

_UNKNOWN: Final = "placement rules name a parameter without a value and are left out"
_NOT_MODELLED: Final = "pod affinity is not modelled and left out"
_SOFTENED: Final = "pod anti-affinity is modelled as a soft wish to spread over its topology key"
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}")


def read_placement(pod: Mapping[str, Any], where: str, repairs: Repairs) -> Placement:
    """The placement rules of a pod spec whose variables are substituted.

    Raises:
        FormatError: on a malformed rule.
    """
    affinity = mapping(pod.get("affinity"), f"{where}: affinity")
    node = mapping(affinity.get("nodeAffinity"), f"{where}: nodeAffinity")
    if affinity.get("podAffinity"):
        repairs.note(_NOT_MODELLED, where)
    return Placement(
        node_selector=_node_selector(pod.get("nodeSelector"), f"{where}: nodeSelector", repairs),
        required=_required(node, f"{where}: nodeAffinity", repairs),
        preferred=_preferred(node, f"{where}: nodeAffinity", repairs),
        tolerations=_tolerations(pod.get("tolerations"), f"{where}: tolerations", repairs),
        spread_over=_spread_over(affinity.get("podAntiAffinity"), where, repairs),
    )


def _node_selector(value: object, where: str, repairs: Repairs) -> tuple[tuple[str, str], ...]:
    pairs = {key: text(label, f"{where}.{key}") for key, label in mapping(value, where).items()}
    for key, label in pairs.items():
        if not is_known(label):
            repairs.note(_UNKNOWN, f"{where}.{key} {label}")
    return tuple(sorted((key, label) for key, label in pairs.items() if is_known(label)))


def _required(node: Mapping[str, Any], where: str, repairs: Repairs) -> tuple[Term, ...]:
    selector = mapping(
        node.get("requiredDuringSchedulingIgnoredDuringExecution"), f"{where}.required"
    )
    terms = [
        _term(entry, f"{where}.required", repairs)
        for entry in sequence(selector.get("nodeSelectorTerms"), f"{where}.nodeSelectorTerms")
    ]
    # Terms are alternatives: where one is unknown, any node might be allowed.
    return () if None in terms else tuple(term for term in terms if term is not None)


def _preferred(node: Mapping[str, Any], where: str, repairs: Repairs) -> tuple[Preference, ...]:
    found = []
    entries = node.get("preferredDuringSchedulingIgnoredDuringExecution")
    for entry in sequence(entries, f"{where}.preferred"):
        fields = mapping(entry, f"{where}.preferred")
        weight = integer(fields.get("weight"), f"{where}.preferred.weight")
        if not 1 <= weight <= 100:
            raise FormatError(f"{where}.preferred.weight: is {weight}; allowed are 1 to 100")
        term = _term(fields.get("preference"), f"{where}.preferred", repairs)
        if term is not None:
            found.append(Preference(weight, term))
    return tuple(found)


def _term(value: object, where: str, repairs: Repairs) -> Term | None:
    """One term; None where it holds a variable without a value."""
    fields = mapping(value, where)
    requirements = []
    for key in ("matchExpressions", "matchFields"):
        for entry in sequence(fields.get(key), f"{where}.{key}"):
            requirements.append(
                _requirement(entry, f"{where}.{key}", is_field=key == "matchFields")
            )
    for requirement in requirements:
        for value in (requirement.key, *requirement.values):
            if not is_known(value):
                repairs.note(_UNKNOWN, f"{where} {value}")
                return None
    return Term(tuple(requirements))


def _requirement(value: object, where: str, *, is_field: bool) -> Requirement:
    fields = mapping(value, where)
    key = name(fields.get("key"), f"{where}.key")
    operator = text(fields.get("operator"), f"{where}.operator")
    values = tuple(
        text(entry, f"{where}.values") for entry in sequence(fields.get("values"), where)
    )
    if operator not in OPERATORS:
        raise FormatError(
            f"{where}.operator: is '{operator[:40]}'; allowed are {', '.join(OPERATORS)}"
        )
    if operator in ("In", "NotIn") and not values:
        raise FormatError(f"{where}: operator {operator} on '{key}' needs values")
    if operator in ("Exists", "DoesNotExist") and values:
        raise FormatError(f"{where}: operator {operator} on '{key}' takes no values")
    if operator in ("Gt", "Lt") and (
        len(values) != 1 or (is_known(values[0]) and not _INTEGER.fullmatch(values[0]))
    ):
        raise FormatError(f"{where}: operator {operator} on '{key}' needs one whole number")
    return Requirement(key, cast(Operator, operator), values, is_field)


def _tolerations(value: object, where: str, repairs: Repairs) -> tuple[Toleration, ...]:
    found = []
    for entry in sequence(value, where):
        fields = mapping(entry, where)
        key, operator, content, effect = (
            text(fields.get(field), f"{where}.{field}")
            for field in ("key", "operator", "value", "effect")
        )
        operator = operator or "Equal"
        if operator not in ("Equal", "Exists"):
            raise FormatError(f"{where}: operator is '{operator[:40]}'; allowed are Equal, Exists")
        if effect and effect not in EFFECTS and is_known(effect):
            raise FormatError(
                f"{where}: effect is '{effect[:40]}'; allowed are {', '.join(EFFECTS)}"
            )
        if not key and operator == "Equal":
            raise FormatError(f"{where}: a toleration without a key needs operator Exists")
        if not all(map(is_known, (key, content, effect))):
            repairs.note(_UNKNOWN, f"{where} {key}={content}:{effect}")
            continue
        found.append(
            Toleration(key, "Exists" if operator == "Exists" else "Equal", content, effect)
        )
    return tuple(found)


def _spread_over(value: object, where: str, repairs: Repairs) -> str:
    """The topology key of the first anti-affinity term; required ones come first."""
    fields = mapping(value, f"{where}: podAntiAffinity")
    keys = []
    for entry in sequence(
        fields.get("requiredDuringSchedulingIgnoredDuringExecution"), f"{where}: podAntiAffinity"
    ):
        keys.append(mapping(entry, f"{where}: podAntiAffinity").get("topologyKey"))
    for entry in sequence(
        fields.get("preferredDuringSchedulingIgnoredDuringExecution"), f"{where}: podAntiAffinity"
    ):
        term = mapping(entry, f"{where}: podAntiAffinity").get("podAffinityTerm")
        keys.append(mapping(term, f"{where}: podAffinityTerm").get("topologyKey"))
    if not keys:
        return ""
    repairs.note(_SOFTENED, where)
    return name(keys[0], f"{where}: podAntiAffinity.topologyKey")
