"""Outlook: when a busy node is expected to have room, and who is waiting for it already.

The tasks that hold a node leave it when they are expected to. A task that chose to wait claims its
room: those behind it in the order see the node free one task later.
"""

from __future__ import annotations

import math
from typing import Final

from dagsail.domain.snapshot import NODE_UP, Snapshot
from dagsail.kernels import inlined, kernel
from dagsail.scheduling import estimates
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import Memory

_MANY_CHANGES: Final = 1 << 20
_PATIENT_SHARE: Final = 0.25
"""Share of an expected wait after which a task is asked again."""


@kernel
def look_ahead(snapshot: Snapshot, memory: Memory) -> None:
    """Link the workers on each node by expected end and forget all claims, once an instant."""
    stamp = snapshot.status[0].stamp
    if memory.looked[0] == stamp:
        return
    memory.looked[0] = stamp
    memory.first_leaver[:] = -1
    memory.claims[:] = 0
    memory.num_claims[:] = 0
    for index in range(snapshot.status[0].num_bound):
        task = snapshot.bound[index]
        row = snapshot.tasks[task]
        end_s = estimates.end_s(snapshot, task)
        for slot in range(row.worker_start, row.worker_start + row.num_workers):
            memory.leave_s[slot] = end_s
            _enter(snapshot, memory, slot)


@kernel
def _enter(snapshot: Snapshot, memory: Memory, slot: int) -> None:
    node = snapshot.workers[slot].node
    before = -1
    after = memory.first_leaver[node]
    while after >= 0 and memory.leave_s[after] < memory.leave_s[slot]:
        before = after
        after = memory.next_leaver[after]
    memory.next_leaver[slot] = after
    if before < 0:
        memory.first_leaver[node] = slot
    else:
        memory.next_leaver[before] = slot


@inlined
def version_of(snapshot: Snapshot, node: int) -> int:
    """Differs between instants and, within one, whenever something was placed on the node."""
    return snapshot.status[0].stamp * _MANY_CHANGES + snapshot.nodes[node].num_running


@kernel
def room_s(snapshot: Snapshot, memory: Memory, shape: int, node: int) -> float:
    """When one worker of a shape is expected to fit on a node behind all claims; inf if never."""
    version = version_of(snapshot, node) + memory.num_claims[node]
    if memory.room_version[shape, node] != version:
        memory.room_version[shape, node] = version
        memory.room_s[shape, node] = _room_s(snapshot, memory, shape, node)
    return memory.room_s[shape, node]


@kernel
def _room_s(snapshot: Snapshot, memory: Memory, shape: int, node: int) -> float:
    slot = memory.first_leaver[node]
    while slot >= 0:
        shape_left = snapshot.tasks[snapshot.workers[slot].task].shape
        _leave(snapshot, memory, shape_left, slot == memory.first_leaver[node])
        if _has_room(snapshot, memory, shape, node):
            return memory.leave_s[slot]
        slot = memory.next_leaver[slot]
    return math.inf


@kernel
def _leave(snapshot: Snapshot, memory: Memory, shape: int, is_first: bool) -> None:
    """Add what a leaving worker returns to the sum of what has been returned."""
    for resource in range(memory.returned.shape[0]):
        if is_first:
            memory.returned[resource] = 0
        memory.returned[resource] += snapshot.shape_request[shape, resource]


@kernel
def _has_room(snapshot: Snapshot, memory: Memory, shape: int, node: int) -> bool:
    for resource in range(memory.returned.shape[0]):
        left = snapshot.node_free[node, resource] - memory.claims[node, resource]
        if snapshot.shape_request[shape, resource] > left + memory.returned[resource]:
            return False
    return True


@kernel
def claim(snapshot: Snapshot, memory: Memory, task: int, node: int, start_s: float) -> None:
    """Note that a task waits for a node, where it expects to start at `start_s`.

    It is asked again when part of that time has passed: there may be hundreds of instants until
    then, and what it was told has hardly changed at most of them.
    """
    now_s = snapshot.status[0].now_s
    memory.patient_s[task] = now_s + _PATIENT_SHARE * (start_s - now_s)
    memory.awaited[task] = node
    memory.awaited_s[task] = start_s
    _reserve(snapshot, memory, task, node, start_s)


@kernel
def still_waits(snapshot: Snapshot, memory: Memory, task: int) -> bool:
    """Whether a task need not be asked again yet: the node that it waits for is still busy."""
    if snapshot.status[0].now_s >= memory.patient_s[task]:
        return False
    node = memory.awaited[task]
    if snapshot.nodes[node].state != NODE_UP:
        return False
    return not legality.fits(snapshot, snapshot.tasks[task].shape, node)


@kernel
def renew_claim(snapshot: Snapshot, memory: Memory, task: int) -> None:
    """Claim again, in this instant, what a task still waits for."""
    look_ahead(snapshot, memory)
    _reserve(snapshot, memory, task, memory.awaited[task], memory.awaited_s[task])


@kernel
def _reserve(snapshot: Snapshot, memory: Memory, task: int, node: int, start_s: float) -> None:
    shape = snapshot.tasks[task].shape
    for resource in range(memory.claims.shape[1]):
        memory.claims[node, resource] += snapshot.shape_request[shape, resource]
    memory.num_claims[node] += 1
    memory.claim_s[node] = start_s


@kernel
def is_in_the_way(snapshot: Snapshot, memory: Memory, node: int, end_s: float) -> bool:
    """Whether a task that ends at `end_s` would outlast the wait of one that claims the node."""
    if memory.looked[0] != snapshot.status[0].stamp or memory.num_claims[node] == 0:
        return False
    return end_s > memory.claim_s[node]
