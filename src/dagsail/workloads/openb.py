"""Alibaba GPU trace v2023 (openb): machines as a cluster, pods as one-task workflows.

Format: cluster-trace-gpu-v2023 of https://github.com/alibaba/clusterdata; described in Weng et al.,
"Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
USENIX ATC 2023.

How the trace becomes workflows:

- A pod arrives at `creation_time` (the earliest is 0) and runs from `scheduled_time`, or from
  `creation_time` where the table lacks that column, to `deletion_time`. Pods that were never
  scheduled get a default run time. Where the table has no times (5 columns) all arrive at 0.
- `gpu_milli` 1000 means `num_gpu` whole GPUs; less is a share of one GPU.
- `gpu_spec` lists the acceptable models, joined by `|`.
- LS (latency-sensitive) and Guaranteed become P1, Burstable P2, BE (best effort) P3.

Recorded run times are those on the machine that the pod got, which the trace does not tell; they
are taken as times on the reference node. For assumed speeds and prices see
`dagsail.workloads.nodes`.
"""

from __future__ import annotations

import functools
from typing import Final

from dagsail.domain.cluster import GPU_MODEL_LABEL, HOSTNAME_LABEL, Cluster, Node
from dagsail.domain.errors import ClusterError, FormatError
from dagsail.domain.placement import ANYWHERE, Placement
from dagsail.domain.units import (
    CPU,
    GPU,
    GPU_MILLI,
    MAX_BYTES,
    MAX_COUNT,
    MAX_MILLICORES,
    MAX_TIME_S,
    MEMORY,
    MIB,
)
from dagsail.domain.workflow import Priority, Task, Workflow
from dagsail.workloads.nodes import assumed_prices, make_cluster, make_node
from dagsail.workloads.reading import DEFAULT_RUNTIME_S, Reading, Repairs
from dagsail.workloads.tables import Row, read_rows

PRIORITIES: Final = {
    "LS": Priority.P1,
    "Guaranteed": Priority.P1,
    "Burstable": Priority.P2,
    "BE": Priority.P3,
}
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_MAX_GPUS: Final = MAX_COUNT // 1000


def looks_like_pods(head: str) -> bool:
    """Whether a text that begins like this is a list of pods."""
    return head.lstrip().startswith(",".join(_POD_COLUMNS))


def looks_like_nodes(head: str) -> bool:
    """Whether a text that begins like this is a list of nodes."""
    return head.lstrip().startswith(",".join(_NODE_COLUMNS))


def read_pods(text: str, source: str) -> Reading:
    """Read a list of pods.

    Raises:
        FormatError: if a column is missing, a row is cut off, a field is not what it should be, or
            two pods share a name.
    """
    repairs = Repairs(source)
    rows = _rows(text, source, _POD_COLUMNS)
    created = [row.number("creation_time", MAX_TIME_S) for row in rows]
    origin_s = min((time for time in created if time is not None), default=0.0)
    lines: dict[str, str] = {}
    workflows = []
    for row, created_s in zip(rows, created, strict=True):
        name = row.text("name")
        if name in lines:
            raise FormatError(
                f"{row.where}: pod '{name}' occurs a second time, the first is at {lines[name]}"
            )
        lines[name] = row.where
        if created_s is None:
            repairs.note("pod without creation_time: submitted at 0", row.where)
        workflows.append(
            Workflow(
                id=name,
                tasks=(_task(row, name, repairs),),
                priority=_priority(row, repairs),
                family="openb",
                submitted_s=0.0 if created_s is None else created_s - origin_s,
            )
        )
    return Reading(tuple(workflows), repairs.warnings())


def read_nodes(text: str, source: str) -> tuple[Cluster, tuple[str, ...]]:
    """Read a list of machines: a cluster and the warnings about it.

    A machine with g GPUs offers g of `nvidia.com/gpu` and 1000 g of `gpu-milli`: two views of the
    same devices. The trace has neither zones nor racks.

    Raises:
        FormatError: if a column is missing, a row is cut off or a field is not what it should be.
        ClusterError: if a machine has no cpu, or two share a name.
    """
    repairs = Repairs(source)
    nodes = [_node(row, repairs) for row in _rows(text, source, _NODE_COLUMNS)]
    return make_cluster(source, nodes), (assumed_prices(source), *repairs.warnings())


