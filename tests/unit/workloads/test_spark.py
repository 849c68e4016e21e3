"""Spark TPC-H queries: stages become tasks with warm durations."""

from __future__ import annotations

import json

import pytest

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import GIB
from dagsail.files import read_text
from dagsail.workloads import spark
from dagsail.workloads.stages import BARRIER_KIND


def stage(node, first, rest, fresh=None):
    return {
        "node": node,
        "first_wave": first,
        "rest_wave": rest,
        "fresh_durations": first if fresh is None else fresh,
    }


def query(listed, links=(), **changes):
    return {
        "query": 3,
        "size": "2g",
        "n_stages": len(listed),
        "edges": [list(edge) for edge in links],
        "stages": listed,
    } | changes


def read(*queries):
    return spark.read(json.dumps(queries), "q.json")


def size_of(entry):
    tasks = read(query([entry])).workflows[0].tasks
    assert len({task.runtime_s for task in tasks}) == 1
    return len(tasks), tasks[0].runtime_s


def test_a_stage_has_as_many_tasks_as_its_first_executor_count_lists():
    warm = {"2": [1000, 3000, 2000], "10": [9000]}
    assert size_of(stage(0, {"2": [4000, 6000], "10": [7000]}, warm)) == (5, 2.0)


def test_without_warm_durations_the_nearest_executor_count_is_taken():
    cold = {"2": [4000], "100": [1], "5": [1]}
    assert size_of(stage(0, cold, {"2": [], "100": [8000], "5": [500, 1500]})) == (1, 1.0)


def test_a_stage_that_was_never_warm_takes_its_cold_durations():
    assert size_of(stage(0, {"2": [4000, 6000]}, {"2": []})) == (2, 5.0)
    assert size_of(stage(0, {"2": [], "5": [7000]}, {"2": [0], "5": []})) == (1, 7.0)
    reading = read(query([stage(0, {"2": [4000]}, {})]))
    assert any("first_wave taken" in warning for warning in reading.warnings)


def test_durations_that_are_all_zero_get_the_reported_default():
    reading = read(query([stage(0, {"2": [0]}, {"2": []})]))
    assert reading.workflows[0].tasks[0].runtime_s == 60.0
    assert any("60 s assumed" in warning for warning in reading.warnings)


def test_edges_join_stages_with_barriers_where_they_save_dependencies():
    wide = {"2": [1000] * 3}
    none: dict[str, list[int]] = {"2": []}
    stages = [stage(0, wide, none), stage(1, wide, none), stage(2, {"2": [1000]}, none)]
    reading = read(query(stages, [(0, 1), (1, 2)]))
    (workflow,) = reading.workflows
    assert workflow.id == "tpch-q3-2g"
    assert workflow.submitted_s is None
    assert [task.id for task in workflow.tasks if task.kind == BARRIER_KIND] == ["stage-0-done"]
    edges = {(edge.parent, edge.child) for edge in workflow.dependencies}
    assert edges == (
        {(f"stage-0[{i}]", "stage-0-done") for i in range(3)}
        | {("stage-0-done", f"stage-1[{i}]") for i in range(3)}
        | {(f"stage-1[{i}]", "stage-2") for i in range(3)}
    )
    last = workflow.tasks[-1]
    assert (last.kind, last.request) == ("tpch-q3/stage-2", {"cpu": 1000, "memory": GIB})
    assert any("1 cores and 1 GiB a task assumed (3 x)" in w for w in reading.warnings)


def test_a_repeated_edge_is_reported():
    one = {"2": [1000]}
    reading = read(query([stage(0, one, {}), stage(1, one, {})], [(0, 1), (0, 1)]))
    assert len(reading.workflows[0].dependencies) == 1
    assert any("edge listed twice" in warning for warning in reading.warnings)


