"""What the benchmarks run on: random layered DAGs, real workflow files, clusters of any size."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dagsail.domain.cluster import RACK_LABEL, ZONE_LABEL, Cluster, Link, Network, Node
from dagsail.domain.units import CPU, GIB, MEMORY, MIB
from dagsail.domain.workflow import Arrival, Dependency, Task, Workflow
from dagsail.files import read_text
from dagsail.workloads import alibaba, wfformat
from dagsail.workloads.arrivals import recorded, together

BYTES_PER_S = 1.25e9
ONE_SLOT_REQUEST = {CPU: 1000}
_MACHINES = (("general", 16, 64, 1.0), ("compute", 32, 64, 1.4), ("memory", 16, 256, 1.1))
_REQUESTS = tuple(
    {CPU: millicores, MEMORY: memory}
    for millicores in (500, 1000, 2000, 4000)
    for memory in (512 * MIB, 2 * GIB, 8 * GIB)
)


def layered_dag(
    num_tasks: int,
    seed: int,
    requests: Sequence[dict[str, int]] = (ONE_SLOT_REQUEST,),
    name: str = "layered",
) -> Workflow:
    """A random DAG of about sqrt(n) layers of sqrt(n) tasks; 1 + Poisson(1.9) parents a task.

    Run times are uniform in 1..100 s; an edge takes up to 16 s at the bandwidth of `one_slot`.
    """
    rng = np.random.default_rng(seed)
    layers = round(num_tasks**0.5)
    first = np.linspace(0, num_tasks, layers + 1).astype(int)
    edges: list[Dependency] = []
    for layer in range(1, layers):
        above = np.arange(first[layer - 1], first[layer])
        for child in range(first[layer], first[layer + 1]):
            count = min(len(above), 1 + int(rng.poisson(1.9)))
            for parent in rng.choice(above, count, replace=False).tolist():
                data = int(rng.integers(1, 20_000_000_000))
                edges.append(Dependency(f"t{parent}", f"t{child}", data))
    tasks = tuple(
        Task(
            id=f"t{task}",
            runtime_s=float(rng.uniform(1, 100)),
            request=requests[int(rng.integers(len(requests)))],
        )
        for task in range(num_tasks)
    )
    return Workflow(id=name, tasks=tasks, dependencies=tuple(edges))


def one_slot_nodes(num_nodes: int, seed: int) -> Cluster:
    """Fully connected nodes of speeds 0.5..2 that run one task of a layered DAG at a time."""
    rng = np.random.default_rng(seed)
    nodes = tuple(
        Node(name=f"n{i}", allocatable={CPU: 1000, MEMORY: GIB}, speed=float(rng.uniform(0.5, 2)))
        for i in range(num_nodes)
    )
    link = Link(0.0, BYTES_PER_S)
    network = Network(same_rack=link, same_zone=link, cross_zone=link)
    return Cluster(name=f"{num_nodes} one-slot nodes", nodes=nodes, network=network)


def mixed_nodes(num_nodes: int) -> Cluster:
    """Three types of machines of 16 to 32 cores, in two zones of racks of ten."""
    nodes = []
    for i in range(num_nodes):
        kind, cores, memory_gib, speed = _MACHINES[i % len(_MACHINES)]
        nodes.append(
            Node(
                name=f"n{i}",
                type=kind,
                allocatable={CPU: 1000 * cores, MEMORY: memory_gib * GIB},
                speed=speed,
                labels={ZONE_LABEL: "ab"[i % 2], RACK_LABEL: f"r{i // 20}"},
            )
        )
    return Cluster(name=f"{num_nodes} mixed nodes", nodes=tuple(nodes))


def random_workload(num_tasks: int, s_per_task: float = 0.0, seed: int = 0) -> list[Arrival]:
    """Layered DAGs of 20 tasks in 12 request sizes, submitted evenly, or all at time 0."""
    size = 20
    return [
        Arrival(s_per_task * size * i, layered_dag(size, seed + i, _REQUESTS, f"layered-{i}"))
        for i in range(num_tasks // size)
    ]


def num_tasks_of(arrivals: Sequence[Arrival]) -> int:
    """Tasks of all workflows together."""
    return sum(len(arrival.workflow.tasks) for arrival in arrivals)


def real_workloads() -> dict[str, list[Arrival]]:
    """Workloads from the folder in `DAGSAIL_DATA`; empty where it is not set."""
    if not os.environ.get("DAGSAIL_DATA"):
        return {}
    folder = Path(os.environ["DAGSAIL_DATA"])
    montage = _wfformat(folder / "wfinstances-legacy/0.2/montage-4.0-osg-run001.json.gz")
    seismology = _wfformat(
        folder / "wfinstances-1.5/seismology/seismology-chameleon-1000p-001.json"
    )
    paths = sorted((folder / "wfinstances-1.5").glob("*/*.json*"))
    every = [workflow for path in paths for workflow in _wfformat(path)]
    jobs = alibaba.read(
        read_text(folder / "alibaba-2018/batch_task_sample.csv.gz"),
        "batch_task_sample.csv.gz",
        durations=read_text(folder / "alibaba-2018/batch_task_sample_instance_durations.csv.gz"),
    ).workflows
    return {
        "Montage 4.0": together(montage),
        "Montage 4.0, 3 copies": together(3 * montage),
        "seismology 1000p, 10 copies": together(10 * seismology),
        f"WfInstances 1.5, all {len(every)}": together(every),
        "Alibaba 2018 sample, as recorded": recorded(jobs),
        "Alibaba 2018 sample, all at once": together(jobs),
    }


def _wfformat(path: Path) -> list[Workflow]:
    return list(wfformat.read(read_text(path), path.name).workflows)
