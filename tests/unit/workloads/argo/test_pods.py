"""What a task inherits from its template: requests, time, urgency, retries."""

from __future__ import annotations

import pytest

from dagsail.domain.errors import FormatError
from dagsail.domain.units import GIB, MIB
from dagsail.domain.workflow import Priority, Task, Workflow
from dagsail.workloads.argo import read
from dagsail.workloads.argo.hints import priority_of
from dagsail.workloads.reading import DEFAULT_RUNTIME_S, Reading


def reading(template: str, spec: str = "", metadata: str = "", after: str = "") -> Reading:
    return read(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n"
        f"metadata: {{name: wf, {metadata}}}\n"
        f"spec:\n  entrypoint: main\n{spec}  templates:\n  - {{name: main, {template}}}\n{after}",
        "wf.yaml",
    )


def workflow(template: str, spec: str = "", metadata: str = "", after: str = "") -> Workflow:
    (found,) = reading(template, spec, metadata, after).workflows
    return found


def task(template: str, spec: str = "") -> Task:
    return workflow(template, spec).tasks[0]


MAIN = "container: {image: i, resources: {requests: {cpu: 1, memory: 1Gi}}}"


def test_what_is_not_stated_is_filled_in_and_reported() -> None:
    result = reading("container: {image: i}")
    assert result.workflows[0].tasks[0].request == {"cpu": 1000, "memory": GIB}
    assert result.workflows[0].tasks[0].runtime_s == DEFAULT_RUNTIME_S
    assert any("state no cpu or memory request" in warning for warning in result.warnings)
    assert any("no run time is stated" in warning for warning in result.warnings)


def test_scripts_sidecars_and_init_containers_share_a_pod() -> None:
    found = task(
        "script: {image: s, source: x, resources: {requests: {cpu: 1}}},"
        "sidecars: [{name: d, image: d, resources: {requests: {cpu: 500m, memory: 1Gi}}}],"
        "initContainers: [{name: e, image: e, resources: {requests: {memory: 2Gi}}}]"
    )
    assert found.request == {"cpu": 1500, "memory": 2 * GIB}
    assert found.image == "s"


def test_a_container_set_is_one_pod_with_all_its_containers() -> None:
    found = task(
        "containerSet: {containers: ["
        "{name: a, image: a, resources: {requests: {cpu: 1, memory: 1Gi}}},"
        "{name: main, image: m, dependencies: [a], resources: {requests: {cpu: 2}}}]}"
    )
    assert found.request == {"cpu": 3000, "memory": GIB}
    assert found.image == "m"


@pytest.mark.parametrize("kind", ["resource: {action: get}", "http: {url: u}", "data: {}"])
def test_argos_own_pods_are_small(kind: str) -> None:
    assert task(kind).request == {"cpu": 100, "memory": 64 * MIB}


def test_a_suspension_takes_its_time_and_nothing_else() -> None:
    found = task("suspend: {duration: 2m}")
    assert (found.runtime_s, found.request) == (120.0, {})
    assert task("suspend: {}").runtime_s == DEFAULT_RUNTIME_S


def test_pod_spec_patches_apply_the_workflows_first_then_the_templates() -> None:
    found = task(
        MAIN
        + """, podSpecPatch: '{"nodeSelector": {"a": "1"}, "containers": [{"name": "main",
        "resources": {"requests": {"cpu": "{{workflow.parameters.c}}"}}}]}'""",
        "  arguments: {parameters: [{name: c, value: 250m}]}\n"
        "  podSpecPatch: 'containers: [{name: main, resources: {requests: {cpu: 9, "
        "nvidia.com/gpu: 1}}}, {name: more, resources: {requests: {memory: 1Gi}}}]'\n",
    )
    assert found.request == {"cpu": 250, "memory": 2 * GIB, "nvidia.com/gpu": 1}
    assert found.placement.node_selector == (("a", "1"),)


def test_a_patch_that_an_earlier_task_makes_is_left_out_and_reported() -> None:
    result = reading(MAIN + ", podSpecPatch: '{{inputs.parameters.patch}}'")
    assert any("podSpecPatch is made by an earlier task" in w for w in result.warnings)


