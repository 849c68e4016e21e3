"""The life of an attempt: start, stage data, run (perhaps disturbed), end.

One timer a task drives it. Without interference and fair sharing the whole attempt is one event.
"""

from __future__ import annotations

import math

from dagsail.clusters.simulated import chance, network, timers
from dagsail.clusters.simulated.world import (
    ARRIVING,
    CANCELLED,
    CRASH,
    EVICTED,
    FAILED,
    FINISHED,
    IDLE,
    NO_FAULT,
    OOM,
    RUNNING,
    STAGING,
    STARTING,
    TIMEOUT,
    World,
)
from dagsail.domain import snapshot as states
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import arbiter, estimates, queue

# Start ------------------------------------------------------------------------------------------


@kernel
def start(snapshot: Snapshot, world: World, task: int) -> None:
    """Begin an attempt of a task that a decision has just placed."""
    now_s = snapshot.status[0].now_s
    world.law[0].num_bound += 1
    row = snapshot.tasks[task]
    workflow = snapshot.workflows[row.workflow]
    workflow.first_start_s = min(workflow.first_start_s, now_s)
    delay_s = _link_workers(snapshot, world, task)
    run = world.runs[task]
    run.phase = STARTING
    _draw_attempt(snapshot, world, task)
    if world.law[0].interferes or world.law[0].fair_sharing:
        timers.set_timer(world, task, now_s + delay_s)
        return
    run.phase = RUNNING
    run.rate = 1.0
    run.updated_s = now_s
    run.work_left_s += delay_s + staging_s(snapshot, world, task)
    timers.set_timer(world, task, now_s + run.work_left_s)


@kernel
def _link_workers(snapshot: Snapshot, world: World, task: int) -> float:
    """Enter the workers in their nodes' lists; returns the longest start-up delay."""
    row = snapshot.tasks[task]
    delay_s = 0.0
    for slot in range(row.worker_start, row.worker_start + row.num_workers):
        node = snapshot.workers[slot].node
        delay_s = max(delay_s, _startup_s(snapshot, world, task, node))
        machine = world.machines[node]
        world.slots[slot].previous = -1
        world.slots[slot].next = machine.first_slot
        if machine.first_slot >= 0:
            world.slots[machine.first_slot].previous = slot
        machine.first_slot = slot
    return delay_s


@kernel
def _startup_s(snapshot: Snapshot, world: World, task: int, node: int) -> float:
    """True start-up delay; a pull that is under way on the node is waited for, not repeated."""
    image = snapshot.tasks[task].image
    delay_s = estimates.startup_s(snapshot, task, node)
    if image < 0 or snapshot.shapes[snapshot.tasks[task].shape].is_virtual:
        return delay_s
    now_s = snapshot.status[0].now_s
    if snapshot.node_images[node, image] == 0:
        snapshot.node_images[node, image] = 1
        world.image_ready_s[node, image] = now_s + delay_s - snapshot.status[0].startup_s
        return delay_s
    return delay_s + max(0.0, world.image_ready_s[node, image] - now_s)


@kernel
def _draw_attempt(snapshot: Snapshot, world: World, task: int) -> None:
    """Draw the true run time of this attempt, and whether and when it breaks."""
    law = world.law[0]
    run = world.runs[task]
    row = snapshot.tasks[task]
    run.work_left_s = estimates.runtime_s(snapshot, task, row.node) * _factor(world, task)
    for slot in range(row.worker_start + 1, row.worker_start + row.num_workers):
        other_s = estimates.runtime_s(snapshot, task, snapshot.workers[slot].node)
        run.work_left_s = max(run.work_left_s, other_s * _factor(world, task))
    run.work_left_s += estimates.communication_s(snapshot, task)
    run.fault = NO_FAULT
    run.limit_s = math.inf
    if run.timeout_s < run.work_left_s:
        run.work_left_s = run.timeout_s
        run.fault = TIMEOUT
    draw = 1.0
    if law.task_failure_ratio > 0.0 or law.oom_ratio > 0.0:
        draw = chance.uniform(law.seed, chance.FAILURE, task, row.attempt)
    if draw < law.task_failure_ratio:
        run.fault = CRASH
    elif draw < law.task_failure_ratio + law.oom_ratio and (snapshot.shapes[row.shape].grown >= 0):
        run.fault = OOM
    if run.fault == CRASH or run.fault == OOM:
        run.work_left_s *= chance.uniform(law.seed, chance.FAILURE_POINT, task, row.attempt)


@kernel
def _factor(world: World, task: int) -> float:
    """True over expected run time of a task; the same on every node and under every policy."""
    law = world.law[0]
    factor = chance.lognormal(law.seed, chance.RUNTIME, task, 0, law.noise)
    if law.heavy_tail_ratio > 0.0 or law.straggler_ratio > 0.0:
        draw = chance.uniform(law.seed, chance.TAIL, task, 0)
        if draw < law.heavy_tail_ratio:
            size = chance.uniform(law.seed, chance.TAIL_SIZE, task, 0)
            factor = size ** (-1.0 / law.heavy_tail_alpha)
        elif draw < law.heavy_tail_ratio + law.straggler_ratio:
            factor *= law.straggler_factor
    return factor


@kernel
def staging_s(snapshot: Snapshot, world: World, task: int) -> float:
    """True time to bring all inputs to the task's node, each transfer undisturbed by the others."""
    row = snapshot.tasks[task]
    now_s = snapshot.status[0].now_s
    longest = 0.0
    for index in range(row.parent_start, row.parent_end):
        if world.sent_to[index] == row.node:
            longest = max(longest, world.runs[task].data_ready_s - now_s)
        else:
            source = snapshot.tasks[snapshot.parents[index].task].node
            longest = max(longest, network.transfer_s(snapshot, world, index, source, row.node))
    return max(longest, stage_in_s(snapshot, world, task))


