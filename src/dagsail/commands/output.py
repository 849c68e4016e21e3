"""What commands print: JSON and tables on stdout, warnings and progress on stderr."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Progress = Callable[[int, int, str], None]

_WIDTH_OF_FILES: Final = 140
"""Columns where no terminal says how wide it is."""
_MOST_WARNINGS: Final = 20


def warn(lines: Iterable[str]) -> None:
    """Print warnings to stderr, one line each."""
    shown = list(lines)
    for line in shown[:_MOST_WARNINGS]:
        click.echo(f"warning: {line}", err=True)
    if len(shown) > _MOST_WARNINGS:
        click.echo(f"warning: {len(shown) - _MOST_WARNINGS} more; --json lists all", err=True)


def json_text(value: Any) -> str:
    """JSON without NaN or infinity, which become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False, ensure_ascii=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_json(value: Any, target: Path | str) -> None:
    """Write JSON to a file, or to stdout for `-`.

    Raises:
        OutputError: if the file cannot be written.
    """
    if isinstance(target, str):
        click.echo(json_text(value))
        return
    from dagsail.files import writing

    with writing(target) as stream:
        stream.write(json_text(value) + "\n")


def console(*, on_stderr: bool = False) -> Console:
    """A console as wide as the terminal, or wide enough for any table where there is none."""
    from rich.console import Console

    stream = sys.stderr if on_stderr else sys.stdout
    width = None if stream.isatty() else _WIDTH_OF_FILES
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A plain table; a column whose title begins with `>` is set to the right.

    Only the last column wraps, if it is text.
    """
    from rich import box
    from rich.table import Table

    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for position, column in enumerate(columns, start=1):
        no_wrap = position < len(columns) or column.startswith(">")
        justify: Any = "right" if column.startswith(">") else "left"
        made.add_column(column.removeprefix(">"), justify=justify, no_wrap=no_wrap, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def width_of(made: Table, screen: Console) -> int:
    """Columns that a table would like to have."""
    from rich.measure import Measurement

    roomy = screen.options.update(max_width=1000)
    return Measurement.get(screen, roomy, made).maximum


@contextlib.contextmanager
def progress(what: str) -> Iterator[Progress]:
    """A bar on stderr while the block runs; nothing where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, now: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[now]}"),
        console=console(on_stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None, now="")
        yield lambda done, total, now: bar.update(task, completed=done, total=total, now=now)


def compile_kernels() -> None:
    """Compile what every simulation needs, and say so, where the cache holds nothing yet."""
    from dagsail.kernels import CACHE_FOLDER

    if any(CACHE_FOLDER.rglob("*.nbi")):
        return
    message = "compiling kernels (once; about a minute) ..."
    if sys.stderr.isatty():
        with console(on_stderr=True).status(message):
            _simulate_one_task()
        return
    click.echo(message, err=True)
    _simulate_one_task()


def _simulate_one_task() -> None:
    from dagsail.clusters.simulated.cluster import Simulation
    from dagsail.compose import cluster_of, policies_of
    from dagsail.domain.workflow import Arrival, Task, Workflow

    workflow = Workflow(id="compile", tasks=(Task(id="compile", runtime_s=1.0),))
    simulation = Simulation([Arrival(0.0, workflow)], cluster_of("homogeneous")[0])
    simulation.run(policies_of(["fifo"])[0])
