"""When workflows are submitted: all together, at random by a wanted load, or as recorded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from numpy.random import Generator

from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import ScenarioError
from dagsail.domain.scenario import ArrivalKind, Arrivals
from dagsail.domain.workflow import Arrival, Workflow
from dagsail.workloads.offered_load import busy_seconds, rate_for_load

DAY_S: Final = 86400.0
DAILY_AMPLITUDE: Final = 0.5
"""Peak 1.5 and trough 0.5 times the mean: hours of Alibaba's 2018 batch jobs differ by 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalPlan:
    """All submissions of a run, and how hard they press.

    Attributes:
        arrivals: by time; workflow ids are unique.
        kind: the process that was used; never `auto`.
        rate_per_s: workflows per second (of a burst: outside of it); 0 where all come together.
        load_by_resource: offered work over capacity at that rate; empty where all come together.
        dominating: the resource with the highest load; of work, where all come together.
    """

    arrivals: tuple[Arrival, ...]
    kind: ArrivalKind
    rate_per_s: float
    load_by_resource: Mapping[str, float]
    dominating: str


def schedule_arrivals(
    pool: Sequence[Workflow],
    settings: Arrivals,
    cluster: Cluster,
    rng: Generator,
    *,
    default_kind: ArrivalKind,
) -> ArrivalPlan:
    """Draw the submissions of one run.

    Poisson, daily and burst arrivals draw `num_workflows` from the pool with replacement, or take
    each once in random order if that is 0. Together and recorded take each once, in the order of
    the pool; a number draws (together) or cuts the recording short (recorded).

    Args:
        pool: what to draw from; at least one workflow.
        settings: the scenario's section.
        cluster: whose capacity the load refers to.
        rng: source of all randomness.
        default_kind: what `auto` means for this pool.

    Raises:
        ScenarioError: if the pool is empty or lacks recorded times, or no load can be reached.
    """
    if not pool:
        raise ScenarioError("arrivals: there is no workflow to submit")
    kind = default_kind if settings.kind == "auto" else settings.kind
    if kind == "together":
        rate = 0.0
        arrivals = together(_draw(pool, settings.num_workflows, rng, shuffle=False))
    elif kind == "recorded":
        arrivals = recorded(pool, settings.num_workflows)
        pool = [workflow for _, workflow in arrivals]
        span_s = arrivals[-1].time_s
        rate = (len(arrivals) - 1) / span_s if span_s else 0.0
    else:
        rate, _ = rate_for_load(pool, cluster, settings.load)
        drawn = _draw(pool, settings.num_workflows, rng, shuffle=True)
        arrivals = _spread(drawn, kind, rate, settings, rng)
    busy_s = busy_seconds(pool, cluster)
    return ArrivalPlan(
        arrivals=tuple(arrivals),
        kind=kind,
        rate_per_s=rate,
        load_by_resource={r: rate * busy_s[r] for r in busy_s} if rate else {},
        dominating=max(busy_s, key=lambda resource: busy_s[resource]),
    )


def _spread(
    workflows: Sequence[Workflow],
    kind: ArrivalKind,
    rate_per_s: float,
    settings: Arrivals,
    rng: Generator,
) -> list[Arrival]:
    match kind:
        case "poisson":
            return poisson(workflows, rate_per_s, rng)
        case "daily":
            return daily(workflows, rate_per_s, rng)
        case "burst":
            factor, ratio = settings.burst_factor, settings.burst_ratio
            return burst(workflows, rate_per_s, rng, factor=factor, ratio=ratio)
        case _:
            raise ScenarioError(f"arrivals: kind is '{kind}', which says nothing about when")


def together(workflows: Sequence[Workflow]) -> list[Arrival]:
    """All at time 0."""
    return _at(workflows, [0.0] * len(workflows))


