"""Real workflows under a fixed plan, compared with SimGrid (Casanova et al., JPDC 74(10), 2014).

SimGrid's bindings come with Debian's `python3-simgrid`, for the system's Python; without them the
tests are skipped. `DAGSAIL_SIMGRID_PYTHON` names another Python that has them.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dagsail.clusters.simulated.cluster import Simulation
from dagsail.domain.cluster import (
    HOSTNAME_LABEL,
    RACK_LABEL,
    ZONE_LABEL,
    Cluster,
    Link,
    Network,
    Node,
)
from dagsail.domain.placement import Placement
from dagsail.domain.scenario import Scenario, Transfers
from dagsail.domain.workflow import Arrival, Workflow, topological_order
from dagsail.files import read_text
from dagsail.policies.heuristics.fifo import POLICY as FIFO
from dagsail.policies.offline import follow
from dagsail.workloads import dax, wfformat

PYTHON = os.environ.get("DAGSAIL_SIMGRID_PYTHON", "/usr/bin/python3")
REPLAY = Path(__file__).with_name("simgrid_replay.py")
SPEEDS = (1.0, 2.0, 0.5, 1.0, 4.0, 1.5)
TOLERANCE = 1e-6
"""Relative to the makespan; 1e-2 is promised, measured is 1e-15."""

_FOLDER = "wfinstances-1.5"
INSTANCES = (
    f"{_FOLDER}/1000genome/1000genome-chameleon-2ch-100k-001.json",
    f"{_FOLDER}/1000genome/1000genome-chameleon-4ch-100k-001.json",
    f"{_FOLDER}/blast/blast-chameleon-small-001.json",
    f"{_FOLDER}/blast/blast-chameleon-large-001.json",
    f"{_FOLDER}/cycles/cycles-chameleon-1l-1c-9p-001.json",
    f"{_FOLDER}/cycles/cycles-chameleon-2l-1c-9p-001.json",
    f"{_FOLDER}/epigenomics/epigenomics-chameleon-hep-1seq-100k-001.json",
    f"{_FOLDER}/epigenomics/epigenomics-chameleon-hep-2seq-50k-001.json",
    f"{_FOLDER}/helloworld/helloworld-forkjoin-10-chameleon.json",
    f"{_FOLDER}/montage/montage-chameleon-2mass-005d-001.json",
    f"{_FOLDER}/montage/montage-chameleon-2mass-01d-001.json",
    f"{_FOLDER}/montage/montage-chameleon-2mass-015d-001.json",
    f"{_FOLDER}/nextflow/cutandrun-001.json",
    f"{_FOLDER}/nextflow/rnaseq-001.json",
    f"{_FOLDER}/nextflow/sarek-001.json",
    f"{_FOLDER}/nextflow/scrnaseq-001.json",
    f"{_FOLDER}/seismology/seismology-chameleon-100p-001.json",
    f"{_FOLDER}/srasearch/srasearch-chameleon-10a-001.json",
    f"{_FOLDER}/srasearch/srasearch-chameleon-50a-001.json",
    "pegasus-dax/CyberShake_100.xml",
    "pegasus-dax/Epigenomics_46.xml",
    "pegasus-dax/HEFT_paper.xml",
    "pegasus-dax/Inspiral_50.xml",
    "pegasus-dax/Montage_50.xml",
    "pegasus-dax/Sipht_60.xml",
    "pegasus-dax/floodplain.xml",
)


@functools.cache
def _has_simgrid() -> bool:
    try:
        return subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture(autouse=True)
def _simgrid() -> None:
    if not _has_simgrid():
        pytest.skip(f"{PYTHON} has no SimGrid; install Debian's python3-simgrid")


def _read(path: Path, **task_changes: Any) -> Workflow:
    reader = dax if path.suffix == ".xml" else wfformat
    flow = reader.read(read_text(path), str(path)).workflows[0]
    tasks = tuple(
        dataclasses.replace(
            task,
            runtime_s_by_node_type={},
            num_workers=1,
            timeout_s=None,
            placement=Placement(),
            **task_changes,
        )
        for task in flow.tasks
    )
    return dataclasses.replace(flow, tasks=tasks)


def _cluster(flow: Workflow, latencies_s: tuple[float, float, float]) -> Cluster:
    """Six unlike nodes on which moving the data takes about as long as running the tasks."""
    data = sum(edge.data_bytes for edge in flow.dependencies)
    work_s = sum(task.runtime_s for task in flow.tasks)
    card = max(1e4, data / max(work_s, 1.0))
    network = Network(
        same_rack=Link(latencies_s[0], 2.0 * card),
        same_zone=Link(latencies_s[1], 0.8 * card),
        cross_zone=Link(latencies_s[2], 0.3 * card),
    )
    nodes = tuple(
        Node(
            name=f"n{i}",
            allocatable={"cpu": 1_000_000, "memory": 1},
            labels={
                HOSTNAME_LABEL: f"n{i}",
                ZONE_LABEL: f"z{i // 3}",
                RACK_LABEL: f"r{i // 2}",
            },
            speed=speed,
            nic_bytes_per_s=card * (1.0 if i % 2 else 0.5),
        )
        for i, speed in enumerate(SPEEDS)
    )
    return Cluster(name="six", nodes=nodes, network=network)


def _plan(flow: Workflow, seed: int) -> tuple[list[int], list[int]]:
    """A random node for each task, and its place in a random topological order."""
    random = np.random.default_rng(seed)
    nodes = random.integers(len(SPEEDS), size=len(flow.tasks)).tolist()
    shuffled = random.permutation(len(flow.tasks)).tolist()
    mixed = dataclasses.replace(flow, tasks=tuple(flow.tasks[i] for i in shuffled))
    rank = {name: place for place, name in enumerate(topological_order(mixed))}
    return nodes, [rank[task.id] for task in flow.tasks]


def _tier(a: Node, b: Node) -> int:
    return 2 if a.zone != b.zone else int(a.rack != b.rack)


def _replayed(
    flow: Workflow,
    machines: Cluster,
    nodes: list[int],
    order: list[int] | None,
    ahead: bool,
    latency: str,
) -> list[float]:
    """Ends of the tasks in SimGrid; `order` None lets any number of them run on a node at once."""
    position = {task.id: i for i, task in enumerate(flow.tasks)}
    edges = [(position[e.parent], position[e.child], e.data_bytes) for e in flow.dependencies]
    tasks: list[dict[str, Any]] = [
        {"host": host, "seconds": task.runtime_s / SPEEDS[host], "before": []}
        for task, host in zip(flow.tasks, nodes, strict=True)
    ]
    for parent, child, _ in edges:
        tasks[child]["before"].append(parent)
    if order is not None:
        last: dict[int, int] = {}
        for task in sorted(range(len(tasks)), key=lambda i: order[i]):
            if nodes[task] in last:
                tasks[task]["before"].append(last[nodes[task]])
            last[nodes[task]] = task
    tiers = machines.network.same_rack, machines.network.same_zone, machines.network.cross_zone
    plan = {
        "hosts": [{"name": n.name, "nic": n.nic_bytes_per_s} for n in machines.nodes],
        "tiers": [{"latency_s": t.latency_s, "bytes_per_s": t.bytes_per_s} for t in tiers],
        "tier": [[_tier(a, b) for b in machines.nodes] for a in machines.nodes],
        "tasks": tasks,
        "flows": [e for e in edges if e[2] > 0 and nodes[e[0]] != nodes[e[1]]],
        "ahead": ahead,
        "latency": latency,
    }
    answer = subprocess.run(
        [PYTHON, str(REPLAY)], input=json.dumps(plan), capture_output=True, text=True, timeout=120
    )
    assert answer.returncode == 0, answer.stderr
    ends: list[float] = json.loads(answer.stdout)
    return ends


def _simulated(flow: Workflow, machines: Cluster, policy: Any) -> list[float]:
    scenario = Scenario(transfers=Transfers(fair_sharing=True))
    run = Simulation([Arrival(0.0, flow)], machines, scenario).run(policy)
    return [float(end_s) for end_s in run.snapshot.tasks["end_s"]]


def _compare(ours: list[float], theirs: list[float]) -> None:
    """Makespans, and every single task's end relative to the makespan, agree."""
    makespan = max(theirs)
    worst = max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / makespan
    print(
        f"makespan {makespan:.6g} s, off by {abs(max(ours) - makespan) / makespan:.1e};"
        f" worst task {worst:.1e}"
    )
    assert max(ours) == pytest.approx(makespan, rel=TOLERANCE)
    assert worst < TOLERANCE


