"""Rules that change with load, as kernels: may this task start on this node now?

`verdict` is the one implementation of legality: candidates (the mask), the arbiter and every
policy call it. Codes are turned into words by `explain`.
"""

from __future__ import annotations

from typing import Final

from dagsail.domain.snapshot import NODE_UP, Names, Snapshot
from dagsail.domain.units import format_amount
from dagsail.kernels import entry, inlined, kernel

LEGAL: Final = 0
NOT_ELIGIBLE: Final = 1
NODE_CLOSED: Final = 2
NO_ROOM: Final = 3
NO_DEVICE: Final = 4
RESERVED: Final = 5
OVER_QUOTA: Final = 6


@inlined
def has_room(snapshot: Snapshot, shape: int, node: int) -> bool:
    """Whether the free amounts of a node cover one worker of a shape."""
    request = snapshot.shape_request
    free = snapshot.node_free
    for resource in range(free.shape[1]):
        if request[shape, resource] > free[node, resource]:
            return False
    return True


@kernel
def has_devices(snapshot: Snapshot, shape: int, node: int) -> bool:
    """Whether the node's GPUs can serve one worker: whole devices, or a share of one."""
    demand = snapshot.shapes[shape].gpu_milli
    devices = snapshot.node_devices
    if demand < 1000:
        for device in range(devices.shape[1]):
            if devices[node, device] >= demand:
                return True
        return False
    whole = 0
    for device in range(devices.shape[1]):
        if devices[node, device] == 1000:
            whole += 1
    return whole * 1000 >= demand


@inlined
def fits(snapshot: Snapshot, shape: int, node: int) -> bool:
    """Whether one worker of a shape could start on a node, quotas and reservations apart."""
    if snapshot.shape_node[shape, node].eligible == 0:
        return False
    if snapshot.nodes[node].state != NODE_UP:
        return False
    if not has_room(snapshot, shape, node):
        return False
    if snapshot.node_devices.shape[1] > 0 and snapshot.shapes[shape].gpu_milli > 0:
        return has_devices(snapshot, shape, node)
    return True


@kernel
def within_quota(snapshot: Snapshot, shape: int) -> bool:
    """Whether the tenant of a shape may hold one more worker of it."""
    tenant = snapshot.shapes[shape].tenant
    if tenant < 0:
        return True
    for resource in range(snapshot.tenant_used.shape[1]):
        amount = snapshot.shape_request[shape, resource] * snapshot.shapes[shape].num_workers
        if (
            amount > 0
            and snapshot.tenant_used[tenant, resource] + amount
            > snapshot.tenant_limit[tenant, resource]
        ):
            return False
    return True


@inlined
def is_open(snapshot: Snapshot, task: int, node: int) -> bool:
    """Whether no other, starving task has reserved the node."""
    reserved_for = snapshot.nodes[node].reserved_for
    return reserved_for < 0 or reserved_for == task


@kernel
def group_fits(snapshot: Snapshot, task: int) -> bool:
    """Whether all workers of a task could start at once; nodes that hold several count so often."""
    row = snapshot.tasks[task]
    if row.num_workers == 1:
        return True
    places = 0
    for node in range(snapshot.nodes.shape[0]):
        if fits(snapshot, row.shape, node) and is_open(snapshot, task, node):
            places += _free_places(snapshot, row.shape, node)
    return places >= row.num_workers


@kernel
def _free_places(snapshot: Snapshot, shape: int, node: int) -> int:
    """Workers of a shape that the free amounts of a node hold."""
    places = snapshot.workers.shape[0]
    for resource in range(snapshot.node_free.shape[1]):
        request = snapshot.shape_request[shape, resource]
        if request > 0:
            places = min(places, snapshot.node_free[node, resource] // request)
    demand = snapshot.shapes[shape].gpu_milli
    devices = snapshot.node_devices
    if demand > 0 and devices.shape[1] > 0:
        held = 0
        for device in range(devices.shape[1]):
            if demand < 1000:
                held += devices[node, device] // demand
            elif devices[node, device] == 1000:
                held += 1
        places = min(places, held if demand < 1000 else held * 1000 // demand)
    return places


@entry
def verdict(snapshot: Snapshot, task: int, node: int) -> int:
    """LEGAL, or the code of the first rule that refuses the pair."""
    shape = snapshot.tasks[task].shape
    if snapshot.shape_node[shape, node].eligible == 0:
        return NOT_ELIGIBLE
    if snapshot.nodes[node].state != NODE_UP:
        return NODE_CLOSED
    if not has_room(snapshot, shape, node):
        return NO_ROOM
    if not fits(snapshot, shape, node):
        return NO_DEVICE
    if not is_open(snapshot, task, node):
        return RESERVED
    if not within_quota(snapshot, shape):
        return OVER_QUOTA
    return LEGAL


def explain(snapshot: Snapshot, names: Names, task: int, node: int, code: int) -> str:
    """A verdict in words, with the amounts that decided it."""
    shape = int(snapshot.tasks[task]["shape"])
    if code == NO_ROOM:
        for column, resource in enumerate(names.resources):
            wanted = int(snapshot.shape_request[shape, column])
            free = int(snapshot.node_free[node, column])
            if wanted > free:
                return (
                    f"{format_amount(resource, free)} {resource} free,"
                    f" {format_amount(resource, wanted)} wanted"
                )
    return {
        LEGAL: "legal",
        NOT_ELIGIBLE: "refused by a placement rule or too small even when empty",
        NODE_CLOSED: "node is down or about to leave",
        NO_ROOM: "no room",
        NO_DEVICE: "no GPU device with enough left",
        RESERVED: "reserved for a starving task",
        OVER_QUOTA: "the tenant's quota is used up",
    }[code]
