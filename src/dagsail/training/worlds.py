"""Worlds to learn from: random clusters, workloads, loads and faults, a new one for each episode.

Evaluations use named clusters and small seeds; training draws its own clusters and seeds from a
million on, so that nothing is learned by heart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from dagsail.clusters.catalog import load_cluster
from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import HOSTNAME_LABEL, RACK_LABEL, ZONE_LABEL, Cluster, Node
from dagsail.domain.scenario import Arrivals, Faults, Runtimes, Scenario
from dagsail.domain.workflow import Arrival, Workflow
from dagsail.training.settings import WorldSettings
from dagsail.training.stage_graphs import stage_graphs
from dagsail.workloads.fitting import fitted
from dagsail.workloads.formats import read_workflows
from dagsail.workloads.workload import FamilyShare, Workload

FIRST_SEED: Final = 1_000_000
FIRST_VALIDATION: Final = 900_000_000
"""Episodes from here on are for validation; no training gets there."""

WIDE_COUNT: Final = 40
"""Workflows of a world of stage graphs."""
_SPREAD: Final = 0.3
"""Of the logarithms of drawn speeds and prices."""
_FEWEST: Final = 10
"""Workflows of a world with small workflows only, even if these are larger."""
_LONGEST_TASKS: Final = 20.0
"""Mean time between failures of a node, at least, in run times of the longest task."""


class Worlds:
    """Gives the world of an episode by its number, always the same."""

    def __init__(
        self, settings: WorldSettings, files: Sequence[str] = (), clusters: Sequence[str] = ()
    ) -> None:
        """Draw from the machine types of the built-in clusters.

        Args:
            settings: what to draw.
            files: workflow files that stand in for the families.
            clusters: names or files of clusters that stand in for drawn ones; only the speeds and
                prices of their types are drawn anew.

        Raises:
            InputError: if a file cannot be read as workflows or a cluster.
        """
        self._settings = settings
        self._types = _types_of([load_cluster(name) for name in ("mixed", "edge", "large")])
        self._own = _read(files)
        self._clusters = [load_cluster(name) for name in clusters]

    def simulation(self, episode: int, max_tasks: int | None = None) -> Simulation:
        """The simulation of an episode, with workflows of at most `max_tasks` tasks."""
        seed = FIRST_SEED + episode
        rng = np.random.default_rng([seed, 0x30])
        scenario = self._scenario(rng)
        cluster = self._cluster(rng)
        limits = [limit for limit in (max_tasks, self._settings.max_tasks) if limit is not None]
        workload = self._workload(episode, cluster, seed, min(limits, default=None))
        settings = scenario.arrivals
        if workload.workflows and not self._own:
            settings = replace(settings, num_workflows=self._count(episode))
        arrivals = workload.arrivals(workload.settle(settings), cluster, seed).arrivals
        if scenario.faults.node_mtbf_s > 0.0:
            scenario = _survivable(scenario, arrivals)
        return Simulation(arrivals, cluster, scenario, seed)

    def _workload(
        self, episode: int, cluster: Cluster, seed: int, max_tasks: int | None
    ) -> Workload:
        workload = Workload(self._own)
        if not self._own:
            workload = Workload(families=(FamilyShare(*self._family(episode)),))
        if self._is_wide(episode):
            workload = Workload(stage_graphs(seed, self._count(episode)))
        elif max_tasks is None and not self._own:
            return workload
        pool = fitted(workload.pool(seed, cluster), cluster)
        if max_tasks is None:
            return Workload(tuple(pool))
        small = [workflow for workflow in pool if len(workflow.tasks) <= max_tasks]
        if len(small) < _FEWEST:
            small = sorted(pool, key=lambda workflow: len(workflow.tasks))[:_FEWEST]
        return Workload(tuple(small))

    def _is_wide(self, episode: int) -> bool:
        """Whether stage graphs stand in for the family; by a draw that moves no other."""
        if self._own:
            return False
        rng = np.random.default_rng([FIRST_SEED + episode, 0x31])
        return bool(rng.random() < self._settings.wide_ratio)

    def _count(self, episode: int) -> int:
        """Workflows of the world."""
        return WIDE_COUNT if self._is_wide(episode) else self._family(episode)[1]

    def _family(self, episode: int) -> tuple[str, int]:
        families = list(self._settings.families.items())
        return families[episode % len(families)]

    def _scenario(self, rng: np.random.Generator) -> Scenario:
        settings = self._settings
        draws = rng.random(3)
        runtimes = Runtimes(
            noise=float(rng.uniform(0.0, settings.max_noise)),
            heavy_tail_ratio=0.02 if draws[0] < settings.heavy_tail_ratio else 0.0,
        )
        loses = draws[1] < settings.node_loss_ratio
        return Scenario(
            arrivals=Arrivals(
                kind="burst" if draws[2] < settings.burst_ratio else "poisson",
                load=float(rng.uniform(settings.min_load, settings.max_load)),
            ),
            runtimes=runtimes,
            faults=Faults(node_mtbf_s=86400.0 if loses else 0.0),
        )

    def _cluster(self, rng: np.random.Generator) -> Cluster:
        """One of the given clusters, or a drawn one; each type has a speed and price of its own."""
        if not self._clusters:
            return self._drawn_cluster(rng)
        cluster = self._clusters[int(rng.integers(len(self._clusters)))]
        changes = {name: _drawn_change(rng) for name in sorted(_types_of([cluster]))}
        nodes = tuple(_changed(node, changes[node.type]) for node in cluster.nodes)
        return replace(cluster, nodes=nodes)

    def _drawn_cluster(self, rng: np.random.Generator) -> Cluster:
        """Some machine types in up to three zones."""
        settings = self._settings
        gpu_types = [node.type for node in self._types.values() if node.num_gpus]
        most = min(settings.max_types, len(self._types))
        count = int(rng.integers(min(settings.min_types, most), most + 1))
        chosen = set(rng.choice(sorted(self._types), count, replace=False))
        chosen.add(str(rng.choice(sorted(gpu_types))))
        num_zones = int(rng.integers(1, 4))
        nodes: list[Node] = []
        for name in sorted(chosen):
            change = _drawn_change(rng)
            for number in range(int(rng.integers(1, settings.max_nodes_per_type + 1))):
                zone = f"zone-{rng.integers(num_zones)}"
                places = {
                    HOSTNAME_LABEL: f"{name}-{number}",
                    ZONE_LABEL: zone,
                    RACK_LABEL: f"{zone}-{rng.integers(2)}",
                }
                node = _changed(self._types[name], change)
                labels = {**node.labels, **places}
                nodes.append(replace(node, name=f"{name}-{number}", labels=labels))
        return Cluster(name="drawn", nodes=tuple(nodes))


def _types_of(clusters: Sequence[Cluster]) -> dict[str, Node]:
    """One node of each type."""
    types: dict[str, Node] = {}
    for cluster in clusters:
        for node in cluster.nodes:
            types.setdefault(node.type, node)
    return types


def _drawn_change(rng: np.random.Generator) -> tuple[float, float, float]:
    """Factors on a type's speed, GPU speed and price."""
    speed, gpu_speed, price = np.exp(rng.normal(0.0, _SPREAD, 3)).tolist()
    return speed, gpu_speed, price


def _changed(node: Node, change: tuple[float, float, float]) -> Node:
    speed, gpu_speed, price = change
    return replace(
        node,
        speed=node.speed * speed,
        gpu_speed=node.gpu_speed * gpu_speed,
        price_usd_per_h=node.price_usd_per_h * price,
    )


def _survivable(scenario: Scenario, arrivals: Sequence[Arrival]) -> Scenario:
    """Nodes fail so seldom that even the longest task ends some time."""
    longest_s = max(task.runtime_s for arrival in arrivals for task in arrival.workflow.tasks)
    mtbf_s = max(scenario.faults.node_mtbf_s, _LONGEST_TASKS * longest_s)
    return replace(scenario, faults=replace(scenario.faults, node_mtbf_s=mtbf_s))


def _read(files: Sequence[str]) -> tuple[Workflow, ...]:
    return tuple(workflow for name in files for workflow in read_workflows(Path(name)).workflows)
