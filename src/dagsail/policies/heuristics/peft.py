"""PEFT: the earliest finish plus the optimistic cost of what follows.

Arabnejad and Barbosa, "List scheduling algorithm for heterogeneous systems by an optimistic cost
table", IEEE TPDS 25(3), 2014.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies import planned, planning
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import PLANNED_LIST, Memory


def refresh(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Bring the plan up to date."""
    return planned.refresh(snapshot, memory, planning.PEFT, True)


POLICY = Rule(
    "peft",
    key=planned.planned_start,
    select=planned.planned_node,
    loop=PLANNED_LIST,
    decide_function=refresh,
    prepare_function=planning.prepare,
)
