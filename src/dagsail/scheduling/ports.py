"""What the rooms ask of each other: the protocols that make backends and policies exchangeable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from dagsail.domain.snapshot import Snapshot
from dagsail.scheduling.listing import Memory


@runtime_checkable
class Policy(Protocol):
    """Chooses which task runs next and where."""

    @property
    def name(self) -> str:
        """Name under which users choose it."""
        ...

    def prepare(self, snapshot: Snapshot, seed: int) -> Any:
        """A fresh memory for one run; all state of a policy lives in it."""
        ...

    def decide(self, snapshot: Snapshot, memory: Any, limit: int) -> int:
        """Place up to `limit` ready tasks on `snapshot`; returns how many.

        Placements are made through `scheduling.arbiter`, which refuses illegal ones. Placing
        nothing is a legal answer: wait.
        """
        ...


@runtime_checkable
class CompiledPolicy(Policy, Protocol):
    """A policy whose `decide` is also a native function, so that a whole run is one kernel."""

    def compiled(self) -> Any:
        """The native function, as a Numba first-class function."""
        ...

    def scores(self, snapshot: Snapshot, memory: Memory, task: int) -> Any:
        """What the policy thinks of each node for a ready task; NaN where it has no opinion."""
        ...


KernelFunction = Callable[..., Any]
