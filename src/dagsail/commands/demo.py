"""`demo`: what Dagsail does, on built-in workloads, in less than a minute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dagsail import compose
from dagsail.commands import options
from dagsail.commands.output import compile_kernels, console, progress, table
from dagsail.commands.values import NOTHING, percent

if TYPE_CHECKING:
    from dagsail.evaluation.comparison import Comparison
    from dagsail.evaluation.statistics import Estimate

NUM_SEEDS: Final = 6
"""The fewest with which a difference can be told from noise."""
_LOAD: Final = 0.9
_METRIC: Final = "jct_mean_s"


@dataclass(frozen=True, slots=True)
class _Exhibit:
    """One workload of the demo: enough workflows to queue, few enough to be quick."""

    title: str
    sources: tuple[str, ...]


_RECIPES: Final = _Exhibit(
    "science", ("recipe:montage:100", "recipe:blast:100", "recipe:epigenomics:100")
)
_FAMILIES: Final = (
    _Exhibit("etl", ("etl:30",)),
    _Exhibit("ai-training", ("ai-training:60",)),
    _Exhibit("microservices", ("microservices:150",)),
    _Exhibit("streaming", ("streaming:80",)),
    _Exhibit("mixed", ("mixed:60",)),
)


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
    from recorded runs of scientific workflows; the cluster is 'mixed'. Nothing is downloaded.

    \b
    Example:
      dagsail demo --report /tmp/demo
    """
    exhibits = list(_exhibits())
    compile_kernels()
    names = compose.policy_names("default")
    comparisons: dict[str, Comparison] = {}
    per_exhibit = len(names) * NUM_SEEDS
    with progress("simulating") as tell:
        for number, exhibit in enumerate(exhibits):
            comparisons[exhibit.title] = _compare(
                exhibit,
                names,
                lambda done, _total, now: tell(
                    number * per_exhibit + done,  # noqa: B023 (called within this round)
                    len(exhibits) * per_exhibit,
                    f"{exhibit.title}: {now}",  # noqa: B023
                ),
            )
    _show(comparisons)
    click.echo(_ADVICE)


def _exhibits() -> Iterator[_Exhibit]:
    from dagsail.domain.errors import InputError
    from dagsail.workloads.recipes import recipe_names

    try:
        recipe_names()
        yield _RECIPES
    except InputError:
        click.echo("note: without scientific workflows; pip install 'dagsail[recipes]'", err=True)
    yield from _FAMILIES