@pytest.mark.parametrize("name", INSTANCES)
def test_one_task_at_a_time_with_data_sent_ahead(name: str, data_dir: Path) -> None:
    flow = _read(data_dir / name, request={"cpu": 1_000_000})
    machines = _cluster(flow, (0.01, 0.05, 0.2))
    nodes, order = _plan(flow, 1)
    ours = _simulated(flow, machines, follow(nodes, order))
    theirs = _replayed(flow, machines, nodes, order, ahead=True, latency="sleep")
    _compare(ours, theirs)


@pytest.mark.parametrize("name", INSTANCES[::3])
def test_latencies_as_simgrid_itself_has_them(name: str, data_dir: Path) -> None:
    # One latency for all tiers: with several, SimGrid favours flows of short latency, as TCP does.
    flow = _read(data_dir / name, request={"cpu": 1_000_000})
    machines = _cluster(flow, (0.1, 0.1, 0.1))
    nodes, order = _plan(flow, 2)
    ours = _simulated(flow, machines, follow(nodes, order))
    theirs = _replayed(flow, machines, nodes, order, ahead=True, latency="link")
    _compare(ours, theirs)


@pytest.mark.parametrize("name", INSTANCES[1::3])
def test_many_tasks_at_a_time_that_fetch_their_data_when_they_start(
    name: str, data_dir: Path
) -> None:
    flow = _read(data_dir / name, request={"cpu": 1})
    machines = _cluster(flow, (0.01, 0.05, 0.2))
    nodes, _ = _plan(flow, 3)
    pinned = tuple(
        dataclasses.replace(
            task, placement=Placement(node_selector=((HOSTNAME_LABEL, f"n{node}"),))
        )
        for task, node in zip(flow.tasks, nodes, strict=True)
    )
    ours = _simulated(dataclasses.replace(flow, tasks=pinned), machines, FIFO)
    theirs = _replayed(flow, machines, nodes, None, ahead=False, latency="sleep")
    _compare(ours, theirs)