def poisson(workflows: Sequence[Workflow], rate_per_s: float, rng: Generator) -> list[Arrival]:
    """Independent exponential gaps with mean 1 / rate; the first gap comes before the first."""
    gaps = rng.exponential(1 / rate_per_s, size=len(workflows))
    return _at(workflows, gaps.cumsum().tolist())


def daily(workflows: Sequence[Workflow], rate_per_s: float, rng: Generator) -> list[Arrival]:
    """A rate that follows the day: at the mean at 0 h, highest at 6 h, lowest at 18 h.

    Time 0 is a morning, not midnight. Draws by thinning: Lewis and Shedler, "Simulation of
    nonhomogeneous Poisson processes by thinning", Naval Research Logistics 26 (1979).
    """
    highest = rate_per_s * (1 + DAILY_AMPLITUDE)
    times: list[float] = []
    time_s = 0.0
    while len(times) < len(workflows):
        time_s += float(rng.exponential(1 / highest))
        rate = rate_per_s * (1 + DAILY_AMPLITUDE * math.sin(2 * math.pi * time_s / DAY_S))
        if rng.random() * highest < rate:
            times.append(time_s)
    return _at(workflows, times)


def burst(
    workflows: Sequence[Workflow],
    rate_per_s: float,
    rng: Generator,
    *,
    factor: float,
    ratio: float,
) -> list[Arrival]:
    """Poisson arrivals with one burst in the middle.

    Args:
        workflows: in the order of their arrival.
        rate_per_s: outside of the burst.
        rng: source of randomness.
        factor: rate within the burst over that outside.
        ratio: share of the workflows that arrive within the burst, rounded to whole ones.
    """
    num_burst = round(ratio * len(workflows))
    first = (len(workflows) - num_burst) // 2
    gaps = rng.exponential(1 / rate_per_s, size=len(workflows))
    gaps[first : first + num_burst] /= factor
    return _at(workflows, gaps.cumsum().tolist())


def recorded(workflows: Sequence[Workflow], num_workflows: int = 0) -> list[Arrival]:
    """At the recorded times, counted from the earliest; a number keeps only the first so many.

    Raises:
        ScenarioError: if a workflow has no recorded time, or there are fewer than wanted.
    """
    times = {}
    for position, workflow in enumerate(workflows):
        if workflow.submitted_s is None:
            raise ScenarioError(
                f"arrivals: workflow '{workflow.id}' has no recorded submission time;"
                " use another kind of arrivals, such as poisson"
            )
        times[position] = workflow.submitted_s
    if num_workflows > len(workflows):
        raise ScenarioError(
            f"arrivals: num_workflows is {num_workflows}, but only {len(workflows)} are recorded"
        )
    order = sorted(times, key=lambda position: times[position])
    kept = order[: num_workflows or len(order)]
    return _at([workflows[p] for p in kept], [times[p] - times[kept[0]] for p in kept])


def _draw(
    pool: Sequence[Workflow], num_workflows: int, rng: Generator, *, shuffle: bool
) -> list[Workflow]:
    """Draws with replacement; for 0 each once, in random order if wanted."""
    if num_workflows:
        return [pool[i] for i in rng.integers(len(pool), size=num_workflows).tolist()]
    return [pool[i] for i in rng.permutation(len(pool)).tolist()] if shuffle else list(pool)


def _at(workflows: Sequence[Workflow], times: Sequence[float]) -> list[Arrival]:
    """Arrivals with unique ids: a second workflow of one id becomes `id#2`, and so on."""
    taken = {workflow.id for workflow in workflows}
    seen: dict[str, int] = {}
    arrivals = []
    for workflow, time_s in zip(workflows, times, strict=True):
        count = seen[workflow.id] = seen.get(workflow.id, 0) + 1
        if count > 1:
            while (unique := f"{workflow.id}#{count}") in taken:
                count += 1
            seen[workflow.id] = count
            taken.add(unique)
            workflow = replace(workflow, id=unique)
        arrivals.append(Arrival(time_s, workflow))
    return arrivals
