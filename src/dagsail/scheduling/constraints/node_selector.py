"""The node carries every label of the task's node selector (Kubernetes NodeAffinity plugin)."""

from __future__ import annotations

from dagsail.domain.cluster import Node
from dagsail.domain.placement import Placement


def check(placement: Placement, node: Node) -> str | None:
    """None if all labels match, else the first that does not."""
    for label, value in placement.node_selector:
        if node.labels.get(label) != value:
            found = node.labels.get(label)
            return f"label {label} is {found!r}, the task wants {value!r}"
    return None
