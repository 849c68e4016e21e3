"""Lookahead HEFT: the node after which the children can finish earliest.

Bittencourt, Sakellariou and Madeira, "DAG scheduling using a lookahead variant of the
heterogeneous earliest finish time algorithm", PDP 2010. Costs nodes times children per task.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies import planned, planning
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import PLANNED_LIST, Memory


def refresh(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Bring the plan up to date."""
    return planned.refresh(snapshot, memory, planning.LOOKAHEAD, True)


POLICY = Rule(
    "lookahead-heft",
    key=planned.planned_start,
    select=planned.planned_node,
    loop=PLANNED_LIST,
    decide_function=refresh,
    prepare_function=planning.prepare,
)
