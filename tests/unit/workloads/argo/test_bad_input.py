"""Bad Argo files: one line that names the object and says what to do, and nothing else."""

from __future__ import annotations

import time

import pytest

from dagsail.domain.errors import FormatError, InputError, WorkflowError
from dagsail.workloads.argo import read

HEAD = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: wf}\nspec:\n"
LEAF = "  - {name: leaf, container: {image: i}}\n"


def with_templates(templates: str, entrypoint: str = "main") -> str:
    return f"{HEAD}  entrypoint: {entrypoint}\n  templates:\n{LEAF}{templates}"


def with_dag(*tasks: str, more: str = "") -> str:
    entries = ", ".join(f"{{{task}}}" for task in tasks)
    return with_templates(f"  - {{name: main, dag: {{{more}tasks: [{entries}]}}}}\n")


def with_steps(*calls: str) -> str:
    entries = ", ".join(f"[{{{call}}}]" for call in calls)
    return with_templates(f"  - {{name: main, steps: [{entries}]}}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- [", "f.yaml:2:1: not valid YAML"),
        ("just text", "f.yaml: holds no Argo workflow; it needs an object of kind Workflow"),
        ("kind: ConfigMap", "holds no Argo workflow"),
        (HEAD + "  templates: []\n", "Workflow 'wf': entrypoint is missing"),
        (with_templates("", "main"), "entrypoint: no template is named 'main'; there are: leaf"),
        (with_templates("", "lea"), "no template is named 'lea'; did you mean 'leaf'?"),
        (with_templates("", "{}"), "entrypoint: must be text, found a mapping"),
        (with_templates(LEAF, "leaf"), "two templates are named 'leaf'"),
        (with_templates("  - {}\n", "leaf"), "the name of a template: is missing"),
        (with_templates("  - 5\n", "leaf"), "a template: must be a mapping, found the number 5"),
        (with_templates("  - {name: x}\n", "leaf"), "'x': needs exactly one of dag, steps,"),
        (with_templates("  - {name: x, dag: {}, steps: []}\n"), "has dag and steps"),
        (HEAD + "  entrypoint: m\n  templates: {m: 1}\n", "templates: must be a list"),
        (HEAD.replace("spec:", "spec: 5"), "spec: must be a mapping, found the number 5"),
        (HEAD.replace("{name: wf}", "[wf]"), "metadata: must be a mapping, found a list"),
        (HEAD.replace("wf", "5") + "  entrypoint: m\n", "metadata.name: must be text"),
        (with_dag("name: A, template: gone"), "task 'A': no template is named 'gone'"),
        (with_dag("name: A"), "task 'A': needs one of template, templateRef, inline; has none"),
        (with_dag("name: A, template: leaf, inline: {}"), "has template and inline"),
        (with_dag("name: A, templateRef: {name: x}"), "templateRef.template: is missing"),
        (with_dag("name: A, templateRef: x"), "templateRef: must be a mapping"),
        (with_dag("name: A, inline: {dag: 5}"), "template 'A': dag: must be a mapping"),
        (with_dag("template: leaf"), "the name of a task: is missing"),
        (with_dag(), "dag has no tasks"),
        (with_dag("name: A, template: leaf", "name: A, template: leaf"), "two tasks are named 'A'"),
        (with_dag("name: A, template: leaf, dependencies: B"), "dependencies: must be a list"),
        (with_dag("name: A, template: leaf, dependencies: [[B]]"), "a dependency: must be text"),
        (with_dag("name: A, template: leaf, depends: [B]"), "depends: must be text, found a list"),
        (with_dag("name: A, template: leaf, depends: 'B &&'"), "depends 'B &&' is malformed"),
        (
            with_dag("name: A, template: leaf, depends: B, dependencies: [B]"),
            "has both depends and dependencies",
        ),
        (
            with_dag("name: A, template: leaf", more="target: X, "),
            "target 'X' is not a task of this dag",
        ),
        (with_dag("name: A, template: leaf, when: 5"), "when must be a condition in quotes"),
        (with_dag("name: A, template: leaf, hooks: [exit]"), "hooks: must be a mapping"),
        (with_dag("name: A, template: leaf, arguments: x"), "must be a mapping, found text"),
        (
            with_dag("name: A, template: leaf, arguments: {parameters: [{value: 1}]}"),
            "a parameter has no name",
        ),
        (
            with_dag("name: A, template: leaf, arguments: {parameters: [{name: a, value: [1]}]}"),
            "parameter 'a' must be text",
        ),
        (with_steps("name: a, template: leaf", "name: a, template: leaf"), "two steps are named"),
        (with_templates("  - {name: main, steps: [5]}\n"), "a step: must be a mapping"),
        (with_templates("  - {name: main, steps: x}\n"), "steps: must be a list, found text"),
        (
            with_steps("name: a, template: leaf, withSequence: {count: '1000000000'}"),
            "withSequence: 1000000000 items; at most 200000 are read",
        ),
        (
            with_templates(
                "  - {name: main, container: {image: i, resources: {requests: {memory: 1K}}}}\n"
            ),
            "template 'main', container 'main': requests.memory: '1K' is not a quantity",
        ),
        (HEAD + "  entrypoint: m\n  priority: [1]\n" + "  templates: []\n", "no template is named"),
        (with_templates("", "leaf") + "  activeDeadlineSeconds: -5\n", "activeDeadlineSeconds"),
        (with_templates("", "leaf") + "  onExit: gone\n", "no template is named 'gone'"),
        (with_templates("", "leaf") + "  hooks: {exit: 5}\n", "hooks.exit: must be a mapping"),
        (with_templates("", "leaf") + "  arguments: 5\n", "arguments: must be a mapping"),
        (with_templates("", "leaf") + "  templateDefaults: 5\n", "templateDefaults: must be a"),
        (with_templates("", "leaf") + "status: 5\n", "status: must be a mapping"),
        (with_templates("", "leaf") + "  2: x\n", "spec: key 2 must be text"),
        (with_templates("", "leaf") + "  x: !!binary aGk=\n", "a value of type bytes"),
        (HEAD + "  workflowTemplateRef: {}\n", "workflowTemplateRef: name: is missing"),
        (HEAD.replace("Workflow", "CronWorkflow") + "  schedule: x\n", "entrypoint is missing"),
    ],
)
def test_malformed_files_are_refused(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(text, "f.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("f.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            with_dag("name: A, template: leaf, depends: Z"),
            "template main': task 'A' names an unknown parent 'Z'",
        ),
        (with_dag("name: A, template: leaf, depends: A"), "task 'A' depends on itself"),
        (
            with_dag(
                "name: A, template: leaf, depends: C",
                "name: B, template: leaf, depends: A",
                "name: C, template: leaf, depends: B.Succeeded || B.Failed",
            ),
            "template main' has a cycle: A -> B -> C -> A",
        ),
        (
            with_dag(
                "name: A, template: leaf, arguments: {parameters:"
                " [{name: x, value: '{{tasks.B.outputs.result}}'}]}",
                "name: B, template: leaf, depends: A",
            ),
            "has a cycle: A -> B -> A",
        ),
        (with_templates("", "leaf") + "  activeDeadlineSeconds: 1e12\n", "check the unit"),
    ],
)
def test_impossible_graphs_are_refused(text: str, message: str) -> None:
    with pytest.raises(WorkflowError) as caught:
        read(text, "f.yaml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("f.yaml: ")


def chain(length: int, calls: str) -> str:
    """Templates t0, t1, ... each of which calls the next."""
    links = [
        f"  - {{name: t{i}, steps: [[{calls.format(next=f't{i + 1}')}]]}}\n" for i in range(length)
    ]
    return with_templates("".join(links) + f"  - {{name: t{length}, suspend: {{}}}}\n", "t0")


def test_depth_is_bounded() -> None:
    assert len(read(chain(98, "{{name: a, template: {next}}}"), "f").workflows[0].tasks) == 1
    with pytest.raises(FormatError, match="called more than 100 templates deep"):
        read(chain(2000, "{{name: a, template: {next}}}"), "f.yaml")


def test_explosions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagsail.workloads.argo.expand.MAX_CALLS", 5000)
    twice = "{{name: a, template: {next}}}, {{name: b, template: {next}}}"
    with pytest.raises(FormatError, match="expands to more than 5000 tasks"):
        read(chain(60, twice), "f.yaml")


def test_wide_stages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagsail.workloads.argo.expand.MAX_DEPENDENCIES", 9999)
    loop = "template: leaf, withSequence: {count: 100}"
    with pytest.raises(FormatError, match="expands to more than 9999 dependencies"):
        read(with_steps(f"name: a, {loop}", f"name: b, {loop}"), "f.yaml")


def test_yaml_bombs_are_bounded() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60)
    )
    start = time.perf_counter()
    with pytest.raises(FormatError, match="once its aliases are followed"):
        read(bomb + "entrypoint: m\ntemplates: [{name: m, container: {image: *a59}}]\n", "f.yaml")
    with pytest.raises(FormatError, match="nested more than 100 levels deep"):
        read("a: &a [*a]\nentrypoint: m\ntemplates: []\n", "f.yaml")
    assert time.perf_counter() - start < 20.0


