"""Bounds on waiting: starving tasks go first and reserve a node; urgent tasks may preempt."""

from __future__ import annotations

import math

from dagsail.clusters.simulated import ending
from dagsail.clusters.simulated.world import World
from dagsail.domain.snapshot import NODE_UP, Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import arbiter, queue
from dagsail.scheduling.constraints import legality


@kernel
def age(snapshot: Snapshot, world: World) -> None:
    """Boost every queued task that has waited beyond its priority's bound; reserve it a node."""
    now_s = snapshot.status[0].now_s
    boosted = False
    for index in range(snapshot.status[0].num_active):
        row = snapshot.shapes[snapshot.active[index]]
        for position in range(row.queue_size):
            task = snapshot.tasks[snapshot.queue[row.queue_start + position]]
            waited_s = now_s - task.ready_s
            if task.boost == 0 and waited_s > world.max_wait_s[task.priority]:
                task.boost = -1
                boosted = True
    if boosted:
        queue.reorder(snapshot)
    for index in range(snapshot.status[0].num_active):
        row = snapshot.shapes[snapshot.active[index]]
        head = snapshot.queue[row.queue_start]
        if snapshot.tasks[head].boost == -1:
            _reserve(snapshot, world, head)


@kernel
def _reserve(snapshot: Snapshot, world: World, task: int) -> None:
    """Keep the nodes that are expected to have room first free for a starving task.

    One node for one worker, unless it fits somewhere already; as many as they need for several.
    """
    row = snapshot.tasks[task]
    if row.num_workers > 1 and _reachable(snapshot, task) < row.num_workers:
        # All or nothing, lest two groups hold each other up.
        if row.num_reserved > 0:
            arbiter.drop_reservations(snapshot, task)
        return
    places = 0
    for node in range(snapshot.nodes.shape[0]):
        if snapshot.nodes[node].reserved_for == task:
            places += _capacity(snapshot, row.shape, node)
        elif row.num_workers == 1 and (
            legality.fits(snapshot, row.shape, node) and legality.is_open(snapshot, task, node)
        ):
            return
    while places < row.num_workers:
        best = -1
        best_s = math.inf
        for node in range(snapshot.nodes.shape[0]):
            here = snapshot.nodes[node]
            if here.reserved_for >= 0 or here.state != NODE_UP:
                continue
            if snapshot.shape_node[row.shape, node].eligible == 0:
                continue
            room_s = _room_s(snapshot, world, node)
            if room_s < best_s:
                best = node
                best_s = room_s
        if best < 0:
            return
        snapshot.nodes[best].reserved_for = task
        row.num_reserved += 1
        places += _capacity(snapshot, row.shape, best)


@kernel
def _reachable(snapshot: Snapshot, task: int) -> int:
    """Workers of a task that its own and all unreserved nodes hold when empty."""
    shape = snapshot.tasks[task].shape
    places = 0
    for node in range(snapshot.nodes.shape[0]):
        here = snapshot.nodes[node]
        if (
            here.state == NODE_UP
            and legality.is_open(snapshot, task, node)
            and snapshot.shape_node[shape, node].eligible == 1
        ):
            places += _capacity(snapshot, shape, node)
    return places


