"""Planned use of each node over time, for planners that insert tasks into gaps.

A node's time line is a linked list of steps; from each step on, `usage` holds the planned use of
every resource. Step `n` is the first step of node `n`, at minus infinity.
"""

from __future__ import annotations

import math

from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling.listing import Memory


@kernel
def clear(snapshot: Snapshot, memory: Memory) -> None:
    """Forget everything planned. `memory.ints[0]` is the number of steps in use."""
    count = snapshot.nodes.shape[0]
    for node in range(count):
        memory.steps[node].time_s = -math.inf
        memory.steps[node].next = -1
        for resource in range(memory.usage.shape[1]):
            memory.usage[node, resource] = 0
    memory.ints[0] = count


@kernel
def forget_past(snapshot: Snapshot, memory: Memory) -> None:
    """Drop the steps before now, so that searches do not walk over them."""
    now_s = snapshot.status[0].now_s
    steps = memory.steps
    for node in range(snapshot.nodes.shape[0]):
        following = steps[node].next
        while following >= 0 and steps[following].time_s <= now_s:
            for resource in range(memory.usage.shape[1]):
                memory.usage[node, resource] = memory.usage[following, resource]
            steps[node].next = steps[following].next
            following = steps[node].next


@kernel
def _has_room(snapshot: Snapshot, memory: Memory, step: int, shape: int, node: int) -> bool:
    for resource in range(memory.usage.shape[1]):
        wanted = snapshot.shape_request[shape, resource]
        if (
            wanted > 0
            and memory.usage[step, resource] + wanted > snapshot.node_allocatable[node, resource]
        ):
            return False
    return True


@kernel
def earliest_start(
    snapshot: Snapshot,
    memory: Memory,
    shape: int,
    node: int,
    ready_s: float,
    duration_s: float,
) -> float:
    """First time from `ready_s` on at which a node has room for the whole duration (insertion)."""
    steps = memory.steps
    step = node
    while steps[step].next >= 0 and steps[steps[step].next].time_s <= ready_s:
        step = steps[step].next
    start_s = ready_s
    while True:
        # Skip what is too full; then the gap must last.
        while not _has_room(snapshot, memory, step, shape, node):
            step = steps[step].next
            if step < 0:
                return math.inf
            start_s = steps[step].time_s
        ahead = steps[step].next
        while ahead >= 0 and steps[ahead].time_s < start_s + duration_s:
            if not _has_room(snapshot, memory, ahead, shape, node):
                break
            ahead = steps[ahead].next
        if ahead < 0 or steps[ahead].time_s >= start_s + duration_s:
            return start_s
        step = ahead


@kernel
def _step_at(memory: Memory, node: int, time_s: float) -> int:
    """The step at a time, made if there is none."""
    steps = memory.steps
    step = node
    while steps[step].next >= 0 and steps[steps[step].next].time_s <= time_s:
        step = steps[step].next
    if steps[step].time_s == time_s:
        return step
    new = memory.ints[0]
    memory.ints[0] += 1
    steps[new].time_s = time_s
    steps[new].next = steps[step].next
    steps[step].next = new
    for resource in range(memory.usage.shape[1]):
        memory.usage[new, resource] = memory.usage[step, resource]
    return new


@kernel
def reserve(
    snapshot: Snapshot, memory: Memory, shape: int, node: int, start_s: float, end_s: float
) -> None:
    """Plan one worker of a shape on a node."""
    if end_s <= start_s:
        return
    step = _step_at(memory, node, start_s)
    last = _step_at(memory, node, end_s)
    while step != last:
        for resource in range(memory.usage.shape[1]):
            memory.usage[step, resource] += snapshot.shape_request[shape, resource]
        step = memory.steps[step].next
