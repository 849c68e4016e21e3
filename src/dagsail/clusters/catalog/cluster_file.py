"""Reader of the native cluster format (`kind: Cluster`, `apiVersion: dagsail.io/v1alpha1`).

A file lists groups of equal nodes; `docs/file-formats.md` documents every key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from dagsail.documents import (
    API_VERSION,
    ApiVersion,
    Metadata,
    Name,
    Strict,
    by_default,
    json_schema,
    read_document,
)
from dagsail.domain.cluster import (
    GPU_MODEL_LABEL,
    HOSTNAME_LABEL,
    RACK_LABEL,
    TYPE_LABEL,
    ZONE_LABEL,
    Cluster,
    Link,
    Network,
    Node,
)
from dagsail.domain.errors import ClusterError
from dagsail.domain.placement import Effect, Taint
from dagsail.domain.units import CPU, GPU, GPU_MILLI, MEMORY
from dagsail.scalars import BytesPerS, CudaVersion, Number, Resources, Seconds, describe

POOL_LABEL: Final = "dagsail.io/pool"
"""`cpu`, `gpu`, or `mixed` for nodes that are as useful without their GPU."""
CAPACITY_LABEL: Final = "dagsail.io/capacity-type"
"""`on-demand` or `spot`."""


class TaintSpec(Strict, frozen=True, kw_only=True):
    """A taint of the nodes, as in Kubernetes."""

    key: Name
    """Key of the taint."""
    value: str = ""
    """Value of the taint."""
    effect: Effect = "NoSchedule"
    """NoSchedule, PreferNoSchedule or NoExecute."""


class NodeGroup(Strict, frozen=True, kw_only=True):
    """Equal nodes."""

    name: Name
    """Name of the node; with count, of the group, whose nodes are name-0, name-1, ..."""
    count: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    """How many nodes. Default: one, without a number in its name."""
    type: str = ""
    """Machine type; tasks may state a runtime per type. Default: the name of the group."""
    allocatable: Resources
    """What one node offers to tasks; cpu and memory at least."""
    zone: Name | None = None
    """Zone of all nodes. Default: none."""
    zones: tuple[Name, ...] = ()
    """Instead of zone: zones that the nodes take in turn."""
    rack: Name | None = None
    """Rack of all nodes, inside their zone. Default: none."""
    racks: tuple[Name, ...] = ()
    """Instead of rack: racks that the nodes of each zone take in turn."""
    labels: dict[str, str] = field(default_factory=dict)
    """Further labels, as in Kubernetes."""
    taints: tuple[TaintSpec, ...] = ()
    """Taints, as in Kubernetes."""
    speed: Number = by_default(Number(1))
    """A task of runtime r takes r / speed."""
    gpu_speed: Number = by_default(Number(1))
    """Likewise for tasks that request a GPU."""
    speed_by_kind: dict[Name, Number] = field(default_factory=dict)
    """Overrides both speeds for the named kinds of task."""
    price: Number = by_default(Number(0))
    """Price of one whole node in USD per hour."""
    nic: BytesPerS = by_default(BytesPerS(1.25e9))
    """Bandwidth of the network card, each direction."""
    gpu_link: BytesPerS = by_default(BytesPerS(16e9))
    """Bandwidth between the GPUs of a node (NVLink or PCIe)."""
    gpu_model: str = ""
    """GPU product name."""
    max_cuda: CudaVersion | None = None
    """Newest CUDA version that the driver supports, in quotes: "12.4". Default: none."""
    disk: BytesPerS = by_default(BytesPerS(500e6))
    """Bandwidth of the disk."""
    local_ssd: bool = False
    """Whether it has a local SSD."""
    spot: bool = False
    """Whether it may be reclaimed with notice."""

    def __post_init__(self) -> None:
        for one, several in (("zone", "zones"), ("rack", "racks")):
            if getattr(self, one) and getattr(self, several):
                raise ValueError(f"states both {one} and {several}; keep one of them")
        for resource in (CPU, MEMORY):
            if not self.allocatable.get(resource):
                raise ValueError(f"allocatable has no {resource}; every node needs some")


class LinkSpec(Strict, frozen=True, kw_only=True):
    """One tier of the network."""

    latency: Seconds
    """Time before the first byte arrives."""
    bandwidth: BytesPerS
    """Bandwidth between two nodes, each direction."""


class NetworkSpec(Strict, frozen=True, kw_only=True):
    """Latency and bandwidth by distance; a transfer also passes both network cards."""

    same_rack: LinkSpec | None = None
    """Default: 50us and 10Gbit."""
    same_zone: LinkSpec | None = None
    """Default: 200us and 10Gbit."""
    cross_zone: LinkSpec | None = None
    """Default: 1ms and 5Gbit."""


class ClusterSpec(Strict, frozen=True, kw_only=True):
    """Nodes and network."""

    nodes: tuple[NodeGroup, ...]
    """At least one group of equal nodes."""
    network: NetworkSpec = field(default_factory=NetworkSpec)
    """Tiers of the network."""


class ClusterDocument(Strict, frozen=True, kw_only=True):
    """A whole `kind: Cluster` document."""

    api_version: ApiVersion = API_VERSION
    """Version of the format."""
    kind: Literal["Cluster"]
    """Says that this is a cluster."""
    metadata: Metadata
    """Name and labels."""
    spec: ClusterSpec
    """The cluster."""


def schema() -> dict[str, Any]:
    """The JSON Schema of `kind: Cluster`."""
    return json_schema(ClusterDocument)


def looks_like(document: object) -> bool:
    """Whether a parsed document claims to be a native cluster."""
    return isinstance(document, dict) and document.get("kind") == "Cluster"


def read(text: str, source: str) -> Cluster:
    """Read the cluster of a native YAML or JSON text.

    Args:
        text: one document.
        source: what messages call the text, usually the file name.

    Raises:
        FormatError: if it is not exactly one `kind: Cluster`; names the place.
        ClusterError: if the nodes form no valid cluster.
    """
    document = read_document(text, source, ClusterDocument)
    try:
        return cluster_of(document.metadata.name, document.spec)
    except ClusterError as error:
        raise ClusterError(f"{source}: {error}") from None


def cluster_of(name: str, spec: ClusterSpec) -> Cluster:
    """The domain's cluster, every group expanded to its nodes.

    Raises:
        ClusterError: if a label contradicts a key, a number is impossible, or names repeat.
    """
    default, network = Network(), spec.network
    return Cluster(
        name=name,
        nodes=tuple(node for group in spec.nodes for node in _expand(group)),
        network=Network(
            same_rack=_link(network.same_rack) or default.same_rack,
            same_zone=_link(network.same_zone) or default.same_zone,
            cross_zone=_link(network.cross_zone) or default.cross_zone,
        ),
    )


def _link(spec: LinkSpec | None) -> Link | None:
    return Link(float(spec.latency), float(spec.bandwidth)) if spec else None


def _expand(group: NodeGroup) -> Iterator[Node]:
    zones = group.zones or (group.zone or "",)
    racks = group.racks or (group.rack or "",)
    for index in range(group.count or 1):
        name = group.name if group.count is None else f"{group.name}-{index}"
        rack = racks[index // len(zones) % len(racks)]
        yield Node(
            name=name,
            type=group.type or group.name,
            allocatable=dict(group.allocatable),
            labels=_labels(group, name, zones[index % len(zones)], rack),
            taints=tuple(Taint(taint.key, taint.value, taint.effect) for taint in group.taints),
            speed=float(group.speed),
            gpu_speed=float(group.gpu_speed),
            speed_by_kind={kind: float(speed) for kind, speed in group.speed_by_kind.items()},
            price_usd_per_h=float(group.price),
            nic_bytes_per_s=float(group.nic),
            gpu_link_bytes_per_s=float(group.gpu_link),
            disk_bytes_per_s=float(group.disk),
            has_local_ssd=group.local_ssd,
            max_cuda=group.max_cuda.pair if group.max_cuda else None,
            is_spot=group.spot,
        )


def _labels(group: NodeGroup, name: str, zone: str, rack: str) -> dict[str, str]:
    has_gpu = group.allocatable.get(GPU) or group.allocatable.get(GPU_MILLI)
    stated = {
        HOSTNAME_LABEL: name,
        TYPE_LABEL: group.type or group.name,
        ZONE_LABEL: zone,
        RACK_LABEL: rack,
        GPU_MODEL_LABEL: group.gpu_model,
    }
    stated = {label: value for label, value in stated.items() if value}
    for label, value in stated.items():
        if group.labels.get(label, value) != value:
            raise ClusterError(
                f"node group '{group.name}': labels[{label}] is {describe(group.labels[label])},"
                f" but its keys say {describe(value)}; remove the label"
            )
    assumed = {
        POOL_LABEL: "gpu" if has_gpu else "cpu",
        CAPACITY_LABEL: "spot" if group.spot else "on-demand",
    }
    return {**assumed, **group.labels, **stated}
