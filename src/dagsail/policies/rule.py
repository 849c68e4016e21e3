"""Rule policies: small kernels that order tasks and choose nodes, called through pointers.

The loops that use them are compiled once for all rules; a rule compiles in a fraction of a second.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from dagsail.domain.snapshot import Snapshot
from dagsail.scheduling import listing
from dagsail.scheduling.listing import Decide, Key, Memory, Rules, Score, Select

Prepare = Callable[[Snapshot, int], Memory]

_VIEW: Final = (Snapshot.numba_type(), Memory.numba_type())
_KEY: Final = types.float64(*_VIEW, types.int64)
_SCORE: Final = types.float64(*_VIEW, types.int64, types.int64)
_SELECT: Final = types.int64(*_VIEW, types.int64, types.FunctionType(_SCORE))
_DECIDE: Final = types.int64(*_VIEW, types.int64)


def make_memory(
    seed: int,
    num_floats: int = 1,
    num_ints: int = 1,
    table: tuple[int, int] = (0, 0),
    steps: tuple[int, int] = (0, 0),
) -> Memory:
    """A memory of zeros with random numbers seeded by `seed`.

    Args:
        seed: of the run.
        num_floats: size of `floats`.
        num_ints: size of `ints`.
        table: shape of `table`.
        steps: number of time line steps, and of resources, for planners.
    """
    mixed = np.random.SeedSequence([seed, 0xDA6]).generate_state(1, np.uint64)
    given = {
        "floats": np.zeros(num_floats),
        "ints": np.zeros(num_ints, np.int64),
        "random": mixed,
        "table": np.zeros(table),
        "steps": np.zeros(steps[0], listing.STEP),
        "usage": np.zeros(steps, np.int64),
    }
    empty = {name: np.zeros((0,) * ndim, dtype) for name, (dtype, ndim) in Memory.fields.items()}
    return Memory(**empty | given)


def _no_memory(snapshot: Snapshot, seed: int) -> Memory:
    return make_memory(seed)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A policy made of kernels.

    The functions are plain Python over kernels and are compiled to native code on first use.

    Attributes:
        name: under which users choose it.
        key: order of tasks; smaller goes first.
        select: chooses a node for a task.
        score: of a node for a task, larger is better; None where the rule does not score.
        loop: which loop of `scheduling.listing` uses the functions.
        decide_function: for the loops PLANNED_LIST and CUSTOM.
        prepare_function: makes the memory of a run, given the snapshot and the seed.
    """

    name: str
    key: Key = listing.in_turn
    select: Select = listing.best_node
    score: Score | None = None
    loop: int = listing.STATIC_LIST
    decide_function: Decide = listing.place_nothing
    prepare_function: Prepare = _no_memory

    def prepare(self, snapshot: Snapshot, seed: int) -> Memory:
        """A fresh memory for one run."""
        return self.prepare_function(snapshot, seed)

    def compiled(self) -> Rules:
        """The native functions, from the cache if they were ever compiled."""
        return Rules(
            self.loop,
            native(self.decide_function, _DECIDE),
            native(self.key, _KEY),
            native(self.select, _SELECT),
            native(self.score or listing.fastest, _SCORE),
        )

    def decide(self, snapshot: Snapshot, memory: Memory, limit: int) -> int:
        """Place up to `limit` ready tasks; returns how many."""
        return int(listing.decide(snapshot, memory, limit, self.compiled()))

    def scores(self, snapshot: Snapshot, memory: Memory, task: int) -> NDArray[np.float64]:
        """Score of every node for a ready task, NaN where the rule does not score. (N,)."""
        count = len(snapshot.nodes)
        if self.score is None:
            return np.full(count, np.nan)
        scores = np.empty(count)
        listing.score_all(snapshot, memory, task, native(self.score, _SCORE), scores)
        return scores


@functools.cache
def native(function: Callable[..., Any], signature: Any) -> Any:
    """Compile a function to native code that kernels can call through a pointer."""
    return numba.cfunc(signature, cache=True)(function)
