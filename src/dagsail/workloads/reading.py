"""What every reader of workflow files shares: its result, its defaults and its warnings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from dagsail.domain.units import GIB
from dagsail.domain.workflow import Workflow

DEFAULT_RUNTIME_S: Final = 60.0
DEFAULT_CPU_MILLICORES: Final = 1000
DEFAULT_MEMORY_BYTES: Final = GIB


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source holds: workflows, and what was repaired or assumed to get them."""

    workflows: tuple[Workflow, ...]
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Repairs:
    """Counts repairs of one file, so that a thousand alike become one warning."""

    source: str
    _counts: Counter[str] = field(default_factory=Counter)
    _examples: dict[str, str] = field(default_factory=dict)

    def note(self, what: str, example: str = "") -> None:
        """Count one repair; `what` is a sentence without the count, `example` where it was."""
        self._counts[what] += 1
        self._examples.setdefault(what, example)

    def warnings(self) -> tuple[str, ...]:
        """One line a kind of repair: source, what, how often, and one place."""
        return tuple(
            f"{self.source}: {what} ({count} x"
            + (f", first: {self._examples[what]})" if self._examples[what] else ")")
            for what, count in self._counts.items()
        )


def round_up_memory(amount: int) -> int:
    """Round a measured peak up to the request that a person would write.

    Keeps four significant bits (steps of 1/16 to 1/8), so that thousands of measured peaks
    become a few dozen distinct requests: 411_234_567 -> 416 MiB.
    """
    step = 1 << max(amount.bit_length() - 4, 16)
    return -(-amount // step) * step
