"""The command line. Commands are thin; `dagsail.compose` makes the objects."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from typing import Final

import click

from dagsail import compose
from dagsail.commands.bundle import bundle
from dagsail.commands.compare import compare
from dagsail.commands.demo import demo
from dagsail.commands.evaluate import evaluate
from dagsail.commands.inspect import inspect
from dagsail.commands.listings import clusters, families, policies
from dagsail.commands.replay import replay
from dagsail.commands.rewards import rewards
from dagsail.commands.simulate import simulate
from dagsail.commands.train import train
from dagsail.domain.errors import DagsailError

DONE: Final = 0
OWN_FAULT: Final = 1
WRONG_INPUT: Final = 2
INTERRUPTED: Final = 130


class _InOrder(click.Group):
    """Lists commands in the order in which a newcomer needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of registration."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or fail with the nearest name."""
        near = difflib.get_close_matches(args[0], self.commands, 1, 0.6)
        if args[0] not in self.commands and near:
            ctx.fail(f"No such command '{args[0]}'; did you mean '{near[0]}'?")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_InOrder,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def command_line(ctx: click.Context, version: bool, debug: bool) -> None:
    """Simulate workflow schedulers on real workflow files, and see which one wins.

    \b
    Start with:
      dagsail demo                                  built-in workloads, all default policies
      dagsail inspect flow.yaml                     what a workflow file holds
      dagsail simulate flow.yaml --gantt gantt.html one run, drawn
      dagsail compare flow.yaml --policy default    many policies, 20 seeds, who wins

    Every command explains itself: 'dagsail compare --help'.
    """  # noqa: D301 (\b keeps lines as they are)
    if version:
        click.echo(f"dagsail {compose.version()}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


_COMMANDS = (
    demo, inspect, simulate, compare, replay, policies, clusters, families, train, evaluate, bundle,
    rewards,
)  # fmt: skip
for _command in _COMMANDS:
    command_line.add_command(_command)


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns 0 (done), 1 (own fault), 2 (wrong input) or 130 (interrupted)."""
    debug = "--debug" in arguments
    try:
        # `--debug` may stand anywhere, like the question that it answers.
        command_line.main(
            [argument for argument in arguments if argument != "--debug"],
            prog_name="dagsail",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.Abort:
        click.echo("dagsail: interrupted", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # click leaves so where nobody reads its output
        return _quietly()
    except Exception as error:
        if debug:
            raise
        return _report(error)
    return DONE


def _quietly() -> int:
    """The reader of our output has gone: nothing is left to say, not even at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _report(error: Exception) -> int:
    if isinstance(error, DagsailError):
        click.echo(f"dagsail: {_one_line(str(error))}", err=True)
        return WRONG_INPUT
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f"; see '{context.command_path} --help'" if context else ""
        click.echo(f"dagsail: {_one_line(error.format_message()).rstrip('.')}{hint}", err=True)
        return WRONG_INPUT
    if isinstance(error, MemoryError):
        click.echo("dagsail: out of memory; submit fewer or smaller workflows", err=True)
        return OWN_FAULT
    click.echo(
        f"dagsail: a fault of its own: {type(error).__name__}: {_one_line(str(error))[:300]};"
        " run again with --debug for the traceback, and report it",
        err=True,
    )
    return OWN_FAULT


def _one_line(text: str) -> str:
    return " ".join(text.split())
