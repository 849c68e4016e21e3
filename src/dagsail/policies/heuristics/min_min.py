"""Min-min: the task whose best expected finish is the earliest goes first.

Maheswaran et al., "Dynamic mapping of a class of independent tasks onto heterogeneous computing
systems", JPDC 59(2), 1999; here over the nodes with room now.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.batch import MIN_MIN, batch_schedule, prepare
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import CUSTOM, Memory, fastest


def decide(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Place up to `limit` ready tasks."""
    return batch_schedule(snapshot, memory, limit, MIN_MIN)


POLICY = Rule(
    "min-min", score=fastest, loop=CUSTOM, decide_function=decide, prepare_function=prepare
)
