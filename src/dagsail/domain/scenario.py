"""Scenario: which effects of the real world a simulation models, and how strongly.

Every effect is off by default, except data transfers at full link bandwidth. A scenario file
(`kind: Scenario`) has these classes as its sections and these fields as its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from dagsail.domain.errors import ScenarioError

ArrivalKind = Literal["auto", "together", "poisson", "daily", "burst", "recorded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtimes:
    """How true runtimes differ from the estimates that policies see."""

    noise: float = 0.0
    """Coefficient of variation of a lognormal factor with mean 1; 0.4 means about +-40 %."""
    straggler_ratio: float = 0.0
    """Share of attempts that run `straggler_factor` times longer."""
    straggler_factor: float = 5.0
    heavy_tail_ratio: float = 0.0
    """Share of attempts whose factor is drawn from a Pareto distribution instead."""
    heavy_tail_alpha: float = 1.5
    """Shape of that Pareto distribution (scale 1); smaller is heavier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """Delay between a placement and the start of its work."""

    container_s: float = 0.0
    """Creating a container."""
    image_pull: bool = False
    """Pull a task's image unless the node already has it."""
    registry_bytes_per_s: float = 100e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """How data moves between nodes."""

    enabled: bool = True
    fair_sharing: bool = False
    """Concurrent flows share network cards max-min fairly instead of each getting all of it."""
    stage_in: bool = False
    """Also move a task's external input, from storage one cross-zone hop away."""
    latency_jitter: float = 0.0
    """Coefficient of variation of a lognormal factor on each transfer's latency."""
    bandwidth_jitter: float = 0.0
    """Likewise on its bandwidth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """Slow-down by neighbours on the same node."""

    memory_bandwidth: float = 0.0
    """Strength: slow-down = 1 + strength * own demand * (sum of demands - 1, if positive)."""
    disk: float = 0.0
    """Likewise for disk demand against the present disk speed."""
    disk_drift: float = 0.0
    """Share of its speed that a disk may lose in a bounded random walk; 0.93 for 30,000 to 2,000
    IOPS."""
    interval_s: float = 300.0
    """Time between steps of that walk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What breaks."""

    node_mtbf_s: float = 0.0
    """Mean time between losses of one node, exponential; 0 is never."""
    node_mttr_s: float = 600.0
    """Mean time until a lost node returns, exponential."""
    spot_mtbf_s: float = 0.0
    """Mean time between reclaims of one spot node; 0 is never."""
    spot_notice_s: float = 120.0
    """Time between the notice (no new placements) and the reclaim."""
    task_failure_ratio: float = 0.0
    """Share of attempts that fail at a random point of their run."""
    oom_ratio: float = 0.0
    """Share of attempts that exceed their memory request, are killed, and retried with more."""
    oom_growth: float = 1.5
    """Factor on the memory request after an OOM kill."""
    max_retries: int = 3
    """Retries of a failed or killed attempt where the task does not say; evictions are free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignLoad:
    """Long-lived services outside Dagsail's control that occupy part of each node."""

    mean_ratio: float = 0.0
    """Mean share of cpu and memory that they occupy."""
    tide_ratio: float = 0.0
    """Amplitude of the daily tide around the mean."""
    noise_ratio: float = 0.0
    """Standard deviation of the random part."""
    interval_s: float = 300.0
    """Time between changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """Nodes of one type that join or leave at a set time."""

    node_type: str
    joins_s: float | None = None
    """Absent before this time."""
    leaves_s: float | None = None
    """Gone from this time on; running tasks are evicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fairness:
    """Bounds on how long and how much."""

    max_wait_s: Mapping[str, float] = field(default_factory=dict)
    """By priority (`P0`..`P3`): a task that waited longer goes first and reserves a node."""
    tenant_quota: Mapping[str, float] = field(default_factory=dict)
    """By tenant: largest share of any resource of the cluster that it may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """Evicting less urgent tasks."""

    enabled: bool = False
    """A P0 or P1 task that fits nowhere evicts less urgent restartable tasks, least loss first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When workflows are submitted."""

    kind: ArrivalKind = "auto"
    """`auto`: recorded times where the source has them, poisson for families, else together."""
    load: float = 0.8
    """Offered work over capacity, on the dominating resource; sets the rate of arrivals."""
    num_workflows: int = 0
    """How many to draw from all that is given; 0 is each file once, families their default."""
    burst_factor: float = 17.0
    """Rate during a burst over the normal rate."""
    burst_ratio: float = 0.1
    """Share of the workflows that arrive within the burst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One named setting of all effects."""

    name: str = "default"
    arrivals: Arrivals = Arrivals()
    runtimes: Runtimes = Runtimes()
    startup: Startup = Startup()
    transfers: Transfers = Transfers()
    interference: Interference = Interference()
    faults: Faults = Faults()
    foreign_load: ForeignLoad = ForeignLoad()
    node_changes: tuple[NodeChange, ...] = ()
    fairness: Fairness = Fairness()
    preemption: Preemption = Preemption()

    def __post_init__(self) -> None:
        for section in fields(self):
            value = getattr(self, section.name)
            for part in value if isinstance(value, tuple) else (value,):
                if not isinstance(part, str):
                    _check_section(self.name, section.name, part)


_POSITIVE = {
    "straggler_factor",
    "heavy_tail_alpha",
    "registry_bytes_per_s",
    "interval_s",
    "node_mttr_s",
    "oom_growth",
    "load",
    "burst_factor",
}


def _check_section(scenario: str, section: str, part: object) -> None:
    for item in fields(part):  # type: ignore[arg-type]
        value = getattr(part, item.name)
        numbers = value.values() if isinstance(value, Mapping) else (value,)
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float):
                continue
            where = f"scenario '{scenario}': {section}.{item.name} is {number}"
            if number < 0 or number > 1e18 or number != number:
                raise ScenarioError(f"{where}; it must be finite and not negative")
            if item.name in _POSITIVE and number == 0:
                raise ScenarioError(f"{where}; it must be above 0")
            if item.name.endswith(("_ratio", "_quota")) and number > 1:
                raise ScenarioError(f"{where}; a ratio must be at most 1")
            if item.name in {"disk_drift"} and number >= 1:
                raise ScenarioError(f"{where}; it must be below 1")
