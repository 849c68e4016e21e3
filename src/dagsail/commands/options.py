"""Options that several commands share, and the types that check them before any work begins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

import click

from dagsail.compose import DEFAULT_CLUSTER, MAX_WORKFLOWS, Overrides
from dagsail.domain.scenario import ArrivalKind

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:
    _Type = click.ParamType  # not generic in older versions of click

F = TypeVar("F", bound=Callable[..., Any])

MAX_SEED: Final = 2**31 - 1
GANTT_SUFFIXES: Final = (".html", ".png", ".svg")


class Finite(_Type):
    """A finite number from `smallest` (or above it) to `largest`."""

    name = "number"

    def __init__(self, smallest: float, largest: float, *, is_open: bool = False) -> None:
        self.smallest = smallest
        self.largest = largest
        self.is_open = is_open

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the number, or fail with what is allowed."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        is_too_small = number <= self.smallest if self.is_open else number < self.smallest
        if math.isnan(number) or is_too_small or number > self.largest:
            low = f"above {self.smallest:g}, at most" if self.is_open else f"{self.smallest:g} to"
            self.fail(f"{value!r} is not allowed; give a number {low} {self.largest:g}", param, ctx)
        return number


class Whole(_Type):
    """A whole number from `smallest` to `largest`."""

    name = "number"

    def __init__(self, smallest: int, largest: int) -> None:
        self.smallest = smallest
        self.largest = largest

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse the number, or fail with what is allowed."""
        try:
            number = int(value)
        except ValueError:
            number = self.smallest - 1
        if not self.smallest <= number <= self.largest:
            allowed = f"{self.smallest} to {self.largest}"
            self.fail(f"{value!r} is not allowed; give a whole number {allowed}", param, ctx)
        return number


class Output(_Type):
    """A file to write; that it can be written is checked at once."""

    name = "path"

    def __init__(self, suffixes: Sequence[str] = (), *, allows_stdout: bool = False) -> None:
        self.suffixes = suffixes
        self.allows_stdout = allows_stdout

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or `-` where that is allowed."""
        from dagsail.files import check_writable

        if value == "-" and self.allows_stdout:
            return value
        if not value or "\0" in value:
            self.fail(f"{value!r} is no name of a file", param, ctx)
        path = Path(value)
        if not path.name:
            self.fail(f"{value} is a folder; name a file", param, ctx)
        if self.suffixes and path.suffix.lower() not in self.suffixes:
            self.fail(f"{value} must end in one of {', '.join(self.suffixes)}", param, ctx)
        check_writable(path)
        return path


class OutputFolder(_Type):
    """A folder to write into, made if its parent exists."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path of the folder, which exists from now on."""
        from dagsail.domain.errors import OutputError
        from dagsail.files import check_writable

        if not value or "\0" in value:
            self.fail(f"{value!r} is no name of a folder", param, ctx)
        folder = Path(value)
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(f"{folder}: cannot be made ({error.strerror})") from None
        check_writable(folder / "index.html")
        return folder


files = click.argument("files", metavar="FILE...", nargs=-1, required=True)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def world(command: F) -> F:
    """The options that say what is simulated."""
    kinds = [str(kind) for kind in get_args(ArrivalKind)]
    options = (
        click.option(
            "--cluster",
            "cluster_name",
            metavar="C",
            default=DEFAULT_CLUSTER,
            show_default=True,
            help="Built-in name ('dagsail clusters') or file.",
        ),
        click.option(
            "--scenario",
            "scenario_path",
            metavar="FILE",
            help="Effects to model (kind: Scenario). The options below override it.",
        ),
        click.option(
            "--noise",
            type=Finite(0, 100),
            metavar="X",
            help="Coefficient of variation of true run times around the estimates; 0.4 is +-40 %.",
        ),
        click.option(
            "--load",
            type=Finite(0, 1000, is_open=True),
            metavar="X",
            help="Offered load on the scarcest resource; 0.8 is busy, above 1 queues grow.",
        ),
        click.option(
            "--arrivals",
            type=click.Choice(kinds),
            metavar="KIND",
            help=f"When workflows arrive: {', '.join(kinds)}.",
        ),
        click.option(
            "--workflows",
            "num_workflows",
            type=Whole(1, MAX_WORKFLOWS),
            metavar="N",
            help="How many to submit, drawn from what is given.",
        ),
        click.option(
            "--fair-sharing",
            is_flag=True,
            help="Concurrent transfers share network cards instead of each getting all of it.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def overrides(settings: dict[str, Any]) -> Overrides:
    """The options of `world` that replace settings of the scenario."""
    names = ("noise", "load", "arrivals", "num_workflows", "fair_sharing")
    return Overrides(**{name: settings[name] for name in names})


seed = click.option(
    "--seed",
    type=Whole(0, MAX_SEED),
    metavar="N",
    default=0,
    show_default=True,
    help="Of everything random: families, arrivals, true run times, faults.",
)
seeds = click.option(
    "--seeds",
    type=Whole(1, 10_000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many runs of each policy; below 6 every difference counts as noise.",
)
timeline = click.option(
    "--timeline",
    type=Output(),
    metavar="FILE",
    help="Write one JSON line for each attempt: when, where, outcome.",
)
gantt = click.option(
    "--gantt",
    type=Output(GANTT_SUFFIXES),
    metavar="FILE",
    help="Draw what ran where, as .html, .png or .svg.",
)
json_target = click.option(
    "--json",
    "json_target",
    type=Output(allows_stdout=True),
    metavar="[=FILE]",
    help="Print all metrics as JSON, or write them to a file with --json=FILE.",
)


class JsonToFile(click.Command):
    """Lets `--json` stand alone, or carry a file as `--json=FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Complete a bare `--json`; it never takes the next word, which may be a workflow file."""
        return super().parse_args(ctx, ["--json=-" if arg == "--json" else arg for arg in args])
