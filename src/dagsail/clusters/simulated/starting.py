"""The start of an attempt: workers take their places, and chance says how it will go."""

from __future__ import annotations

import math

from dagsail.clusters.simulated import chance, network, timers
from dagsail.clusters.simulated.world import (
    CRASH,
    NO_FAULT,
    OOM,
    RUNNING,
    STARTING,
    TIMEOUT,
    World,
)
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import estimates


@kernel
def start(snapshot: Snapshot, world: World, task: int) -> None:
    """Begin an attempt of a task that a decision has just placed."""
    now_s = snapshot.status[0].now_s
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
    run.work_left_s += delay_s + network.staging_s(snapshot, world, task)
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
