"""Reads WfFormat, the JSON of WfCommons (schemas 0.1 to 1.6): recorded runs of real workflows.

Two layouts exist. From 1.5 on `workflow.specification` holds tasks and files, and
`workflow.execution` what was measured, joined by task id. Before, each entry of `workflow.tasks`
(`jobs` up to 1.2) holds everything, names its relatives by *name*, and lists its files with their
sizes. Fields carry their unit: seconds, bytes, percent of a core (`avgCPU`); only `memory` of the
old layout is in KB. Tasks are named as the 1.5 edition of the same run names them.

Source: https://github.com/wfcommons/WfFormat; Coleman et al., "WfCommons: A framework for enabling
scientific workflow research and development", FGCS 128 (2022).
"""

from __future__ import annotations

import math
import re
import reprlib
from pathlib import Path
from typing import Final

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, KIB, MAX_BYTES, MAX_TIME_S, MEMORY, MIB, format_bytes
from dagsail.domain.workflow import Task, Workflow
from dagsail.files import parse_json
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Reading,
    Repairs,
    round_up_memory,
)
from dagsail.workloads.wfformat.jobs import Files, Job, read_flat, read_specification
from dagsail.workloads.wfformat.objects import Object
from dagsail.workloads.wfformat.relatives import dependencies_of

