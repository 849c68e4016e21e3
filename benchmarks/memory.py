"""Peak memory of simulating 100,000 tasks on 1,000 nodes, stage by stage.

Each row is a process of its own that makes the workload, builds the arrays and runs one policy
with kernels from the cache. The columns are the peak resident size up to the end of each stage.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks._report import Report, parser

NUM_TASKS = 100_000
NUM_NODES = 1000
S_PER_TASK = 0.0045
"""As in `simulator_speed`, for ten times the nodes: near capacity."""
CASES = (("generated", "fifo"), ("generated", "kube-default@1.36"), ("recorded", "fifo"))


def peak_mib() -> float:
    """Peak resident size of this program so far."""
    # On Linux ru_maxrss counts what the process was before it became this program: its parent.
    if (status := Path("/proc/self/status")).exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def measure(workload: str, policy_name: str) -> dict[str, float] | None:
    """Peaks of one case, in the process that calls this; None where the workload is not at hand."""
    from benchmarks._instances import mixed_nodes, random_workload, real_workloads
    from dagsail.clusters.simulated.cluster import Simulation
    from dagsail.policies import policy

    peaks = {"imports": peak_mib()}
    if workload == "generated":
        arrivals = random_workload(NUM_TASKS, S_PER_TASK)
    else:
        real = real_workloads()
        if not real:
            return None
        arrivals = real["Alibaba 2018 sample, as recorded"]
    peaks["workload"] = peak_mib()
    simulation = Simulation(arrivals, mixed_nodes(NUM_NODES))
    peaks["arrays"] = peak_mib()
    simulation.run(policy(policy_name))
    peaks["run"] = peak_mib()
    return peaks


def in_a_process(workload: str, policy_name: str) -> Mapping[str, float] | None:
    """The same, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", "--case", workload, policy_name]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    peaks: dict[str, float] | None = json.loads(answer.stdout)
    return peaks


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--case", nargs=2, metavar=("WORKLOAD", "POLICY"), help="one case, here")
    options = arguments.parse_args()
    if options.case:
        print(json.dumps(measure(*options.case)))
        return
    report = Report(as_json=options.json)
    rows: list[dict[str, Any]] = []
    for workload, policy_name in CASES:
        in_a_process(workload, policy_name)  # fills the cache of kernels
        peaks = in_a_process(workload, policy_name)
        if peaks is not None:
            mib = {f"{stage}, MiB": round(peak) for stage, peak in peaks.items()}
            rows.append({"workload": workload, "policy": policy_name, **mib})
    report.table(f"Peak memory, {NUM_TASKS:,} tasks on {NUM_NODES:,} nodes", rows)
    report.close()


if __name__ == "__main__":
    main()
