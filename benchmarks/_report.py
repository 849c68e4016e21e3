"""How the benchmarks measure and print: CPU seconds of one core, tables, JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")


def cpu_seconds(call: Callable[[], _T]) -> tuple[float, _T]:
    """CPU time of a call in this process, which other processes disturb less than wall time."""
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def median_cpu_s(make_call: Callable[[], Callable[[], object]], repetitions: int) -> float:
    """Median CPU time of fresh calls; what makes them is not counted, one goes first unmeasured."""
    make_call()()
    return statistics.median(cpu_seconds(make_call())[0] for _ in range(repetitions))


def parser(doc: str | None) -> argparse.ArgumentParser:
    """A command line with `--json`, described by the script's docstring."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", action="store_true", help="print the numbers as JSON instead")
    return made


class Report:
    """Tables of one benchmark; prints each when it is complete, or all as JSON at the end."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._tables: dict[str, list[Mapping[str, Any]]] = {}

    def table(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add a table; all rows have the same keys, which head the columns."""
        self._tables[title] = list(rows)
        if self._as_json:
            return
        cells = [list(rows[0]), *([_show(value) for value in row.values()] for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
        print(f"\n{title}")
        for row in cells:
            first = row[0].ljust(widths[0])
            rest = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
            print("  ".join([first, *rest]), flush=True)

    def close(self) -> None:
        """Print the JSON document, if one was asked for."""
        if self._as_json:
            print(json.dumps({"machine": _machine(), "tables": self._tables}, indent=1))


def _machine() -> dict[str, Any]:
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_average": os.getloadavg()[0],
    }


def _show(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
