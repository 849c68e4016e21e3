"""openb: pods as one-task workflows, machines as a cluster."""

from __future__ import annotations

from collections import Counter

import pytest

from dagsail.domain.errors import ClusterError, FormatError
from dagsail.domain.placement import ANYWHERE
from dagsail.domain.units import MIB
from dagsail.domain.workflow import Priority
from dagsail.files import read_text
from dagsail.workloads import openb

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


def pod(name="p", cpu=4000, mem=1024, gpus=0, milli=0, spec="", qos="LS", times="100,160,110"):
    return f"{name},{cpu},{mem},{gpus},{milli},{spec},{qos},Running,{times}\n"


def only(text):
    (workflow,) = openb.read_pods(PODS + text, "pods.csv").workflows
    return workflow


def test_a_pod_is_a_workflow_of_one_task_that_arrives_when_it_was_created():
    text = PODS + pod("a", times="100,160,110") + pod("b", times="40,90,50")
    first, second = openb.read_pods(text, "pods.csv").workflows
    assert (first.id, first.submitted_s, second.submitted_s) == ("a", 60.0, 0.0)
    assert [task.id for task in first.tasks] == ["a"]
    assert first.tasks[0].runtime_s == 50.0
    assert first.tasks[0].request == {"cpu": 4000, "memory": 1024 * MIB}


def test_whole_gpus_and_shares_are_different_resources():
    assert only(pod(gpus=8, milli=1000)).tasks[0].request["nvidia.com/gpu"] == 8
    request = only(pod(gpus=1, milli=460)).tasks[0].request
    assert request["gpu-milli"] == 460
    assert "nvidia.com/gpu" not in request


def test_a_gpu_spec_lists_acceptable_models_once_each():
    workflow = only(pod(gpus=1, milli=1000, spec="V100M32|V100M16|V100M32"))
    assert workflow.tasks[0].placement.gpu_models == ("V100M32", "V100M16")
    assert only(pod(gpus=1, milli=1000)).tasks[0].placement is ANYWHERE
    assert only(pod(spec="T4")).tasks[0].placement is ANYWHERE


@pytest.mark.parametrize(
    ("qos", "priority"),
    [
        ("LS", Priority.P1),
        ("Guaranteed", Priority.P1),
        ("Burstable", Priority.P2),
        ("BE", Priority.P3),
        ("new", Priority.P2),
    ],
)
def test_qos_decides_the_priority(qos, priority):
    reading = openb.read_pods(PODS + pod(qos=qos), "pods.csv")
    assert reading.workflows[0].priority is priority
    assert any("qos" in warning for warning in reading.warnings) == (qos == "new")


@pytest.mark.parametrize("times", ["100,160,", "100,90,95", "100,,110", "100,110,110"])
def test_a_pod_without_a_length_gets_the_reported_default(times):
    reading = openb.read_pods(PODS + pod(times=times), "pods.csv")
    assert reading.workflows[0].tasks[0].runtime_s == 60.0
    assert any("60 s assumed (1 x, first: pods.csv:2)" in w for w in reading.warnings)


def test_without_a_schedule_time_column_the_run_begins_at_creation():
    text = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n"
        "p,1000,1,0,0,5,25\n"
    )
    assert openb.read_pods(text, "pods.csv").workflows[0].tasks[0].runtime_s == 20.0


def test_five_columns_are_enough():
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1000,1,0,0\nq,1000,1,0,0\n"
    reading = openb.read_pods(text, "pods.csv")
    assert [w.submitted_s for w in reading.workflows] == [0.0, 0.0]
    assert any("no times recorded: 60 s assumed (2 x" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PODS, r"pods\.csv: no rows below the header"),
        ("name,cpu_milli\np,1\n", r"pods\.csv: column 'memory_mib' is missing"),
        (PODS + "p,4000,10", r"pods\.csv:2: 3 fields instead of 11"),
        (PODS + pod(cpu="x"), r"pods\.csv:2: cpu_milli is 'x'"),
        (PODS + pod(cpu=-1), r"pods\.csv:2: cpu_milli is '-1'"),
        (PODS + pod(cpu=""), r"pods\.csv:2: cpu_milli is empty"),
        (PODS + pod(mem="1e300"), r"pods\.csv:2: memory_mib is '1e300'"),
        (PODS + pod(mem="nan"), r"pods\.csv:2: memory_mib is 'nan'"),
        (PODS + pod(gpus=2, milli=500), r"pods\.csv:2: gpu_milli is 500 with num_gpu 2"),
        (PODS + pod(gpus=1, milli=0), r"pods\.csv:2: gpu_milli is 0 with num_gpu 1"),
        (PODS + pod(gpus=1, milli=1001), r"pods\.csv:2: gpu_milli is '1001'"),
        (PODS + pod(gpus=0.5), r"pods\.csv:2: num_gpu is 0\.5; it must be a whole number"),
        (PODS + pod(times="inf,1,2"), r"pods\.csv:2: creation_time is 'inf'"),
        (PODS + pod(times="1,2,x"), r"pods\.csv:2: scheduled_time is 'x'"),
        (PODS + pod(name=""), r"pods\.csv:2: name is empty"),
        (PODS + pod() + pod(), r"pods\.csv:3: pod 'p' occurs a second time.*pods\.csv:2"),
    ],
)
def test_a_bad_list_of_pods_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        openb.read_pods(text, "pods.csv")


