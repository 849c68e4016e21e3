"""Alibaba 2018 batch tasks: DAG from names, widths, lengths, repairs and refusals."""

from __future__ import annotations

import csv
import io

import pytest

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import GIB, MIB
from dagsail.files import read_text
from dagsail.workloads import alibaba
from dagsail.workloads.stages import BARRIER_KIND


def row(name, job="j_1", num=1, status="Terminated", start=100, end=110, cpu=100, mem=0.5):
    return f"{name},{num},{job},,{status},{start},{end},{cpu},{mem}\n"


def durations(**seconds):
    lines = [f"j_1,{name},{value}\n" for name, value in seconds.items()]
    return "job_name,task_name,mean_instance_duration\n" + "".join(lines)


def edges(workflow):
    return sorted((edge.parent, edge.child) for edge in workflow.dependencies)


def test_names_encode_the_dag():
    text = "".join(map(row, ["M1", "LM2_Stg8", "R3_1_", "J4_3_2_Stg9", "task_NDQ1", "MergeTask"]))
    reading = alibaba.read(text, "t.csv")
    (workflow,) = reading.workflows
    assert [task.id for task in workflow.tasks] == [
        "M1", "LM2_Stg8", "R3_1_", "J4_3_2_Stg9", "task_NDQ1", "MergeTask",
    ]  # fmt: skip
    assert edges(workflow) == [
        ("LM2_Stg8", "J4_3_2_Stg9"),
        ("M1", "R3_1_"),
        ("R3_1_", "J4_3_2_Stg9"),
    ]
    assert any("ends in '_'" in warning and "t.csv:3" in warning for warning in reading.warnings)
    assert any("no dependency" in w and "2 x" in w for w in reading.warnings)


def test_a_parent_named_twice_counts_once():
    (workflow,) = alibaba.read(row("M1") + row("R2_1_1"), "t.csv").workflows
    assert edges(workflow) == [("M1", "R2_1_1")]


def test_an_unknown_parent_is_dropped_and_reported():
    reading = alibaba.read(row("M1") + row("R3_1_2"), "t.csv")
    assert edges(reading.workflows[0]) == [("M1", "R3_1_2")]
    assert "t.csv: parent that the job does not have: dropped (1 x, first: t.csv:2 'R3_1_2')" in (
        reading.warnings
    )


def test_a_number_that_two_tasks_share_means_both():
    reading = alibaba.read(row("M1") + row("R1") + row("J2_1"), "t.csv")
    assert edges(reading.workflows[0]) == [("M1", "J2_1"), ("R1", "J2_1")]
    assert any("several tasks share" in warning for warning in reading.warnings)


def test_jobs_are_grouped_and_arrive_at_their_earliest_start():
    text = (
        row("M1", job="a", start=500, end=501)
        + row("M1", job="b", start=320, end=330)
        + row("R2_1", job="a", start=400, end=450)
    )
    first, second = alibaba.read(text, "t.csv").workflows
    assert (first.id, first.submitted_s, len(first.tasks)) == ("a", 80.0, 2)
    assert (second.id, second.submitted_s) == ("b", 0.0)


def test_requests_are_cores_and_a_share_of_384_gib():
    (workflow,) = alibaba.read(row("M1", cpu=50, mem=0.39), "t.csv").workflows
    # 0.39 % of 384 GiB = 1533.5 MiB; the next request with four significant bits is 1536 MiB.
    assert workflow.tasks[0].request == {"cpu": 500, "memory": 1536 * MIB}


def test_missing_requests_get_reported_defaults():
    reading = alibaba.read(row("M1", cpu="", mem=""), "t.csv")
    assert reading.workflows[0].tasks[0].request == {"cpu": 1000, "memory": GIB}
    assert sum("plan_cpu" in w or "plan_mem" in w for w in reading.warnings) == 2


def test_instances_become_parallel_tasks():
    text = row("M1", num=3) + row("R2_1", num=1)
    (workflow,) = alibaba.read(text, "t.csv", durations=durations(M1=4, R2_1=5)).workflows
    assert [task.id for task in workflow.tasks] == ["M1[0]", "M1[1]", "M1[2]", "R2_1"]
    assert [task.runtime_s for task in workflow.tasks] == [4, 4, 4, 5]
    assert edges(workflow) == [(f"M1[{i}]", "R2_1") for i in range(3)]


