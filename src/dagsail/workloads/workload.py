"""Workload: what is submitted in a run, from files, families and recipes together.

Files and recipes hold the same workflows at every seed; families are generated anew for each, so
that a result over many seeds does not rest on one draw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from numpy.random import default_rng

from dagsail.domain.cluster import Cluster
from dagsail.domain.scenario import ArrivalKind, Arrivals
from dagsail.domain.workflow import Workflow
from dagsail.workloads.arrivals import ArrivalPlan, schedule_arrivals
from dagsail.workloads.families import FAMILIES
from dagsail.workloads.fitting import fitted

_FEWEST_OVER_TIME: Final = 20
_MOST_OVER_TIME: Final = 100
_TASKS_OVER_TIME: Final = 20_000
"""How many workflows a few files give when they arrive over time: about so many tasks."""
_GENERATION: Final = 1
_ARRIVAL: Final = 2
"""Keys of the two streams of random numbers of a seed."""


@dataclass(frozen=True, slots=True)
class FamilyShare:
    """So many workflows of a family."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What to submit.

    Attributes:
        workflows: of files and recipes, in the order of the arguments.
        families: to generate for each seed.
        warnings: what was repaired or assumed to get the workflows.
    """

    workflows: tuple[Workflow, ...] = ()
    families: tuple[FamilyShare, ...] = ()
    warnings: tuple[str, ...] = ()

    def pool(self, seed: int, cluster: Cluster | None = None) -> list[Workflow]:
        """All workflows of a seed, those of files first; those of families fit the cluster."""
        pool = list(self.workflows)
        for position, share in enumerate(self.families):
            generated = _generate(share, seed, position)
            pool += generated if cluster is None else fitted(generated, cluster)
        return pool

    def cut_families(self, cluster: Cluster) -> list[str]:
        """Families whose tasks are too large for the cluster, so that `pool` cuts them down.

        Judged by the workflows of seed 0, as the others are drawn alike.
        """
        names = []
        for position, share in enumerate(self.families):
            generated = _generate(share, 0, position)
            if any(a is not b for a, b in zip(fitted(generated, cluster), generated, strict=True)):
                names.append(share.name)
        return names

    @property
    def default_kind(self) -> ArrivalKind:
        """What arrivals of kind `auto` mean."""
        if self.families:
            return "poisson"
        is_recorded = all(workflow.submitted_s is not None for workflow in self.workflows)
        return "recorded" if is_recorded else "together"

    def settle(self, settings: Arrivals) -> Arrivals:
        """The settings with nothing left open: a kind for `auto`, a number for a few files.

        A few workflows of files that arrive over time would be over before a queue can form, so
        they are drawn repeatedly; the number depends on their size.
        """
        kind = self.default_kind if settings.kind == "auto" else settings.kind
        number = settings.num_workflows
        is_over_time = kind in ("poisson", "daily", "burst")
        if is_over_time and not number and not self.families:
            mean_tasks = sum(len(w.tasks) for w in self.workflows) / len(self.workflows)
            wanted = min(int(_TASKS_OVER_TIME / mean_tasks), _MOST_OVER_TIME)
            wanted = max(wanted, _FEWEST_OVER_TIME)
            number = wanted if len(self.workflows) < wanted else 0
        return replace(settings, kind=kind, num_workflows=number)

    def arrivals(self, settings: Arrivals, cluster: Cluster, seed: int) -> ArrivalPlan:
        """The submissions of one run.

        Raises:
            ScenarioError: if recorded times or a load cannot be had of these workflows.
        """
        return schedule_arrivals(
            self.pool(seed, cluster),
            self.settle(settings),
            cluster,
            default_rng([seed, _ARRIVAL]),
            default_kind=self.default_kind,
        )


@lru_cache(maxsize=4)
def _generate(share: FamilyShare, seed: int, position: int) -> tuple[Workflow, ...]:
    """The workflows of a family, kept because a first look at them precedes their use."""
    rng = default_rng([seed, _GENERATION, position])
    return tuple(FAMILIES.get(share.name).load().generate_many(share.count, rng))
