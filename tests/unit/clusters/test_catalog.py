"""Built-in clusters, native cluster files, and clusters as JSON."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dagsail.clusters.catalog import (
    CLUSTERS,
    DEFAULT,
    cluster_to_json,
    load_cluster,
    looks_like,
    read,
)
from dagsail.domain.cluster import Cluster, Link, Network, Node
from dagsail.domain.errors import ClusterError, FormatError, UnknownNameError
from dagsail.domain.placement import Taint
from dagsail.domain.units import GIB

FULL = """
apiVersion: dagsail.io/v1alpha1
kind: Cluster
metadata: {name: lab}
spec:
  network:
    sameRack: {latency: 10us, bandwidth: 40Gbit}
    sameZone: {latency: 0.1ms, bandwidth: 1.25G}
    crossZone: {latency: 0.002, bandwidth: 1e6}
  nodes:
    - name: gpu
      count: 2
      type: gpu-a100
      allocatable: {cpu: 7500m, memory: 30Gi, nvidia.com/gpu: 2}
      zones: [a, b]
      rack: r1
      labels: {team: x, dagsail.io/pool: mixed}
      taints: [{key: gpu, value: "yes", effect: NoExecute}, {key: old}]
      speed: 1.5
      gpuSpeed: 2
      speedByKind: {train: 3}
      price: 4.5
      nic: 10Gbit
      gpuLink: 300G
      gpuModel: A100
      maxCuda: "12.8"
      disk: 2G
      localSsd: true
      spot: true
    - name: plain
      allocatable: {cpu: 1, memory: 1Gi}