_VERSIONS: Final = ("0.1", "0.2", "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
_MAX_CORES: Final = 1e6
_MAX_NAME_LENGTH: Final = 4096
_KB: Final = 1000
"""The factor with which WfCommons itself turned `memory` into the `memoryInBytes` of 1.4."""
_FEWEST_BYTES_PER_CORE: Final = 128 * MIB
"""A machine with less memory than that a core is described in KiB, whatever its field is named."""

_FAMILIES: Final = {
    "1000genome": "1000genome",
    "blast": "blast",
    "bwa": "bwa",
    "cycles": "cycles",
    "epigenomics": "epigenomics",
    "genome-dax": "epigenomics",
    "helloworld": "helloworld",
    "montage": "montage",
    "seismology": "seismology",
    "soykb": "soykb",
    "srasearch": "srasearch",
}
"""What a name contains, and the application that it gives away."""

_HEAD: Final = re.compile(
    r'\s*\{(?=.*?("schemaVersion"\s*:\s*"[01]\.\d+"|"workflow"\s*:\s*\{))(?!.*?"apiVersion")', re.S
)
_INSTANCE: Final = re.compile(r"(_(ID)?\d+)+$")
_DOUBLED: Final = re.compile(r"(.+?)_\1(_|$)")
"""Early Pegasus wrote the transformation twice: `mapMerge_mapMerge_3_TAQ2`."""


def looks_like(text_head: str) -> bool:
    """Whether a text that begins so (about 4096 characters) is WfFormat."""
    return _HEAD.match(text_head) is not None


def read(text: str, source: str) -> Reading:
    """The one workflow of a WfFormat document.

    Args:
        text: the whole document.
        source: file name, for messages; its stem is the id of a workflow without a name.

    Raises:
        FormatError: if it is not JSON, not WfFormat, or holds a value of the wrong kind.
        WorkflowError: if tasks and dependencies do not form a DAG.
    """
    root = Object.of(parse_json(text, source), "", source)
    if "workflow" not in root.fields:
        raise FormatError(f"{source}: not WfFormat: the document has no 'workflow'")
    workflow = root.child("workflow")
    repairs = Repairs(source)
    if (version := root.fields.get("schemaVersion")) not in _VERSIONS:
        repairs.note(f"schemaVersion {reprlib.repr(version)} is unknown; read by its layout")
    system = root.child("runtimeSystem" if "runtimeSystem" in root.fields else "wms").text("name")
    is_nextflow = system.lower() == "nextflow"
    files = Files(repairs)
    if "specification" in workflow.fields:
        jobs = read_specification(workflow, files, repairs)
    else:
        jobs = read_flat(workflow, files, is_nextflow, repairs)
    files.finish(jobs)
    dependencies = dependencies_of(jobs, files, repairs)
    memory_unit = _memory_unit(workflow, repairs)
    stem = Path(source.removesuffix(".gz")).stem
    name = root.text("name")
    try:
        result = Workflow(
            id=name or stem,
            tasks=tuple(_task(job, files, memory_unit, is_nextflow, repairs) for job in jobs),
            dependencies=dependencies,
            family=name.lower() if is_nextflow else _family(f"{name} {stem}".lower()),
        )
    except WorkflowError as error:
        raise WorkflowError(f"{source}: {error}") from None
    return Reading((result,), repairs.warnings())


def _family(names: str) -> str:
    return next((family for part, family in _FAMILIES.items() if part in names), "")


def _memory_unit(workflow: Object, repairs: Repairs) -> int:
    """Bytes in one unit of `memoryInBytes`."""
    place = workflow.child("execution") if "execution" in workflow.fields else workflow
    for machine in place.objects("machines"):
        memory = machine.number(MAX_BYTES, "memoryInBytes")
        if memory:
            cores = machine.child("cpu").number(_MAX_CORES, "coreCount", "count") or 1
            if memory < cores * _FEWEST_BYTES_PER_CORE:
                what = f"machine with {format_bytes(memory)}; memory is taken for KiB"
                repairs.note(what, machine.text("nodeName"))
                return KIB
    return 1


def _task(job: Job, files: Files, memory_unit: int, is_nextflow: bool, repairs: Repairs) -> Task:
    runtime_s = job.run.number(MAX_TIME_S, "runtimeInSeconds", "runtime")
    if runtime_s is None:
        repairs.note(f"task without a run time, {DEFAULT_RUNTIME_S:g} s assumed", job.id)
        runtime_s = DEFAULT_RUNTIME_S
    elif runtime_s == 0:
        repairs.note("task with a recorded run time of 0 s, kept", job.id)
    return Task(
        id=job.id,
        runtime_s=float(runtime_s),
        kind=_kind(job, is_nextflow),
        request={
            CPU: _cpu_millicores(job, repairs),
            MEMORY: _memory_bytes(job, memory_unit, repairs),
        },
        input_bytes=files.total(name for name in job.reads if files.is_external(name, job.id)),
        output_bytes=files.total(job.writes),
    )


def _kind(job: Job, is_nextflow: bool) -> str:
    name = job.spec.text("name") or job.id
    if is_nextflow:
        # The program is the first word of a shell script (`mkdir`, `[`); the process says more.
        return name.rpartition(".")[2]
    if program := job.run.child("command").text("program"):
        return program
    doubled = _DOUBLED.match(name)
    return doubled[1] if doubled else _INSTANCE.sub("", name)


def _cpu_millicores(job: Job, repairs: Repairs) -> int:
    cores = job.run.number(_MAX_CORES, "coreCount", "cores")
    if cores:
        return math.ceil(1000 * cores)
    percent = job.run.number(100 * _MAX_CORES, "avgCPU")
    if percent is None:
        repairs.note(f"task without cores, {DEFAULT_CPU_MILLICORES} millicores assumed", job.id)
        return DEFAULT_CPU_MILLICORES
    repairs.note("task without cores, its mean CPU use rounded up to whole cores", job.id)
    return 1000 * max(math.ceil(percent / 100), 1)


def _memory_bytes(job: Job, memory_unit: int, repairs: Repairs) -> int:
    amount = (job.run.number(MAX_BYTES, "memoryInBytes") or 0) * memory_unit
    amount = amount or (job.run.number(MAX_BYTES / _KB, "memory") or 0) * _KB
    if amount:
        return round_up_memory(math.ceil(amount))
    repairs.note(f"task without memory, {format_bytes(DEFAULT_MEMORY_BYTES)} assumed", job.id)
    return DEFAULT_MEMORY_BYTES
