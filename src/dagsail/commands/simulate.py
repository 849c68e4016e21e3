"""`simulate`: one run, and everything that can be kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dagsail import compose
from dagsail.commands import options
from dagsail.commands.output import compile_kernels, warn

if TYPE_CHECKING:
    pass


@click.command(cls=options.JsonToFile, short_help="Run one policy; show metrics, draw, record.")
@options.files
@click.option(
    "--policy",
    "policy_name",
    metavar="P",
    default=compose.DEFAULT_POLICY,
    show_default=True,
    help="Which policy decides ('dagsail policies').",
)
@options.world
@options.seed
@options.gantt
@options.timeline
@click.option(
    "--record",
    type=options.Output(),
    metavar="FILE",
    help="Write one JSON line for each decision, for 'dagsail replay'.",
)
@options.json_target
def simulate(
    *,
    files: tuple[str, ...],
    policy_name: str,
    cluster_name: str,
    scenario_path: str | None,
    seed: int,
    record: Path | None,
    gantt: Path | None,
    timeline: Path | None,
    json_target: Path | str | None,
    **settings: Any,
) -> None:
    """Simulate workflows on a cluster under one policy, and show what came of it.

    FILE is a workflow file (WfFormat, Pegasus DAX, Argo, Dagsail's own YAML, STG, traces), a
    family such as 'etl' or 'etl:50', or a recipe such as 'recipe:montage:200'. Files are submitted
    together unless they carry recorded times; families arrive at random at a load of 0.8. The same
    seed gives the same run, byte for byte.

    \b
    Examples:
      dagsail simulate flow.yaml
      dagsail simulate flow.json --cluster edge --policy heft --gantt gantt.html
      dagsail simulate mixed:100 --load 0.9 --noise 0.4 --seed 7 --timeline out.jsonl
    """  # noqa: D301 (\b keeps lines as they are)
    policy = compose.only_policy(policy_name, "simulate")
    overrides = options.overrides(settings)
    setup = compose.setup_of(files, cluster_name, scenario_path, overrides)

    from dagsail.clusters.simulated.cluster import Simulation
    from dagsail.commands.recording import run_recorded
    from dagsail.commands.results import keep

    simulation = Simulation(setup.arrivals(seed), setup.cluster, setup.scenario, seed)
    warn(setup.warnings)  # not before the last fault of the input: that is one line by itself
    compile_kernels()
    if record is None:
        run = simulation.run(policy)
    else:
        run = run_recorded(simulation, policy, setup, record)
    keep(run, setup.warnings, timeline=timeline, gantt=gantt, json_target=json_target)
    if record is not None and json_target != "-":
        click.echo(f"written: {record}")
