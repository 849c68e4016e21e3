"""Composition: the only place that turns names, files and options into objects.

What users write (`etl:50`, `flow.yaml`, `recipe:montage:200`, `--cluster edge`, `--policy default`)
becomes workloads, clusters, scenarios and policies here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from dagsail.compose.policies import only_policy, policies_of, policy_names
from dagsail.compose.sources import MAX_WORKFLOWS, cluster_of, is_name, workload_of
from dagsail.domain.errors import InputError
from dagsail.domain.scenario import ArrivalKind, Scenario
from dagsail.workloads.families import DEFAULT_COUNTS, FAMILIES

if TYPE_CHECKING:
    from dagsail.domain.cluster import Cluster
    from dagsail.domain.workflow import Arrival
    from dagsail.workloads.workload import Workload

__all__ = [
    "DEFAULT_CLUSTER",
    "DEFAULT_POLICY",
    "DEFAULT_REFERENCE",
    "MAX_WORKFLOWS",
    "Overrides",
    "Setup",
    "cluster_of",
    "is_name",
    "only_policy",
    "policies_of",
    "policy_names",
    "reference_of",
    "scenario_of",
    "setup_for",
    "setup_of",
    "version",
    "workload_of",
]

T = TypeVar("T")

DEFAULT_POLICY: Final = "least-remaining-work"
"""Best of the default rules, or within 2 % of the best, on each family at load 0.8 on `mixed`."""
DEFAULT_CLUSTER: Final = "mixed"
DEFAULT_REFERENCE: Final = "kube-default@1.36"

_TOGETHER: Final = ("together", "recorded")
"""Kinds of arrivals on which a load has no influence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Options of the command line that replace settings of the scenario; None leaves them."""

    noise: float | None = None
    load: float | None = None
    arrivals: str | None = None
    num_workflows: int | None = None
    fair_sharing: bool = False


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a run depends on but policy and seed.

    Attributes:
        sources, cluster_source: the names and files that workload and cluster came from.
        workload, cluster, scenario: what is simulated.
        warnings: what was repaired or assumed to get them.
    """

    sources: tuple[str, ...]
    cluster_source: str
    workload: Workload
    cluster: Cluster
    scenario: Scenario
    warnings: tuple[str, ...]

    @property
    def load(self) -> str:
        """When workflows arrive, in words."""
        arrivals = self.scenario.arrivals
        if arrivals.kind in _TOGETHER:
            return f"arrivals {arrivals.kind}"
        return f"{arrivals.kind} arrivals at load {arrivals.load:g}"

    def arrivals(self, seed: int) -> tuple[Arrival, ...]:
        """The submissions of the run of a seed.

        Raises:
            ScenarioError: if recorded times or a load cannot be had of the workload.
        """
        return self.workload.arrivals(self.scenario.arrivals, self.cluster, seed).arrivals


def setup_of(
    files: Sequence[str], cluster_name: str, scenario_path: str | None, overrides: Overrides
) -> Setup:
    """What the command line asks for, as objects.

    Raises:
        InputError: if anything named is unknown or not valid.
    """
    return setup_for(files, cluster_name, scenario_of(scenario_path, overrides))


def setup_for(files: Sequence[str], cluster_name: str, scenario: Scenario) -> Setup:
    """The same with a scenario at hand; cheap faults are found first.

    A number of workflows sets the size of families that state none; of everything else so many are
    drawn.

    Raises:
        InputError: if anything named is unknown or not valid.
    """
    cluster, assumed = cluster_of(cluster_name)
    number = scenario.arrivals.num_workflows
    if number and all(name in FAMILIES for name in files):
        total = sum(DEFAULT_COUNTS[name] for name in files)
        files = [f"{n}:{max(1, round(number * DEFAULT_COUNTS[n] / total))}" for n in files]
        scenario = replace(scenario, arrivals=replace(scenario.arrivals, num_workflows=0))
    files = [f"{n}:{DEFAULT_COUNTS[n]}" if n in FAMILIES else n for n in files]
    workload = workload_of(files)
    settled = workload.settle(scenario.arrivals)
    warnings = [*workload.warnings, *assumed]
    warnings += [
        f"{name}: some tasks ask for more than cluster '{cluster.name}' has; they ask for less and"
        " run longer in proportion"
        for name in workload.cut_families(cluster)
    ]
    if settled.num_workflows and not scenario.arrivals.num_workflows:
        warnings.append(
            f"arrivals over time: {settled.num_workflows} workflows are drawn from the"
            f" {len(workload.workflows)} given; --workflows sets another number"
        )
    scenario = replace(scenario, arrivals=settled)
    return Setup(tuple(files), cluster_name, workload, cluster, scenario, tuple(warnings))


def scenario_of(path: str | None, overrides: Overrides) -> Scenario:
    """The scenario of a file (or the default one), with what the command line overrides.

    A load asked for with arrivals that nothing else sets makes them Poisson: all other kinds that
    `auto` may stand for do not depend on it.

    Raises:
        InputError: if the file holds no valid scenario, or a load is asked for with arrivals that
            do not depend on it.
    """
    scenario = Scenario()
    if path is not None:
        from dagsail.clusters.scenario_file import read_scenario
        from dagsail.files import read_text

        scenario = read_scenario(read_text(Path(path)), path)
    kind = overrides.arrivals or scenario.arrivals.kind
    if overrides.load is not None:
        if kind in _TOGETHER:
            raise InputError(
                f"--load has no effect on arrivals of kind '{kind}';"
                " leave it out, or choose poisson, daily or burst"
            )
        kind = "poisson" if kind == "auto" else kind
    arrivals = replace(
        scenario.arrivals,
        kind=cast(ArrivalKind, kind),
        load=_first(overrides.load, scenario.arrivals.load),
        num_workflows=_first(overrides.num_workflows, scenario.arrivals.num_workflows),
    )
    noise = _first(overrides.noise, scenario.runtimes.noise)
    fair_sharing = overrides.fair_sharing or scenario.transfers.fair_sharing
    return replace(
        scenario,
        arrivals=arrivals,
        runtimes=replace(scenario.runtimes, noise=noise),
        transfers=replace(scenario.transfers, fair_sharing=fair_sharing),
    )


def _first(override: T | None, setting: T) -> T:
    return setting if override is None else override


def reference_of(names: Sequence[str]) -> str:
    """What policies are compared with unless told otherwise: Kubernetes' own, else the first."""
    return DEFAULT_REFERENCE if DEFAULT_REFERENCE in names else names[0]


def version() -> str:
    """Version of the installed package; `unknown` where it runs without being installed."""
    from importlib import metadata

    try:
        return metadata.version("dagsail")
    except metadata.PackageNotFoundError:
        return "unknown"