@kernel
def _capacity(snapshot: Snapshot, shape: int, node: int) -> int:
    """Workers of a shape that an empty node holds."""
    most = snapshot.workers.shape[0]
    for resource in range(snapshot.node_allocatable.shape[1]):
        request = snapshot.shape_request[shape, resource]
        if request > 0:
            most = min(most, snapshot.node_allocatable[node, resource] // request)
    return most


@kernel
def _room_s(snapshot: Snapshot, world: World, node: int) -> float:
    """Expected time at which everything that now runs on a node has ended."""
    latest_s = 0.0
    slot = world.machines[node].first_slot
    while slot >= 0:
        latest_s = max(latest_s, snapshot.tasks[world.slots[slot].task].end_s)
        slot = world.slots[slot].next
    return latest_s


@kernel
def drop_refused(snapshot: Snapshot, world: World) -> None:
    """Open reserved nodes that have room for their task, but that the policy did not take.

    Nothing is evicted for such a task again: the policy would refuse again, at the same instant.
    """
    for node in range(snapshot.nodes.shape[0]):
        task = snapshot.nodes[node].reserved_for
        if task < 0 or snapshot.tasks[task].num_workers > 1:
            continue
        if legality.fits(snapshot, snapshot.tasks[task].shape, node):
            arbiter.drop_reservations(snapshot, task)
            world.runs[task].refused_room = 1


@kernel
def preempt(snapshot: Snapshot, world: World) -> None:
    """Make room for waiting P0 and P1 tasks by evicting others, the least loss first.

    Victims are at least two levels less urgent (P0 evicts P2 and P3, P1 evicts P3).

    At most one node is cleared for each waiting shape and instant; the freed room is given away by
    the next decision at the same time.
    """
    for index in range(snapshot.status[0].num_active):
        shape = snapshot.active[index]
        row = snapshot.shapes[shape]
        if row.blocked == 0 or row.num_workers > 1 or not legality.within_quota(snapshot, shape):
            continue
        head = _most_urgent(snapshot, world, shape)
        if head >= 0 and snapshot.tasks[head].priority <= 1:
            node = _cheapest_victims(snapshot, world, shape, snapshot.tasks[head].priority)
            if node >= 0:
                _clear(snapshot, world, shape, node, snapshot.tasks[head].priority)
                snapshot.nodes[node].reserved_for = head
                snapshot.tasks[head].num_reserved += 1
                snapshot.tasks[head].boost = -1
                queue.reorder(snapshot)
                snapshot.status[0].wake_s = snapshot.status[0].now_s
                return


@kernel
def _most_urgent(snapshot: Snapshot, world: World, shape: int) -> int:
    """The first of the most urgent tasks of a queue for which room may be made; -1: none."""
    row = snapshot.shapes[shape]
    best = -1
    for position in range(row.queue_size):
        task = snapshot.queue[row.queue_start + position]
        if world.runs[task].refused_room == 0 and (
            best < 0 or snapshot.tasks[task].priority < snapshot.tasks[best].priority
        ):
            best = task
    return best


@kernel
def _cheapest_victims(snapshot: Snapshot, world: World, shape: int, priority: int) -> int:
    """The node where evicting all less urgent tasks gives room at the least lost work; -1: none."""
    best = -1
    best_loss_s = math.inf
    now_s = snapshot.status[0].now_s
    for node in range(snapshot.nodes.shape[0]):
        here = snapshot.nodes[node]
        if here.state != NODE_UP or here.reserved_for >= 0:
            continue
        if snapshot.shape_node[shape, node].eligible == 0:
            continue
        loss_s = 0.0
        slot = world.machines[node].first_slot
        while slot >= 0:
            victim = snapshot.tasks[world.slots[slot].task]
            if victim.priority > priority + 1:
                loss_s += now_s - victim.start_s
            slot = world.slots[slot].next
        if loss_s < best_loss_s and _would_fit(snapshot, world, shape, node, priority):
            best = node
            best_loss_s = loss_s
    return best


@kernel
def _would_fit(snapshot: Snapshot, world: World, shape: int, node: int, priority: int) -> bool:
    """Whether a node had room, and devices, without the tasks that may be evicted from it."""
    free = snapshot.node_free[node].copy()
    devices = snapshot.node_devices[node].copy()
    slot = world.machines[node].first_slot
    while slot >= 0:
        victim = snapshot.tasks[world.slots[slot].task]
        if victim.priority > priority + 1:
            for resource in range(free.shape[0]):
                free[resource] += snapshot.shape_request[victim.shape, resource]
            share = min(snapshot.shapes[victim.shape].gpu_milli, 1000)
            for device in range(devices.shape[0]):
                if snapshot.workers[slot].devices & (1 << device):
                    devices[device] += share
        slot = world.slots[slot].next
    for resource in range(free.shape[0]):
        if snapshot.shape_request[shape, resource] > free[resource]:
            return False
    demand = snapshot.shapes[shape].gpu_milli
    if devices.shape[0] == 0 or demand == 0:
        return True
    if demand < 1000:
        return devices.max() >= demand
    return (devices == 1000).sum() * 1000 >= demand


@kernel
def _clear(snapshot: Snapshot, world: World, shape: int, node: int, priority: int) -> None:
    """Evict less urgent tasks from a node, latest start first, until the shape fits."""
    while not legality.fits(snapshot, shape, node):
        latest = -1
        slot = world.machines[node].first_slot
        while slot >= 0:
            task = world.slots[slot].task
            if snapshot.tasks[task].priority > priority + 1 and (
                latest < 0 or snapshot.tasks[task].start_s > snapshot.tasks[latest].start_s
            ):
                latest = task
            slot = world.slots[slot].next
        if latest < 0:
            return
        ending.evict(snapshot, world, latest)
