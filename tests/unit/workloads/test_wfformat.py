"""Reading WfFormat: the two layouts, units by version, repairs, and refusal of bad input."""

from __future__ import annotations

import copy
import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dagsail.domain.errors import FormatError, InputError, WorkflowError
from dagsail.domain.units import CPU, GIB, MEMORY
from dagsail.domain.workflow import Task, Workflow, topological_order
from dagsail.files import read_text
from dagsail.workloads import wfformat
from dagsail.workloads.reading import Reading

# split (10 s) -> work (20 s, 2.5 cores, 3 MB) -> join (0 s); split -> join.
# raw.txt (1000 B, from outside) -> split -> a.txt (300 B), b.txt (40 B); a -> work -> c.txt (7 B);
# join reads b and c and writes nothing.
MODERN: dict[str, Any] = {
    "name": "three",
    "schemaVersion": "1.5",
    "runtimeSystem": {"name": "Pegasus"},
    "workflow": {
        "specification": {
            "tasks": [
                {
                    "name": "split_ID01",
                    "id": "split_ID01",
                    "parents": [],
                    "children": ["work_ID02", "join_ID03"],
                    "inputFiles": ["raw.txt"],
                    "outputFiles": ["a.txt", "b.txt"],
                },
                {
                    "name": "work_ID02",
                    "id": "work_ID02",
                    "parents": ["split_ID01"],
                    "children": ["join_ID03"],
                    "inputFiles": ["a.txt"],
                    "outputFiles": ["c.txt"],
                },
                {
                    "name": "join_ID03",
                    "id": "join_ID03",
                    "parents": ["split_ID01", "work_ID02"],
                    "children": [],
                    "inputFiles": ["b.txt", "c.txt"],
                    "outputFiles": [],
                },
            ],
            "files": [
                {"id": "raw.txt", "sizeInBytes": 1000},
                {"id": "a.txt", "sizeInBytes": 300},
                {"id": "b.txt", "sizeInBytes": 40},
                {"id": "c.txt", "sizeInBytes": 7},
            ],
        },
        "execution": {
            "makespanInSeconds": 31,
            "tasks": [
                {
                    "id": "split_ID01",
                    "runtimeInSeconds": 10,
                    "command": {"program": "split"},
                    "coreCount": 1,
                    "memoryInBytes": 2 * GIB,
                },
                {"id": "work_ID02", "runtimeInSeconds": 20.5, "avgCPU": 250.0},
                {"id": "join_ID03", "runtimeInSeconds": 0, "avgCPU": 3.1, "memoryInBytes": 0},
            ],
            "machines": [
                {"nodeName": "n", "memoryInBytes": 64 * GIB, "cpu": {"coreCount": 16}},
            ],
        },
    },
}


def old(*tasks: dict[str, Any], version: str = "1.4", key: str = "tasks") -> dict[str, Any]:
    return {"name": "old", "schemaVersion": version, "workflow": {key: list(tasks)}}


def modern(path: str, value: Any) -> dict[str, Any]:
    """`MODERN` with one value replaced; `path` is dotted and relative to `workflow`."""
    document = copy.deepcopy(MODERN)
    target: Any = document["workflow"]
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        target = target[part]
    target[last] = value
    return document


def read(document: Any) -> Reading:
    return wfformat.read(json.dumps(document), "three.json")


def only(reading: Reading) -> Workflow:
    (workflow,) = reading.workflows
    return workflow


def task(workflow: Workflow, name: str) -> Task:
    return next(task for task in workflow.tasks if task.id == name)


def edges(workflow: Workflow) -> dict[tuple[str, str], int]:
    return {(edge.parent, edge.child): edge.data_bytes for edge in workflow.dependencies}


def critical_path_s(workflow: Workflow) -> float:
    parents: dict[str, list[str]] = {}
    for edge in workflow.dependencies:
        parents.setdefault(edge.child, []).append(edge.parent)
    runtime = {task.id: task.runtime_s for task in workflow.tasks}
    finish: dict[str, float] = {}
    for name in topological_order(workflow):
        ready = max((finish[parent] for parent in parents.get(name, [])), default=0.0)
        finish[name] = ready + runtime[name]
    return max(finish.values())


