"""Neighbours on a node slow each other down, by memory bandwidth and disk."""

from __future__ import annotations

from dagsail.clusters.simulated import timers
from dagsail.clusters.simulated.world import RUNNING, World
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel


@kernel
def change_pressure(snapshot: Snapshot, world: World, task: int, sign: float) -> None:
    """Add a running task's demands to its nodes, or take them away, and adjust its neighbours."""
    row = snapshot.tasks[task]
    for slot in range(row.worker_start, row.worker_start + row.num_workers):
        machine = world.machines[snapshot.workers[slot].node]
        machine.memory_pressure += sign * row.memory_bandwidth_demand
        machine.disk_pressure += sign * row.io_demand
        node = snapshot.nodes[snapshot.workers[slot].node]
        node.disk_pressure = machine.disk_pressure / machine.disk_speed
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