def test_a_capped_width_keeps_the_work_and_is_reported():
    reading = alibaba.read(row("M1", num=30), "t.csv", durations=durations(M1=6), max_instances=4)
    tasks = reading.workflows[0].tasks
    assert len(tasks) == 4
    assert [task.runtime_s for task in tasks] == [45.0] * 4  # 30 x 6 / 4
    assert "t.csv: task with more than 4 instances" in reading.warnings[0]


@pytest.mark.parametrize(
    ("line", "table", "expected_s", "warning"),
    [
        (row("M1"), durations(M1=2.5), 2.5, None),
        (row("M1"), None, 10.0, "end_time - start_time taken"),
        (row("M1"), durations(R9=1), 10.0, "end_time - start_time taken"),
        (row("M1"), durations(M1=-1), 10.0, "end_time - start_time taken"),
        (row("M1"), durations(M1=0), 10.0, "end_time - start_time taken"),
        (row("M1"), durations(M1=""), 10.0, "end_time - start_time taken"),
        (row("M1", end=100), None, 1.0, "same second"),
        (row("M1", end=""), None, 60.0, "no usable duration"),
        (row("M1", end=0, status="Running"), None, 60.0, "no usable duration"),
        # The published durations hold start_time itself where end_time is 0.
        (row("M1", end=0, status="Running"), durations(M1=100), 60.0, "no usable duration"),
        (row("M1", end=0, status="Running"), durations(M1=7), 7.0, "status Running"),
        (row("M1", status="Failed"), durations(M1=7), 7.0, "status Failed"),
        (row("M1", num="", start=0, end=0, status="Waiting"), durations(M1=1), 60.0, "Waiting"),
    ],
)
def test_the_length_of_a_task_comes_from_the_best_source(line, table, expected_s, warning):
    reading = alibaba.read(line, "t.csv", durations=table)
    assert reading.workflows[0].tasks[0].runtime_s == expected_s
    if warning is None:
        assert reading.warnings == ()
    else:
        assert any(warning in line for line in reading.warnings)


def test_waiting_rows_do_not_move_the_arrival():
    text = row("M1", start=300, end=301) + row(
        "R2_1", num="", status="Waiting", start=0, end=0, cpu="", mem=""
    )
    text += row("M1", job="j_2", start=250, end=251)
    assert [w.submitted_s for w in alibaba.read(text, "t.csv").workflows] == [50.0, 0.0]


def test_a_job_that_only_waits_arrives_at_zero():
    reading = alibaba.read(row("M1", start=0, end=0, status="Waiting"), "t.csv")
    assert reading.workflows[0].submitted_s == 0.0
    assert any("without a start time" in warning for warning in reading.warnings)


def test_the_table_with_measured_durations_is_read_too():
    header = (
        "job,name,instances,status,start_time,end_time,expected_duration,actual_duration,"
        "cpu_requested,cpu_usage,mem_requested,mem_usage\n"
    )
    text = header + "j,M1,2,Terminated,50,90,40,12.5,100,9,0.5,1\n"
    assert alibaba.looks_like(header)
    (workflow,) = alibaba.read(text, "t.csv").workflows
    assert [(task.id, task.runtime_s) for task in workflow.tasks] == [
        ("M1[0]", 12.5), ("M1[1]", 12.5),
    ]  # fmt: skip


def test_the_official_header_is_accepted():
    header = (
        "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem\n"
    )
    with_header = alibaba.read(header + row("M1"), "t.csv")
    assert with_header.workflows == alibaba.read(row("M1"), "t.csv").workflows


