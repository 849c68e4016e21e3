"""Reading the Standard Task Graph Set: dummies removed, rows in any order, bad input refused."""

from __future__ import annotations

import csv
import re
import time
from pathlib import Path

import pytest

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, GIB, MEMORY
from dagsail.domain.workflow import Workflow
from dagsail.files import read_text
from dagsail.workloads import stg

# 1 (2 s) and 2 (3 s) start, 3 (4 s) follows both; 0 and 4 are dummies.
FORK = """\
    3
    0   0   0
    1   2   1   0
    2   3   1   0
    3   4   2   1   2
    4   0   1   3
# A comment.
"""


def only(text: str) -> Workflow:
    (workflow,) = stg.read(text, "sets/fork.stg").workflows
    return workflow


def edges(workflow: Workflow) -> list[tuple[str, str]]:
    return [(edge.parent, edge.child) for edge in workflow.dependencies]


def test_reads_tasks_without_dummy_entry_and_exit():
    workflow = only(FORK)
    assert workflow.id == "fork"
    assert [(task.id, task.runtime_s) for task in workflow.tasks] == [
        ("1", 2.0),
        ("2", 3.0),
        ("3", 4.0),
    ]
    assert edges(workflow) == [("1", "3"), ("2", "3")]
    assert all(edge.data_bytes == 0 for edge in workflow.dependencies)
    assert all(task.request == {CPU: 1000, MEMORY: GIB} for task in workflow.tasks)


def test_unit_and_requests_are_reported_once():
    assert stg.read(FORK, "fork.stg").warnings == (
        "fork.stg: processing times have no unit, seconds assumed (1 x)",
        "fork.stg: tasks state no resources, 1000 millicores and 1 GiB assumed for each (1 x)",
    )


@pytest.mark.parametrize(
    "text",
    [
        "3 16\n1 2 0\n2 3 0\n3 4 2 1 2\n4 0 1 3\n",  # no entry, a second number in the header
        "3\n1 2 0\n2 3 0\n3 4 2 1 2\n",  # no dummies at all
        "3\n0 0 0\n1 2 1 0\n2 3 1 0\n3 4 2 1 2\n",  # no exit
        "3\n3 4 2 1 2\n4 0 1 3\n0 0 0\n1 2 1 0\n2 3 1 0\n",  # rows in another order
    ],
)
def test_dummies_may_be_missing_and_rows_unordered(text):
    workflow = only(text)
    assert {task.id: task.runtime_s for task in workflow.tasks} == {"1": 2, "2": 3, "3": 4}
    assert sorted(edges(workflow)) == [("1", "3"), ("2", "3")]


def test_a_real_task_without_cost_is_kept_and_reported():
    reading = stg.read(FORK.replace("2   3   1", "2   0   1"), "fork.stg")
    assert len(reading.workflows[0].tasks) == 3
    assert "fork.stg: task with a processing time of 0, kept (1 x, first: 2)" in reading.warnings


def test_a_predecessor_listed_twice_is_merged_and_reported():
    reading = stg.read(FORK.replace("2   1   2", "3   1   2   1"), "fork.stg")
    assert edges(reading.workflows[0]) == [("1", "3"), ("2", "3")]
    assert any("lists a predecessor twice" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"f\.stg:1: not STG: the first line holds 0 words"),
        ("# only a comment\n", "the first line holds 0 words"),
        ("a b c\n", "the first line holds 3 words"),
        ("three\n", "f.stg:1: 'three' is not a whole number"),
        ("9" * 5000 + "\n1 1 0\n", "is not a whole number"),
        ("2\n1 1 0\n", "declares 2 tasks but holds 1 .* truncated"),
        ("1\n1 1 0\n2 1 0\n", "declares 1 tasks but holds 2"),
        ("1\n1 1\n", "f.stg:2: 2 numbers; expected are"),
        ("1\n1 1 2 0\n", "f.stg:2: task 1 states 2 predecessors but lists 1"),
        ("1\n1 1 0 7\n", "f.stg:2: task 1 states 0 predecessors but lists 1"),
        ("1\nx 1 0\n", "f.stg:2: 'x' is not a whole number"),
        ("1\n1 1 -1\n", "f.stg:2: '-1' is not a whole number"),
        ("1\n1.5 1 0\n", "f.stg:2: '1.5' is not a whole number"),
    ],
)
def test_text_that_is_not_stg_is_refused_with_its_line(text, message):
    with pytest.raises(FormatError, match=message):
        stg.read(text, "f.stg")


@pytest.mark.parametrize("cost", ["-1", "nan", "inf", "1e300", "ten", "1_0", "0x1"])
def test_a_cost_that_is_no_possible_time_is_refused(cost):
    with pytest.raises(FormatError, match=rf"f\.stg:3: processing time '{cost}' is not a number"):
        stg.read(FORK.replace("1   2   1", f"1 {cost} 1"), "f.stg")


def test_a_cycle_is_named():
    with pytest.raises(WorkflowError, match=r"f\.stg: .* has a cycle: 1 -> 3 -> 1"):
        stg.read("3\n1 2 1 3\n2 3 0\n3 4 2 1 2\n", "f.stg")


def test_an_unknown_predecessor_is_named():
    with pytest.raises(WorkflowError, match="task '3' names an unknown parent '9'"):
        stg.read(FORK.replace("2   1   2", "2   1   9"), "f.stg")


def test_duplicate_numbers_are_refused():
    with pytest.raises(WorkflowError, match="task id '1' occurs more than once"):
        stg.read("2\n1 1 0\n1 1 0\n", "f.stg")


def test_looks_like_tells_stg_from_other_text():
    assert stg.looks_like(FORK)
    assert stg.looks_like("# a comment first\n" + FORK)
    assert not stg.looks_like("3\n")
    assert not stg.looks_like("1,2,3\n4,5,6\n")
    assert not stg.looks_like('{"name": 3}')
    assert not stg.looks_like("job 1\n0 0 0\n")


def test_ten_thousand_tasks_are_read_in_seconds():
    rows = "".join(f"{i} 1 1 {i // 2}\n" for i in range(1, 10_001))
    start = time.perf_counter()
    workflow = only(f"10000\n0 0 0\n{rows}10001 0 1 10000\n")
    assert time.perf_counter() - start < 10
    assert (len(workflow.tasks), len(workflow.dependencies)) == (10_000, 9_999)


def test_every_real_file_holds_the_tasks_that_the_manifest_states(data_dir: Path):
    with open(data_dir / "manifest.csv", encoding="utf-8") as manifest:
        notes = {row["file"]: row["note"] for row in csv.DictReader(manifest)}
    names = [name for name in notes if name.startswith("stg/")]
    assert len(names) >= 8
    for name in names:
        text = read_text(data_dir / name)
        assert stg.looks_like(text[:4096]), name
        (workflow,) = stg.read(text, name).workflows
        stated = re.search(r"tasks=(\d+)", notes[name])
        assert stated is not None
        assert len(workflow.tasks) == int(stated[1]), name
        assert min(task.runtime_s for task in workflow.tasks) > 0, name
