"""Whole-workflow planners online: keep a plan, follow it, make it anew on surprise."""

from __future__ import annotations

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.policies import planning
from dagsail.scheduling import estimates
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, Score


@kernel
def refresh(snapshot: Snapshot, memory: Memory, method: int, on_drift: bool) -> int:
    """Plan anew if the plan is outdated; returns 1 if it did."""
    what = planning.what_to_plan(snapshot, memory, on_drift)
    if what == planning.UP_TO_DATE:
        return 0
    planning.plan(snapshot, memory, method, False, what == planning.ADDITION)
    return 1


def planned_start(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """Key: tasks go in the order of their planned starts."""
    return memory.floats[task]


def planned_node(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The planned node if it has room, else one that is expected to finish no later; or wait."""
    shape = snapshot.tasks[task].shape
    node = memory.ints[planning.HEADER + task]
    if (
        node >= 0
        and legality.fits(snapshot, shape, node)
        and legality.is_open(snapshot, task, node)
    ):
        return node
    planned_end_s = memory.floats[snapshot.tasks.shape[0] + task]
    best = NOWHERE
    best_s = max(planned_end_s, snapshot.status[0].now_s)
    for other in range(snapshot.nodes.shape[0]):
        if not legality.fits(snapshot, shape, other):
            continue
        if best == NOWHERE:
            best = NOT_YET
        if legality.is_open(snapshot, task, other):
            end_s = snapshot.status[0].now_s + estimates.busy_s(snapshot, task, other)
            if end_s <= best_s or node < 0:
                best = other
                best_s = end_s
    return best


def strictly_planned_node(snapshot: Snapshot, memory: Memory, task: int, score: Score) -> int:
    """The planned node, whatever happens; wait while it has no room."""
    shape = snapshot.tasks[task].shape
    node = memory.ints[planning.HEADER + task]
    if (
        node >= 0
        and legality.fits(snapshot, shape, node)
        and legality.is_open(snapshot, task, node)
    ):
        return node
    return NOT_YET