class TestModernLayout:
    def test_reads_tasks_and_edges_with_the_bytes_that_flow(self):
        workflow = only(read(MODERN))
        assert workflow.id == "three"
        assert [task.id for task in workflow.tasks] == ["split_ID01", "work_ID02", "join_ID03"]
        assert [task.runtime_s for task in workflow.tasks] == [10.0, 20.5, 0.0]
        assert edges(workflow) == {
            ("split_ID01", "work_ID02"): 300,
            ("split_ID01", "join_ID03"): 40,
            ("work_ID02", "join_ID03"): 7,
        }
        assert workflow.submitted_s is None

    def test_input_is_what_no_task_writes_and_output_all_that_is_written(self):
        workflow = only(read(MODERN))
        assert [task.input_bytes for task in workflow.tasks] == [1000, 0, 0]
        assert [task.output_bytes for task in workflow.tasks] == [340, 7, 0]

    def test_requests_follow_from_cores_cpu_use_and_memory(self):
        workflow = only(read(MODERN))
        assert [task.request[CPU] for task in workflow.tasks] == [1000, 3000, 1000]
        assert [task.request[MEMORY] for task in workflow.tasks] == [2 * GIB, GIB, GIB]

    def test_kind_is_the_program_or_the_name_without_its_number(self):
        assert [task.kind for task in only(read(MODERN)).tasks] == ["split", "work", "join"]

    def test_each_assumption_is_reported_once_with_its_count(self):
        assert read(MODERN).warnings == (
            "three.json: task without cores, its mean CPU use rounded up to whole cores"
            " (2 x, first: work_ID02)",
            "three.json: task without memory, 1 GiB assumed (2 x, first: work_ID02)",
            "three.json: task with a recorded run time of 0 s, kept (1 x, first: join_ID03)",
        )

    def test_a_complete_document_has_no_warnings(self):
        document = copy.deepcopy(MODERN)
        for run in document["workflow"]["execution"]["tasks"]:
            run |= {"runtimeInSeconds": 1, "coreCount": 2, "memoryInBytes": GIB}
        reading = read(document)
        assert reading.warnings == ()
        assert [task.request[CPU] for task in only(reading).tasks] == [2000] * 3

    def test_missing_execution_gives_the_default_run_time_and_says_so(self):
        document = copy.deepcopy(MODERN)
        del document["workflow"]["execution"]
        reading = read(document)
        assert [task.runtime_s for task in only(reading).tasks] == [60.0] * 3
        assert any("60 s assumed (3 x" in warning for warning in reading.warnings)

    def test_null_counts_as_missing(self):
        reading = read(modern("execution.tasks.0.runtimeInSeconds", None))
        assert only(reading).tasks[0].runtime_s == 60.0
        assert any("without a run time" in warning for warning in reading.warnings)

    def test_names_may_repeat_where_ids_are_unique(self):
        document = copy.deepcopy(MODERN)
        for spec in document["workflow"]["specification"]["tasks"]:
            spec["name"] = "same"
        assert edges(only(read(document))) == edges(only(read(MODERN)))

    def test_a_dependency_that_one_side_forgets_is_kept_and_reported(self):
        reading = read(modern("specification.tasks.0.children", ["work_ID02"]))
        assert ("split_ID01", "join_ID03") in edges(only(reading))
        assert any(
            "only one of its two tasks lists, kept (1 x, first: split_ID01 -> join_ID03)" in warning
            for warning in reading.warnings
        )

    def test_a_relative_listed_twice_is_merged_and_reported(self):
        reading = read(modern("specification.tasks.1.parents", ["split_ID01", "split_ID01"]))
        assert edges(only(reading)) == edges(only(read(MODERN)))
        assert any("lists a relative twice, merged (1 x" in w for w in reading.warnings)

    def test_a_file_without_a_size_is_reported(self):
        document = copy.deepcopy(MODERN)
        del document["workflow"]["specification"]["files"][1]
        reading = read(document)
        assert edges(only(reading))["split_ID01", "work_ID02"] == 0
        assert any(
            "without a size, 0 bytes assumed (1 x, first: a.txt)" in w for w in reading.warnings
        )

    def test_a_file_updated_in_place_is_still_input_from_outside(self):
        workflow = only(read(modern("specification.tasks.0.outputFiles", ["raw.txt", "a.txt"])))
        assert task(workflow, "split_ID01").input_bytes == 1000

    def test_memory_of_a_machine_too_small_to_be_true_is_in_kib(self):
        document = modern("execution.machines.0.memoryInBytes", 196_000_000)
        document["workflow"]["execution"]["tasks"][0]["memoryInBytes"] = 2 * GIB // 1024
        reading = read(document)
        assert only(reading).tasks[0].request[MEMORY] == 2 * GIB
        assert any("memory is taken for KiB" in warning for warning in reading.warnings)

    def test_a_workflow_without_a_name_is_named_after_its_file(self):
        document = copy.deepcopy(MODERN)
        del document["name"]
        text = json.dumps(document)
        assert only(wfformat.read(text, "runs/some.run-1.json.gz")).id == "some.run-1"

    def test_an_unknown_version_is_read_by_its_layout_and_reported(self):
        reading = read(MODERN | {"schemaVersion": "9.9"})
        assert edges(only(reading)) == edges(only(read(MODERN)))
        assert any("'9.9' is unknown" in warning for warning in reading.warnings)

    @pytest.mark.parametrize(
        ("name", "family"),
        [("genome-dax-0", "epigenomics"), ("Montage-synthetic", "montage"), ("mine", "")],
    )
    def test_family_is_the_application_that_the_name_gives_away(self, name, family):
        assert only(read(MODERN | {"name": name})).family == family


