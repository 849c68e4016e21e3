"""Which tasks and dependencies an Argo object becomes."""

from __future__ import annotations

import json

import pytest

from dagsail.domain.errors import FormatError
from dagsail.workloads.argo import looks_like, read
from dagsail.workloads.reading import Reading

LEAF = """
  - name: leaf
    inputs: {parameters: [{name: x, default: none}]}
    container: {image: "img:{{inputs.parameters.x}}"}
"""


def reading(templates: str, spec: str = "", leaf: str = LEAF) -> Reading:
    return read(
        "apiVersion: argoproj.io/v1alpha1\n"
        "kind: Workflow\n"
        "metadata: {name: wf}\n"
        f"spec:\n  entrypoint: main\n{spec}  templates:\n{leaf}{templates}",
        "wf.yaml",
    )


def tasks_and_edges(result: Reading) -> tuple[list[str], list[str]]:
    (workflow,) = result.workflows
    edges = [f"{edge.parent}>{edge.child}" for edge in workflow.dependencies]
    return [task.id for task in workflow.tasks], sorted(edges)


def dag(*tasks: str, name: str = "main", more: str = "") -> str:
    lines = "".join(f"      - {{{task}}}\n" for task in tasks)
    return f"  - name: {name}\n    dag:\n{more}      tasks:\n{lines}"


def steps(*groups: str, name: str = "main") -> str:
    return f"  - name: {name}\n    steps:\n" + "".join(f"    - {group}\n" for group in groups)


def has_warning(result: Reading, text: str) -> bool:
    return any(text in warning for warning in result.warnings)


def test_a_dag_keeps_its_edges_and_puts_parents_first() -> None:
    result = reading(
        dag(
            "name: C, template: leaf, depends: A && B",
            "name: A, template: leaf",
            "name: B, template: leaf, dependencies: [A]",
        )
    )
    assert tasks_and_edges(result) == (["A", "B", "C"], ["A>B", "A>C", "B>C"])
    assert result.workflows[0].tasks[0].kind == "leaf"
    assert result.workflows[0].tasks[0].image == "img:none"


def test_step_groups_follow_one_another() -> None:
    result = reading(
        steps(
            "[{name: a, template: leaf}]",
            "[{name: b, template: leaf}, {name: c, template: leaf}]",
            "[{name: d, template: leaf}]",
        )
    )
    assert tasks_and_edges(result) == (["a", "b", "c", "d"], ["a>b", "a>c", "b>d", "c>d"])


def test_a_step_outside_a_list_is_a_group_of_its_own() -> None:
    result = reading(steps("{name: a, template: leaf}", "{name: b, template: leaf}"))
    assert tasks_and_edges(result) == (["a", "b"], ["a>b"])


def test_nested_templates_are_flattened_from_last_tasks_to_first_tasks() -> None:
    inner = steps("[{name: x, template: leaf}, {name: y, template: leaf}]", name="inner")
    result = reading(
        dag("name: A, template: inner", "name: B, template: inner, depends: A") + inner
    )
    assert tasks_and_edges(result) == (
        ["A.x", "A.y", "B.x", "B.y"],
        ["A.x>B.x", "A.x>B.y", "A.y>B.x", "A.y>B.y"],
    )


def test_an_inline_template_needs_no_name() -> None:
    result = reading(steps("[{name: a, inline: {container: {image: i}}}]"))
    assert tasks_and_edges(result) == (["a"], [])
    assert result.workflows[0].tasks[0].kind == "a"
    assert result.workflows[0].tasks[0].image == "i"


def test_a_leaf_can_be_the_entrypoint() -> None:
    assert tasks_and_edges(reading("  - {name: main, script: {image: i}}\n")) == (["main"], [])


def test_loops_over_items_repeat_and_what_follows_waits_for_all() -> None:
    arguments = "arguments: {parameters: [{name: x, value: '{{item.tag}}'}]}"
    result = reading(
        dag(
            f"name: A, template: leaf, withItems: [{{tag: p}}, {{tag: q}}], {arguments}",
            "name: B, template: leaf, depends: A",
        )
    )
    assert tasks_and_edges(result) == (["A(0)", "A(1)", "B"], ["A(0)>B", "A(1)>B"])
    assert [task.image for task in result.workflows[0].tasks] == ["img:p", "img:q", "img:none"]


def test_a_loop_over_a_literal_parameter_repeats() -> None:
    result = reading(
        steps("[{name: a, template: leaf, withParam: '{{workflow.parameters.list}}'}]"),
        """  arguments: {parameters: [{name: list, value: '["p", "q", "r"]'}]}\n""",
    )
    assert tasks_and_edges(result)[0] == ["a(0)", "a(1)", "a(2)"]


def test_a_loop_over_an_output_counts_once_and_says_so() -> None:
    result = reading(
        dag(
            "name: A, template: leaf",
            "name: B, template: leaf, depends: A, withParam: '{{tasks.A.outputs.result}}'",
        )
    )
    assert tasks_and_edges(result) == (["A", "B"], ["A>B"])
    assert has_warning(result, "their template counts once (1 x, first: task 'B' over")


