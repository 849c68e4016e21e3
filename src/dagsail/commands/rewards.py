"""`rewards`: what each decision of a run brought about, term by term."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dagsail import compose
from dagsail.commands import options
from dagsail.commands.output import compile_kernels, console, table, warn, write_json
from dagsail.commands.values import plural

if TYPE_CHECKING:
    from dagsail.training.ledger import Ledger
    from dagsail.training.rewards import RewardSettings


@click.command(cls=options.JsonToFile, short_help="Show every reward term of every decision.")
@options.files
@click.option(
    "--policy",
    "policy_name",
    metavar="P",
    default="learned",
    show_default=True,
    help="'learned', 'scorer', a bundle's folder or a file of weights.",
)
@options.world
@options.seed
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Weights of the terms: 'rewards' of a kind: Training.  [default: completion alone]",
)
@click.option(
    "--decisions",
    type=options.Whole(0, 10_000),
    metavar="N",
    default=10,
    show_default=True,
    help="List so many, those of the lowest reward.",
)
@click.option(
    "--chart",
    type=options.Output(options.GANTT_SUFFIXES),
    metavar="FILE",
    help="Draw the terms of each decision, as .html, .png or .svg.",
)
@options.json_target
def rewards(
    *,
    files: tuple[str, ...],
    policy_name: str,
    cluster_name: str,
    scenario_path: str | None,
    seed: int,
    config: Path | None,
    decisions: int,
    chart: Path | None,
    json_target: Path | str | None,
    **settings: Any,
) -> None:
    """Simulate workflows, and show what each decision is rewarded for.

    A decision brings about what happens until the next one. The sum of its terms, times their
    weights, is what a network is trained on. FILE is as for 'dagsail simulate'.

    \b
    Examples:
      dagsail rewards etl:20 --load 0.9
      dagsail rewards mixed:50 --policy scorer --config train.yaml --chart rewards.html
      dagsail rewards flow.yaml --json=terms.json
    """  # noqa: D301 (\b keeps lines as they are)
    policy = compose.only_policy(policy_name, "rewards")
    setup = compose.setup_of(files, cluster_name, scenario_path, options.overrides(settings))
    reward = _reward(config)

    from dagsail.clusters.simulated.cluster import Simulation
    from dagsail.training.ledger import ledger

    simulation = Simulation(setup.arrivals(seed), setup.cluster, setup.scenario, seed)
    warn(setup.warnings)
    compile_kernels()
    kept = ledger(simulation, policy, reward)
    title = f"{policy_name} on {setup.cluster.name}, {plural(len(kept.decisions), 'decision')}"
    if chart is not None:
        _draw(kept, title, chart)
    if json_target is not None:
        write_json(_plain(kept), json_target)
    if json_target != "-":
        _show(kept, title, decisions)
        for path in (chart, json_target):
            if path is not None:
                click.echo(f"written: {path}")


def _reward(config: Path | None) -> RewardSettings:
    from dagsail.domain.errors import FormatError
    from dagsail.files import read_text
    from dagsail.training.rewards import RewardSettings
    from dagsail.training.settings import read_training

    if config is None:
        return RewardSettings()
    found = read_training(read_text(config), str(config)).spec.rewards
    if not (found.weights or found.by_pool or found.low_load or found.high_load):
        raise FormatError(f"{config}: spec.rewards: names no weight; give some, such as wait: 0.1")
    return found.settings()


def _show(kept: Ledger, title: str, count: int) -> None:
    import numpy as np

    from dagsail.training.rewards import TERMS

    sums = kept.terms.sum(axis=0)
    weighted = kept.parts.sum(axis=0)
    rows = [
        (term.name, f"{sums[index]:,.4g}", term.unit, f"{weighted[index]:,.4g}", term.meaning)
        for index, term in enumerate(TERMS)
    ]
    console().print(table(title, ("Term", ">Sum", "Unit", ">Weighted", "Meaning"), rows))
    lowest = np.argsort(kept.rewards, kind="stable")[:count]
    listed = [
        (
            str(index + 1),
            f"{kept.decisions[index].time_s:,.0f} s",
            f"{kept.decisions[index].workflow}/{kept.decisions[index].task}",
            kept.decisions[index].node or "waits",
            f"{kept.rewards[index]:.4g}",
            _or_nothing(kept.decisions[index].pressure),
            _largest(kept, int(index)),
        )
        for index in lowest
    ]
    if listed:
        columns = (">Decision", ">Time", "Task", "Node", ">Reward", ">Pressure", "Largest terms")
        console().print(table("Of the lowest reward", columns, listed))


def _or_nothing(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _largest(kept: Ledger, index: int) -> str:
    """The terms of a decision that are not zero, weighted ones first, in a line."""
    import numpy as np

    from dagsail.training.rewards import TERMS

    order = np.lexsort((-np.abs(kept.terms[index]), -np.abs(kept.parts[index])))[:4]
    return ", ".join(
        f"{TERMS[term].name} {kept.terms[index, term]:.3g}"
        for term in order
        if kept.terms[index, term] != 0.0
    )


def _plain(kept: Ledger) -> dict[str, Any]:
    from dagsail.training.rewards import TERMS

    names = [term.name for term in TERMS]
    return {
        "sums": dict(zip(names, kept.terms.sum(axis=0).tolist(), strict=True)),
        "weighted_sums": dict(zip(names, kept.parts.sum(axis=0).tolist(), strict=True)),
        "decisions": [
            {
                "time_s": decision.time_s,
                "workflow": decision.workflow,
                "task": decision.task,
                "node": decision.node,
                "value": decision.value,
                "pressure": decision.pressure,
                "reward": float(kept.rewards[index]),
                "terms": dict(zip(names, kept.terms[index].tolist(), strict=True)),
            }
            for index, decision in enumerate(kept.decisions)
        ],
    }


def _draw(kept: Ledger, title: str, path: Path) -> None:
    from dagsail.evaluation.report.render import write_chart
    from dagsail.evaluation.report.reward_chart import reward_chart
    from dagsail.training.rewards import TERMS

    decisions = [
        (one.time_s, f"{one.workflow}/{one.task}", one.node or "waits") for one in kept.decisions
    ]
    names = [term.name for term in TERMS]
    write_chart(
        lambda: reward_chart(title, names, decisions, kept.terms, kept.parts).to_dict(), path
    )
