"""Loose bounds on speed and memory: they catch a wrong order of growth, not a slow machine.

CPU time is measured, and ratios where one will do. Comments hold what was measured on one core of
a server from 2021; docs/benchmarks.md has the whole tables.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import heft_speed, memory, simulator_speed, startup
from benchmarks._instances import layered_dag, mixed_nodes, one_slot_nodes, random_workload
from benchmarks._report import median_cpu_s
from dagsail.policies.offline import plan_offline

NEAR_CAPACITY = simulator_speed.S_PER_TASK


def seconds(num_tasks: int, num_nodes: int, policy: str, s_per_task: float) -> float:
    arrivals = random_workload(num_tasks, s_per_task)
    return simulator_speed.run_s(arrivals, mixed_nodes(num_nodes), policy)


def test_heft_plans_two_thousand_tasks_in_a_fraction_of_a_second() -> None:
    workflow, cluster = layered_dag(2000, seed=2000), one_slot_nodes(32, seed=1)
    assert median_cpu_s(lambda: lambda: plan_offline(workflow, cluster), 3) < 0.5  # 0.06


def test_heft_is_much_faster_than_saga_and_agrees_with_it() -> None:
    row = heft_speed.measure(100, largest_for_saga=100)
    assert row["SAGA/total"] > 20  # 105
    assert abs(row["diff %"]) < 1.0  # 0 here, up to 0.6 on larger DAGs
    assert row["alike %"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.slow
def test_the_lead_over_saga_grows_with_the_size() -> None:
    row = heft_speed.measure(500, largest_for_saga=500)
    assert row["SAGA/total"] > 50  # 210
    assert abs(row["diff %"]) < 1.0
    assert row["alike %"] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("policy", "least_per_s"),
    [("fifo", 50_000), ("kube-default@1.36", 20_000)],  # 480,000 and 180,000
)
@pytest.mark.parametrize("s_per_task", [NEAR_CAPACITY, 0.0], ids=["near capacity", "at once"])
def test_a_second_simulates_many_tasks(policy: str, least_per_s: int, s_per_task: float) -> None:
    assert 5000 / seconds(5000, 100, policy, s_per_task) > least_per_s


@pytest.mark.parametrize("policy", ["fifo", "kube-default@1.36"])
def test_cost_grows_with_the_number_of_tasks_not_its_square(policy: str) -> None:
    small = seconds(2000, 100, policy, NEAR_CAPACITY)
    large = seconds(20_000, 100, policy, NEAR_CAPACITY)
    assert large / small < 30  # 10 to 12; quadratic growth gives 100


@pytest.mark.parametrize("policy", ["fifo", "kube-default@1.36"])
def test_cost_grows_at_most_with_the_number_of_nodes(policy: str) -> None:
    small = seconds(5000, 10, policy, 0.0)
    large = seconds(5000, 300, policy, 0.0)
    assert large / small < 45  # 2 and 6; thirty times the nodes


def test_the_peak_of_a_process_leaves_out_its_parent() -> None:
    ballast = bytearray(b"1") * (300 * 2**20)
    program = "from benchmarks.memory import peak_mib; print(peak_mib())"
    answer = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE)
    assert 1 < float(answer.stdout) < 100  # 20
    assert len(ballast) == 300 * 2**20


@pytest.mark.slow
def test_a_hundred_thousand_tasks_on_a_thousand_nodes_fit_into_a_gibibyte() -> None:
    peaks = memory.in_a_process("generated", "fifo")
    assert peaks is not None
    assert peaks["run"] < 1024  # 440 MiB


def test_the_help_text_is_quick_and_loads_no_compiler() -> None:
    cpu_s, _ = startup.process_s(("-m", "dagsail", "--help"))
    assert cpu_s < 1.0  # 0.15
    program = (
        "import sys\n"
        "from dagsail.cli import main\n"
        "sys.argv[1:] = ['--help']\n"
        "try:\n    main()\n"
        "finally:\n    assert not {'numpy', 'numba', 'altair'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.slow
def test_a_small_simulation_starts_quickly_once_kernels_are_cached() -> None:
    assert startup.median_row("simulate", startup.SIMULATE, 3)["CPU s"] < 4.0  # 1.0