def test_template_defaults_fill_gaps_of_the_same_kind_only() -> None:
    found = task(
        "container: {image: i, resources: {requests: {memory: 2Gi}}}",
        "  templateDefaults: {timeout: 30s, retryStrategy: {limit: '2'},"
        " script: {image: no}, container: {image: d, resources: {requests: {cpu: 3}}}}\n",
    )
    assert found.request == {"cpu": 3000, "memory": 2 * GIB}
    assert (found.image, found.timeout_s, found.max_retries) == ("i", 30.0, 2)


def test_pod_resources_of_the_workflow_replace_the_containers() -> None:
    found = task(MAIN, "  podResources: {requests: {cpu: 100m}, limits: {memory: 9Gi}}\n")
    assert found.request == {"cpu": 100, "memory": GIB}


def test_placement_comes_from_the_innermost_place_that_states_it() -> None:
    spec = "  nodeSelector: {from: spec, a: b}\n  tolerations: [{key: spec, operator: Exists}]\n"
    found = task(MAIN + ", nodeSelector: {from: template}", spec)
    assert found.placement.node_selector == (("from", "template"),)
    assert found.placement.tolerations[0].key == "spec"
    inner = "  - {name: leaf, container: {image: i}}\n"
    outer = "steps: [[{name: s, template: leaf}]], nodeSelector: {from: steps}"
    nested = workflow(outer, spec, after=inner).tasks[0]
    assert nested.placement.node_selector == (("from", "steps"),)


@pytest.mark.parametrize(
    ("strategy", "retries"),
    [
        ("{limit: 2}", 2),
        ("{limit: '10'}", 10),
        ("{limit: 0}", 0),
        ("{expression: 'false'}", 0),
        ("{retryPolicy: Always}", 3),
        ("{limit: '{{workflow.parameters.unknown}}'}", 3),
        ("{limit: '{{workflow.parameters.r}}'}", 4),
    ],
)
def test_retries(strategy: str, retries: int) -> None:
    argument = "  arguments: {parameters: [{name: r, value: 4}]}\n"
    assert task(MAIN + f", retryStrategy: {strategy}", argument).max_retries == retries
    assert task(MAIN, argument + f"  retryStrategy: {strategy}\n").max_retries == retries


def test_the_shorter_timeout_counts() -> None:
    assert task(MAIN + ", activeDeadlineSeconds: 100, timeout: 5m").timeout_s == 100.0
    assert task(MAIN + ", activeDeadlineSeconds: '100', timeout: 1m").timeout_s == 60.0


def test_annotations_state_run_time_and_output() -> None:
    notes = "dagsail.io/expected-seconds: '7.5', dagsail.io/output-bytes: 2Ki"
    leaf = f"  - {{name: leaf, {MAIN}, metadata: {{annotations: {{{notes}}}}}}}\n"
    found = workflow(
        "steps: [[{name: a, template: leaf}], [{name: b, template: leaf}]]", after=leaf
    )
    assert [t.runtime_s for t in found.tasks] == [7.5, 7.5]
    assert found.tasks[0].output_bytes == 2048
    assert found.dependencies[0].data_bytes == 2048


def test_deadline_and_priority_of_a_workflow() -> None:
    spec = "  activeDeadlineSeconds: 300\n  priority: 10\n"
    found = workflow(MAIN, spec)
    assert (found.deadline_s, found.priority) == (300.0, Priority.P1)
    annotated = workflow(
        MAIN,
        spec,
        "annotations: {dagsail.io/deadline-seconds: '60', dagsail.io/priority: P3}",
    )
    assert (annotated.deadline_s, annotated.priority) == (60.0, Priority.P3)
    assert (workflow(MAIN).deadline_s, workflow(MAIN).priority) == (None, Priority.P2)


