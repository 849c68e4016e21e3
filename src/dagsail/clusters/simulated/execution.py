"""The course of an attempt: it waits for its data, runs, perhaps disturbed, and ends.

One timer a task drives it. Without interference and fair sharing the whole attempt is one event.
"""

from __future__ import annotations

from dagsail.clusters.simulated import ending, interference, network, timers
from dagsail.clusters.simulated.world import (
    ARRIVING,
    IDLE,
    NO_FAULT,
    RUNNING,
    STAGING,
    STARTING,
    World,
)
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import queue


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
            external_s = network.stage_in_s(snapshot, world, task)
            if external_s > 0.0:
                run.flows_left += 1
                timers.set_timer(world, task, now_s + external_s)
            on_data(snapshot, world, task)
        else:
            timers.set_timer(world, task, now_s + network.staging_s(snapshot, world, task))
    elif run.phase == STAGING:
        if world.law[0].fair_sharing:
            run.flows_left -= 1
        on_data(snapshot, world, task)
    elif run.fault == NO_FAULT and not _is_timed_out(snapshot, world, task):
        ending.finish(snapshot, world, task)
    else:
        ending.fail(snapshot, world, task)


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
        interference.change_pressure(snapshot, world, task, 1.0)
