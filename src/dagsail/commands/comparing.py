"""What `compare` and `demo` share: the runs, and the report of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dagsail import compose
from dagsail.commands.output import Progress

if TYPE_CHECKING:
    from dagsail.clusters.simulated.cluster import Run
    from dagsail.evaluation.comparison import Comparison
    from dagsail.scheduling.ports import Policy


def run_comparison(
    setup: compose.Setup,
    policies: Sequence[Policy],
    num_seeds: int,
    reference: str,
    tell: Progress | None = None,
) -> Comparison:
    """Run every policy at the seeds 0, 1, ..., and measure."""
    from dagsail.evaluation import benchmark

    return benchmark.compare(
        setup.arrivals,
        setup.cluster,
        policies,
        setup.scenario,
        range(num_seeds),
        reference,
        tell,
    )


def representative_runs(setup: compose.Setup, policies: Sequence[Policy]) -> dict[str, Run]:
    """The runs of the first seed once more, for charts of single runs."""
    from dagsail.clusters.simulated.cluster import Simulation

    prepared = Simulation(setup.arrivals(seed=0), setup.cluster, setup.scenario, 0)
    return {policy.name: prepared.twin().run(policy) for policy in policies}


def save_report(
    setup: compose.Setup, runs: Mapping[str, Run], comparison: Comparison, folder: Path
) -> Path:
    """Write the HTML report, with all warnings; returns the path of its page.

    Raises:
        OutputError: if it cannot be written there.
    """
    from dagsail.evaluation.report import write_report

    document = comparison.to_json()
    document["scenario"]["warnings"] = [*setup.warnings, *document["scenario"]["warnings"]]
    return write_report(runs, document, folder)
