"""Alibaba cluster trace 2018: batch jobs whose task names encode the DAG.

Reads `batch_task` rows (9 columns, no header; a line with the official names is accepted), and the
table with header that other studies derive from it (`job,name,instances,...,actual_duration,...`).
Format: schema.txt and trace_2018.md of https://github.com/alibaba/clusterdata.

How the trace becomes workflows:

- One workflow a job. `R5_2_4` is task 5 and waits for 2 and 4; `_Stg8`, a trailing `_` and the
  letters mean nothing. Names without such a number (`task_...`, `MergeTask`) wait for nothing.
- A task stands for `instance_num` alike instances. It becomes min(instance_num, `max_instances`)
  parallel tasks `R5_2_4[0]`, ...; where that is fewer, each takes several instances in turn and
  runs that much longer, so that the work (core seconds) is the same and only its width is capped.
  Barriers join wide tasks; see `dagsail.workloads.stages`.
- Run time is the mean over the instances, from the durations beside the trace. `start_time` is no
  start of work (mostly the whole job shares one), so end - start is only the second choice.
- `plan_cpu` 100 is one core. `plan_mem` is the percentage of a machine's memory, which the trace
  does not tell; its machines have 96 cores, and 384 GiB (4 GiB a core) are assumed.
- Arrival is the earliest `start_time` of the job, the earliest of the file being 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, GIB, MAX_COUNT, MAX_MILLICORES, MAX_TIME_S, MEMORY
from dagsail.domain.workflow import Workflow
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Reading,
    Repairs,
    round_up_memory,
)
from dagsail.workloads.stages import Stage, expand
from dagsail.workloads.tables import Row, read_rows

MACHINE_MEMORY_BYTES: Final = 384 * GIB
MAX_INSTANCES: Final = 20
RESOLUTION_S: Final = 1.0
"""Resolution of the trace's time stamps: what began and ended in one second took less."""

_COLUMNS: Final = (
    "task_name,instance_num,job_name,task_type,status,start_time,end_time,plan_cpu,plan_mem"
)
_OBSERVED_COLUMNS: Final = (
    "job,name,instances,status,start_time,end_time,expected_duration,actual_duration,"
    "cpu_requested,cpu_usage,mem_requested,mem_usage"
)
_OFFICIAL_NAMES: Final = {
    "job": "job_name",
    "name": "task_name",
    "instances": "instance_num",
    "cpu_requested": "plan_cpu",
    "mem_requested": "plan_mem",
}
_DURATION_COLUMNS: Final = "job_name,task_name,mean_instance_duration"
_STATUSES: Final = (
    "Terminated", "Failed", "Running", "Waiting", "Ready", "Interrupted", "Cancelled"
)  # fmt: skip
_DAG_NAME: Final = re.compile(
    r"[A-Za-z]+(?P<number>[0-9]{1,9})(?P<parents>(?:_[0-9]{1,9})*)(?:_Stg[0-9]+)?(?P<cut>_?)"
)
_Durations = Mapping[tuple[str, str], float]


def looks_like(head: str) -> bool:
    """Whether a text that begins like this is such a trace."""
    first = head.lstrip().partition("\n")[0].strip()
    fields = first.split(",")
    return first in (_COLUMNS, _OBSERVED_COLUMNS) or (len(fields) == 9 and fields[4] in _STATUSES)