def test_a_loop_over_nothing_is_passed_through() -> None:
    result = reading(
        steps(
            "[{name: a, template: leaf}]",
            "[{name: b, template: leaf, withItems: []}]",
            "[{name: c, template: leaf}]",
        )
    )
    assert tasks_and_edges(result) == (["a", "c"], ["a>c"])


def test_a_false_condition_leaves_the_task_out_and_its_dependents_wait_for_its_parents() -> None:
    result = reading(
        dag(
            "name: A, template: leaf",
            "name: B, template: leaf, depends: A, when: '{{workflow.parameters.go}} == true'",
            "name: C, template: leaf, depends: B",
            "name: D, template: leaf, depends: B.Succeeded",
        ),
        "  arguments: {parameters: [{name: go, value: false}]}\n",
    )
    assert tasks_and_edges(result) == (["A", "C"], ["A>C"])
    assert has_warning(result, "tasks whose condition is false are left out (1 x")
    assert has_warning(result, "another fails or is skipped are left out (1 x, first: task 'D')")


def test_an_open_condition_counts_as_true_and_says_so() -> None:
    result = reading(
        steps(
            "[{name: flip, template: leaf}]",
            "[{name: heads, template: leaf, when: '{{steps.flip.outputs.result}} == heads'}]",
        )
    )
    assert tasks_and_edges(result) == (["flip", "heads"], ["flip>heads"])
    assert has_warning(result, "conditions that only a run can decide count as true (1 x")


def test_the_status_of_an_earlier_task_is_known() -> None:
    result = reading(
        dag(
            "name: A, template: leaf",
            "name: B, template: leaf, depends: A, when: '{{tasks.A.status}} == Failed'",
        )
    )
    assert tasks_and_edges(result) == (["A"], [])


def test_what_runs_on_failure_only_is_left_out() -> None:
    result = reading(
        dag(
            "name: A, template: leaf",
            "name: B, template: leaf, depends: A.Failed || A.Errored",
            "name: C, template: leaf, depends: A.Succeeded || A.Failed",
            "name: D, template: leaf, depends: B.Omitted",
        )
    )
    assert tasks_and_edges(result) == (["A", "C", "D"], ["A>C", "A>D"])


def test_target_keeps_only_what_it_needs() -> None:
    tasks = [
        "name: A, template: leaf",
        "name: B, template: leaf, depends: A",
        "name: C, template: leaf, depends: A",
        "name: D, template: leaf, depends: B",
    ]
    argument = "  arguments: {parameters: [{name: t, value: C B}]}\n"
    result = reading(dag(*tasks, more="      target: '{{workflow.parameters.t}}'\n"), argument)
    assert tasks_and_edges(result) == (["A", "B", "C"], ["A>B", "A>C"])


def test_a_template_that_calls_itself_counts_once() -> None:
    result = reading(
        steps(
            "[{name: flip, template: leaf}]",
            "[{name: heads, template: leaf}, {name: again, template: main}]",
        )
    )
    assert tasks_and_edges(result) == (["flip", "heads"], ["flip>heads"])
    assert has_warning(result, "templates call themselves")


def test_outputs_read_without_a_dependency_add_one() -> None:
    artifact = "arguments: {artifacts: [{name: f, from: '{{tasks.A.outputs.artifacts.f}}'}]}"
    result = reading(
        dag(
            "name: A, template: leaf",
            f"name: B, template: leaf, {artifact}",
            f"name: C, template: leaf, depends: B, {artifact}",
        )
    )
    # C waits for A by way of B, as Argo allows.
    assert tasks_and_edges(result) == (["A", "B", "C"], ["A>B", "B>C"])
    assert has_warning(result, "a dependency is added (1 x")


def test_the_exit_handler_comes_after_every_last_task_and_knows_of_success() -> None:
    handler = steps(
        "[{name: mail, template: leaf}, "
        "{name: cheer, template: leaf, when: '{{workflow.status}} == Succeeded'}, "
        "{name: cry, template: leaf, when: '{{workflow.status}} != Succeeded'}]",
        name="bye",
    )
    result = reading(
        dag("name: A, template: leaf", "name: B, template: leaf") + handler, "  onExit: bye\n"
    )
    assert tasks_and_edges(result) == (
        ["A", "B", "onExit.mail", "onExit.cheer"],
        ["A>onExit.cheer", "A>onExit.mail", "B>onExit.cheer", "B>onExit.mail"],
    )


@pytest.mark.parametrize("hook", ["hooks: {exit: {template: leaf}}", "onExit: leaf"])
def test_the_exit_hook_of_a_task_comes_before_its_dependents(hook: str) -> None:
    result = reading(dag(f"name: A, template: leaf, {hook}", "name: B, template: leaf, depends: A"))
    assert tasks_and_edges(result) == (["A", "A.onExit", "B"], ["A.onExit>B", "A>A.onExit"])