@pytest.mark.parametrize(
    ("number", "class_name", "expected"),
    [
        (100, None, Priority.P0),
        (99, None, Priority.P1),
        ("10", None, Priority.P1),
        (9, "high", Priority.P2),
        (0, None, Priority.P2),
        (-1, None, Priority.P3),
        (None, "system-node-critical", Priority.P0),
        (None, "high-priority", Priority.P1),
        (None, "low", Priority.P3),
        (None, "batch", None),
        (None, None, None),
    ],
)
def test_larger_integers_are_more_urgent(
    number: object, class_name: object, expected: Priority | None
) -> None:
    assert priority_of(number, class_name, "x") == expected


def test_recorded_times_are_found_by_task_then_by_template() -> None:
    def node(name: str, phase: str, end: str) -> str:
        return (
            f"{{name: {name!r}, phase: {phase}, finishedAt: {end}, type: Pod,"
            " templateName: leaf, startedAt: '2020-01-01T00:00:00Z'}\n"
        )

    status = (
        "status:\n  nodes:\n"
        "    wf: {name: wf, type: Steps, startedAt: '2020-01-01T00:00:00Z'}\n"
        f"    a: {node('wf[0].a(0:x)', 'Succeeded', '2020-01-01T00:00:10Z')}"
        f"    b: {node('wf[0].a(1:y)(0)', 'Failed', '2020-01-01T00:00:50Z')}"
        f"    c: {node('wf[0].a(1:y)(1)', 'Succeeded', '2020-01-01T00:00:20Z')}"
        f"    d: {node('wf[1].b', 'Running', 'null')}"
    )
    found = workflow(
        "steps: [[{name: a, template: leaf, withItems: [x, y]}], [{name: b, template: leaf}]]",
        after=f"  - {{name: leaf, {MAIN}}}\n{status}",
    )
    # b did not end: the mean of the two pods of its template that succeeded.
    assert [t.runtime_s for t in found.tasks] == [10.0, 20.0, 15.0]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("container: []", "a container: must be a mapping, found a list"),
        ("container: {image: 5}", "image: must be text, found the number 5"),
        ("containerSet: {}", "containerSet has no containers"),
        (MAIN + ", retryStrategy: {limit: many}", "limit: must be a whole number, found 'many'"),
        (MAIN + ", retryStrategy: {limit: -1}", "limit is -1; it must be 0 or more"),
        (MAIN + ", retryStrategy: 3", "retryStrategy: must be a mapping"),
        (MAIN + ", timeout: soon", "timeout: 'soon' is not a duration"),
        (MAIN + ", activeDeadlineSeconds: .inf", "must be a number of seconds"),
        (MAIN + ", podSpecPatch: '['", "podSpecPatch:2:1: not valid YAML"),
        (MAIN + ", podSpecPatch: {}", "podSpecPatch: must be text"),
        (MAIN + ", podSpecPatch: 'containers: 5'", "must be a list, found the number 5"),
        (MAIN + ", priority: urgent", "priority: must be a whole number"),
        ("suspend: {duration: long}", "suspend.duration: 'long' is not a duration"),
        (
            MAIN + ", metadata: {annotations: {dagsail.io/expected-seconds: -1}}",
            "expected-seconds: must be a number of seconds, 0 or more, found -1",
        ),
        (
            MAIN + ", metadata: {annotations: {dagsail.io/output-bytes: 1K}}",
            "output-bytes: '1K' is not a quantity",
        ),
    ],
)
def test_malformed_pods_are_refused(template: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        reading(template)


def test_malformed_workflow_annotations_are_refused() -> None:
    with pytest.raises(FormatError, match="is 'urgent'; allowed are P0, P1, P2, P3"):
        reading(MAIN, metadata="annotations: {dagsail.io/priority: urgent}")
    with pytest.raises(FormatError, match="deadline-seconds: must be a number of seconds"):
        reading(MAIN, metadata="annotations: {dagsail.io/deadline-seconds: soon}")


def test_malformed_times_are_refused() -> None:
    status = "status: {nodes: {a: {type: Pod, name: a, startedAt: noon}}}\n"
    with pytest.raises(FormatError, match="'noon' is not a time such as"):
        reading(MAIN, after=status)
