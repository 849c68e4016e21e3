"""`replay`: a recorded run once more, placement by placement."""

from __future__ import annotations

from pathlib import Path

import click

from dagsail.commands import options
from dagsail.commands.output import compile_kernels, warn


@click.command(cls=options.JsonToFile, short_help="Follow a recorded run, placement by placement.")
@click.argument("record", metavar="RECORD")
@options.gantt
@options.timeline
@options.json_target
def replay(
    *, record: str, gantt: Path | None, timeline: Path | None, json_target: Path | str | None
) -> None:
    """Simulate a recorded run again, following its placements, and show its metrics.

    RECORD was written by 'dagsail simulate ... --record run.jsonl'. The files that were simulated
    must still be where they were, unchanged. The metrics are those of the recorded run.

    \b
    Examples:
      dagsail simulate flow.yaml --policy heft --record run.jsonl
      dagsail replay run.jsonl
    """  # noqa: D301 (\b keeps lines as they are)
    from dagsail.commands.recording import follow, setup_of_record
    from dagsail.commands.results import keep
    from dagsail.scheduling.record import read_record

    found = read_record(Path(record))
    setup = setup_of_record(found, record)
    compile_kernels()
    run = follow(found, setup, record)
    warn(setup.warnings)
    keep(run, setup.warnings, timeline=timeline, gantt=gantt, json_target=json_target)
