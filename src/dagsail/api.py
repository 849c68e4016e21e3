"""Dagsail from Python: what `import dagsail` offers.

```python
import dagsail

workload = dagsail.read("flow.yaml")
run = dagsail.simulate(workload, cluster="mixed", policy="heft")
print(dagsail.metrics(run)["jct_mean_s"])
dagsail.plot(run, "gantt.html")
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dagsail import compose
from dagsail.domain.cluster import Cluster
from dagsail.domain.errors import InputError
from dagsail.domain.scenario import Scenario

if TYPE_CHECKING:
    from dagsail.clusters.simulated.cluster import Run
    from dagsail.evaluation.comparison import Comparison
    from dagsail.scheduling.ports import Policy
    from dagsail.workloads.workload import Workload

Progress = Callable[[int, int, str], None]


def read(*sources: str | os.PathLike[str]) -> Workload:
    """Workflows from files, families (`etl`, `etl:50`) and recipes (`recipe:montage:200`).

    Raises:
        InputError: if a source is neither a readable file nor a known name.
    """
    if not sources:
        raise InputError("read: name at least one file, family or recipe")
    return compose.workload_of([os.fspath(source) for source in sources])


def cluster(name_or_path: str | os.PathLike[str]) -> Cluster:
    """A built-in cluster by name, or one from a file.

    Raises:
        InputError: if there is none, or it is not valid.
    """
    return compose.cluster_of(os.fspath(name_or_path))[0]


def scenario(
    path: str | os.PathLike[str] | None = None,
    *,
    noise: float | None = None,
    load: float | None = None,
    arrivals: str | None = None,
    num_workflows: int | None = None,
    fair_sharing: bool = False,
) -> Scenario:
    """The scenario of a file, or the default one, with some settings replaced.

    Raises:
        InputError: if the file or a setting is not valid.
    """
    overrides = compose.Overrides(
        noise=noise,
        load=load,
        arrivals=arrivals,
        num_workflows=num_workflows,
        fair_sharing=fair_sharing,
    )
    return compose.scenario_of(None if path is None else os.fspath(path), overrides)


def simulate(
    workload: Workload,
    cluster: str | Cluster = compose.DEFAULT_CLUSTER,
    policy: str | Policy = compose.DEFAULT_POLICY,
    scenario: Scenario | None = None,
    seed: int = 0,
) -> Run:
    """Simulate a workload to its end under one policy.

    Raises:
        InputError: if a name is unknown, or a task fits on no node.
        StuckError: if the policy never places some task.
    """
    from dagsail.clusters.simulated.cluster import Simulation

    nodes, rule = _cluster(cluster), _policy(policy)
    settings = Scenario() if scenario is None else scenario
    plan = workload.arrivals(settings.arrivals, nodes, seed)
    return Simulation(plan.arrivals, nodes, settings, seed).run(rule)


def compare(
    workload: Workload,
    cluster: str | Cluster = compose.DEFAULT_CLUSTER,
    policies: Sequence[str | Policy] | None = None,
    scenario: Scenario | None = None,
    seeds: int = 20,
    reference: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Simulate a workload under several policies on the same seeds 0, 1, ..., and measure.

    Args:
        workload: what to submit.
        cluster: name, file or nodes.
        policies: the default ones if None.
        scenario: effects to model.
        seeds: how many.
        reference: what the others are compared with; see `compose.reference_of`.
        progress: told after each run how many are done, of how many, and which it was.

    Raises:
        InputError: if a name is unknown, or a task fits on no node.
        StuckError: if a policy never places some task.
    """
    from dagsail.evaluation import benchmark
    from dagsail.policies import DEFAULT_POLICIES

    nodes = _cluster(cluster)
    rules = [_policy(policy) for policy in policies or DEFAULT_POLICIES]
    settings = Scenario() if scenario is None else scenario
    return benchmark.compare(
        lambda seed: workload.arrivals(settings.arrivals, nodes, seed).arrivals,
        nodes,
        rules,
        settings,
        range(seeds),
        reference or compose.reference_of([rule.name for rule in rules]),
        progress,
    )


def metrics(run: Run) -> dict[str, float]:
    """All metrics of a run by name; the unit is the end of the name. NaN: nothing to measure."""
    from dagsail.evaluation.metrics import measure
    from dagsail.evaluation.window import steady_window

    return measure(run, steady_window(run))


def plot(run: Run, path: str | os.PathLike[str]) -> None:
    """Write the Gantt chart of a run as `.html`, `.png` or `.svg`.

    Raises:
        OutputError: if it cannot be written there.
    """
    from dagsail.evaluation.report.gantt import write_gantt

    write_gantt(run, Path(path))


def _cluster(cluster: str | Cluster) -> Cluster:
    return cluster if isinstance(cluster, Cluster) else compose.cluster_of(cluster)[0]


def _policy(policy: str | Policy) -> Policy:
    return compose.policies_of([policy])[0] if isinstance(policy, str) else policy