def read(
    text: str,
    source: str,
    *,
    durations: str | None = None,
    max_instances: int = MAX_INSTANCES,
) -> Reading:
    """Read a `batch_task` table, or the derived one with measured durations.

    Args:
        text: the table.
        source: name of the file, for messages.
        durations: a table `job_name,task_name,mean_instance_duration` (header, seconds).
        max_instances: widest set of parallel tasks that stands for one row.

    Raises:
        FormatError: if a row is cut off or a field is not what it should be.
        WorkflowError: if the names of a job's tasks repeat or form a cycle.
    """
    repairs = Repairs(source)
    measured = _read_durations(durations, source) if durations is not None else {}
    jobs: dict[str, list[_BatchTask]] = {}
    for row in _rows(text, source):
        jobs.setdefault(row.text("job_name"), []).append(_batch_task(row, measured, repairs))
    if not jobs:
        raise FormatError(f"{source}: no rows")
    starts = {job: _earliest(tasks) for job, tasks in jobs.items()}
    origin_s = min((start for start in starts.values() if start is not None), default=0.0)
    workflows = []
    for job, tasks in jobs.items():
        start_s = starts[job]
        if start_s is None:
            repairs.note("job without a start time: submitted at 0", job)
        stages = _stages(job, tasks, max_instances, repairs)
        try:
            expanded, dependencies = expand(stages)
            workflow = Workflow(
                id=job,
                tasks=expanded,
                dependencies=dependencies,
                family="alibaba-2018",
                submitted_s=0.0 if start_s is None else start_s - origin_s,
            )
        except WorkflowError as error:
            raise WorkflowError(f"{source}: {error}") from None
        workflows.append(workflow)
    return Reading(tuple(workflows), repairs.warnings())


@dataclass(frozen=True, slots=True)
class _BatchTask:
    """One row: `num_instances` instances that each run `runtime_s`."""

    where: str
    name: str
    num_instances: int
    runtime_s: float
    start_s: float | None
    request: Mapping[str, int]


def _rows(text: str, source: str) -> Iterable[Row]:
    first = text.lstrip().partition("\n")[0].strip()
    if first == _OBSERVED_COLUMNS:
        for row in read_rows(text, source):
            yield Row(row.where, {_OFFICIAL_NAMES.get(k, k): v for k, v in row.fields.items()})
    elif first == _COLUMNS:
        yield from read_rows(text, source)
    else:
        yield from read_rows(text, source, _COLUMNS.split(","))


def _read_durations(text: str, source: str) -> dict[tuple[str, str], float]:
    place = f"{source} (durations)"
    if text.lstrip().partition("\n")[0].strip() != _DURATION_COLUMNS:
        raise FormatError(f"{place}: the first line must be '{_DURATION_COLUMNS}'")
    result = {}
    for row in read_rows(text, place):
        value = row.number("mean_instance_duration", MAX_TIME_S, smallest=-MAX_TIME_S)
        if value is not None:
            result[row.text("job_name"), row.text("task_name")] = value
    return result


def _batch_task(row: Row, durations: _Durations, repairs: Repairs) -> _BatchTask:
    status = row.text("status")
    if status not in _STATUSES:
        raise FormatError(
            f"{row.where}: status is {status[:40]!r}; allowed are {', '.join(_STATUSES)}"
        )
    if status != "Terminated":
        repairs.note(f"task with status {status}: its job never finished, kept", row.where)
    num_instances = row.count("instance_num", MAX_COUNT)
    if not num_instances:
        repairs.note("task without instance_num: 1 assumed", row.where)
        num_instances = 1
    return _BatchTask(
        where=row.where,
        name=row.text("task_name"),
        num_instances=num_instances,
        runtime_s=_runtime_s(row, status, durations, repairs),
        # Rows that wait carry 0 for a start that never came.
        start_s=None if status == "Waiting" else row.number("start_time", MAX_TIME_S),
        request=_request(row, repairs),
    )


