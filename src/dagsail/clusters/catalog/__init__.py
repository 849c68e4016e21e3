"""Clusters by name and by file: the built-in ones, native files, and a cluster as plain JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from dagsail.clusters.catalog.cluster_file import looks_like, read, schema
from dagsail.domain.cluster import Cluster, Link, Node
from dagsail.files import read_text
from dagsail.registry import Registry

__all__ = ["CLUSTERS", "DEFAULT", "cluster_to_json", "load_cluster", "looks_like", "read", "schema"]

_BUILTIN: Final = "dagsail.clusters.catalog.builtin"
DEFAULT: Final = "mixed"

CLUSTERS: Final = Registry("cluster", "clusters")
CLUSTERS.add("mixed", f"{_BUILTIN}:mixed", "20 unlike CPU and GPU nodes in 2 zones; the default")
CLUSTERS.add("edge", f"{_BUILTIN}:edge", "6 small, slow, unlike nodes in 1 zone, one with a GPU")
CLUSTERS.add("large", f"{_BUILTIN}:large", "200 nodes in 3 zones of 4 racks, machines as in mixed")
CLUSTERS.add("homogeneous", f"{_BUILTIN}:homogeneous", "16 equal nodes in 1 zone, for teaching")


def load_cluster(name_or_path: str) -> Cluster:
    """A built-in cluster by name, or one from a native file (`kind: Cluster`).

    A built-in name wins over a file of that name; write `./mixed` for the file.

    Raises:
        UnknownNameError: if it is neither a built-in name nor the look of a path.
        FormatError: if the file cannot be read or is no native cluster.
        ClusterError: if its nodes form no valid cluster.
    """
    if name_or_path not in CLUSTERS and _is_path(name_or_path):
        return read(read_text(Path(name_or_path)), name_or_path)
    cluster: Cluster = CLUSTERS.get(name_or_path).load()()
    return cluster


def _is_path(text: str) -> bool:
    if "\0" in text:  # no file system has such a name
        return False
    return os.sep in text or bool(os.path.splitext(text)[1]) or os.path.exists(text)


def cluster_to_json(cluster: Cluster) -> dict[str, Any]:
    """The cluster as plain JSON values, in the domain's units (millicores, bytes, seconds)."""
    network = cluster.network
    return {
        "name": cluster.name,
        "nodes": [_node_to_json(node) for node in cluster.nodes],
        "network": {
            "same_rack": _link_to_json(network.same_rack),
            "same_zone": _link_to_json(network.same_zone),
            "cross_zone": _link_to_json(network.cross_zone),
        },
    }


def _node_to_json(node: Node) -> dict[str, Any]:
    return {
        "name": node.name,
        "type": node.type,
        "allocatable": dict(node.allocatable),
        "labels": dict(node.labels),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect}
            for taint in node.taints
        ],
        "zone": node.zone,
        "rack": node.rack,
        "gpu_model": node.gpu_model,
        "speed": node.speed,
        "gpu_speed": node.gpu_speed,
        "speed_by_kind": dict(node.speed_by_kind),
        "price_usd_per_h": node.price_usd_per_h,
        "nic_bytes_per_s": node.nic_bytes_per_s,
        "gpu_link_bytes_per_s": node.gpu_link_bytes_per_s,
        "disk_bytes_per_s": node.disk_bytes_per_s,
        "has_local_ssd": node.has_local_ssd,
        "max_cuda": ".".join(map(str, node.max_cuda)) if node.max_cuda else None,
        "is_spot": node.is_spot,
    }


def _link_to_json(link: Link) -> dict[str, float]:
    return {"latency_s": link.latency_s, "bytes_per_s": link.bytes_per_s}
