"""Who submits a workflow, how urgent it is and when it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from numpy.random import Generator

from dagsail.domain.workflow import Priority
from dagsail.workloads.families.draws import Shares, pick

TENANTS: Final[Shares[str]] = (
    ("team-a", 0.4),
    ("team-b", 0.3),
    ("team-c", 0.2),
    ("team-d", 0.1),
)
"""Teams and their shares of the workflows (assumption: one large, one small)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Urgency:
    """What one priority means in a family.

    Attributes:
        share: probability that a workflow has this priority.
        slack_ratio: range of the deadline over the critical path at speed 1, drawn uniformly.
        start_deadline_s: latest start of the first task after submission; None is none.
    """

    share: float
    slack_ratio: tuple[float, float]
    start_deadline_s: float | None

    def deadline_s(self, rng: Generator, critical_path_s: float) -> float:
        """A finish deadline for a workflow of that critical path, seconds after submission."""
        return round(critical_path_s * float(rng.uniform(*self.slack_ratio)), 3)


Urgencies: TypeAlias = tuple[Urgency, Urgency, Urgency, Urgency]
"""One a priority, P0 first; their shares sum to 1."""


def draw_priority(rng: Generator, urgencies: Urgencies) -> Priority:
    """A priority by its share."""
    return pick(rng, tuple((p, urgencies[p].share) for p in Priority))
