"""Placement rules of a task: which nodes it may use, and which it would like.

The vocabulary and semantics are those of the Kubernetes pod spec (nodeSelector, node affinity,
taints and tolerations), plus the soft constraints of requirements row D13.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label (or, with `is_field`, on the node's name)."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    is_field: bool = False

    def matches(self, labels: Mapping[str, str], node_name: str = "") -> bool:
        """Whether a node with these labels satisfies the condition."""
        value = node_name if self.is_field else labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt":
                return _integer(value) > _integer(self.values[0]) if value else False
            case "Lt":
                return _integer(value) < _integer(self.values[0]) if value else False


def _integer(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float("nan")


@dataclass(frozen=True, slots=True)
class Term:
    """Conditions that must all hold; an empty term matches nothing, as in Kubernetes."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str], node_name: str = "") -> bool:
        """Whether a node with these labels satisfies every condition."""
        return bool(self.requirements) and all(
            r.matches(labels, node_name) for r in self.requirements
        )


@dataclass(frozen=True, slots=True)
class Preference:
    """A term that a task would like its node to satisfy; `weight` is 1..100."""

    weight: int
    term: Term


@dataclass(frozen=True, slots=True)
class Taint:
    """Repels tasks that do not tolerate it."""

    key: str
    value: str = ""
    effect: Effect = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """Lets a task onto nodes with a matching taint. An empty effect matches every effect."""

    key: str = ""
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether this toleration covers that taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if not self.key:
            return self.operator == "Exists"
        if self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


@dataclass(frozen=True, slots=True)
class Placement:
    """All placement rules of a task. Hashable, so that tasks with equal rules share one object.

    Attributes:
        node_selector: sorted (label, value) pairs that the node must carry.
        required: alternatives (ORed) of which the node must match one; empty means no demand.
        preferred: weighted terms that raise a node's score.
        tolerations: taints that the task puts up with.
        gpu_models: acceptable GPU models; empty means any.
        min_cuda: CUDA version that the node's driver must at least support, as (major, minor).
        spread_over: label whose values tasks of one kind and workflow should spread over (soft).
        near_parents: prefer the zone that holds the input data (soft, for chatty tasks).
        wants_local_ssd: prefer a node with a local SSD (soft).
    """

    node_selector: tuple[tuple[str, str], ...] = ()
    required: tuple[Term, ...] = ()
    preferred: tuple[Preference, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    gpu_models: tuple[str, ...] = ()
    min_cuda: tuple[int, int] | None = None
    spread_over: str = ""
    near_parents: bool = False
    wants_local_ssd: bool = False


ANYWHERE: Final = Placement()
"""No rule at all: any node will do."""
