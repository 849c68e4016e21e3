"""The task tolerates the node's taints (Kubernetes TaintToleration plugin)."""

from __future__ import annotations

from dagsail.domain.cluster import Node
from dagsail.domain.placement import Placement, Taint


def check(placement: Placement, node: Node) -> str | None:
    """None if every NoSchedule and NoExecute taint is tolerated."""
    for taint in node.taints:
        if taint.effect != "PreferNoSchedule" and not _tolerated(placement, taint):
            return f"taint {taint.key}={taint.value}:{taint.effect} is not tolerated"
    return None


def untolerated(placement: Placement, node: Node) -> int:
    """Number of PreferNoSchedule taints that the task does not tolerate."""
    return sum(
        taint.effect == "PreferNoSchedule" and not _tolerated(placement, taint)
        for taint in node.taints
    )


def _tolerated(placement: Placement, taint: Taint) -> bool:
    return any(toleration.tolerates(taint) for toleration in placement.tolerations)