def test_it_recognises_its_own_files_only():
    assert alibaba.looks_like(row("M1") * 3)
    assert not alibaba.looks_like("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
    assert not alibaba.looks_like("1,2,3,4,5,6,7,8,9\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n", r"t\.csv: no rows"),
        (row("M1") + "R2_1,1,j_1,,Termi", r"t\.csv:2: 5 fields instead of 9"),
        (row("M1") + "a,b,c,d,e,f,g,h,i,j\n", r"t\.csv:2: 10 fields instead of 9"),
        (row("M1", num="x"), r"t\.csv:1: instance_num is 'x'"),
        (row("M1", num=-1), r"t\.csv:1: instance_num is '-1'"),
        (row("M1", num=1.5), r"t\.csv:1: instance_num is 1\.5; it must be a whole number"),
        (row("M1", num="1e300"), r"t\.csv:1: instance_num is '1e300'"),
        (row("M1", cpu="nan"), r"t\.csv:1: plan_cpu is 'nan'"),
        (row("M1", cpu=-100), r"t\.csv:1: plan_cpu is '-100'"),
        (row("M1", mem=101), r"t\.csv:1: plan_mem is '101'; allowed are numbers from 0 to 100"),
        (row("M1", start="inf"), r"t\.csv:1: start_time is 'inf'"),
        (row("M1", end="1e300"), r"t\.csv:1: end_time is '1e300'"),
        (row("M1", status="Done"), r"t\.csv:1: status is 'Done'; allowed are Terminated"),
        (row(""), r"t\.csv:1: task_name is empty"),
        (row("M1", job=""), r"t\.csv:1: job_name is empty"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(text, message):
    with pytest.raises(FormatError, match=message):
        alibaba.read(text, "t.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n1,2,3\n", "the first line must be 'job_name,task_name,mean_instance_duration'"),
        (durations(M1="nan"), r"t\.csv \(durations\):2: mean_instance_duration is 'nan'"),
        (durations(M1="1e300"), r"t\.csv \(durations\):2: mean_instance_duration is '1e300'"),
    ],
)
def test_bad_durations_are_refused(text, message):
    with pytest.raises(FormatError, match=message):
        alibaba.read(row("M1"), "t.csv", durations=text)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["M1", "M1"], r"t\.csv:2: job 'j_1' has a second task 'M1', the first is at t\.csv:1"),
        (["R1_2", "R2_1"], r"t\.csv: workflow 'j_1' has a cycle: (R1_2 -> R2_1|R2_1 -> R1_2)"),
        (["M1", "R2_1_2"], r"t\.csv:2: task 'R2_1_2' depends on itself"),
    ],
)
def test_a_job_that_is_no_dag_is_refused(names, message):
    with pytest.raises(WorkflowError, match=message):
        alibaba.read("".join(map(row, names)), "t.csv")


def test_the_real_sample_keeps_every_job_task_and_core_second(data_dir):
    folder = data_dir / "alibaba-2018"
    text = read_text(folder / "batch_task_sample.csv.gz")
    lengths = read_text(folder / "batch_task_sample_instance_durations.csv.gz")
    assert alibaba.looks_like(text[:4096])
    reading = alibaba.read(text, "sample", durations=lengths)
    assert len(reading.workflows) == 4400
    tasks = [task for workflow in reading.workflows for task in workflow.tasks]
    assert len({(w.id, t.id.partition("[")[0]) for w in reading.workflows for t in w.tasks
                if t.kind != BARRIER_KIND}) == 16586  # fmt: skip
    measured = {
        (job, name): float(value) for job, name, value in list(csv.reader(io.StringIO(lengths)))[1:]
    }
    expected = unknown = 0.0
    for name, num, job, _, status, start, end, cpu, _ in csv.reader(io.StringIO(text)):
        length = measured[job, name]
        if status == "Waiting" or int(end) < int(start):
            length, unknown = 60.0, unknown + 1
        expected += length * int(num or 1) * float(cpu or 100) / 100
    assert unknown == 29
    work = sum(task.runtime_s * task.request.get("cpu", 0) / 1000 for task in tasks)
    assert work == pytest.approx(expected, rel=1e-9)
    assert not any("parent that the job does not have" in w for w in reading.warnings)
    assert min(w.submitted_s or 0.0 for w in reading.workflows) == 0.0


def test_the_real_table_with_measured_durations_is_read(data_dir):
    text = read_text(data_dir / "alibaba-2018" / "dag_observed.csv.gz")
    assert alibaba.looks_like(text[:4096])
    reading = alibaba.read(text, "observed")
    assert len(reading.workflows) == 1500
    job = next(w for w in reading.workflows if w.id == "j_1292")
    assert next(t.runtime_s for t in job.tasks if t.id == "J5_2_4[0]") == pytest.approx(160.65)
