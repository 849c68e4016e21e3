"""What happens around the tasks: nodes come and go, foreign load and disk speeds change."""

from __future__ import annotations

import math

from dagsail.clusters.simulated import chance, ending, interference, timers
from dagsail.clusters.simulated.world import World
from dagsail.domain.snapshot import NODE_CLOSING, NODE_DOWN, NODE_UP, Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import arbiter

_DAY_S = 86400.0


@kernel
def set_first_timers(snapshot: Snapshot, world: World) -> None:
    """Arm every effect that is switched on."""
    layout = world.layout[0]
    law = world.law[0]
    for node in range(snapshot.nodes.shape[0]):
        if law.node_mtbf_s > 0.0:
            timers.set_timer(world, layout.nodes + node, _loss_s(world, node))
        if law.spot_mtbf_s > 0.0 and snapshot.nodes[node].is_spot:
            timers.set_timer(world, layout.spots + node, _reclaim_s(world, node))
    for change in range(world.changes.shape[0]):
        timers.set_timer(world, layout.changes + change, world.changes[change].time_s)
        if world.changes[change].is_join:
            world.machines[world.changes[change].node].is_absent = 1
            snapshot.nodes[world.changes[change].node].state = NODE_DOWN
    if law.foreign_mean > 0.0 or law.foreign_tide > 0.0 or law.foreign_noise > 0.0:
        timers.set_timer(world, layout.foreign, 0.0)
    if law.disk_drift > 0.0:
        timers.set_timer(world, layout.disk, law.disk_interval_s)


@kernel
def _loss_s(world: World, node: int) -> float:
    law = world.law[0]
    losses = world.machines[node].losses
    return chance.exponential(law.seed, chance.NODE_LOSS, node, losses, law.node_mtbf_s)


@kernel
def _reclaim_s(world: World, node: int) -> float:
    law = world.law[0]
    reclaims = world.machines[node].reclaims
    return chance.exponential(law.seed, chance.SPOT, node, reclaims, law.spot_mtbf_s)


@kernel
def _update_state(snapshot: Snapshot, world: World, node: int) -> None:
    """Set the visible state of a node from its causes; evict or wake what that concerns."""
    machine = world.machines[node]
    here = snapshot.nodes[node]
    before = here.state
    here.state = NODE_DOWN if machine.is_lost or machine.is_absent else NODE_UP
    if here.state == before:
        return
    snapshot.status[0].nodes_version += 1
    snapshot.status[0].changed = 1
    if here.state == NODE_DOWN:
        if here.reserved_for >= 0:
            snapshot.tasks[here.reserved_for].num_reserved -= 1
            here.reserved_for = -1
        for image in range(snapshot.node_images.shape[1]):
            snapshot.node_images[node, image] = 0
        while machine.first_slot >= 0:
            ending.evict(snapshot, world, world.slots[machine.first_slot].task)
    else:
        arbiter.unblock(snapshot, node)


@kernel
def on_node_timer(snapshot: Snapshot, world: World, node: int, timer: int) -> None:
    """A node is lost, or comes back."""
    law = world.law[0]
    now_s = snapshot.status[0].now_s
    machine = world.machines[node]
    if machine.is_lost:
        machine.is_lost = 0
        machine.losses += 1
        timers.set_timer(world, timer, now_s + _loss_s(world, node))
    else:
        machine.is_lost = 1
        away_s = chance.exponential(
            law.seed, chance.NODE_RETURN, node, machine.losses, law.node_mttr_s
        )
        timers.set_timer(world, timer, now_s + away_s)
    _update_state(snapshot, world, node)


@kernel
def on_spot_timer(snapshot: Snapshot, world: World, node: int, timer: int) -> None:
    """A spot node gets its notice, is reclaimed, and a replacement arrives at once."""
    law = world.law[0]
    now_s = snapshot.status[0].now_s
    machine = world.machines[node]
    here = snapshot.nodes[node]
    if here.state == NODE_UP:
        here.state = NODE_CLOSING
        snapshot.status[0].nodes_version += 1
        timers.set_timer(world, timer, now_s + law.spot_notice_s)
        return
    if here.state == NODE_CLOSING:
        machine.is_absent += 1
        _update_state(snapshot, world, node)
        machine.is_absent -= 1
        _update_state(snapshot, world, node)
    machine.reclaims += 1
    timers.set_timer(world, timer, now_s + _reclaim_s(world, node))


@kernel
def on_change(snapshot: Snapshot, world: World, change: int) -> None:
    """A node joins or leaves as the scenario says."""
    row = world.changes[change]
    world.machines[row.node].is_absent = 0 if row.is_join else 1
    _update_state(snapshot, world, row.node)


@kernel
def on_foreign_tick(snapshot: Snapshot, world: World, timer: int) -> None:
    """Foreign load takes more or less of each node, never what a task holds."""
    law = world.law[0]
    now_s = snapshot.status[0].now_s
    tide = law.foreign_tide * math.sin(2.0 * math.pi * now_s / _DAY_S)
    for node in range(snapshot.nodes.shape[0]):
        noise = law.foreign_noise * chance.normal(law.seed, chance.FOREIGN, node, law.foreign_ticks)
        ratio = min(max(law.foreign_mean + tide + noise, 0.0), 1.0)
        gave_back = False
        for resource in range(2):  # cpu and memory
            wanted = int(snapshot.node_allocatable[node, resource] * ratio)
            more = wanted - world.foreign[node, resource]
            more = min(more, snapshot.node_free[node, resource])
            world.foreign[node, resource] += more
            snapshot.node_free[node, resource] -= more
            snapshot.nodes[node].version += 1
            gave_back = gave_back or more < 0
        if gave_back:
            arbiter.unblock(snapshot, node)
    law.foreign_ticks += 1
    timers.set_timer(world, timer, now_s + law.foreign_interval_s)


@kernel
def on_disk_tick(snapshot: Snapshot, world: World, timer: int) -> None:
    """Disk speeds take a step of a bounded random walk between 1 - drift and 1."""
    law = world.law[0]
    for node in range(snapshot.nodes.shape[0]):
        machine = world.machines[node]
        step = 0.25 * law.disk_drift * chance.normal(law.seed, chance.DISK, node, law.disk_ticks)
        machine.disk_speed = min(max(machine.disk_speed + step, 1.0 - law.disk_drift), 1.0)
        if law.interferes:
            interference.disturb(snapshot, world, node)
    law.disk_ticks += 1
    timers.set_timer(world, timer, snapshot.status[0].now_s + law.disk_interval_s)