"""
HEAD = "kind: Cluster\nmetadata: {name: c}\nspec:\n"
ROOM = "allocatable: {cpu: 1, memory: 1Gi}"


def gpu_node(index: int, zone: str) -> Node:
    return Node(
        name=f"gpu-{index}",
        type="gpu-a100",
        allocatable={"cpu": 7500, "memory": 30 * GIB, "nvidia.com/gpu": 2},
        labels={
            "team": "x",
            "dagsail.io/pool": "mixed",
            "dagsail.io/capacity-type": "spot",
            "kubernetes.io/hostname": f"gpu-{index}",
            "node.kubernetes.io/instance-type": "gpu-a100",
            "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/rack": "r1",
            "nvidia.com/gpu.product": "A100",
        },
        taints=(Taint("gpu", "yes", "NoExecute"), Taint("old", "", "NoSchedule")),
        speed=1.5,
        gpu_speed=2.0,
        speed_by_kind={"train": 3.0},
        price_usd_per_h=4.5,
        nic_bytes_per_s=1.25e9,
        gpu_link_bytes_per_s=300e9,
        disk_bytes_per_s=2e9,
        has_local_ssd=True,
        max_cuda=(12, 8),
        is_spot=True,
    )


def test_reads_every_key() -> None:
    cluster = read(FULL, "c.yaml")
    plain = Node(
        name="plain",
        type="plain",
        allocatable={"cpu": 1000, "memory": GIB},
        labels={
            "dagsail.io/pool": "cpu",
            "dagsail.io/capacity-type": "on-demand",
            "kubernetes.io/hostname": "plain",
            "node.kubernetes.io/instance-type": "plain",
        },
    )
    assert cluster == Cluster(
        name="lab",
        nodes=(gpu_node(0, "a"), gpu_node(1, "b"), plain),
        network=Network(
            same_rack=Link(1e-5, 5e9), same_zone=Link(1e-4, 1.25e9), cross_zone=Link(2e-3, 1e6)
        ),
    )
    assert type(cluster.nodes[0].speed) is float


def test_an_unstated_network_is_the_default() -> None:
    assert read(f"{HEAD}  nodes: [{{name: a, {ROOM}}}]", "c").network == Network()


def test_nodes_take_zones_and_the_racks_of_each_zone_in_turn() -> None:
    text = f"{HEAD}  nodes: [{{name: n, count: 6, zones: [a, b], racks: [r1, r2], {ROOM}}}]"
    places = [(node.zone, node.rack) for node in read(text, "c").nodes]
    assert places == [("a", "r1"), ("b", "r1"), ("a", "r2"), ("b", "r2"), ("a", "r1"), ("b", "r1")]


def test_a_group_of_one_is_numbered_and_a_node_without_count_is_not() -> None:
    text = f"{HEAD}  nodes: [{{name: x, count: 1, {ROOM}}}, {{name: y, {ROOM}}}]"
    assert [node.name for node in read(text, "c").nodes] == ["x-0", "y"]


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (f"nme: a, {ROOM}", "spec.nodes[0].nme: unknown key; did you mean 'name'?"),
        (f"name: a, prise: 3, {ROOM}", "spec.nodes[0].prise: unknown key; did you mean 'price'?"),
        ("name: a", "spec.nodes[0]: the key 'allocatable' is missing"),
        ("name: a, allocatable: {cpu: 1}", "spec.nodes[0]: allocatable has no memory"),
        ("name: a, allocatable: {cpu: 0, memory: 1}", "spec.nodes[0]: allocatable has no cpu"),
        ("name: a, allocatable: {cpu: -1, memory: 1}", "spec.nodes[0].allocatable[cpu]: found -1"),
        (f"name: a, count: 0, {ROOM}", "spec.nodes[0].count: found 0, expected a whole number"),
        (f"name: a, count: 1.5, {ROOM}", "spec.nodes[0].count: found 1.5, expected a whole number"),
        (f"name: a, nic: 10Gb, {ROOM}", "spec.nodes[0].nic: found '10Gb', expected bytes per"),
        (f"name: a, disk: 0, {ROOM}", "spec.nodes[0].disk: found 0; it must be above 0"),
        (f"name: a, speed: .inf, {ROOM}", "spec.nodes[0].speed: found inf, expected a finite"),
        (f"name: a, speedByKind: {{x: y}}, {ROOM}", "spec.nodes[0].speedByKind[x]: found 'y'"),
        (f"name: a, zone: b, zones: [c], {ROOM}", "spec.nodes[0]: states both zone and zones"),
        (f"name: a, rack: b, racks: [c], {ROOM}", "spec.nodes[0]: states both rack and racks"),
        (f"name: a, zone: no, {ROOM}", "spec.nodes[0].zone: found false, expected text"),
        (
            f"name: a, maxCuda: 12.4, {ROOM}",
            "spec.nodes[0].maxCuda: found 12.4, expected a version",
        ),
        (
            f"name: a, taints: [{{key: x, effect: NoSchedul}}], {ROOM}",
            "spec.nodes[0].taints[0].effect: found 'NoSchedul'; did you mean 'NoSchedule'?",
        ),
    ],
)
def test_refuses_a_bad_value_and_names_its_place(node: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(f"{HEAD}  nodes: [{{{node}}}]", "c.yaml")
    assert str(caught.value).startswith(f"c.yaml: {message}")


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("[]", "cluster 'c' has no nodes"),
        (f"[{{name: a, speed: 0, {ROOM}}}]", "node 'a': speed is 0.0; it must be finite and above"),
        (f"[{{name: a, price: -1, {ROOM}}}]", "node 'a': price_usd_per_h is -1.0"),
        (f"[{{name: a, {ROOM}}}, {{name: a, {ROOM}}}]", "cluster 'c': node name 'a' occurs more"),
        (
            f"[{{name: a, zone: b, labels: {{topology.kubernetes.io/zone: c}}, {ROOM}}}]",
            "node group 'a': labels[topology.kubernetes.io/zone] is 'c', but its keys say 'b'",
        ),
    ],
)
def test_refuses_nodes_that_form_no_cluster(nodes: str, message: str) -> None:
    with pytest.raises(ClusterError) as caught:
        read(f"{HEAD}  nodes: {nodes}", "c.yaml")
    assert str(caught.value).startswith(f"c.yaml: {message}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yaml: holds no document; expected kind: Cluster"),
        ("kind: Workflow", "c.yaml: kind: found 'Workflow', expected 'Cluster'"),
        (f"{HEAD}  nodes: []\n  nodes: []", "c.yaml:5:3: not valid YAML"),
        (f"{HEAD}  nodes: [null]", r"c.yaml: spec.nodes\[0\]: found null, expected a mapping"),
        (
            f"{HEAD}  network: {{sameRack: {{latency: 1ms}}}}\n  nodes: []",
            "c.yaml: spec.network.sameRack: the key 'bandwidth' is missing",
        ),
    ],
)
def test_refuses_what_is_no_native_cluster(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(text, "c.yaml")


def test_a_file_holds_one_cluster() -> None:
    document = f"{HEAD}  nodes: [{{name: a, {ROOM}}}]\n"
    with pytest.raises(FormatError, match=r"^c\.yaml: holds 2 documents; expected only one$"):
        read(f"{document}---\n{document}", "c.yaml")


def test_knows_its_own_documents() -> None:
    assert looks_like({"kind": "Cluster"})
    assert not looks_like({"kind": "Node"})
    assert not looks_like([{"kind": "Cluster"}])


def test_loads_by_name_or_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "lab.yaml"
    place.write_text(FULL)
    assert load_cluster(str(place)).name == "lab"
    assert load_cluster("edge").name == "edge"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mixed").write_text(FULL)
    assert load_cluster("mixed").name == "mixed"
    assert load_cluster("./mixed").name == "lab"


@pytest.mark.parametrize("name", ["mixd", "", "a\0.yaml"])
def test_refuses_an_unknown_name(name: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown cluster"):
        load_cluster(name)


def test_suggests_the_near_miss() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mixed'"):
        load_cluster("mixd")


@pytest.mark.parametrize("path", ["nowhere.yaml", "no/where"])
def test_refuses_a_missing_file(path: str) -> None:
    with pytest.raises(FormatError, match=f"{path}: no such file"):
        load_cluster(path)


@pytest.mark.parametrize(
    ("name", "num_nodes", "num_zones", "num_racks"),
    [("edge", 6, 1, 1), ("mixed", 20, 2, 4), ("large", 200, 3, 12), ("homogeneous", 16, 1, 1)],
)
def test_built_in_clusters_have_their_stated_size(
    name: str, num_nodes: int, num_zones: int, num_racks: int
) -> None:
    cluster = load_cluster(name)
    assert cluster.name == name
    assert len(cluster.nodes) == num_nodes
    assert len({node.zone for node in cluster.nodes}) == num_zones
    assert len({(node.zone, node.rack) for node in cluster.nodes}) == num_racks


@pytest.mark.parametrize("name", [entry.name for entry in CLUSTERS])
def test_nodes_of_built_in_clusters_carry_the_labels_that_tasks_select_by(name: str) -> None:
    for node in load_cluster(name).nodes:
        assert node.labels["kubernetes.io/hostname"] == node.name
        assert node.labels["node.kubernetes.io/instance-type"] == node.type
        assert node.labels["dagsail.io/pool"] in ("cpu", "gpu", "mixed")
        assert (node.labels["dagsail.io/pool"] == "cpu") == (node.num_gpus == 0)
        assert (node.labels["dagsail.io/capacity-type"] == "spot") == node.is_spot
        assert bool(node.gpu_model) == bool(node.num_gpus) == bool(node.max_cuda)
        assert node.zone
        assert node.rack
        assert node.taints == ()
        assert node.price_usd_per_h > 0


@pytest.mark.parametrize("name", ["edge", "mixed", "large"])
def test_machine_types_differ_in_price_and_speed(name: str) -> None:
    nodes = load_cluster(name).nodes
    by_type = {node.type: node for node in nodes if not node.is_spot}
    assert len(by_type) >= 4
    assert len({node.price_usd_per_h for node in by_type.values()}) == len(by_type)
    assert len({node.speed for node in by_type.values()}) >= 4


@pytest.mark.parametrize("name", ["mixed", "large"])
def test_large_has_the_machines_of_mixed(name: str) -> None:
    nodes = load_cluster(name).nodes
    gpu_speeds = {node.gpu_model: node.gpu_speed for node in nodes if node.num_gpus}
    assert gpu_speeds == {"T4": 0.5, "V100": 1.0, "A100": 2.0}
    spot, on_demand = (
        {node.price_usd_per_h for node in nodes if node.type == "general-16" and node.is_spot is s}
        for s in (True, False)
    )
    assert max(spot) < min(on_demand)


def test_nodes_spread_evenly_over_zones() -> None:
    counts = Counter(node.zone for node in load_cluster("large").nodes)
    assert max(counts.values()) - min(counts.values()) <= 3
    assert set(Counter(node.zone for node in load_cluster("mixed").nodes)) == {"a", "b"}


def test_homogeneous_nodes_differ_in_name_only() -> None:
    nodes = load_cluster("homogeneous").nodes
    assert {node.name for node in nodes} == {f"node-{index}" for index in range(16)}
    assert len({(n.type, n.speed, n.price_usd_per_h, str(n.allocatable)) for n in nodes}) == 1


def test_the_default_is_registered() -> None:
    assert DEFAULT == "mixed"
    assert DEFAULT in CLUSTERS


@pytest.mark.parametrize("name", [entry.name for entry in CLUSTERS])
def test_every_cluster_can_be_written_as_json(name: str) -> None:
    document = cluster_to_json(load_cluster(name))
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_json_keeps_the_units_of_the_domain() -> None:
    document = cluster_to_json(read(FULL, "c.yaml"))
    assert document["name"] == "lab"
    assert document["network"]["cross_zone"] == {"latency_s": 0.002, "bytes_per_s": 1e6}
    node = document["nodes"][1]
    assert node["allocatable"] == {"cpu": 7500, "memory": 30 * GIB, "nvidia.com/gpu": 2}
    assert node["taints"][1] == {"key": "old", "value": "", "effect": "NoSchedule"}
    assert (node["name"], node["type"], node["zone"], node["rack"]) == (
        "gpu-1",
        "gpu-a100",
        "b",
        "r1",
    )
    assert (node["speed"], node["gpu_speed"], node["price_usd_per_h"]) == (1.5, 2.0, 4.5)
    assert (node["max_cuda"], node["gpu_model"], node["is_spot"]) == ("12.8", "A100", True)
    assert document["nodes"][2]["max_cuda"] is None
