"""Opportunistic load balancing: each task on the least loaded node, whatever its run time there.

Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
systems", JPDC 59(2), 1999.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import Memory


def least_loaded(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """Smallest free share over the resources that the node has."""
    least = 1.0
    for resource in range(snapshot.node_free.shape[1]):
        total = snapshot.node_allocatable[node, resource]
        if total > 0:
            least = min(least, snapshot.node_free[node, resource] / total)
    return least


POLICY = Rule("olb", score=least_loaded)