def _runtime_s(row: Row, status: str, durations: _Durations, repairs: Repairs) -> float:
    start_s = row.number("start_time", MAX_TIME_S)
    end_s = row.number("end_time", MAX_TIME_S)
    span_s = 0.0 if start_s is None or end_s is None else end_s - start_s
    measured_s = row.number("actual_duration", MAX_TIME_S, smallest=-MAX_TIME_S)
    if measured_s is None:
        measured_s = durations.get((row.text("job_name"), row.text("task_name")), 0.0)
    # Derived tables give |end - start| for tasks whose end is unknown (0): that is no length.
    if span_s < 0 and measured_s == -span_s:
        measured_s = 0.0
    if status != "Waiting":
        if measured_s > 0:
            return measured_s
        if span_s > 0:
            repairs.note("no measured duration: end_time - start_time taken", row.where)
            return span_s
        if status == "Terminated" and start_s is not None and start_s == end_s:
            repairs.note(
                f"task began and ended in the same second: {RESOLUTION_S:g} s assumed", row.where
            )
            return RESOLUTION_S
    repairs.note(f"no usable duration: {DEFAULT_RUNTIME_S:g} s assumed", row.where)
    return DEFAULT_RUNTIME_S


def _request(row: Row, repairs: Repairs) -> Mapping[str, int]:
    cores_percent = row.number("plan_cpu", MAX_MILLICORES / 10)
    memory_percent = row.number("plan_mem", 100)
    cpu, memory = DEFAULT_CPU_MILLICORES, DEFAULT_MEMORY_BYTES
    if cores_percent:
        cpu = math.ceil(cores_percent * 10)
    else:
        repairs.note(f"task without plan_cpu: {cpu / 1000:g} cores assumed", row.where)
    if memory_percent:
        memory = round_up_memory(math.ceil(memory_percent / 100 * MACHINE_MEMORY_BYTES))
    else:
        repairs.note(f"task without plan_mem: {memory // GIB} GiB assumed", row.where)
    return {CPU: cpu, MEMORY: memory}


def _earliest(tasks: list[_BatchTask]) -> float | None:
    return min((task.start_s for task in tasks if task.start_s is not None), default=None)


def _stages(job: str, tasks: list[_BatchTask], max_instances: int, repairs: Repairs) -> list[Stage]:
    by_number: dict[int, list[str]] = {}
    lines: dict[str, str] = {}
    for task in tasks:
        if task.name in lines:
            raise WorkflowError(
                f"{task.where}: job '{job}' has a second task '{task.name}', the first is at"
                f" {lines[task.name]}; names must be unique in a job"
            )
        lines[task.name] = task.where
        match = _DAG_NAME.fullmatch(task.name)
        if match:
            by_number.setdefault(int(match["number"]), []).append(task.name)
    stages = []
    for task in tasks:
        num_tasks = min(task.num_instances, max_instances)
        if num_tasks < task.num_instances:
            repairs.note(
                f"task with more than {max_instances} instances: {max_instances} parallel tasks"
                " share them in turn, so that the work is kept and the width is capped",
                task.where,
            )
        stages.append(
            Stage(
                name=task.name,
                num_tasks=num_tasks,
                runtime_s=task.runtime_s * (task.num_instances / num_tasks),
                kind="batch",
                request=task.request,
                parents=_parents(task, by_number, repairs),
            )
        )
    return stages


def _parents(
    task: _BatchTask, by_number: Mapping[int, list[str]], repairs: Repairs
) -> tuple[str, ...]:
    match = _DAG_NAME.fullmatch(task.name)
    if match is None:
        repairs.note("task name encodes no dependency: the task waits for nothing", task.where)
        return ()
    if match["cut"]:
        repairs.note("task name ends in '_' and may have lost parents", task.where)
    parents: dict[str, None] = {}
    for number in match["parents"].split("_")[1:]:
        names = by_number.get(int(number), [])
        if names == [task.name]:
            raise WorkflowError(f"{task.where}: task '{task.name}' depends on itself")
        if not names:
            repairs.note(
                "parent that the job does not have: dropped", f"{task.where} '{task.name}'"
            )
        if len(names) > 1:
            repairs.note(
                "parent number that several tasks share: the child waits for all of them",
                f"{task.where} '{task.name}'",
            )
        parents.update((name, None) for name in names if name != task.name)
    return tuple(parents)