class TestOldLayout:
    def test_parents_name_names_and_memory_is_in_kb(self):
        reading = read(
            old(
                {
                    "name": "a_ID1",
                    "id": "ID1",
                    "runtime": 5,
                    "parents": [],
                    "memory": 2048,
                    "cores": 2,
                    "files": [{"link": "output", "name": "f", "size": 9}],
                },
                {
                    "name": "b_ID2",
                    "id": "ID2",
                    "runtime": 6,
                    "parents": ["a_ID1"],
                    "memory": 2048,
                    "cores": 1,
                    "files": [{"link": "input", "name": "f", "size": 9}],
                },
                version="1.2",
                key="jobs",
            )
        )
        workflow = only(reading)
        assert edges(workflow) == {("a_ID1", "b_ID2"): 9}
        assert [task.request for task in workflow.tasks] == [
            {CPU: 2000, MEMORY: 2_097_152},  # 2,048,000 B is 15.6 steps of 128 KiB
            {CPU: 1000, MEMORY: 2_097_152},
        ]
        assert [task.kind for task in workflow.tasks] == ["a", "b"]
        assert reading.warnings == ()

    def test_parents_may_name_ids_too(self):
        workflow = only(
            read(old({"name": "a", "id": "1"}, {"name": "b", "id": "2", "parents": ["1"]}))
        )
        assert edges(workflow) == {("a", "b"): 0}

    def test_missing_children_are_no_asymmetry(self):
        reading = read(old({"name": "a", "parents": []}, {"name": "b", "parents": ["a"]}))
        assert not any("only one of its two tasks" in warning for warning in reading.warnings)

    def test_nextflow_edges_follow_from_folder_and_name_of_files(self):
        def nextflow(number: str, reads: str, writes: str) -> dict[str, Any]:
            return {
                "name": "PIPE.SUB.FASTQC",
                "id": number,
                "parents": [],
                "children": [],
                "runtimeInSeconds": 1,
                "command": {"program": "["},
                "files": [
                    {"link": "input", "path": reads, "name": "x.txt", "sizeInBytes": 4},
                    {"link": "output", "path": writes, "name": "x.txt", "sizeInBytes": 5},
                ],
            }

        document = old(nextflow("1", "/in/", "/w1/"), nextflow("2", "/w1/", "/w2/"))
        document["workflow"]["tasks"][1]["files"][0]["sizeInBytes"] = 5
        reading = read(document | {"wms": {"name": "Nextflow"}})
        workflow = only(reading)
        assert edges(workflow) == {("PIPE.SUB.FASTQC_1", "PIPE.SUB.FASTQC_2"): 5}
        assert [task.kind for task in workflow.tasks] == ["FASTQC", "FASTQC"]
        assert [task.input_bytes for task in workflow.tasks] == [4, 0]
        assert any("follow from the files" in warning for warning in reading.warnings)

    def test_auxiliary_jobs_are_tasks_and_reported(self):
        reading = read(
            old(
                {"name": "stage_in_0_1", "type": "auxiliary", "runtime": 1, "parents": []},
                {"name": "run_run_3_x", "type": "compute", "parents": ["stage_in_0_1"]},
                version="0.1",
                key="jobs",
            )
        )
        assert [task.kind for task in only(reading).tasks] == ["stage_in", "run"]
        assert any("auxiliary job" in warning for warning in reading.warnings)

    def test_a_file_of_different_sizes_counts_with_the_largest(self):
        reading = read(
            old(
                {"name": "a", "files": [{"link": "output", "name": "f", "size": 9}] * 2},
                {
                    "name": "b",
                    "parents": ["a"],
                    "files": [{"link": "input", "name": "f", "size": 11}],
                },
            )
        )
        assert edges(only(reading)) == {("a", "b"): 11}
        assert any("different sizes" in warning for warning in reading.warnings)
        assert any("lists a file twice" in warning for warning in reading.warnings)


