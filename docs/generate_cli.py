"""Writes docs/cli.md from the help of every command: `python docs/generate_cli.py`."""

from __future__ import annotations

from pathlib import Path

import click

from dagsail.cli import command_line

PAGE = Path(__file__).with_name("cli.md")
WIDTH = 90
HEAD = """\
# Command line

Each command explains itself with `--help`; this page is made of those texts.

Results go to stdout; warnings (`warning: ...`), progress and errors (`dagsail: ...`) to stderr.
With `--json` alone stdout is pure JSON; NaN is written as null. All options are checked before any
work begins, and no result is ever half-written.

| Exit code | Means |
|---|---|
| 0 | done |
| 1 | a fault of Dagsail's own; `--debug` shows the traceback |
| 2 | the input or the call is wrong, or a simulation cannot go on: one line on stderr says why |
| 130 | interrupted |

| Variable | Means |
|---|---|
| `DAGSAIL_CACHE_DIR` | where compiled kernels are kept (default `~/.cache/dagsail`) |
| `NO_COLOR` | no colours in tables |
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, section("dagsail", command_line)]
    parts += [section(f"dagsail {name}", made) for name, made in command_line.commands.items()]
    return "\n".join(parts)


def section(path: str, command: click.Command) -> str:
    """The help of one command under a heading of its own."""
    names = command_line.context_settings["help_option_names"]
    context = click.Context(
        command, info_name=path, terminal_width=WIDTH, help_option_names=list(names)
    )
    return f"## {path}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
