"""What makes a (task, node) pair legal: one rule a file, each with its reason in words.

Rules that do not change with load look at names (`check(placement, node)`); they are evaluated
once for each distinct pair when a snapshot is assembled. Rules that change with load are kernels
in `legality`, evaluated at every decision. Mask, filter and arbiter all go through these two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dagsail.domain.cluster import Node
from dagsail.domain.placement import Placement
from dagsail.scheduling.constraints import gpu, node_affinity, node_selector, taints

Rule = Callable[[Placement, Node], str | None]

STATIC_RULES: Final[tuple[Rule, ...]] = (
    node_selector.check,
    node_affinity.check,
    taints.check,
    gpu.check,
)
"""Each returns None where the node will do, else the reason why not."""


def refusal(placement: Placement, node: Node) -> str | None:
    """The first static rule that refuses the node, in words; None where all admit it."""
    for rule in STATIC_RULES:
        if (reason := rule(placement, node)) is not None:
            return reason
    return None
