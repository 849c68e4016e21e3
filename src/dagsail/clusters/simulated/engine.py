"""The event loop: go to the next instant at which a decision may help, decide, start, repeat.

`advance` is the simulator's half of the loop, for policies in Python; `simulate` is the whole loop
in one kernel, for policies that are kernels too. Both give the same run.
"""

from __future__ import annotations

import math
from typing import Final

from dagsail.clusters.simulated import (
    ending,
    execution,
    fairness,
    network,
    starting,
    surroundings,
    timers,
)
from dagsail.clusters.simulated.world import World
from dagsail.domain import snapshot as states
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import entry, kernel
from dagsail.scheduling import listing, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory, Rules

DECIDE: Final = 0
DONE: Final = 1
STUCK: Final = 2
LOG_FULL: Final = 3
PASSED: Final = 4

UNLIMITED: Final = 2**31 - 1
_MANY_EVICTIONS: Final = 100
_EVICTIONS_A_TASK: Final = 20


@entry
def prepare(snapshot: Snapshot, world: World) -> None:
    """Set the first timers of a run."""
    timers.set_timer(world, world.layout[0].arrival, snapshot.workflows[0].arrival_s)
    surroundings.set_first_timers(snapshot, world)


@entry
def advance(snapshot: Snapshot, world: World) -> int:
    """Process instants until a decision may help; returns DECIDE, DONE, STUCK or LOG_FULL.

    After LOG_FULL, a further call goes on within the same instant.
    """
    code = PASSED
    while code == PASSED:
        code = next_instant(snapshot, world)
    return code


@kernel
def next_instant(snapshot: Snapshot, world: World) -> int:
    """As `advance`, for one instant; PASSED if no decision helps at it."""
    law = world.law[0]
    status = snapshot.status[0]
    if law.tasks_left == 0:
        return DONE
    if law.in_instant == 0:
        if not _may_go_on(snapshot, world):
            return STUCK
        status.now_s = world.timers[world.timer_heap[0]].time_s
        law.in_instant = 1
    # 1. Everything that happens at this instant.
    if not _fire_all(snapshot, world):
        return LOG_FULL
    law.in_instant = 0
    law.num_instants += 1
    # 2. Does that change anything for a decision?
    if status.num_ready == 0 or (status.changed == 0 and status.has_waiting == 0):
        return PASSED
    if law.ages:
        fairness.age(snapshot, world)
    status.changed = 0
    status.stamp += 1
    status.num_placed = 0
    status.wake_s = math.inf
    return DECIDE


@kernel
def _fire_all(snapshot: Snapshot, world: World) -> bool:
    """Handle all timers of this instant; returns whether the log had room for that."""
    law = world.law[0]
    flows_changed = False
    short = _log_is_short(snapshot, world)
    while not short and law.num_timers > 0:
        timer = world.timer_heap[0]
        if world.timers[timer].time_s > snapshot.status[0].now_s:
            break
        timers.stop_timer(world, timer)
        flows_changed = _fire(snapshot, world, timer) or flows_changed
        short = _log_is_short(snapshot, world)
    if flows_changed:
        network.share(snapshot, world, world.layout[0].network)
    return not short


@kernel
def _log_is_short(snapshot: Snapshot, world: World) -> bool:
    """Whether the next instant might end more attempts than the log has room for."""
    law = world.law[0]
    room = world.attempts.shape[0] - law.num_attempts
    worker_room = world.attempt_workers.shape[0] - law.num_attempt_workers
    return room < law.tasks_left or worker_room < snapshot.workers.shape[0]


@kernel
def _may_go_on(snapshot: Snapshot, world: World) -> bool:
    """Whether the next timer can be expected to help.

    Ticks and node changes go on for ever, so time alone does not tell: a run is stuck when nothing
    is under way for too long, or the same tasks are evicted again and again.
    """
    law = world.law[0]
    if law.num_timers == 0:
        return False
    next_timer = world.timer_heap[0]
    if next_timer < world.runs.shape[0] or next_timer == world.layout[0].arrival:
        return True
    if snapshot.status[0].now_s - law.last_progress_s < law.patience_s:
        return True
    for change in range(world.changes.shape[0]):
        if world.timers[world.layout[0].changes + change].position >= 0:
            return True
    if snapshot.status[0].num_bound == 0 and law.num_active_flows == 0:
        return False
    evictions = law.num_evictions - law.evictions_at_progress
    return evictions < _MANY_EVICTIONS + _EVICTIONS_A_TASK * law.tasks_left


