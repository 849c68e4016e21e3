"""Turns wishes into placements: checks legality, takes the resources, or puts them back.

`assume` and `release` are the only code that changes what is free, in every backend.
"""

from __future__ import annotations

from dagsail.domain.snapshot import BOUND, READY, Snapshot
from dagsail.kernels import entry, inlined, kernel
from dagsail.scheduling import estimates, experience, queue
from dagsail.scheduling.constraints import legality


@kernel
def _take_devices(snapshot: Snapshot, shape: int, node: int) -> int:
    """Reserve whole GPUs or a share of one; returns the devices as a bit mask.

    A share goes to the fullest device that still has room (best fit), which keeps whole devices
    whole.
    """
    demand = snapshot.shapes[shape].gpu_milli
    devices = snapshot.node_devices
    mask = 0
    if demand < 1000:
        best = -1
        for device in range(devices.shape[1]):
            free = devices[node, device]
            if free >= demand and (best < 0 or free < devices[node, best]):
                best = device
        devices[node, best] -= demand
        return 1 << best
    for device in range(devices.shape[1]):
        if demand > 0 and devices[node, device] == 1000:
            devices[node, device] = 0
            demand -= 1000
            mask |= 1 << device
    return mask


@kernel
def _return_devices(snapshot: Snapshot, shape: int, node: int, mask: int) -> None:
    demand = min(snapshot.shapes[shape].gpu_milli, 1000)
    for device in range(snapshot.node_devices.shape[1]):
        if mask & (1 << device):
            snapshot.node_devices[node, device] += demand


@kernel
def take_worker(snapshot: Snapshot, task: int, worker: int, node: int) -> None:
    """Give one worker of a task its resources on a node. The caller has checked legality."""
    shape = snapshot.tasks[task].shape
    row = snapshot.shapes[shape]
    experience.age_use(snapshot, node)
    for resource in range(snapshot.node_free.shape[1]):
        snapshot.node_free[node, resource] -= snapshot.shape_request[shape, resource]
    slot = snapshot.workers[snapshot.tasks[task].worker_start + worker]
    slot.node = node
    slot.devices = 0
    if snapshot.node_devices.shape[1] > 0 and row.gpu_milli > 0:
        slot.devices = _take_devices(snapshot, shape, node)
    here = snapshot.nodes[node]
    here.num_running += 1
    here.version += 1
    here.cpu_default += row.cpu_default
    here.memory_default += row.memory_default
    if row.tenant >= 0:
        for resource in range(snapshot.tenant_used.shape[1]):
            amount = snapshot.shape_request[shape, resource]
            snapshot.tenant_used[row.tenant, resource] += amount


@kernel
def return_worker(snapshot: Snapshot, task: int, worker: int) -> None:
    """Put back what `take_worker` took."""
    shape = snapshot.tasks[task].shape
    row = snapshot.shapes[shape]
    slot = snapshot.workers[snapshot.tasks[task].worker_start + worker]
    node = slot.node
    experience.age_use(snapshot, node)
    for resource in range(snapshot.node_free.shape[1]):
        snapshot.node_free[node, resource] += snapshot.shape_request[shape, resource]
    if slot.devices != 0:
        _return_devices(snapshot, shape, node, slot.devices)
        slot.devices = 0
    here = snapshot.nodes[node]
    here.num_running -= 1
    here.version += 1
    here.cpu_default -= row.cpu_default
    here.memory_default -= row.memory_default
    if row.tenant >= 0:
        for resource in range(snapshot.tenant_used.shape[1]):
            amount = snapshot.shape_request[shape, resource]
            snapshot.tenant_used[row.tenant, resource] -= amount


@kernel
def assume(snapshot: Snapshot, task: int) -> None:
    """Bind a ready task whose workers have all been taken; it joins `placed`."""
    status = snapshot.status[0]
    row = snapshot.tasks[task]
    queue.take_out(snapshot, task)
    row.state = BOUND
    row.node = snapshot.workers[row.worker_start].node
    row.start_s = status.now_s
    row.end_s = (
        status.now_s
        + estimates.busy_s(snapshot, task, row.node)
        + estimates.communication_s(snapshot, task)
    )
    row.boost = 0
    row.bound_position = status.num_bound
    snapshot.bound[status.num_bound] = task
    status.num_bound += 1
    if row.num_reserved > 0:
        drop_reservations(snapshot, task)
    snapshot.placed[status.num_placed] = task
    status.num_placed += 1


@kernel
def drop_reservations(snapshot: Snapshot, task: int) -> None:
    """Open the nodes that were reserved for a task, and ask for a decision about them now."""
    status = snapshot.status[0]
    for node in range(snapshot.nodes.shape[0]):
        if snapshot.nodes[node].reserved_for == task:
            snapshot.nodes[node].reserved_for = -1
            unblock(snapshot, node)
    snapshot.tasks[task].num_reserved = 0
    status.changed = 1
    status.wake_s = status.now_s


@entry
def place(snapshot: Snapshot, task: int, node: int) -> bool:
    """Place a single-worker task on a node if that is legal; returns whether it was."""
    if snapshot.tasks[task].state != READY or snapshot.tasks[task].num_workers != 1:
        return False
    if legality.verdict(snapshot, task, node) != legality.LEGAL:
        return False
    take_worker(snapshot, task, 0, node)
    assume(snapshot, task)
    return True


@kernel
def place_group(snapshot: Snapshot, task: int, node: int) -> bool:
    """Place all workers of a ready task or none, the first on `node`; returns whether it did.

    The others go as near to the first as they fit: same node, rack, zone, anywhere.
    """
    if legality.verdict(snapshot, task, node) != legality.LEGAL:
        return False
    count = snapshot.tasks[task].num_workers
    shape = snapshot.tasks[task].shape
    take_worker(snapshot, task, 0, node)
    for worker in range(1, count):
        best = -1
        nearest = estimates.CROSS_ZONE + 1
        for other in range(snapshot.nodes.shape[0]):
            if legality.fits(snapshot, shape, other) and legality.is_open(snapshot, task, other):
                distance = estimates.tier(snapshot, node, other)
                if distance < nearest:
                    nearest = distance
                    best = other
        if best < 0:
            for taken in range(worker):
                return_worker(snapshot, task, taken)
            return False
        take_worker(snapshot, task, worker, best)
    assume(snapshot, task)
    return True


@kernel
def release(snapshot: Snapshot, task: int) -> None:
    """Free everything that a bound task holds, and wake the shapes that fit into the gap."""
    status = snapshot.status[0]
    row = snapshot.tasks[task]
    status.num_bound -= 1
    last = snapshot.bound[status.num_bound]
    snapshot.bound[row.bound_position] = last
    snapshot.tasks[last].bound_position = row.bound_position
    row.bound_position = -1
    for worker in range(row.num_workers):
        return_worker(snapshot, task, worker)
        unblock(snapshot, snapshot.workers[row.worker_start + worker].node)


@inlined
def unblock(snapshot: Snapshot, node: int) -> None:
    """Let blocked shapes that now fit on a node be tried again."""
    status = snapshot.status[0]
    for index in range(status.num_active):
        shape = snapshot.active[index]
        if snapshot.shapes[shape].blocked == 1:
            if legality.fits(snapshot, shape, node):
                snapshot.shapes[shape].blocked = 0
                status.changed = 1
        else:
            status.changed = 1
