"""`demo`: what Dagsail does, on built-in workloads, in less than a minute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dagsail import compose
from dagsail.commands import options
from dagsail.commands.output import compile_kernels, console, progress, table, warn
from dagsail.commands.values import plural, shown

if TYPE_CHECKING:
    from rich.table import Table

    from dagsail.clusters.simulated.cluster import Run

FAMILIES: Final = ("etl:14", "ai-training:5", "microservices:30", "streaming:16", "mixed:20")
RECIPES: Final = ("recipe:montage:100", "recipe:blast:100", "recipe:epigenomics:100")
"""Enough workflows for a queue to form, few enough for half a minute."""
LOAD: Final = 0.9
NUM_SEEDS: Final = 6
"""The fewest with which a difference can be told from noise."""

_ADVICE: Final = """
Next, on your own files:
  dagsail inspect flow.yaml                         what a workflow file holds
  dagsail compare flow.yaml --load 0.8              the same comparison, 20 seeds
  dagsail compare etl --noise 0.4 --policy all      what if run times are off by 40 %?
  dagsail clusters; dagsail policies                what else there is"""


@click.command(short_help="Compare the default policies on built-in workloads.")
@click.option(
    "--report",
    type=options.OutputFolder(),
    default="dagsail-demo",
    show_default=True,
    metavar="DIR",
    help="Where to write the HTML report.",
)
def demo(*, report: Path) -> None:
    """Compare the default policies on built-in workloads, and write a report.

    The workloads are the five families and, where the package wfcommons is installed, recipes grown
    from recorded runs of scientific workflows. They arrive at random on the cluster 'mixed', at a
    load of 0.9. Nothing is downloaded.

    \b
    Example:
      dagsail demo --report /tmp/demo
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.commands.comparing import representative_runs, run_comparison, save_report
    from dagsail.commands.ranking import explanation, ranked, ranking

    overrides = compose.Overrides(load=LOAD)
    setup = compose.setup_of(_sources(), compose.DEFAULT_CLUSTER, None, overrides)
    policies = compose.policies_of(compose.policy_names("default"))
    compile_kernels()
    with progress("simulating") as tell:
        comparison = run_comparison(setup, policies, NUM_SEEDS, compose.DEFAULT_REFERENCE, tell)
        runs = representative_runs(setup, policies)
        page = save_report(setup, runs, comparison, report)
    warn(comparison.warnings())
    names = ranked(comparison)
    title = (
        f"{plural(comparison.num_workflows[0], 'workflow')}"
        f" ({plural(comparison.num_tasks[0], 'task')}) on {setup.cluster.name}"
        f" ({plural(len(setup.cluster.nodes), 'node')}), {setup.load}, {plural(NUM_SEEDS, 'seed')}"
    )
    screen = console()
    screen.print(ranking(comparison, title, screen))
    click.echo(explanation(comparison))
    screen.print(_by_family(runs, names))
    click.echo(f"Report: {page.resolve().as_uri()}")
    click.echo(_ADVICE)


def _sources() -> list[str]:
    from dagsail.domain.errors import InputError
    from dagsail.workloads.recipes import recipe_names

    try:
        recipe_names()
    except InputError:
        click.echo(
            "note: scientific workflows are left out; with them: pip install 'dagsail[recipes]'",
            err=True,
        )
        return list(FAMILIES)
    return [*RECIPES, *FAMILIES]


def _by_family(runs: Mapping[str, Run], policies: Sequence[str]) -> Table:
    """Mean completion time by family of workflow, with the best of each column in bold."""
    first = next(iter(runs.values()))
    families = [arrival.workflow.family or "other" for arrival in first.arrivals]
    names = list(dict.fromkeys(sorted(families)))
    means = {policy: _mean_jct_s(runs[policy], families) for policy in policies}
    best = {name: min(means[policy][name] for policy in policies) for name in names}
    rows = []
    for policy in policies:
        cells = []
        for name in names:
            text = shown(means[policy][name], "s")
            is_best = means[policy][name] <= 1.001 * best[name]
            cells.append(f"[bold green]{text}[/]" if is_best else text)
        rows.append((policy, *cells))
    columns = ("Policy", *(f">{name}" for name in names))
    return table("Mean JCT by kind of workflow (first seed; best in bold)", columns, rows)


def _mean_jct_s(run: Run, families: Sequence[str]) -> dict[str, float]:
    workflows = run.snapshot.workflows
    seconds: dict[str, list[float]] = {}
    jct_s = (workflows["finish_s"] - workflows["arrival_s"]).tolist()
    for name, value in zip(families, jct_s, strict=True):
        seconds.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in seconds.items()}