@kernel
def _fire(snapshot: Snapshot, world: World, timer: int) -> bool:
    """Handle one timer; returns whether the set of active flows changed."""
    if timer < world.layout[0].flows:
        before = world.law[0].num_active_flows
        execution.on_timer(snapshot, world, timer)
        return world.law[0].num_active_flows != before
    if timer < world.layout[0].network:
        network.on_latency_over(snapshot, world, timer - world.layout[0].flows)
        return True
    if timer == world.layout[0].network:
        task = network.pop_finished(snapshot, world)
        while task >= 0:
            execution.on_data(snapshot, world, task)
            task = network.pop_finished(snapshot, world)
        return True
    if timer == world.layout[0].arrival:
        _arrive(snapshot, world)
    elif timer == world.layout[0].wake:
        snapshot.status[0].changed = 1
    else:
        before = world.law[0].num_active_flows
        _change_surroundings(snapshot, world, timer)
        return world.law[0].num_active_flows != before
    return False


@kernel
def _change_surroundings(snapshot: Snapshot, world: World, timer: int) -> None:
    if timer < world.layout[0].spots:
        surroundings.on_node_timer(snapshot, world, timer - world.layout[0].nodes, timer)
    elif timer < world.layout[0].changes:
        surroundings.on_spot_timer(snapshot, world, timer - world.layout[0].spots, timer)
    elif timer < world.layout[0].foreign:
        surroundings.on_change(snapshot, world, timer - world.layout[0].changes)
    elif timer == world.layout[0].foreign:
        surroundings.on_foreign_tick(snapshot, world, timer)
    else:
        surroundings.on_disk_tick(snapshot, world, timer)


@kernel
def _arrive(snapshot: Snapshot, world: World) -> None:
    """Submit every workflow whose time has come, and set the timer of the next."""
    status = snapshot.status[0]
    while status.num_arrived < snapshot.workflows.shape[0]:
        workflow = snapshot.workflows[status.num_arrived]
        if workflow.arrival_s > status.now_s:
            timers.set_timer(world, world.layout[0].arrival, workflow.arrival_s)
            return
        status.num_arrived += 1
        ending.note_progress(snapshot, world)
        workflow.state = states.PENDING
        for task in range(workflow.first_task, workflow.first_task + workflow.num_tasks):
            snapshot.tasks[task].state = states.PENDING
            if snapshot.tasks[task].parents_left == 0:
                queue.make_ready(snapshot, task)


@entry
def start_placed(snapshot: Snapshot, world: World) -> None:
    """Begin the attempts that the last decision placed, and heed its wish to be woken."""
    status = snapshot.status[0]
    queue.restore(snapshot)
    before = world.law[0].num_active_flows
    for index in range(status.num_placed):
        starting.start(snapshot, world, snapshot.placed[index])
    world.law[0].num_decisions += status.num_placed
    if world.law[0].ages or world.law[0].preempts:
        fairness.drop_refused(snapshot, world)
    if world.law[0].preempts and status.num_ready > 0:
        fairness.preempt(snapshot, world)
    if world.law[0].num_active_flows != before:
        network.share(snapshot, world, world.layout[0].network)
    if status.wake_s < math.inf:
        timers.set_timer(world, world.layout[0].wake, max(status.wake_s, status.now_s))
    status.num_placed = 0
    # What is not blocked waits by choice or for a quota, and what a policy left in `incoming` is
    # its own business: every event may change that.
    status.has_waiting = 1 if status.num_incoming > 0 else 0
    for index in range(status.num_active):
        if snapshot.shapes[snapshot.active[index]].blocked == 0:
            if _fits_somewhere(snapshot, snapshot.active[index]):
                status.has_waiting = 1
            else:
                snapshot.shapes[snapshot.active[index]].blocked = 1


@kernel
def _fits_somewhere(snapshot: Snapshot, shape: int) -> bool:
    for node in range(snapshot.nodes.shape[0]):
        if legality.fits(snapshot, shape, node):
            return True
    return False


@entry
def simulate(snapshot: Snapshot, world: World, memory: Memory, rules: Rules) -> int:
    """Run a rule policy until the end; returns DONE, STUCK or LOG_FULL (grow and call again)."""
    while True:
        code = advance(snapshot, world)
        if code != DECIDE:
            return code
        listing.decide(snapshot, memory, UNLIMITED, rules)
        start_placed(snapshot, world)
