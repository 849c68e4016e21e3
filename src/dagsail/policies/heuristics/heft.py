"""HEFT: plan by upward rank on the node of the earliest finish, with insertion.

Topcuoglu, Hariri and Wu, "Performance-effective and low-complexity task scheduling for
heterogeneous computing", IEEE TPDS 13(3), 2002.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies import planned, planning
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import PLANNED_LIST, Memory


def refresh(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Bring the plan up to date."""
    return planned.refresh(snapshot, memory, planning.HEFT, True)


POLICY = Rule(
    "heft",
    key=planned.planned_start,
    select=planned.planned_node,
    loop=PLANNED_LIST,
    decide_function=refresh,
    prepare_function=planning.prepare,
)
