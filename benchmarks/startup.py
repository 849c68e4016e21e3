"""Start-up: importing, the help text, a small simulation with and without compiled kernels.

Whole processes, medians. CPU time is what they cost, wall time what a user waits; the two differ
where other programs keep the machine busy.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._report import Report, parser

EXAMPLE = Path(__file__).parent.parent / "examples" / "workflow.yaml"
REPETITIONS = 7
SIMULATE = ("-m", "dagsail", "simulate", str(EXAMPLE), "--policy", "fifo")
COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "import dagsail": ("-c", "import dagsail"),
    "dagsail --help": ("-m", "dagsail", "--help"),
    "dagsail simulate --help": ("-m", "dagsail", "simulate", "--help"),
    "dagsail simulate, kernels cached": SIMULATE,
}


def process_s(arguments: tuple[str, ...], **environment: str) -> tuple[float, float]:
    """CPU and wall seconds of one Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        check=True,
        capture_output=True,
        env={**os.environ, **environment},
    )
    wall_s = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, wall_s


def median_row(title: str, arguments: tuple[str, ...], repetitions: int) -> dict[str, Any]:
    process_s(arguments)
    times = [process_s(arguments) for _ in range(repetitions)]
    cpu_s, wall_s = (statistics.median(column) for column in zip(*times, strict=True))
    return {"what": title, "CPU s": cpu_s, "wall s": wall_s}


def main() -> None:
    options = parser(__doc__).parse_args()
    report = Report(as_json=options.json)
    rows = [median_row(title, command, REPETITIONS) for title, command in COMMANDS.items()]
    with tempfile.TemporaryDirectory() as folder:
        cpu_s, wall_s = process_s(SIMULATE, DAGSAIL_CACHE_DIR=folder)
    rows.append({"what": "dagsail simulate, first compile", "CPU s": cpu_s, "wall s": wall_s})
    report.table("Start-up", rows)
    report.close()


if __name__ == "__main__":
    main()
