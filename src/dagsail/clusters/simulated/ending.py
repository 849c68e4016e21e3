"""The end of an attempt: finished, failed, evicted or cancelled with its workflow."""

from __future__ import annotations

import math

from dagsail.clusters.simulated import interference, network, timers
from dagsail.clusters.simulated.world import (
    ARRIVING,
    CANCELLED,
    EVICTED,
    FAILED,
    FINISHED,
    IDLE,
    OOM,
    RUNNING,
    World,
)
from dagsail.domain import snapshot as states
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import arbiter, experience, queue


@kernel
def _log(snapshot: Snapshot, world: World, task: int, outcome: int, start_s: float) -> None:
    row = snapshot.tasks[task]
    entry = world.attempts[world.law[0].num_attempts]
    world.law[0].num_attempts += 1
    entry.task = task
    entry.attempt = row.attempt
    entry.node = row.node
    entry.shape = row.shape
    entry.outcome = outcome
    entry.ready_s = row.ready_s
    entry.start_s = start_s
    entry.end_s = snapshot.status[0].now_s
    entry.worker_start = world.law[0].num_attempt_workers
    if row.num_workers > 1 and row.node >= 0:
        for slot in range(row.worker_start, row.worker_start + row.num_workers):
            node = snapshot.workers[slot].node
            world.attempt_workers[world.law[0].num_attempt_workers] = node
            world.law[0].num_attempt_workers += 1


@kernel
def _leave(snapshot: Snapshot, world: World, task: int, outcome: int) -> None:
    """End a bound attempt: log it, stop what moves, free its resources."""
    _log(snapshot, world, task, outcome, snapshot.tasks[task].start_s)
    timers.stop_timer(world, task)
    run = world.runs[task]
    if run.flows_left > 0:
        network.cancel(snapshot, world, task)
    was_running = run.phase == RUNNING
    run.phase = IDLE
    row = snapshot.tasks[task]
    for slot in range(row.worker_start, row.worker_start + row.num_workers):
        before, after = world.slots[slot].previous, world.slots[slot].next
        if before >= 0:
            world.slots[before].next = after
        else:
            world.machines[snapshot.workers[slot].node].first_slot = after
        if after >= 0:
            world.slots[after].previous = before
    if outcome != EVICTED:
        note_progress(snapshot, world)
    if world.law[0].interferes and was_running:
        interference.change_pressure(snapshot, world, task, -1.0)
    if outcome <= FAILED and not snapshot.shapes[row.shape].is_virtual:
        run_s = snapshot.status[0].now_s - row.start_s
        experience.note_end(snapshot, task, run_s, outcome == FINISHED)
    arbiter.release(snapshot, task)


@kernel
def note_progress(snapshot: Snapshot, world: World) -> None:
    """Something has come or ended for good: the run is not stuck."""
    world.law[0].last_progress_s = snapshot.status[0].now_s
    world.law[0].evictions_at_progress = world.law[0].num_evictions


@kernel
def finish(snapshot: Snapshot, world: World, task: int) -> None:
    """The attempt succeeded: its children lose a parent, its workflow a task."""
    now_s = snapshot.status[0].now_s
    _leave(snapshot, world, task, FINISHED)
    row = snapshot.tasks[task]
    row.state = states.FINISHED
    row.end_s = now_s
    snapshot.status[0].finished_version += 1
    _count_down(snapshot, world, task)
    for index in range(row.child_start, row.child_end):
        edge = snapshot.children[index]
        child = snapshot.tasks[edge.task]
        child.parents_left -= 1
        if child.planned_node >= 0:
            network.send_ahead(snapshot, world, task, index)
        if child.parents_left == 0:
            _all_parents_done(snapshot, world, edge.task)


@kernel
def _all_parents_done(snapshot: Snapshot, world: World, task: int) -> None:
    run = world.runs[task]
    now_s = snapshot.status[0].now_s
    if run.flows_left > 0:
        run.phase = ARRIVING
    elif run.data_ready_s > now_s:
        run.phase = ARRIVING
        timers.set_timer(world, task, run.data_ready_s)
    else:
        queue.make_ready(snapshot, task)


@kernel
def _count_down(snapshot: Snapshot, world: World, task: int) -> None:
    """One task of the workflow has ended for good."""
    row = snapshot.tasks[task]
    workflow = snapshot.workflows[row.workflow]
    world.law[0].tasks_left -= 1
    workflow.tasks_left -= 1
    workflow.remaining_s -= row.mean_s * row.num_workers
    if workflow.tasks_left == 0:
        workflow.finish_s = snapshot.status[0].now_s
        if workflow.state != states.CANCELLED:
            workflow.state = states.FINISHED
            flow_s = workflow.finish_s - workflow.arrival_s
            experience.note_flow(snapshot, row.workflow, flow_s)


@kernel
def fail(snapshot: Snapshot, world: World, task: int) -> None:
    """The attempt failed: once more, with more memory after an OOM kill, or give up."""
    run = world.runs[task]
    _leave(snapshot, world, task, FAILED)
    row = snapshot.tasks[task]
    if run.fault == OOM:
        row.shape = snapshot.shapes[row.shape].grown
    if run.retries_left > 0:
        run.retries_left -= 1
        _again(snapshot, task)
        return
    row.state = states.FAILED
    row.end_s = snapshot.status[0].now_s
    _count_down(snapshot, world, task)
    cancel_workflow(snapshot, world, row.workflow)


@kernel
def _again(snapshot: Snapshot, task: int) -> None:
    row = snapshot.tasks[task]
    row.attempt += 1
    row.node = -1
    row.planned_node = -1
    row.start_s = math.inf
    row.end_s = math.inf
    queue.make_ready(snapshot, task)


@kernel
def evict(snapshot: Snapshot, world: World, task: int) -> None:
    """Take a bound task off its node; it starts again elsewhere and loses its progress."""
    _leave(snapshot, world, task, EVICTED)
    world.law[0].num_evictions += 1
    _again(snapshot, task)


@kernel
def cancel_workflow(snapshot: Snapshot, world: World, workflow: int) -> None:
    """End every task of a workflow that one task's failure has made pointless."""
    row = snapshot.workflows[workflow]
    row.state = states.CANCELLED
    for task in range(row.first_task, row.first_task + row.num_tasks):
        state = snapshot.tasks[task].state
        if state >= states.FINISHED:
            continue
        if state == states.BOUND:
            _leave(snapshot, world, task, CANCELLED)
        else:
            if state == states.READY:
                queue.take_out(snapshot, task)
                arbiter.drop_reservations(snapshot, task)
            timers.stop_timer(world, task)
            world.runs[task].phase = IDLE
            if world.runs[task].flows_left > 0:
                network.cancel(snapshot, world, task)
            snapshot.tasks[task].node = -1
            _log(snapshot, world, task, CANCELLED, math.inf)
        snapshot.tasks[task].state = states.CANCELLED
        snapshot.tasks[task].end_s = snapshot.status[0].now_s
        _count_down(snapshot, world, task)