ONE = stage(0, {"2": [1000]}, {"2": []})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the list of queries is empty"),
        ({}, "the document is {}; it must be a list"),
        (None, "the document is None"),
        ([5], "query 1: is 5; it must be an object"),
        ([query([ONE], query="x")], "query is 'x'"),
        ([query([ONE], query=True)], "query is True"),
        ([query([ONE], size="2\ng")], r"size is '2\\ng'"),
        ([query([ONE], size=None)], "size is None"),
        ([query([ONE]), query([ONE])], "query 'tpch-q3-2g' occurs more than once"),
        ([query([ONE], stages=None)], "stages is None; it must be a list"),
        ([query([ONE], stages=[None], n_stages=1)], "stage None has no whole number 'node'"),
        ([query([ONE], n_stages=2)], "n_stages is 2 but 1 stages are listed"),
        ([query([ONE, ONE])], "stage 0 occurs more than once"),
        ([query([ONE], edges=None)], "edges is None"),
        ([query([ONE], [(0, 7)])], r"edge \[0, 7\] names stage 7, which is not listed"),
        ([query([ONE], [(0,)])], r"edge \[0\] is no pair"),
        ([query([ONE], [(0, "1")])], r"edge \[0, '1'\] is no pair"),
        ([query([stage(0, [], {})])], r"stage 0: first_wave is \[\]"),
        ([query([stage(0, {}, {})])], "first_wave is empty"),
        ([query([stage(0, {"2": []}, {"2": []})])], "no task is listed for 2 executors"),
        ([query([stage(0, {"x": [1]}, {})])], "key 'x' is no executor count"),
        ([query([stage(0, {"2": 5}, {})])], r"\[2\] is 5; it must be a list"),
        ([query([stage(0, {"2": ["1"]}, {})])], r"first_wave\[2\] holds '1'"),
        ([query([stage(0, {"2": [None]}, {})])], r"first_wave\[2\] holds None"),
        ([query([stage(0, {"2": [True]}, {})])], r"first_wave\[2\] holds True"),
        ([query([stage(0, {"2": [-1]}, {})])], r"first_wave\[2\] holds -1"),
        ([query([stage(0, {"2": [1e300]}, {})])], r"first_wave\[2\] holds 1e\+300"),
        ([query([stage(0, {"2": [1]}, {"2": [10**400]})])], r"rest_wave\[2\] holds 1000"),
    ],
)
def test_a_bad_query_is_refused_with_its_place(document, message):
    with pytest.raises(FormatError, match=rf"^q\.json: .*{message}"):
        spark.read(json.dumps(document), "q.json")


@pytest.mark.parametrize("text", ["[{", '[{"query": NaN}]', "not json"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(FormatError, match=r"^q\.json"):
        spark.read(text, "q.json")


def test_a_number_beyond_any_float_is_refused():
    text = json.dumps([query([ONE])]).replace("1000", "1e999")
    with pytest.raises(FormatError, match="holds inf"):
        spark.read(text, "q.json")


def test_stages_that_form_no_dag_are_refused():
    two = [ONE, stage(1, {"2": [1000]}, {})]
    with pytest.raises(WorkflowError, match=r"q\.json: workflow 'tpch-q3-2g' has a cycle: stage-"):
        read(query(two, [(0, 1), (1, 0)]))
    with pytest.raises(WorkflowError, match=r"q\.json: tpch-q3-2g: stage 0 depends on itself"):
        read(query(two, [(0, 0)]))


def test_files_that_hold_half_of_a_query_say_what_is_missing():
    graphs = "# comment\ngraphs:\n  - name: Q1\n    graph:\n    - name: 0\n      children: [1]\n"
    profiles = json.dumps({"q1": [{"num_tasks": 3, "average_runtime_ms": 5.0}]})
    assert spark.looks_like(graphs)
    assert spark.looks_like(profiles)
    with pytest.raises(FormatError, match="without task counts or durations"):
        spark.read(graphs, "g.yaml")
    with pytest.raises(FormatError, match="without their dependencies"):
        spark.read(profiles, "p.json")


def test_it_recognises_its_own_files_only():
    assert spark.looks_like(json.dumps([query([ONE])]))
    assert not spark.looks_like('{"workflow": {}}')
    assert not spark.looks_like("graphs: 5\n")


@pytest.mark.parametrize(
    ("size", "num_tasks", "never_warm"),
    [("2g", 15331, 35), ("50g", 19933, 23), ("100g", 24803, 24)],
)
def test_the_real_queries_are_read(data_dir, size, num_tasks, never_warm):
    text = read_text(data_dir / "spark-tpch" / f"tpch_{size}.json.gz")
    assert spark.looks_like(text[:4096])
    reading = spark.read(text, size)
    assert len(reading.workflows) == 17
    tasks = [task for workflow in reading.workflows for task in workflow.tasks]
    assert sum(task.kind != BARRIER_KIND for task in tasks) == num_tasks
    assert any(f"first_wave taken ({never_warm} x" in warning for warning in reading.warnings)
    assert sum(len(workflow.dependencies) for workflow in reading.workflows) < 50_000
