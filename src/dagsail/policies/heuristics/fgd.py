"""Fragmentation gradient descent: the node whose free room loses least for the typical task.

Weng et al., "Beware of fragmentation: scheduling GPU-sharing workloads with fragmentation gradient
descent", USENIX ATC 2023. The typical mix is the most frequent shapes of the known workload,
weighted by how often they occur.
"""

from __future__ import annotations

import numpy as np

from dagsail.domain.snapshot import Snapshot
from dagsail.policies.packing import unusable
from dagsail.policies.rule import Rule, make_memory
from dagsail.scheduling.listing import Memory

_NUM_TYPICAL = 16


def prepare(snapshot: Snapshot, seed: int) -> Memory:
    """`ints`: the typical shapes; `floats`: their shares of the tasks."""
    counts = snapshot.shapes["num_tasks"]
    typical = np.argsort(-counts, kind="stable")[:_NUM_TYPICAL]
    memory = make_memory(seed, len(typical), len(typical))
    memory.ints[:] = typical
    memory.floats[:] = counts[typical] / counts[typical].sum()
    return memory


def least_growth(snapshot: Snapshot, memory: Memory, task: int, node: int) -> float:
    """How much less free room the typical task could not use if the task went here."""
    own = snapshot.tasks[task].shape
    growth = 0.0
    for index in range(memory.ints.shape[0]):
        shape = memory.ints[index]
        growth += memory.floats[index] * (
            unusable(snapshot, shape, node, own) - unusable(snapshot, shape, node, -1)
        )
    return -growth


POLICY = Rule("fgd", score=least_growth, prepare_function=prepare)
