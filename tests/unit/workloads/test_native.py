"""The native workflow format: every key, every default, every refusal."""

from __future__ import annotations

import re

import pytest

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.placement import (
    ANYWHERE,
    Placement,
    Preference,
    Requirement,
    Term,
    Toleration,
)
from dagsail.domain.units import GIB, MIB
from dagsail.domain.workflow import Dependency, Priority, Task, Workflow
from dagsail.workloads.native import looks_like, read

FULL = """
apiVersion: dagsail.io/v1alpha1
kind: Workflow
metadata: {name: full, labels: {team: a}}
spec:
  tenant: science
  family: etl
  priority: high
  deadline: 2h
  startDeadline: 90s
  submittedAt: 12.5
  tasks:
    - id: load
      runtime: 1h30m
      request: {cpu: 500m, memory: 512Mi}
    - id: train
      kind: trainer
      runtime: 120
      runtimeByNodeType: {gpu-a100: 40s, gpu-v100: 1m}
      request: {cpu: 2, memory: 1.5Gi, nvidia.com/gpu: 1, ephemeral-storage: 1G}
      workers: 4
      commData: 10Gi
      dependsOn: [{task: load, data: 1Gi}]
      inputData: 1k
      outputData: 2Ki
      image: registry/train:1
      imageSize: 300M
      priority: P0
      startDeadline: 10m
      deadline: 1d
      critical: true
      ioDemand: medium
      memoryBandwidthDemand: 0.25
      retries: 3
      timeout: 30m
      nodeSelector: {zone: b, arch: amd64}
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
              - matchExpressions:
                  - {key: pool, operator: In, values: [gpu, mixed]}
                  - {key: cores, operator: Gt, values: ["8"]}
                matchFields:
                  - {key: metadata.name, operator: NotIn, values: [bad-node]}
              - matchExpressions: [{key: special, operator: Exists}]
          preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 30
              preference:
                matchExpressions: [{key: spot, operator: DoesNotExist}]
      tolerations:
        - {key: gpu, operator: Exists, effect: NoSchedule}
        - {key: team, value: a}
        - {operator: Exists}
      gpuModels: [A100, V100]
      minCuda: "12.10"
      spreadOver: topology.kubernetes.io/zone
      nearParents: true
      wantsLocalSsd: true
    - id: report
      runtime: 5
      request: {cpu: 1, memory: 1Gi}
      dependsOn: [load, train]
"""
HEAD = "kind: Workflow\nmetadata: {name: w}\nspec:\n"


def only(text: str) -> Workflow:
    (workflow,) = read(text, "f.yaml").workflows
    return workflow


def task(keys: str) -> Task:
    text = f"{HEAD}  tasks: [{{id: a, runtime: 1, request: {{cpu: 1, memory: 1Gi}}, {keys}}}]"
    return only(text).tasks[0]


def test_reads_every_key() -> None:
    reading = read(FULL, "f.yaml")
    load = Task(id="load", runtime_s=5400, request={"cpu": 500, "memory": 512 * MIB})
    report = Task(id="report", runtime_s=5, request={"cpu": 1000, "memory": GIB})
    train = Task(
        id="train",
        kind="trainer",
        runtime_s=120,
        runtime_s_by_node_type={"gpu-a100": 40, "gpu-v100": 60},
        request={
            "cpu": 2000,
            "memory": 3 * GIB // 2,
            "nvidia.com/gpu": 1,
            "ephemeral-storage": 10**9,
        },
        num_workers=4,
        comm_bytes=10 * GIB,
        input_bytes=1000,
        output_bytes=2048,
        image="registry/train:1",
        image_bytes=300_000_000,
        priority=Priority.P0,
        start_deadline_s=600,
        deadline_s=86400,
        is_critical=True,
        io_demand=0.5,
        memory_bandwidth_demand=0.25,
        max_retries=3,
        timeout_s=1800,
        placement=Placement(
            node_selector=(("arch", "amd64"), ("zone", "b")),
            required=(
                Term(
                    (
                        Requirement("pool", "In", ("gpu", "mixed")),
                        Requirement("cores", "Gt", ("8",)),
                        Requirement("metadata.name", "NotIn", ("bad-node",), is_field=True),
                    )
                ),
                Term((Requirement("special", "Exists"),)),
            ),
            preferred=(Preference(30, Term((Requirement("spot", "DoesNotExist"),))),),
            tolerations=(
                Toleration("gpu", "Exists", "", "NoSchedule"),
                Toleration("team", "Equal", "a"),
                Toleration("", "Exists"),
            ),
            gpu_models=("A100", "V100"),
            min_cuda=(12, 10),
            spread_over="topology.kubernetes.io/zone",
            near_parents=True,
            wants_local_ssd=True,
        ),
    )
    assert reading.workflows == (
        Workflow(
            id="full",
            tasks=(load, train, report),
            dependencies=(
                Dependency("load", "train", GIB),
                Dependency("load", "report", 0),
                Dependency("train", "report", 0),
            ),
            priority=Priority.P1,
            start_deadline_s=90,
            deadline_s=7200,
            tenant="science",
            family="etl",
            submitted_s=12.5,
        ),
    )
    assert reading.warnings == ()


