"""Data on the move.

Without fair sharing every transfer gets the full bandwidth between its two nodes. With it,
concurrent flows share each network card max-min fairly (Bertsekas and Gallager, "Data Networks",
section 6.5.2), no flow exceeding the bandwidth of its tier; a flow pays its latency first.
"""

from __future__ import annotations

import math

from dagsail.clusters.simulated import chance, timers
from dagsail.clusters.simulated.world import World
from dagsail.domain.snapshot import Snapshot
from dagsail.kernels import kernel
from dagsail.scheduling import estimates

_DONE_BYTES = 1e-3
"""A flow with less left has ended; keeps rounding from scheduling events without progress."""


@kernel
def _latency_s(snapshot: Snapshot, world: World, edge: int, source: int, target: int) -> float:
    law = world.law[0]
    latency_s = snapshot.links[estimates.tier(snapshot, source, target)].latency_s
    return latency_s * chance.lognormal(law.seed, chance.LATENCY, edge, 0, law.latency_jitter)


@kernel
def _bandwidth(snapshot: Snapshot, world: World, edge: int, source: int, target: int) -> float:
    law = world.law[0]
    factor = chance.lognormal(law.seed, chance.BANDWIDTH, edge, 0, law.bandwidth_jitter)
    return estimates.bandwidth(snapshot, source, target) * factor


@kernel
def transfer_s(snapshot: Snapshot, world: World, edge: int, source: int, target: int) -> float:
    """True time to move the data of an edge (a row of `parents`) between two nodes."""
    data_bytes = snapshot.parents[edge].data_bytes
    if data_bytes <= 0.0 or source == target or source < 0:
        return 0.0
    return _latency_s(snapshot, world, edge, source, target) + data_bytes / _bandwidth(
        snapshot, world, edge, source, target
    )


@kernel
def staging_s(snapshot: Snapshot, world: World, task: int) -> float:
    """True time to bring all inputs to the task's node, each transfer undisturbed by the others."""
    row = snapshot.tasks[task]
    now_s = snapshot.status[0].now_s
    longest = 0.0
    for index in range(row.parent_start, row.parent_end):
        if world.sent_to[index] == row.node:
            longest = max(longest, world.runs[task].data_ready_s - now_s)
        else:
            source = snapshot.tasks[snapshot.parents[index].task].node
            longest = max(longest, transfer_s(snapshot, world, index, source, row.node))
    return max(longest, stage_in_s(snapshot, world, task))


@kernel
def stage_in_s(snapshot: Snapshot, world: World, task: int) -> float:
    """Time to fetch a task's external input from storage, if the scenario models that."""
    row = snapshot.tasks[task]
    if world.law[0].stage_in == 0 or row.input_bytes <= 0.0:
        return 0.0
    link = snapshot.links[estimates.CROSS_ZONE]
    speed = min(link.bytes_per_s, snapshot.nodes[row.node].nic_bytes_per_s)
    return link.latency_s + row.input_bytes / speed


@kernel
def send_ahead(snapshot: Snapshot, world: World, parent: int, child_edge: int) -> None:
    """Send a finished task's output to the planned node of one child (a row of `children`)."""
    child = snapshot.children[child_edge].task
    row = snapshot.tasks[child]
    edge = snapshot.children[child_edge].twin
    source = snapshot.tasks[parent].node
    world.sent_to[edge] = row.planned_node
    if world.law[0].fair_sharing:
        _open(snapshot, world, edge, child, source, row.planned_node)
        return
    arrives_s = snapshot.status[0].now_s + transfer_s(
        snapshot, world, edge, source, row.planned_node
    )
    world.runs[child].data_ready_s = max(world.runs[child].data_ready_s, arrives_s)


@kernel
def pull(snapshot: Snapshot, world: World, task: int) -> None:
    """Start the flows of all inputs that a placed task still needs."""
    row = snapshot.tasks[task]
    for edge in range(row.parent_start, row.parent_end):
        if world.sent_to[edge] == row.node:
            continue
        source = snapshot.tasks[snapshot.parents[edge].task].node
        _open(snapshot, world, edge, task, source, row.node)


@kernel
def _open(snapshot: Snapshot, world: World, edge: int, task: int, source: int, target: int) -> None:
    data_bytes = snapshot.parents[edge].data_bytes
    if data_bytes <= 0.0 or source == target or source < 0:
        return
    flow = world.flows[edge]
    flow.task = task
    flow.source = source
    flow.target = target
    flow.bytes_left = data_bytes
    flow.cap = _bandwidth(snapshot, world, edge, source, target)
    world.runs[task].flows_left += 1
    latency_s = _latency_s(snapshot, world, edge, source, target)
    timers.set_timer(world, world.runs.shape[0] + edge, snapshot.status[0].now_s + latency_s)