@kernel
def stage_in_s(snapshot: Snapshot, world: World, task: int) -> float:
    """Time to fetch a task's external input from storage, if the scenario models that."""
    row = snapshot.tasks[task]
    if world.law[0].stage_in == 0 or row.input_bytes <= 0.0:
        return 0.0
    link = snapshot.links[estimates.CROSS_ZONE]
    speed = min(link.bytes_per_s, snapshot.nodes[row.node].nic_bytes_per_s)
    return link.latency_s + row.input_bytes / speed


# Progress ---------------------------------------------------------------------------------------


@kernel
def on_timer(snapshot: Snapshot, world: World, task: int) -> None:
    """The task's timer went off: go on to the next phase, or end."""
    now_s = snapshot.status[0].now_s
    run = world.runs[task]
    if run.phase == ARRIVING:
        run.phase = IDLE
        queue.make_ready(snapshot, task)
    elif run.phase == STARTING:
        run.phase = STAGING
        if world.law[0].fair_sharing:
            network.pull(snapshot, world, task)
            external_s = stage_in_s(snapshot, world, task)
            if external_s > 0.0:
                run.flows_left += 1
                timers.set_timer(world, task, now_s + external_s)
            on_data(snapshot, world, task)
        else:
            timers.set_timer(world, task, now_s + staging_s(snapshot, world, task))
    elif run.phase == STAGING:
        if world.law[0].fair_sharing:
            run.flows_left -= 1
        on_data(snapshot, world, task)
    elif run.fault == NO_FAULT and not _is_timed_out(snapshot, world, task):
        finish(snapshot, world, task)
    else:
        _break(snapshot, world, task)


@kernel
def _is_timed_out(snapshot: Snapshot, world: World, task: int) -> bool:
    """Whether a disturbed attempt has reached its time limit before the end of its work."""
    run = world.runs[task]
    now_s = snapshot.status[0].now_s
    return now_s >= run.limit_s and run.work_left_s - run.rate * (now_s - run.updated_s) > 1e-9


@kernel
def on_data(snapshot: Snapshot, world: World, task: int) -> None:
    """A flow towards a task has ended: it runs, or becomes ready, when it was the last."""
    run = world.runs[task]
    if run.flows_left > 0:
        return
    if run.phase == STAGING:
        _run(snapshot, world, task)
    elif run.phase == ARRIVING and snapshot.tasks[task].parents_left == 0:
        run.phase = IDLE
        queue.make_ready(snapshot, task)


@kernel
def _run(snapshot: Snapshot, world: World, task: int) -> None:
    run = world.runs[task]
    run.phase = RUNNING
    run.rate = 1.0
    run.updated_s = snapshot.status[0].now_s
    run.limit_s = run.updated_s + run.timeout_s
    timers.set_timer(world, task, run.updated_s + run.work_left_s)
    if world.law[0].interferes:
        _change_pressure(snapshot, world, task, 1.0)


@kernel
def _change_pressure(snapshot: Snapshot, world: World, task: int, sign: float) -> None:
    """Add a running task's demands to its nodes, or take them away, and adjust its neighbours."""
    row = snapshot.tasks[task]
    for slot in range(row.worker_start, row.worker_start + row.num_workers):
        machine = world.machines[snapshot.workers[slot].node]
        machine.memory_pressure += sign * row.memory_bandwidth_demand
        machine.disk_pressure += sign * row.io_demand
    for slot in range(row.worker_start, row.worker_start + row.num_workers):
        disturb(snapshot, world, snapshot.workers[slot].node)


@kernel
def disturb(snapshot: Snapshot, world: World, node: int) -> None:
    """Bring the progress of all running tasks on a node up to date and set their new rates."""
    now_s = snapshot.status[0].now_s
    slot = world.machines[node].first_slot
    while slot >= 0:
        task = world.slots[slot].task
        run = world.runs[task]
        if run.phase == RUNNING:
            run.work_left_s = max(0.0, run.work_left_s - run.rate * (now_s - run.updated_s))
            run.updated_s = now_s
            run.rate = 1.0 / _slowdown(snapshot, world, task)
            timers.set_timer(world, task, min(now_s + run.work_left_s / run.rate, run.limit_s))
        slot = world.slots[slot].next


@kernel
def _slowdown(snapshot: Snapshot, world: World, task: int) -> float:
    """How many times longer a task runs than alone; a task of several workers waits for the worst.

    Grows with the task's own demand and with what all demands on its node exceed.
    """
    law = world.law[0]
    row = snapshot.tasks[task]
    worst = 1.0
    for slot in range(row.worker_start, row.worker_start + row.num_workers):
        machine = world.machines[snapshot.workers[slot].node]
        memory = max(0.0, machine.memory_pressure - 1.0)
        disk = max(0.0, machine.disk_pressure / machine.disk_speed - 1.0)
        slowdown = (
            1.0
            + law.memory_interference * row.memory_bandwidth_demand * memory
            + law.disk_interference * row.io_demand * disk
        )
        worst = max(worst, slowdown)
    return worst


# End --------------------------------------------------------------------------------------------


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
    world.law[0].num_bound -= 1
    if outcome != EVICTED:
        note_progress(snapshot, world)
    if world.law[0].interferes and was_running:
        _change_pressure(snapshot, world, task, -1.0)
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


@kernel
def _break(snapshot: Snapshot, world: World, task: int) -> None:
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
