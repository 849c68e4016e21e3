"""Clusters from Kubernetes Node manifests."""

from __future__ import annotations

import json

import pytest

from dagsail.domain.errors import ClusterError, FormatError
from dagsail.domain.placement import Taint
from dagsail.domain.units import GIB
from dagsail.files import read_text
from dagsail.workloads import nodes, openb


def manifest(name="n", status=None, labels=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": status or {"allocatable": {"cpu": "3800m", "memory": "8Gi"}},
    }


def read(*manifests):
    return nodes.read_node_manifests(json.dumps(list(manifests)), "dir/nodes.json")


def test_allocatable_labels_and_taints_are_taken_over():
    zone = {"topology.kubernetes.io/zone": "a", "node.kubernetes.io/instance-type": "m5.large"}
    taints = [
        {"key": "gpu", "value": "yes", "effect": "NoExecute"},
        {"key": "x", "effect": "NoSchedule"},
    ]
    cluster, _ = read(manifest(labels=zone, taints=taints))
    (node,) = cluster.nodes
    assert cluster.name == "nodes"
    assert node.allocatable == {"cpu": 3800, "memory": 8 * GIB}
    assert (node.zone, node.type) == ("a", "m5.large")
    assert node.taints == (Taint("gpu", "yes", "NoExecute"), Taint("x", "", "NoSchedule"))
    assert node.price_usd_per_h == pytest.approx(3.8 * 0.04)


def test_openb_resources_and_labels_get_their_common_names():
    quantities = {
        "alibabacloud.com/gpu-count": "2", "alibabacloud.com/gpu-milli": "2000",
        "cpu": "64000m", "memory": "262144Mi",
    }  # fmt: skip
    node = manifest(
        status={"allocatable": quantities}, labels={"alibabacloud.com/gpu-card-model": "T4"}
    )
    (read_node,) = read(node)[0].nodes
    assert read_node.allocatable == {
        "nvidia.com/gpu": 2, "gpu-milli": 2000, "cpu": 64000, "memory": 256 * GIB,
    }  # fmt: skip
    assert (read_node.gpu_model, read_node.gpu_speed) == ("T4", 0.5)


@pytest.mark.parametrize(
    ("label", "speed"),
    [("NVIDIA-A100-SXM4-40GB", 2.0), ("Tesla-V100-SXM2-16GB", 1.0), ("Tesla-T4", 0.5)],
)
def test_product_names_of_gpus_are_understood(label, speed):
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "1"}}
    cluster, warnings = read(manifest(status=status, labels={"nvidia.com/gpu.product": label}))
    assert cluster.nodes[0].gpu_speed == speed
    assert len(warnings) == 1


def test_gpus_that_are_reported_as_none_are_none():
    status = {"allocatable": {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "0"}}
    cluster, warnings = read(manifest(status=status, labels={"nvidia.com/gpu.product": "odd"}))
    assert cluster.nodes[0].num_gpus == 0
    assert len(warnings) == 1


def test_capacity_stands_in_for_allocatable():
    cluster, warnings = read(manifest(status={"capacity": {"cpu": 2, "memory": "1Gi"}}))
    assert cluster.nodes[0].allocatable == {"cpu": 2000, "memory": GIB}
    assert any("capacity taken" in warning for warning in warnings)


def test_more_allocatable_than_capacity_is_tolerated():
    status = {"allocatable": {"cpu": "4", "memory": "2Gi"}, "capacity": {"cpu": "2"}}
    assert read(manifest(status=status))[0].nodes[0].allocatable["cpu"] == 4000


def test_cordoned_nodes_are_left_out():
    cluster, warnings = read(manifest("a"), manifest("b", unschedulable=True))
    assert [node.name for node in cluster.nodes] == ["a"]
    assert any("left out (1 x, first: node 'b')" in warning for warning in warnings)
    with pytest.raises(ClusterError, match="every node is cordoned"):
        read(manifest("b", unschedulable=True))


def test_lists_streams_and_single_objects_hold_nodes():
    one, two = manifest("a"), manifest("b")
    bare = {key: value for key, value in one.items() if key != "kind"}
    texts = {
        json.dumps(one): ["a"],
        json.dumps({"kind": "List", "items": [one, two]}): ["a", "b"],
        json.dumps({"kind": "NodeList", "items": [bare]}): ["a"],
        f"---\n{json.dumps(one)}\n---\n{json.dumps(two)}\n---\n": ["a", "b"],
    }
    for text, names in texts.items():
        cluster, _ = nodes.read_node_manifests(text, "n")
        assert [node.name for node in cluster.nodes] == names


def test_other_objects_are_passed_over_and_reported():
    cluster, warnings = read({"kind": "Pod"}, manifest())
    assert len(cluster.nodes) == 1
    assert any("passed over" in warning and "item 1" in warning for warning in warnings)