@pytest.mark.parametrize(
    "odd",
    ["null", "[]", "{}", "''", "5", "-1", ".nan", ".inf", "true", "[null]", "{a: {}}", "'{{'"],
)
@pytest.mark.parametrize(
    "place",
    [
        "spec.arguments",
        "spec.onExit",
        "spec.nodeSelector",
        "spec.tolerations",
        "spec.affinity",
        "spec.podSpecPatch",
        "spec.priority",
        "spec.podPriorityClassName",
        "spec.hooks",
        "spec.templateDefaults",
        "spec.workflowMetadata",
        "spec.podResources",
        "template.inputs",
        "template.metadata",
        "template.initContainers",
        "template.sidecars",
        "template.retryStrategy",
        "template.timeout",
        "template.activeDeadlineSeconds",
        "template.daemon",
        "call.when",
        "call.withItems",
        "call.withParam",
        "call.withSequence",
        "call.arguments",
        "call.hooks",
        "call.onExit",
        "call.depends",
        "call.dependencies",
        "metadata.namespace",
        "status.nodes",
    ],
)
def test_wrong_types_anywhere_give_a_clean_error_or_a_workflow(place: str, odd: str) -> None:
    owner, field = place.split(".")
    extra = {owner: f", {field}: {odd}"}
    text = (
        f"{{apiVersion: argoproj.io/v1alpha1, kind: Workflow, metadata: {{name: wf"
        f"{extra.get('metadata', '')}}}, spec: {{entrypoint: main, templates: ["
        f"{{name: leaf, container: {{image: i}}{extra.get('template', '')}}}, "
        f"{{name: main, dag: {{tasks: [{{name: A, template: leaf{extra.get('call', '')}}}]}}}}"
        f"]{extra.get('spec', '')}}}, status: {{phase: x{extra.get('status', '')}}}}}"
    )
    message = "f.yaml"
    try:
        assert read(text, "f.yaml").workflows
    except InputError as error:
        message = str(error)
    assert message.startswith("f.yaml")
    assert "\n" not in message
