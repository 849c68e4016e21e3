"""`evaluate`: a bundle beside the rules, on workloads that it was not trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dagsail import compose
from dagsail.commands import options
from dagsail.commands.output import compile_kernels, console, progress, table, warn, write_json
from dagsail.commands.values import plural

if TYPE_CHECKING:
    from dagsail.evaluation.judgement import Judgement
    from dagsail.evaluation.statistics import Paired

_LOAD: Final = 0.9
_NOISE: Final = 0.4
_COMPOSITE: Final = {"completion": 0.5, "deadline": 0.3, "cost": 0.2}


@click.command(short_help="Judge a bundle beside the rules, on families or files.")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(path_type=Path))
@click.argument("files", metavar="[FILE...]", nargs=-1)
@options.world
@options.seeds
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def evaluate(
    *,
    bundle: Path,
    files: tuple[str, ...],
    cluster_name: str,
    scenario_path: str | None,
    seeds: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Judge a bundle beside the default rules and the preset scorer.

    BUNDLE is a folder that 'dagsail train' made, or 'learned'. Each FILE is a scenario of its own;
    without any it is the five families. Without --scenario the load is 0.9 and run times vary by
    40 % around their estimates, unless told otherwise. The best rule is chosen afterwards, by what
    is compared.

    \b
    Examples:
      dagsail evaluate learned
      dagsail evaluate mine/current --cluster edge --load 1.2
      dagsail evaluate mine/current flow.yaml mixed:50 --seeds 6 --json
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.policies import DEFAULT_POLICIES
    from dagsail.policies.scoring.objective import objective_of
    from dagsail.workloads.families import FAMILIES

    name = "learned" if str(bundle) == "learned" else f"{bundle.parent}/{bundle.name}"
    rules = [rule for rule in DEFAULT_POLICIES if rule not in ("learned", "scorer")]
    weighed = "+".join(f"{aim}={weight}" for aim, weight in _COMPOSITE.items())
    ours = ("scorer", name)
    policies = compose.policies_of([*rules, *ours, *(f"{one}:{weighed}" for one in ours)])
    if scenario_path is None:
        settings["noise"] = _NOISE if settings["noise"] is None else settings["noise"]
        if settings["load"] is None and settings["arrivals"] in (None, "poisson"):
            settings["load"] = _LOAD
    setups = [
        compose.setup_of([source], cluster_name, scenario_path, options.overrides(settings))
        for source in files or [family.name for family in FAMILIES]
    ]

    from dagsail.commands.comparing import run_comparison
    from dagsail.evaluation.judgement import judge

    compile_kernels()
    objective = objective_of(_COMPOSITE)
    found: list[Judgement] = []
    for setup in setups:
        warn(setup.warnings)
        with progress(setup.sources[0]) as tell:
            comparison = run_comparison(setup, policies, seeds, compose.DEFAULT_REFERENCE, tell)
        reference = compose.DEFAULT_REFERENCE
        found += [
            judge(
                comparison,
                setup.sources[0],
                policy,
                rules,
                reference,
                objective,
                f"{policy}:{weighed}",
            )
            for policy in ours
        ]
    if as_json:
        write_json({"objective": _COMPOSITE, "judgements": [one.to_json() for one in found]}, "-")
        return
    title = f"{name} on {setups[0].cluster.name}, {setups[0].load}, {plural(seeds, 'seed')}"
    console().print(_table(found, title))
    weights = ", ".join(f"{aim} {weight:g}" for aim, weight in _COMPOSITE.items())
    click.echo(
        "Bound: mean JCT over its lower bound. Ratios with 95 % intervals over seeds, below 1 is"
        f" better: to the best rule, known afterwards, and to {compose.DEFAULT_REFERENCE}.\n"
        f"Composite: {weights}, to the rule that is best by it; the policy has it as its objective."
    )


def _table(found: list[Judgement], title: str) -> Any:
    rows = [
        (
            one.scenario,
            one.policy.rpartition("/")[2],
            f"{one.jct_s:,.0f} s",
            f"{one.jct_s / one.bound_s:.2f}" if one.bound_s > 0 else "",
            one.best_rule,
            _shown(one.against_best),
            _shown(one.against_reference),
            _shown(one.composite),
        )
        for one in found
    ]
    columns = (
        "Workload", "Policy", ">Mean JCT", ">Bound", "Best rule", ">JCT to it", ">JCT to kube",
        ">Composite",
    )  # fmt: skip
    return table(title, columns, rows)


def _shown(pair: Paired) -> str:
    if pair.ratio_ci95 is None:
        return f"{pair.ratio:.3f}"
    low, high = pair.ratio_ci95
    return f"{pair.ratio:.3f} [{low:.3f}, {high:.3f}]"