def test_a_daemon_satisfies_a_plain_dependency_but_has_not_succeeded() -> None:
    daemon = "  - {name: db, daemon: true, container: {image: i}}\n"
    result = reading(
        dag(
            "name: A, template: db",
            "name: B, template: leaf, depends: A",
            "name: C, template: leaf, depends: A.Succeeded",
        )
        + daemon
    )
    assert tasks_and_edges(result) == (["A", "B"], ["A>B"])
    assert has_warning(result, "daemon templates")


def test_a_template_of_another_file_is_one_task_of_default_size() -> None:
    result = reading(
        dag("name: A, templateRef: {name: far, template: t}", "name: B, template: leaf, depends: A")
    )
    assert tasks_and_edges(result) == (["A", "B"], ["A>B"])
    assert result.workflows[0].tasks[0].kind == "far/t"
    assert result.workflows[0].tasks[0].request == {"cpu": 1000, "memory": 1024**3}
    assert has_warning(result, "templates of other files")


SHARED = """
apiVersion: argoproj.io/v1alpha1
kind: WorkflowTemplate
metadata: {name: shared}
spec:
  entrypoint: pair
  arguments: {parameters: [{name: n, value: "1"}, {name: m, value: "2"}]}
  templates:
  - name: pair
    dag:
      tasks:
      - {name: l, template: one, withSequence: {count: "{{workflow.parameters.n}}"}}
      - {name: r, template: one, depends: l}
  - {name: one, container: {image: i}}
"""
WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: run-, namespace: team}
spec:
"""


def test_references_inside_the_file_are_followed_and_shared_templates_only_serve() -> None:
    caller = WORKFLOW + (
        "  entrypoint: main\n"
        "  arguments: {parameters: [{name: n, value: 2}]}\n"
        "  templates:\n" + dag("name: A, templateRef: {name: shared, template: pair}")
    )
    result = read(caller + "---" + SHARED, "f.yaml")
    assert tasks_and_edges(result) == (["A.l(0)", "A.l(1)", "A.r"], ["A.l(0)>A.r", "A.l(1)>A.r"])
    assert (result.workflows[0].id, result.workflows[0].tenant) == ("run", "team")


def test_a_whole_workflow_can_come_from_a_template_with_other_arguments() -> None:
    caller = WORKFLOW + (
        "  workflowTemplateRef: {name: shared}\n  arguments: {parameters: [{name: n, value: 2}]}\n"
    )
    result = read(SHARED + "---" + caller, "f.yaml")
    assert tasks_and_edges(result)[0] == ["l(0)", "l(1)", "r"]
    alone = read(caller, "f.yaml")
    assert tasks_and_edges(alone) == (["shared"], [])


def test_a_template_with_an_entrypoint_is_a_workflow_of_its_own() -> None:
    assert tasks_and_edges(read(SHARED, "f.yaml")) == (["l(0)", "r"], ["l(0)>r"])


def test_a_collection_gives_a_workflow_for_each_template_that_none_calls() -> None:
    collection = SHARED.replace("  entrypoint: pair\n", "") + dag(
        "name: x, template: one", name="q"
    )
    assert [w.id for w in read(collection, "f.yaml").workflows] == ["shared.pair", "shared.q"]


def test_workflows_of_one_name_get_distinct_ids_and_other_documents_are_skipped() -> None:
    one = WORKFLOW + "  entrypoint: m\n  templates: [{name: m, container: {image: i}}]\n"
    result = read(one + "---\nkind: ConfigMap\napiVersion: v1\n---" + one, "f.yaml")
    assert [workflow.id for workflow in result.workflows] == ["run", "run-2"]
    assert has_warning(result, "documents that are no Argo workflow are skipped (1 x")


def test_cron_workflows_bare_specs_lists_and_json_are_read() -> None:
    spec = {"entrypoint": "m", "templates": [{"name": "m", "container": {"image": "i"}}]}
    cron = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "CronWorkflow",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "0 0 * * *", "workflowSpec": spec},
    }
    listed = {"apiVersion": "v1", "kind": "List", "items": [cron]}
    assert read(json.dumps(cron), "f.json").workflows[0].id == "nightly"
    assert read(json.dumps(listed, indent=1), "f.json").workflows[0].id == "nightly"
    assert read(json.dumps(spec), "dir/bare.v1.yaml").workflows[0].id == "bare"


def test_looks_like() -> None:
    spec = {"entrypoint": "m", "templates": []}
    assert looks_like({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"})
    assert looks_like({"kind": "Workflow", "spec": spec})
    assert looks_like({"metadata": {}, "spec": spec})
    assert looks_like(spec)
    others: list[object] = [
        None,
        [spec],
        "Workflow",
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"},
        {"apiVersion": "dagsail.io/v1", "kind": "Workflow", "spec": spec},
        {"kind": "Workflow", "tasks": []},
        {"kind": "Scenario"},
        {"kind": ["Workflow"], "spec": spec},
        {"templates": []},
        {"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod"}]},
    ]
    for other in others:
        assert not looks_like(other)


def test_everything_skipped_leaves_no_workflow() -> None:
    with pytest.raises(FormatError, match="no task is left to run"):
        reading(dag("name: A, template: leaf, when: 'false'"))