def _rows(text: str, source: str, required: tuple[str, ...]) -> list[Row]:
    rows = list(read_rows(text, source))
    if not rows:
        raise FormatError(f"{source}: no rows below the header")
    missing = [column for column in required if column not in rows[0].fields]
    if missing:
        raise FormatError(
            f"{source}: column '{missing[0]}' is missing; the first line must name at least"
            f" {','.join(required)}"
        )
    return rows


def _task(row: Row, name: str, repairs: Repairs) -> Task:
    request = {
        CPU: _required(row, "cpu_milli", MAX_MILLICORES),
        MEMORY: _required(row, "memory_mib", MAX_BYTES // MIB) * MIB,
    }
    num_gpus = _required(row, "num_gpu", _MAX_GPUS)
    placement = ANYWHERE
    if num_gpus:
        share = _required(row, "gpu_milli", 1000)
        if share == 0 or (share < 1000 and num_gpus > 1):
            raise FormatError(
                f"{row.where}: gpu_milli is {share} with num_gpu {num_gpus}; allowed are 1000,"
                " or 1 to 999 with num_gpu 1"
            )
        request |= {GPU: num_gpus} if share == 1000 else {GPU_MILLI: share}
        placement = _placement(row.fields.get("gpu_spec", ""))
    return Task(
        id=name,
        runtime_s=_runtime_s(row, repairs),
        kind="pod",
        request=request,
        placement=placement,
    )


@functools.lru_cache(maxsize=1024)
def _placement(gpu_spec: str) -> Placement:
    """One object for all pods with the same rule."""
    models = dict.fromkeys(model for model in gpu_spec.split("|") if model)
    return Placement(gpu_models=tuple(models)) if models else ANYWHERE


def _runtime_s(row: Row, repairs: Repairs) -> float:
    start_column = "scheduled_time" if "scheduled_time" in row.fields else "creation_time"
    start_s = row.number(start_column, MAX_TIME_S)
    end_s = row.number("deletion_time", MAX_TIME_S)
    if "deletion_time" not in row.fields:
        repairs.note(f"no times recorded: {DEFAULT_RUNTIME_S:g} s assumed", row.where)
    elif start_s is None:
        repairs.note(f"pod that never ran: {DEFAULT_RUNTIME_S:g} s assumed", row.where)
    elif end_s is None or end_s <= start_s:
        repairs.note(
            f"pod without an end after its start: {DEFAULT_RUNTIME_S:g} s assumed", row.where
        )
    else:
        return end_s - start_s
    return DEFAULT_RUNTIME_S


def _priority(row: Row, repairs: Repairs) -> Priority:
    qos = row.fields.get("qos", "")
    if qos not in PRIORITIES:
        repairs.note("pod without a known qos: priority P2 assumed", f"{row.where} '{qos[:40]}'")
    return PRIORITIES.get(qos, Priority.P2)


def _node(row: Row, repairs: Repairs) -> Node:
    name = row.text("sn")
    num_gpus = row.count("gpu", _MAX_GPUS) or 0
    allocatable = {
        CPU: _required(row, "cpu_milli", MAX_MILLICORES),
        MEMORY: _required(row, "memory_mib", MAX_BYTES // MIB) * MIB,
    }
    labels = {HOSTNAME_LABEL: name}
    if num_gpus:
        allocatable |= {GPU: num_gpus, GPU_MILLI: 1000 * num_gpus}
        if row.fields["model"]:
            labels[GPU_MODEL_LABEL] = row.fields["model"]
    try:
        return make_node(name, allocatable, labels, (), repairs)
    except ClusterError as error:
        raise ClusterError(f"{row.where}: {error}") from None


def _required(row: Row, column: str, largest: float) -> int:
    value = row.count(column, largest)
    if value is None:
        raise FormatError(f"{row.where}: {column} is empty; every row needs one")
    return value