@kernel
def on_latency_over(snapshot: Snapshot, world: World, edge: int) -> None:
    """A flow's first byte arrives: it takes part in the sharing from now on."""
    _advance(snapshot, world)
    law = world.law[0]
    world.flows[edge].active_position = law.num_active_flows
    world.active_flows[law.num_active_flows] = edge
    law.num_active_flows += 1


@kernel
def _advance(snapshot: Snapshot, world: World) -> None:
    """Move all active flows up to now at their present rates."""
    law = world.law[0]
    elapsed_s = snapshot.status[0].now_s - law.flows_updated_s
    if elapsed_s > 0.0:
        for index in range(law.num_active_flows):
            flow = world.flows[world.active_flows[index]]
            flow.bytes_left -= flow.rate * elapsed_s
    law.flows_updated_s = snapshot.status[0].now_s


@kernel
def _close(world: World, edge: int) -> None:
    law = world.law[0]
    law.num_active_flows -= 1
    last = world.active_flows[law.num_active_flows]
    world.active_flows[world.flows[edge].active_position] = last
    world.flows[last].active_position = world.flows[edge].active_position
    world.flows[edge].active_position = -1


@kernel
def pop_finished(snapshot: Snapshot, world: World) -> int:
    """Close one flow that has delivered everything; returns its task, -1 if there is none."""
    _advance(snapshot, world)
    for index in range(world.law[0].num_active_flows):
        edge = world.active_flows[index]
        flow = world.flows[edge]
        if flow.bytes_left <= max(
            _DONE_BYTES, flow.rate * (1e-9 + 1e-15 * snapshot.status[0].now_s)
        ):
            _close(world, edge)
            world.runs[flow.task].flows_left -= 1
            return flow.task
    return -1


@kernel
def cancel(snapshot: Snapshot, world: World, task: int) -> None:
    """Drop all flows towards a task."""
    _advance(snapshot, world)
    row = snapshot.tasks[task]
    for edge in range(row.parent_start, row.parent_end):
        timers.stop_timer(world, world.runs.shape[0] + edge)
        if world.flows[edge].active_position >= 0:
            _close(world, edge)
    world.runs[task].flows_left = 0


@kernel
def share(snapshot: Snapshot, world: World, timer: int) -> None:
    """Give every active flow its max-min fair rate and set the timer of the next completion.

    Progressive filling: the most loaded card, or the tightest cap, fixes its flows first.
    """
    law = world.law[0]
    _advance(snapshot, world)
    num_nodes = snapshot.nodes.shape[0]
    for node in range(num_nodes):
        for direction in range(2):
            world.link_left[direction, node] = snapshot.nodes[node].nic_bytes_per_s
            world.link_flows[direction, node] = 0
    for index in range(law.num_active_flows):
        flow = world.flows[world.active_flows[index]]
        flow.rate = -1.0
        world.link_flows[0, flow.source] += 1
        world.link_flows[1, flow.target] += 1
    unfixed = law.num_active_flows
    while unfixed > 0:
        level = math.inf
        for index in range(law.num_active_flows):
            flow = world.flows[world.active_flows[index]]
            if flow.rate < 0.0:
                level = min(level, _fair_rate(world, flow.source, flow.target, flow.cap))
        for index in range(law.num_active_flows):
            flow = world.flows[world.active_flows[index]]
            if flow.rate < 0.0:
                rate = _fair_rate(world, flow.source, flow.target, flow.cap)
                if rate <= level * (1.0 + 1e-12):
                    flow.rate = rate
                    _use(world, 0, flow.source, rate)
                    _use(world, 1, flow.target, rate)
                    unfixed -= 1
    for node in range(num_nodes):
        here = snapshot.nodes[node]
        here.net_out_ratio = 1.0 - world.link_left[0, node] / here.nic_bytes_per_s
        here.net_in_ratio = 1.0 - world.link_left[1, node] / here.nic_bytes_per_s
    _set_next(snapshot, world, timer)


@kernel
def _fair_rate(world: World, source: int, target: int, cap: float) -> float:
    up = world.link_left[0, source] / world.link_flows[0, source]
    down = world.link_left[1, target] / world.link_flows[1, target]
    return min(cap, up, down)


@kernel
def _use(world: World, direction: int, node: int, rate: float) -> None:
    world.link_left[direction, node] = max(0.0, world.link_left[direction, node] - rate)
    world.link_flows[direction, node] -= 1


@kernel
def _set_next(snapshot: Snapshot, world: World, timer: int) -> None:
    next_s = math.inf
    for index in range(world.law[0].num_active_flows):
        flow = world.flows[world.active_flows[index]]
        next_s = min(next_s, flow.bytes_left / flow.rate)
    if next_s < math.inf:
        timers.set_timer(world, timer, snapshot.status[0].now_s + max(next_s, 0.0))
    else:
        timers.stop_timer(world, timer)
