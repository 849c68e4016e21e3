"""Setting: what was simulated, in words."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from dagsail.clusters.simulated.cluster import Run
from dagsail.domain.cluster import Cluster
from dagsail.domain.scenario import Scenario
from dagsail.domain.units import EPHEMERAL_STORAGE, MEMORY, format_bytes


def describe(run: Run, comparison: Mapping[str, Any]) -> dict[str, str]:
    """Workload, cluster, load, effects, seeds and version, by name, in the order to show."""
    scenario, seeds = comparison["scenario"], comparison["seeds"]
    return {
        "Workload": _workload(run, scenario),
        "Cluster": _cluster(run.cluster),
        "Load": _load(scenario),
        "Scenario": f"{scenario['name']}: {_effects(run.scenario)}",
        "Seeds": f"{len(seeds)} ({_ranges(seeds)}); every policy met the same arrivals and luck",
        "Reference": comparison["paired"]["reference"],
        "Dagsail": _version(),
    }


def _workload(run: Run, scenario: Mapping[str, Any]) -> str:
    families = Counter(arrival.workflow.family for arrival in run.arrivals)
    families.pop("", None)
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(families.items()))
    text = f"{_span(scenario['num_workflows'])} workflows of {_span(scenario['num_tasks'])} tasks"
    return f"{text} a seed" + (f" (first seed: {kinds})" if kinds else "")


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _cluster(cluster: Cluster) -> str:
    zones = sorted({node.zone for node in cluster.nodes})
    totals = []
    for resource in cluster.resources:
        total = sum(node.allocatable.get(resource, 0) for node in cluster.nodes)
        if resource == "cpu":
            totals.append(f"{total / 1000:,g} cores")
        elif resource in (MEMORY, EPHEMERAL_STORAGE):
            totals.append(f"{format_bytes(total)} {resource}")
        else:
            totals.append(f"{total:,} {resource}")
    where = f" in {len(zones)} zones" if len(zones) > 1 else ""
    price = sum(node.price_usd_per_h for node in cluster.nodes)
    return f"{cluster.name}: {len(cluster.nodes):,} nodes{where}, {', '.join(totals)}" + (
        f", ${price:,.2f} an hour" if price else ""
    )


def _load(scenario: Mapping[str, Any]) -> str:
    if scenario["offered_load"] is None:
        return f"all workflows arrive together; {scenario['dominating']} dominates their work"
    text = f"{scenario['offered_load']:.2f} of {scenario['dominating']}"
    others = {
        name: load
        for name, load in scenario["offered_load_by_resource"].items()
        if name != scenario["dominating"] and load is not None
    }
    rest = ", ".join(f"{load:.2f} of {name}" for name, load in others.items())
    return text + (f" ({rest})" if rest else "")


def _effects(scenario: Scenario) -> str:
    """Settings that are not the default, as a scenario file would write them."""
    plain = Scenario()
    found = []
    for section in fields(Scenario):
        chosen, usual = getattr(scenario, section.name), getattr(plain, section.name)
        if section.name == "node_changes":
            found += ["nodes join or leave"] if chosen else []
        elif section.name not in ("name", "arrivals"):
            found += [
                f"{section.name}.{item.name} {_value(getattr(chosen, item.name))}"
                for item in fields(usual)
                if getattr(chosen, item.name) != getattr(usual, item.name)
            ]
    return ", ".join(found) or "no effects but data transfers"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {number:g}" for key, number in value.items())
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def _ranges(seeds: Sequence[int]) -> str:
    if list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))) and len(seeds) > 1:
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _version() -> str:
    try:
        return importlib.metadata.version("dagsail")
    except importlib.metadata.PackageNotFoundError:
        return "not installed as a package"
