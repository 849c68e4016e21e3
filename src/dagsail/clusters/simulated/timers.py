"""Timers: an indexed binary heap, at most one pending event for each timer.

Setting a timer again moves it, so no event is ever stale. Equal times go off in timer order,
which makes every run repeatable.
"""

from __future__ import annotations

from dagsail.clusters.simulated.world import World
from dagsail.kernels import kernel


@kernel
def _before(world: World, a: int, b: int) -> bool:
    left, right = world.timers[a].time_s, world.timers[b].time_s
    return left < right or (left == right and a < b)


@kernel
def _up(world: World, position: int) -> None:
    heap = world.timer_heap
    timer = heap[position]
    while position > 0:
        above = (position - 1) // 2
        other = heap[above]
        if not _before(world, timer, other):
            break
        heap[position] = other
        world.timers[other].position = position
        position = above
    heap[position] = timer
    world.timers[timer].position = position


@kernel
def _down(world: World, position: int) -> None:
    heap = world.timer_heap
    size = world.law[0].num_timers
    timer = heap[position]
    while True:
        below = 2 * position + 1
        if below >= size:
            break
        if below + 1 < size and _before(world, heap[below + 1], heap[below]):
            below += 1
        other = heap[below]
        if not _before(world, other, timer):
            break
        heap[position] = other
        world.timers[other].position = position
        position = below
    heap[position] = timer
    world.timers[timer].position = position


@kernel
def set_timer(world: World, timer: int, time_s: float) -> None:
    """Let a timer go off at that time; moves it if it is already set."""
    row = world.timers[timer]
    row.time_s = time_s
    if row.position < 0:
        row.position = world.law[0].num_timers
        world.timer_heap[row.position] = timer
        world.law[0].num_timers += 1
        _up(world, row.position)
    else:
        _up(world, row.position)
        _down(world, row.position)


@kernel
def stop_timer(world: World, timer: int) -> None:
    """Take a timer back; nothing happens if it is not set."""
    position = world.timers[timer].position
    if position < 0:
        return
    world.timers[timer].position = -1
    world.law[0].num_timers -= 1
    last = world.timer_heap[world.law[0].num_timers]
    if last != timer:
        world.timer_heap[position] = last
        world.timers[last].position = position
        _up(world, position)
        _down(world, world.timers[last].position)
