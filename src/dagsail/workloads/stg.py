"""Reads STG, the Standard Task Graph Set of Kasahara Laboratory: synthetic and program graphs.

The first line holds the number of tasks; every further line one task: its number, its processing
time, the number of its predecessors, and those. Task 0 and the task after the last are a dummy
entry and exit (either may be missing); they are not part of the workflow. The set knows no data
and no unit of time: a processing time is read as seconds.

Source: https://www.kasahara.cs.waseda.ac.jp/schedule/; Tobita and Kasahara, "A standard task graph
set for fair evaluation of multiprocessor scheduling algorithms", J. Scheduling 5 (2002).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, MAX_COUNT, MAX_TIME_S, MEMORY, format_bytes
from dagsail.domain.workflow import Dependency, Task, Workflow
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    Reading,
    Repairs,
)

_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_INTEGER: Final = re.compile(r"\d{1,10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    cost: float
    parents: tuple[int, ...]


def looks_like(text_head: str) -> bool:
    """Whether a text that begins so (about 4096 characters) is STG: nothing but rows of numbers."""
    rows = list(_tokens(text_head))
    return (
        len(rows) >= 2
        and len(rows[0][1]) <= 2
        and len(rows[1][1]) >= 3
        and all(_NUMBER.fullmatch(token) for _, tokens in rows for token in tokens)
    )


def read(text: str, source: str) -> Reading:
    """The one workflow of an STG file, named after the file.

    Args:
        text: the whole file.
        source: file name, for messages and as the workflow's id.

    Raises:
        FormatError: if a line is not as described above, or tasks are missing.
        WorkflowError: if tasks and dependencies do not form a DAG.
    """
    repairs = Repairs(source)
    rows = _without_dummies(*_rows(text, source, repairs), source)
    request = {CPU: DEFAULT_CPU_MILLICORES, MEMORY: DEFAULT_MEMORY_BYTES}
    repairs.note("processing times have no unit, seconds assumed")
    repairs.note(
        f"tasks state no resources, {DEFAULT_CPU_MILLICORES} millicores and"
        f" {format_bytes(DEFAULT_MEMORY_BYTES)} assumed for each"
    )
    for row in rows:
        if row.cost == 0:
            repairs.note("task with a processing time of 0, kept", str(row.number))
    try:
        workflow = Workflow(
            id=Path(source.removesuffix(".gz")).stem,
            tasks=tuple(
                Task(id=str(row.number), runtime_s=row.cost, request=request) for row in rows
            ),
            dependencies=tuple(
                Dependency(str(parent), str(row.number)) for row in rows for parent in row.parents
            ),
        )
    except WorkflowError as error:
        raise WorkflowError(f"{source}: {error}") from None
    return Reading((workflow,), repairs.warnings())


def _tokens(text: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and words of each line that is not empty or a comment."""
    for line_number, line in enumerate(text.splitlines(), start=1):
        if tokens := line.partition("#")[0].split():
            yield line_number, tokens


def _rows(text: str, source: str, repairs: Repairs) -> tuple[int, list[_Row]]:
    """The declared number of tasks, and all rows, dummies included."""
    lines = _tokens(text)
    line_number, header = next(lines, (1, []))
    # A second number (how many processors the makers had in mind) may follow.
    if not 1 <= len(header) <= 2:
        raise FormatError(
            f"{source}:{line_number}: not STG: the first line holds {len(header)} words;"
            " the number of tasks is expected"
        )
    declared = _integer(header[0], f"{source}:{line_number}")
    return declared, [_row(tokens, f"{source}:{n}", repairs) for n, tokens in lines]


def _row(tokens: list[str], place: str, repairs: Repairs) -> _Row:
    if len(tokens) < 3:
        raise FormatError(
            f"{place}: {len(tokens)} numbers; expected are a task's number, its processing time,"
            " the number of its predecessors, and those"
        )
    number, count = _integer(tokens[0], place), _integer(tokens[2], place)
    if len(tokens) != 3 + count:
        raise FormatError(
            f"{place}: task {number} states {count} predecessors but lists {len(tokens) - 3}"
        )
    parents = [_integer(token, place) for token in tokens[3:]]
    unique = tuple(dict.fromkeys(parents))
    if len(unique) < len(parents):
        repairs.note("task that lists a predecessor twice, merged", str(number))
    return _Row(number, _cost(tokens[1], place), unique)


def _integer(token: str, place: str) -> int:
    if not _INTEGER.fullmatch(token) or int(token) > MAX_COUNT:
        raise FormatError(
            f"{place}: {reprlib.repr(token)} is not a whole number from 0 to {MAX_COUNT}"
        )
    return int(token)


def _cost(token: str, place: str) -> float:
    cost = float(token) if _NUMBER.fullmatch(token) else math.nan
    if not 0 <= cost <= MAX_TIME_S:
        raise FormatError(
            f"{place}: processing time {reprlib.repr(token)} is not a number from 0 to"
            f" {MAX_TIME_S:g}"
        )
    return cost


def _without_dummies(declared: int, rows: list[_Row], source: str) -> list[_Row]:
    """Take away entry and exit where the file holds more rows than it declares."""
    needed = {parent for row in rows for parent in row.parents}
    for dummy in (declared + 1, 0):
        row = next((row for row in rows if row.number == dummy), None)
        if row is None or len(rows) <= declared or row.cost > 0:
            continue
        is_entry, is_exit = not row.parents, row.number not in needed
        if is_entry if dummy == 0 else is_exit:
            rows = [
                _Row(row.number, row.cost, tuple(p for p in row.parents if p != dummy))
                for row in rows
                if row.number != dummy
            ]
    if len(rows) != declared:
        raise FormatError(
            f"{source}: declares {declared} tasks but holds {len(rows)} (dummy entry and exit not"
            " counted); the file is truncated or not STG"
        )
    return rows