class TestBadInput:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "three.json:1:1: not valid JSON"),
            (json.dumps(MODERN)[:500], "not valid JSON"),
            ("{}", "not WfFormat: the document has no 'workflow'"),
            ("[]", "the document is a list; an object is expected"),
            ("null", "the document is missing; an object is expected"),
            ('"workflow"', "an object is expected"),
            ('{"workflow": []}', "workflow is a list; an object is expected"),
            ('{"workflow": {"specification": "x"}}', "workflow.specification is 'x'; an object"),
            ('{"workflow": {"tasks": {}}}', "workflow.tasks is an object; a list is expected"),
            ('{"workflow": {"tasks": [3]}}', r"workflow.tasks\[0\] is 3; an object is expected"),
            ('{"workflow": {"tasks": [{}]}}', r"workflow.tasks\[0\].name is missing"),
            ("[" * 100_000, "nested too deeply"),
        ],
    )
    def test_text_that_is_not_wfformat_is_refused(self, text, message):
        with pytest.raises(FormatError, match=message):
            wfformat.read(text, "three.json")

    def test_a_document_without_tasks_is_refused(self):
        with pytest.raises(WorkflowError, match=r"three\.json: workflow 'three' has no tasks"):
            read(MODERN | {"workflow": {}})

    @pytest.mark.parametrize("value", [-1, "10", True, [], {}, 10**400, 1e300])
    @pytest.mark.parametrize(
        "path",
        [
            "execution.tasks.0.runtimeInSeconds",
            "execution.tasks.0.coreCount",
            "execution.tasks.1.avgCPU",
            "execution.tasks.0.memoryInBytes",
            "specification.files.0.sizeInBytes",
        ],
    )
    def test_a_value_that_is_no_possible_amount_is_refused_with_its_place(self, path, value):
        place = re.sub(r"\.(\d+)", r"[\1]", path)
        with pytest.raises(FormatError, match=rf"three.json: workflow\.{re.escape(place)} of '"):
            read(modern(path, value))

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_numbers_that_are_not_finite_are_refused(self, number):
        text = json.dumps(MODERN).replace("20.5", number)
        with pytest.raises(FormatError, match=r"three\.json: .*(number|allowed)"):
            wfformat.read(text, "three.json")

    @pytest.mark.parametrize("value", ["split_ID01", {"a": 1}, [1], [None], [["x"]], [""], ["\n"]])
    @pytest.mark.parametrize("key", ["parents", "children", "inputFiles", "outputFiles"])
    def test_lists_of_names_hold_names(self, key, value):
        place = rf"workflow\.specification\.tasks\[1\]\.{key}"
        with pytest.raises(FormatError, match=place):
            read(modern(f"specification.tasks.1.{key}", value))

    def test_a_cycle_is_named(self):
        document = modern("specification.tasks.0.parents", ["join_ID03"])
        with pytest.raises(WorkflowError, match=r"three\.json: .* has a cycle: .*join_ID03"):
            read(document)

    @pytest.mark.parametrize(("key", "role"), [("parents", "parent"), ("children", "child")])
    def test_an_unknown_relative_is_named(self, key, role):
        document = modern(f"specification.tasks.1.{key}", ["ghost"])
        with pytest.raises(
            WorkflowError, match=f"task 'work_ID02' names an unknown {role} 'ghost'"
        ):
            read(document)

    def test_an_ambiguous_name_is_no_parent(self):
        document = old(
            {"name": "a", "id": "1"},
            {"name": "a", "id": "2"},
            {"name": "b", "id": "3", "parents": ["a"]},
        )
        with pytest.raises(WorkflowError, match="task 'b' names an unknown parent 'a'"):
            read(document)

    def test_duplicate_ids_are_refused(self):
        document = modern("specification.tasks.1.id", "split_ID01")
        del document["workflow"]["execution"]
        with pytest.raises(WorkflowError):
            read(document)
        with pytest.raises(WorkflowError, match="'a' occurs more than once"):
            read(old({"name": "a"}, {"name": "a"}))

    def test_execution_records_match_tasks_one_to_one(self):
        with pytest.raises(FormatError, match="no task of the specification has that id"):
            read(modern("execution.tasks.1.id", "ghost"))
        with pytest.raises(FormatError, match="an earlier entry has the same id"):
            read(modern("execution.tasks.1.id", "split_ID01"))

    def test_a_link_is_input_or_output(self):
        with pytest.raises(FormatError, match=r"files\[0\]\.link of 'f' is 'sideways'"):
            read(old({"name": "a", "files": [{"link": "sideways", "name": "f"}]}))

    @pytest.mark.parametrize(
        "document",
        [
            MODERN,
            old(
                {
                    "name": "a",
                    "id": "1",
                    "type": "compute",
                    "runtime": 1,
                    "parents": [],
                    "memory": 7,
                    "command": {"program": "p"},
                    "files": [{"link": "input", "name": "f", "size": 1}],
                }
            )
            | {"wms": {"name": "Makeflow"}},
        ],
        ids=["modern", "old"],
    )
    def test_a_wrong_value_anywhere_is_read_or_refused_but_never_crashes(self, document):
        strange: list[Any] = [
            None,
            True,
            -1,
            1e300,
            10**400,
            "",
            "x\ny",
            "\ud800",
            [],
            [[]],
            {},
            {"a": None},
        ]
        refusals = []
        for variant in mutations(document, strange):
            try:
                read(variant)
            except InputError as error:
                refusals.append(str(error))
        assert len(refusals) > 100
        assert [text for text in refusals if "\n" in text or text[:10] != "three.json"] == []


