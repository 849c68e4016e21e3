"""A cluster as arrays: what its nodes offer, where they stand, and the network between them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dagsail.domain import snapshot as arrays
from dagsail.domain.cluster import POOLS, Cluster, Node
from dagsail.domain.units import GPU, GPU_MILLI


class ClusterArrays:
    """The nodes of a cluster in columns.

    Attributes:
        cluster: what the arrays were made of.
        resources: the columns of every resource array.
        allocatable: int64 (nodes, resources).
        shares_gpus: whether GPUs are counted in thousandths too.
        node_types: for each node, which of `type_examples` runs every task as fast.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.resources = cluster.resources
        self.allocatable = np.array(
            [[n.allocatable.get(r, 0) for r in self.resources] for n in cluster.nodes], np.int64
        )
        self.shares_gpus = GPU_MILLI in self.resources
        if self.shares_gpus and GPU in self.resources:
            whole = 1000 * self.allocatable[:, self.resources.index(GPU)]
            milli = self.resources.index(GPU_MILLI)
            self.allocatable[:, milli] = np.maximum(self.allocatable[:, milli], whole)
        self.type_examples: list[Node] = []
        self.node_types = np.array(self._types(), np.int64)
        self._zones = _index([n.zone for n in cluster.nodes])
        self._racks = _index([f"{n.zone}/{n.rack}" for n in cluster.nodes])
        network = cluster.network
        self._links = (network.same_rack, network.same_zone, network.cross_zone)

    def _types(self) -> list[int]:
        signatures: dict[tuple[Any, ...], int] = {}
        types = []
        for node in self.cluster.nodes:
            speeds = tuple(sorted(node.speed_by_kind.items()))
            signature = (node.type, node.speed, node.gpu_speed, speeds)
            if signature not in signatures:
                signatures[signature] = len(signatures)
                self.type_examples.append(node)
            types.append(signatures[signature])
        return types

    def mean_network(self) -> tuple[float, float]:
        """Mean latency in seconds and mean seconds a byte, over pairs of distinct nodes."""
        nic = np.array([n.nic_bytes_per_s for n in self.cluster.nodes])
        if len(nic) == 1:
            return 0.0, 0.0
        zone, rack = np.array(self._zones), np.array(self._racks)
        same_zone = zone[:, None] == zone[None, :]
        same_rack = rack[:, None] == rack[None, :]
        tier = np.where(same_rack, 0, np.where(same_zone, 1, 2))
        bandwidth = np.array([link.bytes_per_s for link in self._links])[tier]
        latency = np.array([link.latency_s for link in self._links])[tier]
        inverse = 1.0 / np.minimum(bandwidth, np.minimum(nic[:, None], nic[None, :]))
        pairs = ~np.eye(len(nic), dtype=bool)
        return float(latency[pairs].mean()), float(inverse[pairs].mean())

    def nodes(self) -> Any:
        """All nodes, up and empty. NODE (nodes,)."""
        nodes = np.zeros(len(self.cluster.nodes), arrays.NODE)
        nodes["type"] = self.node_types
        nodes["zone"] = self._zones
        nodes["rack"] = self._racks
        nodes["reserved_for"] = -1
        for name in (
            "num_gpus",
            "is_spot",
            "has_local_ssd",
            "price_usd_per_h",
            "nic_bytes_per_s",
            "gpu_link_bytes_per_s",
        ):
            nodes[name] = [getattr(node, name) for node in self.cluster.nodes]
        nodes["pool"] = [POOLS.index(node.pool) for node in self.cluster.nodes]
        nodes["gpu_memory_bytes"] = [node.gpu_memory_bytes for node in self.cluster.nodes]
        nodes["gpu_column"] = -1
        for resource in (GPU, GPU_MILLI):
            if resource in self.resources:
                column = self.resources.index(resource)
                nodes["gpu_column"][self.allocatable[:, column] > 0] = column
        return nodes

    def devices(self) -> Any:
        """Free thousandths of each GPU. int64 (nodes, most GPUs of a node); no columns unshared."""
        if not self.shares_gpus:
            return np.zeros((len(self.cluster.nodes), 0), np.int64)
        counts = (self.allocatable[:, self.resources.index(GPU_MILLI)] // 1000).tolist()
        devices = np.zeros((len(counts), max(counts)), np.int64)
        for node, count in enumerate(counts):
            devices[node, :count] = 1000
        return devices

    def links(self) -> Any:
        """Latency and bandwidth by distance: same node, rack, zone, beyond. LINK (4,)."""
        links = np.zeros(4, arrays.LINK)
        links["bytes_per_s"][0] = math.inf
        for tier, link in enumerate(self._links, start=1):
            links["latency_s"][tier] = link.latency_s
            links["bytes_per_s"][tier] = link.bytes_per_s
        return links


def _index(names: Sequence[str]) -> list[int]:
    """Position of each name among the distinct names, in order of appearance."""
    positions: dict[str, int] = {}
    return [positions.setdefault(name, len(positions)) for name in names]
