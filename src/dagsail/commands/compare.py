"""`compare`: many policies on the same seeds, and who wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dagsail import compose
from dagsail.commands import options
from dagsail.commands.output import compile_kernels, console, progress, warn, write_json
from dagsail.commands.values import plural
from dagsail.domain.errors import UnknownNameError


@click.command(short_help="Run many policies on the same seeds; show who wins.")
@options.files
@click.option(
    "--policy",
    "policy_list",
    metavar="P[,P...]",
    default="default",
    show_default=True,
    help="Names, 'default' or 'all'.",
)
@options.world
@options.seeds
@click.option(
    "--reference",
    metavar="P",
    help="What the others are compared with."
    f"  [default: {compose.DEFAULT_REFERENCE}, else the first]",
)
@click.option(
    "--json",
    "json_target",
    type=options.Output(allows_stdout=True),
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write everything as JSON; without FILE to stdout instead of the table.",
)
@click.option(
    "--report",
    type=options.OutputFolder(),
    metavar="DIR",
    help="Write an HTML report with charts; it opens without a network.",
)
def compare(
    *,
    files: tuple[str, ...],
    policy_list: str,
    cluster_name: str,
    scenario_path: str | None,
    seeds: int,
    reference: str | None,
    json_target: Path | str | None,
    report: Path | None,
    **settings: Any,
) -> None:
    """Simulate workflows under several policies on the same seeds, and show who wins.

    At one seed every policy meets the same workflows at the same times and the same luck, so
    differences are compared in pairs. FILE as in 'dagsail simulate'. With --load, files are drawn
    repeatedly and arrive at random.

    \b
    Examples:
      dagsail compare flow.yaml --policy fifo,heft,critical-path
      dagsail compare etl --load 0.9 --noise 0.4 --report report
      dagsail compare *.json --cluster edge --load 0.8 --policy all --json out.json
    """  # noqa: D301 (\b keeps lines as they are)
    names = compose.policy_names(policy_list)
    if reference is None:
        reference = compose.reference_of(names)
    elif compose.policy_names(reference) != (reference,) or reference not in names:
        raise UnknownNameError(
            f"--reference {reference} is none of the compared policies ({', '.join(names)})"
        )
    overrides = options.overrides(settings)
    setup = compose.setup_of(files, cluster_name, scenario_path, overrides)

    from dagsail.commands.comparing import representative_runs, run_comparison, save_report
    from dagsail.commands.ranking import explanation, ranking

    compile_kernels()
    policies = compose.policies_of(names)
    page = None
    with progress("simulating") as tell:
        comparison = run_comparison(setup, policies, seeds, reference, tell)
        if report is not None:
            page = save_report(setup, representative_runs(setup, policies), comparison, report)
    warnings = [*setup.warnings, *comparison.warnings()]
    warn(warnings)
    if json_target is not None:
        document = {**comparison.to_json(), "cluster": setup.cluster.name, "warnings": warnings}
        write_json(document, json_target)
    if json_target == "-":
        return
    workflows, tasks = comparison.num_workflows[0], comparison.num_tasks[0]
    title = (
        f"{plural(workflows, 'workflow')} ({plural(tasks, 'task')}) on {setup.cluster.name}"
        f" ({plural(len(setup.cluster.nodes), 'node')}), {setup.load}, {plural(seeds, 'seed')}"
    )
    screen = console()
    screen.print(ranking(comparison, title, screen))
    click.echo(explanation(comparison))
    for written in (json_target, page):
        if written is not None:
            click.echo(f"written: {written}")