def test_holds_plain_numbers_only() -> None:
    for item in only(FULL).tasks:
        assert type(item.runtime_s) is float
        assert type(item.comm_bytes) is int
        assert type(item.io_demand) is float
        assert type(item.request) is dict
        assert {type(amount) for amount in item.request.values()} == {int}


def test_a_task_needs_only_an_id_and_the_assumptions_are_reported() -> None:
    reading = read(f"{HEAD}  tasks: [{{id: a}}, {{id: b, request: {{cpu: 2}}}}]", "f.yaml")
    (workflow,) = reading.workflows
    first = Task(id="a", runtime_s=60.0, request={"cpu": 1000, "memory": GIB})
    second = Task(id="b", runtime_s=60.0, request={"cpu": 2000, "memory": GIB})
    assert workflow == Workflow(id="w", tasks=(first, second))
    assert workflow.priority == Priority.P2
    assert reading.warnings == (
        "f.yaml: task without runtime: 60 s assumed (2 x, first: w/a)",
        "f.yaml: task without cpu request: 1000m assumed (1 x, first: w/a)",
        "f.yaml: task without memory request: 1 GiB assumed (2 x, first: w/a)",
    )


def test_a_missing_runtime_is_the_mean_over_node_types() -> None:
    keys = "runtimeByNodeType: {x: 10, y: 30s}, request: {cpu: 1, memory: 1}"
    reading = read(f"{HEAD}  tasks: [{{id: a, {keys}}}]", "f.yaml")
    assert reading.workflows[0].tasks[0].runtime_s == 20
    (warning,) = reading.warnings
    assert "runtimeByNodeType does not list use its mean (1 x, first: w/a)" in warning


def test_a_stated_zero_is_kept() -> None:
    assert task("priority: P3").runtime_s == 1
    zero = read(f"{HEAD}  tasks: [{{id: a, runtime: 0, request: {{cpu: 0, memory: 0}}}}]", "f")
    assert zero.workflows[0].tasks[0].runtime_s == 0
    assert zero.workflows[0].tasks[0].request == {"cpu": 0, "memory": 0}
    assert zero.warnings == ()


@pytest.mark.parametrize(
    ("word", "priority"),
    [
        *[("P0", 0), ("P1", 1), ("P2", 2), ("P3", 3)],
        *[("urgent", 0), ("high", 1), ("normal", 2), ("low", 3)],
    ],
)
def test_p0_is_the_most_urgent_priority(word: str, priority: int) -> None:
    assert task(f"priority: {word}").priority == priority


@pytest.mark.parametrize(
    ("word", "share"),
    [("none", 0), ("low", 0.2), ("medium", 0.5), ("high", 0.8), ("0", 0), ("1", 1), ("0.3", 0.3)],
)
def test_demands_are_shares_or_words(word: str, share: float) -> None:
    assert task(f"ioDemand: {word}").io_demand == share
    assert task(f"memoryBandwidthDemand: {word}").memory_bandwidth_demand == share


def test_tasks_with_equal_rules_share_one_placement() -> None:
    text = f"{HEAD}  tasks: [{{id: a, gpuModels: [T4]}}, {{id: b, gpuModels: [T4]}}, {{id: c}}]"
    first, second, third = only(text).tasks
    assert first.placement is second.placement
    assert third.placement == ANYWHERE