def test_it_recognises_node_manifests():
    assert nodes.looks_like("apiVersion: v1\nkind: Node\n")
    assert nodes.looks_like('{"kind": "NodeList", "items": []}')
    assert nodes.looks_like("kind: List\nitems:\n- kind: Node\n")
    assert not nodes.looks_like("kind: Pod\nownerReferences:\n- kind: Node\n")
    assert not nodes.looks_like("kind: Workflow\n")
    assert not nodes.looks_like("")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metadata": {"name": 5}}, r"metadata\.name is 5"),
        ({"metadata": {"name": "a\nb"}}, r"metadata\.name is 'a\\nb'"),
        ({"status": {"allocatable": {"a\nb": 1}}}, r"status\.allocatable is .*must map"),
        ({"metadata": None}, r"metadata\.name is None"),
        ({"metadata": [1]}, r"metadata is \[1\]; it must map"),
        ({"metadata": {"name": "n", "labels": {"a": True}}}, r"node 'n': label a is True"),
        ({"metadata": {"name": "n", "labels": ["a"]}}, r"metadata\.labels is \['a'\]"),
        ({"spec": "x"}, r"node 'n': spec is 'x'"),
        ({"spec": {"unschedulable": "yes"}}, r"spec\.unschedulable is 'yes'"),
        ({"spec": {"taints": {"key": "a"}}}, r"spec\.taints is .*must be a list"),
        ({"spec": {"taints": ["a"]}}, r"a taint is 'a'"),
        ({"spec": {"taints": [{"key": "a", "effect": "Never"}]}}, "has effect 'Never'"),
        ({"spec": {"taints": [{"key": "a", "effect": ["NoSchedule"]}]}}, "has effect"),
        ({"spec": {"taints": [{"effect": "NoSchedule"}]}}, "needs a key"),
        ({"status": None}, "neither status.allocatable nor status.capacity"),
        ({"status": {"allocatable": {"cpu": None}}}, "allocatable cpu is None"),
        ({"status": {"allocatable": {"cpu": "4 cores"}}}, "allocatable cpu: '4 cores'"),
        ({"status": {"allocatable": {"cpu": "-1"}}}, "allocatable cpu: cpu '-1' is negative"),
        ({"status": {"allocatable": {"cpu": "1e300"}}}, "allocatable cpu: .*absurdly large"),
        ({"status": {"allocatable": {"cpu": 1e300}}}, "allocatable cpu: .*absurdly large"),
        ({"status": {"allocatable": {"cpu": True}}}, "allocatable cpu: True is not a quantity"),
    ],
)
def test_a_bad_manifest_is_refused_with_its_place(change, message):
    with pytest.raises(FormatError, match=rf"^dir/nodes\.json.*{message}"):
        read(manifest() | change)


@pytest.mark.parametrize("text", ["[]", "{}", "kind: Pod", "5", "[1]", '{"kind": "NodeList"}'])
def test_a_text_without_nodes_is_refused(text):
    with pytest.raises(FormatError, match=r"^n: |^n, item 1: "):
        nodes.read_node_manifests(text, "n")


def test_nodes_that_form_no_cluster_are_refused():
    with pytest.raises(ClusterError, match="node 'n': allocatable has no cpu"):
        read(manifest(status={"allocatable": {"memory": "1Gi"}}))
    with pytest.raises(ClusterError, match="node name 'n' occurs more than once"):
        read(manifest(), manifest())


def test_aliases_and_endless_numbers_do_not_blow_up_messages():
    bomb = "a: &a [x, x]\n" + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    with pytest.raises(FormatError, match=r"metadata is \[\["):
        nodes.read_node_manifests(bomb + "kind: Node\nmetadata: *i\n", "n")
    with pytest.raises(FormatError, match="a number too long to print"):
        nodes.read_node_manifests(f"kind: Node\nmetadata: 0x{'f' * 9000}\n", "n")


def test_the_real_manifests_describe_the_same_machines_as_the_table(data_dir):
    folder = data_dir / "alibaba-gpu" / "openb-v2023"
    text = read_text(folder / "openb_node_list_gpu_node_first300.yaml")
    assert nodes.looks_like(text[:4096])
    cluster, _ = nodes.read_node_manifests(text, "first300.yaml")
    table, _ = openb.read_nodes(read_text(folder / "openb_node_list_gpu_node.csv"), "t")
    assert len(cluster.nodes) == 300
    for read_node, row in zip(cluster.nodes, table.nodes, strict=False):
        amounts = {k: v for k, v in read_node.allocatable.items() if k != "pods"}
        assert amounts == row.allocatable
        for name in ("name", "type", "gpu_model", "gpu_speed", "price_usd_per_h"):
            assert getattr(read_node, name) == getattr(row, name)


@pytest.mark.parametrize(
    ("path", "millicores"),
    [
        ("k8s/minikube-1_35/nodes.yaml", 14000),
        ("k8s/k3s-bundle/nodes.json", 2000),
        ("k8s/single-objects/n1.json", 4000),
        ("k8s/single-objects/no.json", 4000),
    ],
)
def test_real_nodes_are_read(data_dir, path, millicores):
    text = read_text(data_dir / path)
    assert nodes.looks_like(text[:65536])
    cluster, _ = nodes.read_node_manifests(text, path)
    assert [node.allocatable["cpu"] for node in cluster.nodes] == [millicores]
