"""The node matches one of the task's required affinity terms (Kubernetes NodeAffinity plugin)."""

from __future__ import annotations

from dagsail.domain.cluster import Node
from dagsail.domain.placement import Placement


def check(placement: Placement, node: Node) -> str | None:
    """None if there is no required term or one matches."""
    if not placement.required:
        return None
    if any(term.matches(node.labels, node.name) for term in placement.required):
        return None
    return "no required affinity term matches its labels"


def preference(placement: Placement, node: Node) -> int:
    """Sum of the weights of the preferred terms that the node matches."""
    return sum(p.weight for p in placement.preferred if p.term.matches(node.labels, node.name))