def mutations(document: Any, strange: list[Any]) -> Iterator[Any]:
    """The document with each of its values replaced by each strange one."""
    yield from strange
    if isinstance(document, dict):
        for key, child in document.items():
            for variant in mutations(child, strange):
                yield document | {key: variant}
    elif isinstance(document, list):
        for index, child in enumerate(document):
            for variant in mutations(child, strange):
                yield [*document[:index], variant, *document[index + 1 :]]


def test_looks_like_tells_wfformat_from_other_json():
    assert wfformat.looks_like(json.dumps(MODERN)[:60])
    assert wfformat.looks_like('{"name": "x", "workflow": {"jobs": [')
    assert not wfformat.looks_like('{"task_graph": {"tasks": []}}')
    assert not wfformat.looks_like('{"workflow": {"apiVersion": "argoproj.io/v1alpha1"}}')
    assert not wfformat.looks_like('{"schemaVersion": 2, "layers": []}')
    assert not wfformat.looks_like("<adag>")


def test_ten_thousand_tasks_are_read_in_seconds():
    tasks: list[dict[str, Any]] = [
        {
            "name": f"t{i}",
            "id": f"t{i}",
            "parents": [f"t{p}" for p in {i // 2, i // 3} if p < i],
            "children": [],
            "inputFiles": [f"f{i // 2}", f"f{i // 3}"],
            "outputFiles": [f"f{i}"],
        }
        for i in range(10_000)
    ]
    tasks.append(
        {
            "name": "sink",
            "id": "sink",
            "parents": [f"t{i}" for i in range(10_000)],
            "children": [],
            "inputFiles": [f"f{i}" for i in range(10_000)],
        }
    )
    files = [{"id": f"f{i}", "sizeInBytes": i} for i in range(10_000)]
    text = json.dumps({"workflow": {"specification": {"tasks": tasks, "files": files}}})
    start = time.perf_counter()
    workflow = only(wfformat.read(text, "big.json"))
    assert time.perf_counter() - start < 10
    assert len(workflow.tasks) == 10_001
    assert sum(e.data_bytes for e in workflow.dependencies if e.child == "sink") == 49_995_000


class TestRealFiles:
    def test_every_file_holds_the_tasks_that_the_manifest_states(self, data_dir: Path):
        with open(data_dir / "manifest.csv", encoding="utf-8") as manifest:
            notes = {row["file"]: row["note"] for row in csv.DictReader(manifest)}
        names = [name for name in notes if name.startswith("wfinstances-")]
        assert len(names) >= 60
        for name in names:
            text = read_text(data_dir / name)
            assert wfformat.looks_like(text[:4096]), name
            workflow = only(wfformat.read(text, name))
            stated = re.search(r"tasks=(\d+)", notes[name])
            assert stated is not None
            assert len(workflow.tasks) == int(stated[1]), name
            assert workflow.dependencies, name
            assert workflow.family, name
            record = json.loads(text)["workflow"]
            record = record.get("execution", record)
            makespan = record.get("makespanInSeconds", record.get("makespan"))
            assert 0 < critical_path_s(workflow) <= makespan, name

    @pytest.mark.parametrize(
        ("legacy", "modern"),
        [
            ("srasearch-chameleon-20a-003", "srasearch/srasearch-chameleon-20a-003"),
            ("1000genome-chameleon-2ch-100k-001", "1000genome/1000genome-chameleon-2ch-100k-001"),
            (
                "epigenomics-chameleon-hep-1seq-100k-001",
                "epigenomics/epigenomics-chameleon-hep-1seq-100k-001",
            ),
            ("montage-chameleon-2mass-005d-001", "montage/montage-chameleon-2mass-005d-001"),
            ("cycles-chameleon-1l-1c-9p-001", "cycles/cycles-chameleon-1l-1c-9p-001"),
            ("blast-chameleon-small-001", "blast/blast-chameleon-small-001"),
            ("sarek-001", "nextflow/sarek-001"),
            ("methylseq-001", "nextflow/methylseq-001"),
        ],
    )
    def test_one_run_in_two_versions_gives_one_workflow(self, data_dir, legacy, modern):
        paths = (
            data_dir / "wfinstances-legacy" / "1.4" / f"{legacy}.json",
            data_dir / "wfinstances-1.5" / f"{modern}.json",
        )
        first, second = (only(wfformat.read(read_text(path), path.name)) for path in paths)
        assert edges(first) == edges(second)
        assert {task.id: task for task in first.tasks} == {task.id: task for task in second.tasks}

    @pytest.mark.parametrize("version", ["1.0", "1.4"])
    def test_memory_in_kb_of_1_0_is_the_memory_in_bytes_of_1_4(self, data_dir, version):
        name = "montage-chameleon-2mass-005d-001.json"
        text = read_text(data_dir / "wfinstances-legacy" / version / name)
        largest = max(task.request[MEMORY] for task in only(wfformat.read(text, name)).tasks)
        assert largest == 9 * 16 * 1024**2  # 137,032,000 B is 8.2 steps of 16 MiB

    def test_helloworld_memory_is_taken_for_kib(self, data_dir):
        path = data_dir / "wfinstances-1.5" / "helloworld" / "helloworld-chain-5-chameleon.json"
        workflow = only(wfformat.read(read_text(path), path.name))
        # 86508 to 88688 KiB, in steps of 8 MiB.
        assert {task.request[MEMORY] for task in workflow.tasks} == {88 * 1024**2}

    def test_every_truncation_of_a_real_file_is_refused(self, data_dir):
        path = data_dir / "wfinstances-1.5" / "helloworld" / "helloworld-chain-5-chameleon.json"
        text = read_text(path).rstrip()
        for length in range(0, len(text), 37):
            with pytest.raises(FormatError):
                wfformat.read(text[:length], path.name)
