"""Placement rules of the native workflow format, spelled as in a Kubernetes pod spec.

Checked as the API server would (`nodeSelectorTerms` not empty, values where the operator wants
them), so that a rule that can never work is refused here and not found out by waiting.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Literal

from msgspec import Meta, field

from dagsail.documents import Name, Strict
from dagsail.domain.placement import (
    Operator,
    Placement,
    Preference,
    Requirement,
    Term,
    Toleration,
)
from dagsail.scalars import CudaVersion, describe


class NodeSelectorRequirement(Strict, frozen=True, kw_only=True):
    """One condition on one label or field of a node."""

    key: Name
    """Label key; `metadata.name` under matchFields."""
    operator: Operator
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: tuple[str, ...] = ()
    """At least one for In and NotIn, none for Exists and DoesNotExist, one integer for Gt, Lt."""

    def __post_init__(self) -> None:
        if self.operator in ("In", "NotIn") and not self.values:
            raise ValueError(f"operator {self.operator} needs at least one value")
        if self.operator in ("Exists", "DoesNotExist") and self.values:
            raise ValueError(f"operator {self.operator} takes no values")
        if self.operator in ("Gt", "Lt") and not _is_one_integer(self.values):
            raise ValueError(f"operator {self.operator} needs exactly one value, an integer")


def _is_one_integer(values: tuple[str, ...]) -> bool:
    return len(values) == 1 and re.fullmatch(r"-?[0-9]{1,18}", values[0]) is not None


class NodeSelectorTerm(Strict, frozen=True, kw_only=True):
    """Conditions that must all hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    """Conditions on labels."""
    match_fields: tuple[NodeSelectorRequirement, ...] = ()
    """Conditions on `metadata.name`."""

    def __post_init__(self) -> None:
        for requirement in self.match_fields:
            if requirement.key != "metadata.name" or requirement.operator not in ("In", "NotIn"):
                raise ValueError(
                    f"matchFields: found {describe(requirement.key)} {requirement.operator};"
                    " only metadata.name with In or NotIn is allowed"
                )


class RequiredTerms(Strict, frozen=True, kw_only=True):
    """Alternatives of which the node must match one."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Meta(min_length=1)]
    """The alternatives (ORed)."""


class PreferredTerm(Strict, frozen=True, kw_only=True):
    """A term that raises a node's score."""

    weight: Annotated[int, Meta(ge=1, le=100)]
    """How much it counts, 1 to 100."""
    preference: NodeSelectorTerm
    """What the node should match."""


class NodeAffinity(Strict, frozen=True, kw_only=True):
    """Rules about node labels."""

    required_during_scheduling_ignored_during_execution: RequiredTerms | None = None
    """What a node must match. Default: nothing."""
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTerm, ...] = ()
    """What a node should match."""


class Affinity(Strict, frozen=True, kw_only=True):
    """Affinity of a task; only to nodes."""

    node_affinity: NodeAffinity
    """Rules about node labels."""


class TolerationSpec(Strict, frozen=True, kw_only=True):
    """A taint that the task puts up with."""

    key: str = ""
    """Key of the taint; empty (with operator Exists) means every taint."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Equal compares the value, Exists does not."""
    value: str = ""
    """Value of the taint."""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""
    """Effect of the taint; empty means every effect."""

    def __post_init__(self) -> None:
        if not self.key and self.operator == "Equal":
            raise ValueError("a toleration without key needs operator Exists")
        if self.operator == "Exists" and self.value:
            raise ValueError("operator Exists takes no value")


class PlacementSpec(Strict, frozen=True, kw_only=True):
    """The keys of a task that say which nodes it may use, and which it would like."""

    node_selector: dict[str, str] = field(default_factory=dict)
    """Labels that the node must carry."""
    affinity: Affinity | None = None
    """Required and preferred node labels, as in a Kubernetes pod spec."""
    tolerations: tuple[TolerationSpec, ...] = ()
    """Node taints that the task puts up with, as in a Kubernetes pod spec."""
    gpu_models: tuple[Name, ...] = ()
    """Acceptable GPU models. Default: any."""
    min_cuda: CudaVersion | None = None
    """CUDA version that the node's driver must support, in quotes: "12.4". Default: any."""
    spread_over: str = ""
    """Label over whose values alike tasks of the workflow should spread (soft)."""
    near_parents: bool = False
    """Prefer the zone that holds the input data (soft)."""
    wants_local_ssd: bool = False
    """Prefer a node with a local SSD (soft)."""


def placement_of(spec: PlacementSpec) -> Placement:
    """The domain's placement rules; tasks with equal rules share one object."""
    affinity = spec.affinity.node_affinity if spec.affinity else NodeAffinity()
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return _shared(
        Placement(
            node_selector=tuple(sorted(spec.node_selector.items())),
            required=tuple(map(_term, required.node_selector_terms)) if required else (),
            preferred=tuple(Preference(item.weight, _term(item.preference)) for item in preferred),
            tolerations=tuple(
                Toleration(item.key, item.operator, item.value, item.effect)
                for item in spec.tolerations
            ),
            gpu_models=tuple(spec.gpu_models),
            min_cuda=None if spec.min_cuda is None else spec.min_cuda.pair,
            spread_over=spec.spread_over,
            near_parents=spec.near_parents,
            wants_local_ssd=spec.wants_local_ssd,
        )
    )


@lru_cache(maxsize=1024)
def _shared(placement: Placement) -> Placement:
    return placement


def _term(spec: NodeSelectorTerm) -> Term:
    conditions = [(item, False) for item in spec.match_expressions]
    conditions += [(item, True) for item in spec.match_fields]
    return Term(
        tuple(
            Requirement(item.key, item.operator, tuple(item.values), is_field)
            for item, is_field in conditions
        )
    )
