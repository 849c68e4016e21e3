"""The task with the least slack goes first: least laxity with the path behind it counted.

Slack is the time from now to the deadline less the upward rank (least laxity first; Mok,
"Fundamental design problems of distributed systems for the hard real-time environment", MIT,
1983). Since all slacks shrink alike, the order does not change while tasks wait. Tasks without a
deadline come after all others, longest path first.
"""

from __future__ import annotations

import math

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import Memory, fastest

_NO_DEADLINE_S = 1e12


def slack(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Latest start that still meets the deadline on an average node, absolute seconds."""
    row = snapshot.tasks[task]
    latest_s = min(row.deadline_s, row.start_deadline_s + row.upward_rank_s)
    if latest_s == math.inf:
        latest_s = _NO_DEADLINE_S
    return latest_s - row.upward_rank_s


POLICY = Rule("deadline-slack", key=slack, score=fastest)
