"""The default behaviour of kube-scheduler, in its own integer arithmetic.

Queue by priority, then arrival. On clusters of 100 nodes and more only a share of the nodes is
looked at, from a rotating start over a list that alternates between zones. Scores are those of
NodeResourcesFit, NodeResourcesBalancedAllocation, TaintToleration, NodeAffinity and ImageLocality;
the other default plugins give a workflow pod the same score on every node. Ties: a uniformly
random best node up to 1.34, the root of the heap over the candidates since 1.35 (in practice the
first). BalancedAllocation compares with and without the pod since 1.36. Score reuse between alike
pods (OpportunisticBatching) is not modelled.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dagsail.domain.snapshot import Snapshot
from dagsail.domain.units import MIB
from dagsail.kernels import kernel
from dagsail.policies.rule import make_memory
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import NOT_YET, NOWHERE, Memory, next_random

_CPU: Final = 0
_MEMORY: Final = 1
_MIN_IMAGE: Final = 23 * MIB
_MAX_IMAGE: Final = 1000 * MIB
_HEADER: Final = 1
"""`ints[0]` is where the next search starts; node order, candidates and scores follow."""


def prepare(snapshot: Snapshot, seed: int) -> Memory:
    """Room for the zone-alternating node order and for one search."""
    count = len(snapshot.nodes)
    memory = make_memory(seed, 1, _HEADER + 3 * count)
    by_zone: dict[int, list[int]] = {}
    for node, zone in enumerate(snapshot.nodes["zone"].tolist()):
        by_zone.setdefault(zone, []).append(node)
    order = [
        members[turn]
        for turn in range(max(len(m) for m in by_zone.values()))
        for members in by_zone.values()
        if turn < len(members)
    ]
    memory.ints[_HEADER : _HEADER + count] = np.array(order)
    return memory


@kernel
def urgency(snapshot: Snapshot, memory: Memory, task: int) -> float:
    """P0 before P1 before P2 before P3."""
    return float(snapshot.tasks[task].priority)


@kernel
def _num_to_find(count: int) -> int:
    """How many feasible nodes end the search (`numFeasibleNodesToFind`)."""
    if count < 100:
        return count
    percentage = max(5, 50 - count // 125)
    return max(100, count * percentage // 100)


@kernel
def least_allocated(requested: int, allocatable: int) -> int:
    """Free share after placing, 0..100."""
    if allocatable == 0 or requested > allocatable:
        return 0
    return (allocatable - requested) * 100 // allocatable


@kernel
def most_allocated(requested: int, allocatable: int) -> int:
    """Used share after placing, 0..100."""
    if allocatable == 0 or requested > allocatable:
        return 0
    return requested * 100 // allocatable


@kernel
def balance(cpu: int, all_cpu: int, memory: int, all_memory: int) -> int:
    """How equal the used shares of cpu and memory are, 0..100 (the formula up to 1.35)."""
    cpu_share = min(cpu / all_cpu, 1.0)
    memory_share = min(memory / all_memory, 1.0)
    return int((1.0 - abs(cpu_share - memory_share) / 2.0) * 100.0)


@kernel
def balance_change(before: int, after: int) -> int:
    """The formula since 1.36: 75 if the pod changes nothing, 50..100."""
    half = (50 + after - before) / 2.0
    return 50 + int(half)


@kernel
def _resources(snapshot: Snapshot, task: int, node: int, minor: int, packs: bool) -> int:
    """NodeResourcesFit and NodeResourcesBalancedAllocation together."""
    shape = snapshot.tasks[task].shape
    row = snapshot.shapes[shape]
    here = snapshot.nodes[node]
    all_cpu = snapshot.node_allocatable[node, _CPU]
    all_memory = snapshot.node_allocatable[node, _MEMORY]
    cpu = here.cpu_default + row.cpu_default
    memory = here.memory_default + row.memory_default
    counted = (1 if all_cpu > 0 else 0) + (1 if all_memory > 0 else 0)
    if packs:
        fit = (most_allocated(cpu, all_cpu) + most_allocated(memory, all_memory)) // counted
    else:
        fit = (least_allocated(cpu, all_cpu) + least_allocated(memory, all_memory)) // counted
    cpu_request = snapshot.shape_request[shape, _CPU]
    memory_request = snapshot.shape_request[shape, _MEMORY]
    if (cpu_request == 0 and memory_request == 0) or all_cpu == 0 or all_memory == 0:
        return fit
    cpu_used = all_cpu - snapshot.node_free[node, _CPU]
    memory_used = all_memory - snapshot.node_free[node, _MEMORY]
    after = balance(cpu_used + cpu_request, all_cpu, memory_used + memory_request, all_memory)
    if minor < 36:
        return fit + after
    before = balance(cpu_used, all_cpu, memory_used, all_memory)
    return fit + balance_change(before, after)


@kernel
def _image_locality(snapshot: Snapshot, task: int, node: int) -> int:
    image = snapshot.tasks[task].image
    if image < 0 or snapshot.node_images[node, image] == 0:
        return 0
    having = 0
    for other in range(snapshot.nodes.shape[0]):
        having += snapshot.node_images[other, image]
    spread = int(snapshot.image_bytes[image] * having / snapshot.nodes.shape[0])
    spread = min(max(spread, _MIN_IMAGE), _MAX_IMAGE)
    return (spread - _MIN_IMAGE) * 100 // (_MAX_IMAGE - _MIN_IMAGE)


@kernel
def _score_candidates(
    snapshot: Snapshot, memory: Memory, task: int, found: int, minor: int, packs: bool
) -> None:
    """Weighted sum of the plugins' normalised scores for the candidates of a search."""
    count = snapshot.nodes.shape[0]
    candidates = memory.ints[_HEADER + count : _HEADER + 2 * count]
    scores = memory.ints[_HEADER + 2 * count : _HEADER + 3 * count]
    shape = snapshot.tasks[task].shape
    most_taints = 0
    most_preferred = 0
    for index in range(found):
        pair = snapshot.shape_node[shape, candidates[index]]
        most_taints = max(most_taints, pair.untolerated)
        most_preferred = max(most_preferred, pair.preference)
    for index in range(found):
        node = candidates[index]
        pair = snapshot.shape_node[shape, node]
        taints = 100
        if most_taints > 0:
            taints = 100 - 100 * pair.untolerated // most_taints
        preferred = 0
        if most_preferred > 0:
            preferred = 100 * pair.preference // most_preferred
        scores[index] = (
            3 * taints
            + 2 * preferred
            + _resources(snapshot, task, node, minor, packs)
            + _image_locality(snapshot, task, node)
        )


