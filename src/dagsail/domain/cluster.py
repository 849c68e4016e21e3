"""Node, Link, Network, Cluster: the machines that run tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from dagsail.domain.errors import ClusterError
from dagsail.domain.placement import Taint
from dagsail.domain.units import CPU, GPU, MIB, max_amount

ZONE_LABEL: Final = "topology.kubernetes.io/zone"
RACK_LABEL: Final = "topology.kubernetes.io/rack"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
GPU_MODEL_LABEL: Final = "nvidia.com/gpu.product"
GPU_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
POOL_LABEL: Final = "dagsail.io/pool"
POOLS: Final = ("cpu", "mixed", "gpu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One machine.

    Attributes:
        name: unique in its cluster.
        type: machine type; tasks may state a runtime per type.
        allocatable: resource amounts in the units of `dagsail.domain.units`.
        labels: Kubernetes labels; zone, rack and GPU model are read from the well-known ones.
        taints: what repels tasks without a matching toleration.
        speed: a task of runtime r on the reference node takes r / speed here.
        gpu_speed: likewise for tasks that request a GPU.
        speed_by_kind: overrides both for the named kinds of task.
        price_usd_per_h: price of the whole node.
        nic_bytes_per_s: bandwidth of the network card, each direction.
        gpu_link_bytes_per_s: bandwidth between the GPUs of this node (NVLink or PCIe).
        disk_bytes_per_s: disk bandwidth at full health.
        has_local_ssd: for tasks that prefer one.
        max_cuda: newest CUDA version that the driver supports, as (major, minor).
        is_spot: may be reclaimed with notice.
    """

    name: str
    type: str = "standard"
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    speed: float = 1.0
    gpu_speed: float = 1.0
    speed_by_kind: Mapping[str, float] = field(default_factory=dict)
    price_usd_per_h: float = 0.0
    nic_bytes_per_s: float = 1.25e9
    gpu_link_bytes_per_s: float = 16e9
    disk_bytes_per_s: float = 500e6
    has_local_ssd: bool = False
    max_cuda: tuple[int, int] | None = None
    is_spot: bool = False

    def __post_init__(self) -> None:
        where = f"node '{self.name}'"
        if not self.allocatable.get(CPU, 0):
            raise ClusterError(f"{where}: allocatable has no cpu; every node needs some")
        for resource, amount in self.allocatable.items():
            if not 0 <= amount <= max_amount(resource):
                raise ClusterError(
                    f"{where}: allocatable[{resource}] is {amount};"
                    f" allowed are 0 to {max_amount(resource)}"
                )
        positive = {
            "speed": self.speed,
            "gpu_speed": self.gpu_speed,
            "nic_bytes_per_s": self.nic_bytes_per_s,
            "gpu_link_bytes_per_s": self.gpu_link_bytes_per_s,
            "disk_bytes_per_s": self.disk_bytes_per_s,
            **{f"speed_by_kind[{kind}]": speed for kind, speed in self.speed_by_kind.items()},
        }
        for name, value in positive.items():
            if not math.isfinite(value) or value <= 0:
                raise ClusterError(f"{where}: {name} is {value}; it must be finite and above 0")
        if not math.isfinite(self.price_usd_per_h) or self.price_usd_per_h < 0:
            raise ClusterError(
                f"{where}: price_usd_per_h is {self.price_usd_per_h}; it must not be negative"
            )

    @property
    def zone(self) -> str:
        """Failure domain and network tier; empty where no label says."""
        return self.labels.get(ZONE_LABEL, "")

    @property
    def rack(self) -> str:
        """Rack inside the zone; empty where no label says."""
        return self.labels.get(RACK_LABEL, "")

    @property
    def gpu_model(self) -> str:
        """GPU product name; empty where no label says."""
        return self.labels.get(GPU_MODEL_LABEL, "")

    @property
    def num_gpus(self) -> int:
        """Whole GPU devices."""
        return self.allocatable.get(GPU, 0)

    @property
    def gpu_memory_bytes(self) -> int:
        """Memory of one GPU, from the label of NVIDIA's feature discovery; 0: unknown."""
        stated = self.labels.get(GPU_MEMORY_LABEL, "")
        return int(stated) * MIB if stated.isdecimal() else 0

    @property
    def pool(self) -> str:
        """`cpu`, `mixed` or `gpu`: by label, else by its GPUs and whether it repels others."""
        stated = self.labels.get(POOL_LABEL, "")
        if stated in POOLS:
            return stated
        if not self.num_gpus:
            return "cpu"
        return "gpu" if any(taint.effect == "NoSchedule" for taint in self.taints) else "mixed"

    def speed_for(self, kind: str, *, uses_gpu: bool) -> float:
        """How many reference seconds of such a task one second here is worth."""
        if kind in self.speed_by_kind:
            return self.speed_by_kind[kind]
        return self.gpu_speed if uses_gpu else self.speed


@dataclass(frozen=True, slots=True)
class Link:
    """Latency and bandwidth between two nodes, each direction."""

    latency_s: float
    bytes_per_s: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.latency_s) and self.latency_s >= 0 and self.bytes_per_s > 0):
            raise ClusterError(
                f"link has latency_s {self.latency_s} and bytes_per_s {self.bytes_per_s};"
                " latency must not be negative, bandwidth must be above 0"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Three tiers. A transfer gets the least of both network cards and the tier's bandwidth."""

    same_rack: Link = Link(50e-6, 1.25e9)
    same_zone: Link = Link(200e-6, 1.25e9)
    cross_zone: Link = Link(1e-3, 625e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Nodes and the network between them.

    Raises:
        ClusterError: if there is no node, or two share a name.
    """

    name: str
    nodes: tuple[Node, ...]
    network: Network = Network()

    def __post_init__(self) -> None:
        if not self.nodes:
            raise ClusterError(f"cluster '{self.name}' has no nodes")
        seen: set[str] = set()
        for node in self.nodes:
            if node.name in seen:
                raise ClusterError(
                    f"cluster '{self.name}': node name '{node.name}' occurs more than once"
                )
            seen.add(node.name)

    @property
    def resources(self) -> tuple[str, ...]:
        """All resource names of the cluster: cpu and memory first, the rest sorted."""
        names = {name for node in self.nodes for name in node.allocatable}
        return ("cpu", "memory", *sorted(names - {"cpu", "memory"}))