def test_machines_offer_whole_and_shared_gpus():
    text = NODES + "a,64000,262144,2,P100\nb,32000,131072,0,\n"
    cluster, warnings = openb.read_nodes(text, "data/nodes_1.csv.gz")
    gpu, plain = cluster.nodes
    assert cluster.name == "nodes_1"
    assert gpu.allocatable == {
        "cpu": 64000, "memory": 262144 * MIB, "nvidia.com/gpu": 2, "gpu-milli": 2000,
    }  # fmt: skip
    assert (gpu.gpu_model, gpu.type, gpu.gpu_speed) == ("P100", "2xP100-64c-256g", 0.6)
    assert gpu.price_usd_per_h == pytest.approx(64 * 0.04 + 2 * 1.5)
    assert plain.allocatable == {"cpu": 32000, "memory": 131072 * MIB}
    assert (plain.type, plain.gpu_model, plain.zone, plain.rack) == ("32c-128g", "", "", "")
    assert len(warnings) == 1
    assert "prices" in warnings[0]


def test_an_unknown_gpu_model_is_reported():
    cluster, warnings = openb.read_nodes(NODES + "a,1000,1024,1,X9\n", "n.csv")
    assert cluster.nodes[0].gpu_speed == 1.0
    assert any("node 'a', model 'X9'" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a,0,1024,0,\n", r"n\.csv:2: node 'a': allocatable has no cpu"),
        ("a,1000,1024,0,\na,1000,1024,0,\n", "node name 'a' occurs more than once"),
    ],
)
def test_machines_that_form_no_cluster_are_refused(line, message):
    with pytest.raises(ClusterError, match=message):
        openb.read_nodes(NODES + line, "n.csv")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", r"n\.csv: no rows"),
        ("a,1000", r"n\.csv:2: 2 fields instead of 5"),
        ("a,x,1,0,\n", r"n\.csv:2: cpu_milli is 'x'"),
        ("a,1000,,0,\n", r"n\.csv:2: memory_mib is empty"),
        ("a,1000,1,-1,T4\n", r"n\.csv:2: gpu is '-1'"),
        ("a,1000,1,1e300,T4\n", r"n\.csv:2: gpu is '1e300'"),
        (",1000,1,0,\n", r"n\.csv:2: sn is empty"),
    ],
)
def test_a_bad_list_of_machines_is_refused(line, message):
    with pytest.raises(FormatError, match=message):
        openb.read_nodes(NODES + line, "n.csv")


def test_it_tells_pods_from_nodes():
    assert openb.looks_like_pods(PODS)
    assert not openb.looks_like_pods(NODES)
    assert openb.looks_like_nodes(NODES)
    assert not openb.looks_like_nodes(PODS)


@pytest.mark.parametrize(
    ("name", "num_pods", "never_ran", "with_models"),
    [("default", 8152, 897, 0), ("gpuspec33", 8152, 897, 2388), ("multigpu50", 9061, 9061, 0)],
)
def test_the_real_pods_are_read(data_dir, name, num_pods, never_ran, with_models):
    path = data_dir / "alibaba-gpu" / "openb-v2023" / f"openb_pod_list_{name}.csv.gz"
    text = read_text(path)
    assert openb.looks_like_pods(text[:4096])
    reading = openb.read_pods(text, name)
    tasks = [workflow.tasks[0] for workflow in reading.workflows]
    assert len(tasks) == num_pods
    assert any(f"60 s assumed ({never_ran} x" in warning for warning in reading.warnings)
    assert sum(bool(task.placement.gpu_models) for task in tasks) == with_models
    shares = Counter("gpu-milli" in t.request for t in tasks if len(t.request) == 3)
    assert shares[True] == 3078


def test_the_real_machines_are_read(data_dir):
    path = data_dir / "alibaba-gpu" / "openb-v2023" / "openb_node_list_all_node.csv"
    text = read_text(path)
    assert openb.looks_like_nodes(text[:4096])
    cluster, warnings = openb.read_nodes(text, "all")
    assert len(cluster.nodes) == 1523
    assert sum(node.num_gpus for node in cluster.nodes) == 6212
    assert len(warnings) == 1