@kernel
def heap_root(order: np.ndarray, scores: np.ndarray, found: int) -> int:
    """Position that Go's `heap.Init` moves to the root; `order` is scratch space."""
    for index in range(found):
        order[index] = index
    for start in range(found // 2 - 1, -1, -1):
        parent = start
        while True:
            child = 2 * parent + 1
            if child >= found:
                break
            if child + 1 < found and scores[order[child + 1]] > scores[order[child]]:
                child += 1
            if not scores[order[child]] > scores[order[parent]]:
                break
            order[child], order[parent] = order[parent], order[child]
            parent = child
    return order[0]


@kernel
def choose(snapshot: Snapshot, memory: Memory, task: int, minor: int, packs: bool) -> int:
    """One scheduling cycle: search, score, pick."""
    count = snapshot.nodes.shape[0]
    shape = snapshot.tasks[task].shape
    candidates = memory.ints[_HEADER + count : _HEADER + 2 * count]
    scores = memory.ints[_HEADER + 2 * count : _HEADER + 3 * count]
    # 1. Feasible nodes from the rotating start, until enough are found.
    start = memory.ints[0]
    enough = _num_to_find(count)
    found = 0
    looked_at = 0
    some = False
    while looked_at < count and found < enough:
        node = memory.ints[_HEADER + (start + looked_at) % count]
        looked_at += 1
        if legality.fits(snapshot, shape, node):
            some = True
            if legality.is_open(snapshot, task, node):
                candidates[found] = node
                found += 1
    memory.ints[0] = (start + looked_at) % count
    if found == 0:
        return NOT_YET if some else NOWHERE
    if found == 1:
        return candidates[0]
    # 2. Score them; 3. the best, ties as in that release.
    _score_candidates(snapshot, memory, task, found, minor, packs)
    if minor >= 35:
        return candidates[heap_root(np.empty(found, np.int64), scores, found)]
    best = 0
    ties = 1
    for index in range(1, found):
        if scores[index] > scores[best]:
            best = index
            ties = 1
        elif scores[index] == scores[best]:
            ties += 1
            if next_random(memory.random) * ties < 1.0:
                best = index
    return candidates[best]
