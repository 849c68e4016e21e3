"""Recorded: follows the placements of an earlier run, whoever decided them.

Not in the registry: it needs a record. Reservations and preemption look at the queue that a policy
keeps, which a record does not hold, so runs with those may part from it; that is then noticed.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from dagsail.domain.snapshot import READY, Snapshot
from dagsail.policies.rule import Rule, make_memory
from dagsail.scheduling import arbiter, queue
from dagsail.scheduling.constraints import legality
from dagsail.scheduling.listing import CUSTOM, Memory

TIME: Final = 0
TASK: Final = 1
NODE: Final = 2
NEXT: Final = 0
"""Place in `memory.ints` of the next row to follow; it stays where a row cannot be followed."""


def follow(snapshot: Snapshot, memory: Memory, limit: int) -> int:
    """Place what the record placed at this time."""
    status = snapshot.status[0]
    queue.take_in(snapshot)
    status.has_waiting = 1
    placed = 0
    row = memory.ints[NEXT]
    while placed < limit and row < memory.table.shape[0]:
        if memory.table[row, TIME] != status.now_s:
            break
        task = int(memory.table[row, TASK])
        node = int(memory.table[row, NODE])
        if snapshot.tasks[task].state != READY:
            break
        if not legality.fits(snapshot, snapshot.tasks[task].shape, node):
            break
        if not arbiter.place_group(snapshot, task, node):
            break
        row += 1
        placed += 1
    memory.ints[NEXT] = row
    if row < memory.table.shape[0] and memory.table[row, TIME] > status.now_s:
        status.wake_s = memory.table[row, TIME]
    return placed


class Recorded:
    """A policy for one run, and how far it has come."""

    def __init__(self, placements: NDArray[np.float64]) -> None:
        """Take the placements in order: time, task and first node by position. float64 (P, 3)."""
        self._memory = make_memory(0, table=placements.shape)
        self._memory.table[:] = placements

    @property
    def rule(self) -> Rule:
        """The policy."""
        return Rule("recorded", loop=CUSTOM, decide_function=follow, prepare_function=self._prepare)

    @property
    def num_followed(self) -> int:
        """How many placements were made."""
        return int(self._memory.ints[NEXT])

    def _prepare(self, snapshot: Snapshot, seed: int) -> Memory:
        return self._memory
