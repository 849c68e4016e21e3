"""Tasks go where their data is, and wait a little for it.

In the spirit of WOW (Lehmann et al., "WOW: workflow-aware data movement and task scheduling for
dynamic scientific workflows", CCGrid 2025), without its background copies: the node with the
shortest transfer, the fastest among equals. A task whose data is on a busy node waits for it up to
half the transfer time that it would save (delay scheduling; Zaharia et al., EuroSys 2010).
"""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.rule import Rule
from dagsail.scheduling import estimates
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score

_PATIENCE = 0.5
"""Longest wait as a share of the transfer time that it may save."""


def deepest(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Hops to the exit, negated."""
    return -float(snapshot.tasks[task].hops_to_exit)


def nearest(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """Transfer time, then run time, negated."""
    return -estimates.transfer_s(snapshot, task, node) - 1e-3 * estimates.runtime_s(
        snapshot, task, node
    )


def near_data(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The best legal node, unless a short wait may give a node with the data."""
    row = snapshot.tasks[task]
    status = snapshot.status[0]
    best = NOWHERE
    best_score = 0.0
    some = False
    for node in range(snapshot.nodes.shape[0]):
        if not legality.fits(snapshot, row.shape, node):
            continue
        some = True
        if not legality.is_open(snapshot, task, node):
            continue
        value = score(snapshot, memory, task, node)
        if best < 0 or value > best_score:
            best = node
            best_score = value
    if best < 0:
        return NOT_YET if some else NOWHERE
    give_up_s = row.ready_s + _PATIENCE * estimates.transfer_s(snapshot, task, best)
    if status.now_s < give_up_s:
        status.wake_s = min(status.wake_s, give_up_s)
        return NOT_YET
    return best


POLICY = Rule("data-locality", key=deepest, select=near_data, score=nearest)
