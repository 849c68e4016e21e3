"""Rank of the abstract workflow, then the next node in turn.

The strategy `rank-rr` of the Common Workflow Scheduler (Lehmann et al., "How workflow engines
should talk to resource managers: a proposal for a common workflow scheduling interface", CCGrid
2023): tasks by the number of hops to the end of their workflow, larger inputs first among equals.
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rotation import next_in_turn
from dagsail.policies.rule import Rule
from dagsail.scheduling.listing import Memory

_BYTES_PER_HOP = 1e18


def rank(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Hops to the exit, then input bytes, both negated."""
    row = snapshot.tasks[task]
    total = row.input_bytes
    for index in range(row.parent_start, row.parent_end):
        total += snapshot.parents[index].data_bytes
    return -float(row.hops_to_exit) - min(total / _BYTES_PER_HOP, 0.999)


POLICY = Rule("workflow-rank-round-robin", key=rank, select=next_in_turn)
