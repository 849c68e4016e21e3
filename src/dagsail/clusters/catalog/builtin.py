"""The built-in clusters, from a handful of machine types.

Sizes are those of common cloud machines, prices their on-demand USD an hour in round numbers
(some 0.04 a core, spot at 40 % of it). `speed` is relative to a general machine, `gpu_speed` to a
V100, from common training benchmarks. All of a machine is allocatable: what the system keeps for
itself is left out, so that numbers stay round. GPU nodes carry no taint, so CPU work competes for
them.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from dagsail.clusters.catalog.cluster_file import (
    POOL_LABEL,
    ClusterSpec,
    LinkSpec,
    NetworkSpec,
    NodeGroup,
    cluster_of,
)
from dagsail.domain.cluster import Cluster
from dagsail.domain.units import CPU, GIB, GPU, MEMORY
from dagsail.scalars import BytesPerS, CudaVersion, Number, Resources, Seconds


def _offers(cores: int, memory_gib: int, gpus: int = 0) -> Resources:
    amounts = Resources({CPU: 1000 * cores, MEMORY: memory_gib * GIB})
    return Resources({**amounts, GPU: gpus}) if gpus else amounts


def _gbit(count: float) -> BytesPerS:
    return BytesPerS(count * 1e9 / 8)


_GENERAL: Final = NodeGroup(
    name="general",
    type="general-16",
    allocatable=_offers(16, 64),
    price=Number(0.64),
    nic=_gbit(10),
)
_SPOT: Final = replace(_GENERAL, name="spot", price=Number(0.26), spot=True)
_COMPUTE: Final = NodeGroup(
    name="compute",
    type="compute-32",
    allocatable=_offers(32, 64),
    speed=Number(1.4),
    price=Number(1.5),
    nic=_gbit(25),
    local_ssd=True,
    disk=BytesPerS(1e9),
)
_MEMORY: Final = NodeGroup(
    name="memory",
    type="memory-16",
    allocatable=_offers(16, 256),
    speed=Number(1.1),
    price=Number(1.1),
    nic=_gbit(10),
)
_OLD: Final = NodeGroup(
    name="old",
    type="old-8",
    allocatable=_offers(8, 32),
    speed=Number(0.6),
    price=Number(0.25),
    nic=_gbit(5),
    disk=BytesPerS(200e6),
)
_T4: Final = NodeGroup(
    name="t4",
    type="gpu-t4",
    allocatable=_offers(16, 64, gpus=1),
    labels={POOL_LABEL: "mixed"},
    gpu_speed=Number(0.5),
    price=Number(1.2),
    nic=_gbit(10),
    gpu_model="T4",
    max_cuda=CudaVersion("12.4"),
)
_V100: Final = NodeGroup(
    name="v100",
    type="gpu-v100",
    allocatable=_offers(32, 256, gpus=4),
    price=Number(11),
    nic=_gbit(10),
    gpu_link=BytesPerS(150e9),
    gpu_model="V100",
    max_cuda=CudaVersion("12.4"),
)
_A100: Final = NodeGroup(
    name="a100",
    type="gpu-a100",
    allocatable=_offers(48, 512, gpus=4),
    speed=Number(1.2),
    gpu_speed=Number(2),
    price=Number(18),
    nic=_gbit(100),
    gpu_link=BytesPerS(300e9),
    gpu_model="A100",
    max_cuda=CudaVersion("12.8"),
    local_ssd=True,
    disk=BytesPerS(2e9),
)
_DATA_CENTRE: Final = NetworkSpec(
    same_rack=LinkSpec(latency=Seconds(50e-6), bandwidth=_gbit(100)),
    same_zone=LinkSpec(latency=Seconds(200e-6), bandwidth=_gbit(25)),
    cross_zone=LinkSpec(latency=Seconds(1e-3), bandwidth=_gbit(10)),
)


def mixed() -> Cluster:
    """20 unlike CPU and GPU nodes in 2 zones, two of them spot."""
    zones, racks = ("a", "b"), ("r1", "r2")
    counts = ((_GENERAL, 4), (_SPOT, 2), (_COMPUTE, 3), (_MEMORY, 2), (_OLD, 3))
    gpu_counts = ((_T4, 3), (_V100, 2), (_A100, 1))
    groups = (
        replace(machine, count=count, zones=zones, racks=racks)
        for machine, count in (*counts, *gpu_counts)
    )
    return cluster_of("mixed", ClusterSpec(nodes=tuple(groups), network=_DATA_CENTRE))


def large() -> Cluster:
    """200 nodes in 3 zones of 4 racks each, of the machine types of `mixed`."""
    zones, racks = ("a", "b", "c"), ("r1", "r2", "r3", "r4")
    counts = ((_GENERAL, 60), (_SPOT, 12), (_COMPUTE, 36), (_MEMORY, 24), (_OLD, 24))
    gpu_counts = ((_T4, 24), (_V100, 12), (_A100, 8))
    groups = (
        replace(machine, count=count, zones=zones, racks=racks)
        for machine, count in (*counts, *gpu_counts)
    )
    return cluster_of("large", ClusterSpec(nodes=tuple(groups), network=_DATA_CENTRE))


def homogeneous() -> Cluster:
    """16 equal general nodes in one rack, for teaching."""
    group = replace(_GENERAL, name="node", count=16, zone="a", rack="r1")
    return cluster_of("homogeneous", ClusterSpec(nodes=(group,), network=_DATA_CENTRE))


def edge() -> Cluster:
    """6 small unlike nodes of one site, four of them Arm, one with a GPU."""
    arm = {"kubernetes.io/arch": "arm64"}
    board = NodeGroup(
        name="board",
        count=3,
        type="arm-4",
        allocatable=_offers(4, 8),
        labels=arm,
        speed=Number(0.3),
        price=Number(0.03),
        nic=_gbit(1),
        disk=BytesPerS(100e6),
    )
    accelerated = NodeGroup(
        name="accelerated",
        type="arm-8-gpu",
        allocatable=_offers(8, 16, gpus=1),
        labels=arm,
        speed=Number(0.4),
        gpu_speed=Number(0.2),
        price=Number(0.15),
        nic=_gbit(1),
        gpu_model="Orin",
        max_cuda=CudaVersion("12.2"),
        disk=BytesPerS(200e6),
    )
    small = NodeGroup(
        name="small",
        type="mini-8",
        allocatable=_offers(8, 32),
        speed=Number(0.8),
        price=Number(0.1),
        nic=_gbit(2.5),
    )
    gateway = replace(_GENERAL, name="gateway", type="server-16", local_ssd=True, price=Number(0.4))
    site = LinkSpec(latency=Seconds(300e-6), bandwidth=_gbit(2.5))
    groups = tuple(
        replace(group, zone="site", rack="cabinet")
        for group in (board, accelerated, small, gateway)
    )
    network = NetworkSpec(same_rack=site, same_zone=site, cross_zone=site)
    return cluster_of("edge", ClusterSpec(nodes=groups, network=network))