def test_reads_several_documents() -> None:
    text = f"{HEAD}  tasks: [{{id: a}}]\n---\n{HEAD.replace('w}', 'v}')}  tasks: [{{id: a}}]"
    reading = read(text, "f.yaml")
    assert [workflow.id for workflow in reading.workflows] == ["w", "v"]
    assert "(2 x, first: w/a)" in reading.warnings[0]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"apiVersion": "dagsail.io/v1alpha1", "kind": "Workflow"}, True),
        ({"apiVersion": "dagsail.io/v9"}, True),
        ({"kind": "Workflow"}, True),
        ({"kind": "Workflow", "apiVersion": None}, True),
        ({"kind": "Workflow", "apiVersion": "argoproj.io/v1alpha1"}, False),
        ({"kind": "Pod"}, False),
        ({"kind": ["Workflow"]}, False),
        ([], False),
        (None, False),
        ("kind: Workflow", False),
    ],
)
def test_knows_its_own_documents(document: object, expected: bool) -> None:
    assert looks_like(document) is expected


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("requst: {cpu: 1}", "requst: unknown key; did you mean 'request'?"),
        ("duration: 3", "duration: unknown key; did you mean 'runtime'?"),
        ("cpu: 3", "cpu: unknown key; did you mean 'request'?"),
        ("depends: [b]", "depends: unknown key; did you mean 'dependsOn'?"),
        ("runtimes: 3", "runtimes: unknown key; did you mean 'runtime'?"),
        ("runtime: 5 min", "runtime: found '5 min', expected seconds or a duration"),
        ("runtime: .nan", "runtime: found nan, expected seconds"),
        ("runtime: -.inf", "runtime: found -inf, expected seconds"),
        ("runtime: -1", "runtime: found -1; it must not be negative"),
        ("runtime: 1.0e+12", "runtime: found 1000000000000.0, more than ten years"),
        ("runtime: [1]", "runtime: found a list, expected seconds"),
        ("runtimeByNodeType: {x: y}", "runtimeByNodeType[x]: found 'y', expected seconds"),
        ("request: {cpu: 2 cores}", "request[cpu]: found '2 cores', expected a quantity"),
        ("request: {gpu: 1}", "request: unknown resource 'gpu'; did you mean 'nvidia.com/gpu'?"),
        ("request: null", "request: found null, expected a mapping from resource to quantity"),
        ("workers: 0", "workers: found 0, expected a whole number >= 1"),
        ("commData: 1GB", "commData: found '1GB', expected bytes or a quantity"),
        ("outputData: -1", "outputData: found -1; it must not be negative"),
        ("priority: P4", "priority: found 'P4'; allowed are P0, P1"),
        ("priority: 0", "priority: found 0; allowed are P0, P1, P2, P3, urgent, high, normal, low"),
        ("deadline: soon", "deadline: found 'soon', expected seconds"),
        ("critical: 1", "critical: found 1, expected true or false"),
        ("ioDemand: 1.5", "ioDemand: found 1.5, expected a share from 0 to 1, or none (0)"),
        ("ioDemand: huge", "ioDemand: found 'huge', expected a share from 0 to 1"),
        ("retries: -1", "retries: found -1, expected a whole number >= 0"),
        ("nodeSelector: {ssd: true}", "nodeSelector[ssd]: found true, expected text; put it in"),
        ("minCuda: 12.4", "minCuda: found 12.4, expected a version in quotes such as '12.4'"),
        ("gpuModels: A100", "gpuModels: found 'A100', expected a list"),
        ("dependsOn: a", "dependsOn: found 'a', expected a list"),
        ("dependsOn: [{tsk: a}]", "dependsOn[0].tsk: unknown key; did you mean 'task'?"),
        ("tolerations: [{}]", "tolerations[0]: a toleration without key needs operator Exists"),
        (
            "tolerations: [{key: a, operator: Exists, value: b}]",
            "tolerations[0]: operator Exists takes no value",
        ),
        ("affinity: {podAffinity: {}}", "affinity.podAffinity: unknown key"),
        ("id: 7", "id: found 7, expected text; put it in quotes"),
        ('id: ""', "id: found '', expected text of length >= 1"),
    ],
)
def test_refuses_a_bad_value_and_names_its_place(keys: str, message: str) -> None:
    own_id = "" if keys.startswith("id") else "id: b, "
    with pytest.raises(FormatError) as caught:
        read(f"{HEAD}  tasks: [{{id: a}}, {{{own_id}{keys}}}]", "f.yaml")
    assert str(caught.value).startswith(f"f.yaml: spec.tasks[1].{message}")


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ("[]", ": found a list, expected a list of length >= 1"),
        (
            "[{matchExpressions: [{key: a, operator: In}]}]",
            "[0].matchExpressions[0]: operator In needs at least one value",
        ),
        (
            "[{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]",
            "[0].matchExpressions[0]: operator Exists takes no values",
        ),
        (
            "[{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]",
            "[0].matchExpressions[0]: operator Gt needs exactly one value, an integer",
        ),
        (
            "[{matchExpressions: [{key: a, operator: Lt, values: ['--1']}]}]",
            "[0].matchExpressions[0]: operator Lt needs exactly one value, an integer",
        ),
        (
            "[{matchExpressions: [{key: a, operator: in, values: [b]}]}]",
            "[0].matchExpressions[0].operator: found 'in'; did you mean 'In'?",
        ),
        (
            "[{matchFields: [{key: spec.x, operator: In, values: [b]}]}]",
            "[0]: matchFields: found 'spec.x' In; only metadata.name",
        ),
    ],
)
def test_refuses_affinity_that_kubernetes_refuses(terms: str, message: str) -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    place = f"spec.tasks[0].affinity.nodeAffinity.{required}.nodeSelectorTerms"
    with pytest.raises(FormatError) as caught:
        task(f"affinity: {{nodeAffinity: {{{required}: {{nodeSelectorTerms: {terms}}}}}}}")
    assert str(caught.value).startswith(f"f.yaml: {place}{message}")


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ("[]", "f.yaml: workflow 'w' has no tasks"),
        ("[{id: a}, {id: a}]", "f.yaml: workflow 'w': task id 'a' occurs more than once"),
        (
            "[{id: extract}, {id: b, dependsOn: [extact]}]",
            "f.yaml: spec.tasks[1].dependsOn[0]: task 'b' depends on 'extact', which is no task of"
            " this workflow; did you mean 'extract'?",
        ),
        (
            "[{id: a}, {id: b, dependsOn: [zzz]}]",
            "f.yaml: spec.tasks[1].dependsOn[0]: task 'b' depends on 'zzz', which is no task of"
            " this workflow; add the task or remove the dependency",
        ),
        ("[{id: a, dependsOn: [a]}]", "f.yaml: workflow 'w': task 'a' depends on itself"),
        (
            "[{id: a}, {id: b, dependsOn: [a, a]}]",
            "f.yaml: workflow 'w': dependency 'a' -> 'b' occurs more than once",
        ),
        (
            "[{id: a, dependsOn: [c]}, {id: b, dependsOn: [a]}, {id: c, dependsOn: [b]}]",
            "f.yaml: workflow 'w' has a cycle: a -> b -> c -> a",
        ),
    ],
)
def test_refuses_tasks_that_form_no_workflow(tasks: str, message: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        read(f"{HEAD}  tasks: {tasks}", "f.yaml")
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml: holds no document; expected kind: Workflow"),
        ("---\n---\n", "f.yaml: holds no document; expected kind: Workflow"),
        ("[1]", "f.yaml: top level: found a list, expected a mapping"),
        ("kind: Pod", "f.yaml: kind: found 'Pod', expected 'Workflow'"),
        ("kind: Workflow", "f.yaml: top level: the key 'metadata' is missing"),
        ("kind: Workflow\nkind: Workflow", "f.yaml:2:1: not valid YAML (key 'kind' occurs twice)"),
        ("kind: Workflow\nmetadata: {}\nspec: {tasks: []}", "f.yaml: metadata: the key 'name' is"),
        (HEAD, "f.yaml: spec: found null, expected a mapping"),
        (f"{HEAD}  tasks: null", "f.yaml: spec.tasks: found null, expected a list"),
        (f"{HEAD}  task: []", "f.yaml: spec.task: unknown key; did you mean 'tasks'?"),
        (f"{HEAD}  tasks: &t [*t]", "f.yaml: spec.tasks[0]: found a list, expected a mapping"),
        (
            f"apiVersion: dagsail.io/v2\n{HEAD}  tasks: []",
            "f.yaml: apiVersion: found 'dagsail.io/v2'",
        ),
        (f"{HEAD}  tasks: [{{id: a}}]\n---\nkind: Pod", "f.yaml (document 2): kind: found 'Pod'"),
        ("kind: Workflow\nspec: [", "f.yaml:3:1: not valid YAML"),
        ('{"kind": "Workflow", "spec": {"x": NaN}}', "f.yaml: "),
    ],
)
def test_refuses_what_is_no_native_workflow(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=re.escape(message)):
        read(text, "f.yaml")


def test_refuses_two_workflows_of_one_name() -> None:
    document = f"{HEAD}  tasks: [{{id: a}}]\n"
    with pytest.raises(WorkflowError, match=r"^f.yaml: metadata.name 'w' occurs in more than one"):
        read(f"{document}---\n{document}", "f.yaml")
