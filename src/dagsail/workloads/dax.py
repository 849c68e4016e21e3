"""Reads DAX, the XML in which Pegasus describes abstract workflows (2.1 to 3.x).

An `<adag>` holds `<job id name namespace runtime cores>` with `<uses file link size>` (`name`
instead of `file` in 3.x), then `<child ref>` with `<parent ref>`. Run times are seconds, sizes
bytes. Only stated dependencies count: published files have edges without a shared file, and files
with several producers. `dax` and `dag` (a whole workflow run by one job) count as jobs.

Source: https://pegasus.isi.edu/schema/dax-2.1.xsd; Juve et al., "Characterizing and profiling
scientific workflows", FGCS 29 (2013).
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.parsers import expat

from dagsail.domain.errors import FormatError, WorkflowError
from dagsail.domain.units import CPU, MAX_BYTES, MAX_COUNT, MAX_TIME_S, MEMORY, format_bytes
from dagsail.domain.workflow import Dependency, Task, Workflow
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Reading,
    Repairs,
)

_ROOT: Final = re.compile(r"<(\w+:)?adag[\s>/]")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_JOB_TAGS: Final = ("job", "dax", "dag")
_LINKS: Final = {"input": (True, False), "output": (False, True), "inout": (True, True)}
"""Whether a job reads the file, and whether it writes it; other links carry no data."""
_MAX_CORES: Final = 1e6
_MAX_NAME_LENGTH: Final = 4096
_GENERATOR_NAME: Final = "test"
"""What the Pegasus workflow generator calls every workflow. It draws run times and sizes from
normal distributions, some below zero (Epigenomics_997: 57 and 209). WorkflowSim, which publishes
the files, drops the sign of such a size."""
_FAMILIES: Final = {"genome": "epigenomics", "ligo": "inspiral"}
"""Namespaces that differ from the name under which the workflow is known."""


def looks_like(text_head: str) -> bool:
    """Whether a text that begins so (about 4096 characters) is DAX."""
    return text_head.lstrip().startswith("<") and _ROOT.search(text_head) is not None


def read(text: str, source: str) -> Reading:
    """The one workflow of a DAX document.

    Args:
        text: the whole document.
        source: file name, for messages; its stem is the id of a workflow without a name of its own.

    Raises:
        FormatError: if it is not well-formed XML, not DAX, declares a document type (and with it
            entities, which may expand without bound), or holds a value of the wrong kind.
        WorkflowError: if jobs and dependencies do not form a DAG.
    """
    document = _Document(source)
    document.parse(text)
    repairs = document.repairs
    jobs = list(document.jobs.values())
    if document.declared not in (None, len(jobs)):
        repairs.note(f"jobCount is {document.declared:g} but {len(jobs)} jobs are there")
    repairs.note(f"jobs state no memory, {format_bytes(DEFAULT_MEMORY_BYTES)} assumed for each")
    stem = Path(source.removesuffix(".gz")).stem
    namespaces = {job.namespace.lower() for job in jobs}
    namespace = namespaces.pop() if len(namespaces) == 1 else ""
    writers = _writers(jobs)
    try:
        workflow = Workflow(
            id=stem if document.name in ("", _GENERATOR_NAME) else document.name,
            tasks=tuple(_task(job, document.sizes, writers, repairs) for job in jobs),
            dependencies=_dependencies(document),
            family=_FAMILIES.get(namespace, namespace),
        )
    except WorkflowError as error:
        raise WorkflowError(f"{source}: {error}") from None
    return Reading((workflow,), repairs.warnings())


@dataclass(slots=True)
class _Job:
    """A `<job>` with the names of its files, in the order of the source."""

    id: str
    name: str
    namespace: str
    runtime_s: float | None
    cores: float | None
    reads: dict[str, None] = field(default_factory=dict)
    writes: dict[str, None] = field(default_factory=dict)

    def files(self) -> dict[str, None]:
        return self.reads | self.writes


class _Document:
    """What the elements of one document say."""

    def __init__(self, source: str) -> None:
        self.name = ""
        self.declared: float | None = None
        self.jobs: dict[str, _Job] = {}
        self.sizes: dict[str, int] = {}
        self.pairs: dict[tuple[str, str], None] = {}
        self.repairs = Repairs(source)
        self.source = source
        self._open: list[tuple[str, str]] = []
        """Tag and id of each element around the current one."""
        # Expat itself, because it tells the line and lets us refuse a document type.
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartDoctypeDeclHandler = self._refuse_document_type
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def parse(self, text: str) -> None:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            problem = expat.ErrorString(error.code)
            raise FormatError(
                f"{self.source}:{error.lineno}:{error.offset + 1}: not valid XML ({problem})"
            ) from None
        except UnicodeEncodeError:
            raise FormatError(f"{self.source}: not valid XML (half a surrogate pair)") from None

        for name in dict.fromkeys(name for job in self.jobs.values() for name in job.files()):
            if name not in self.sizes:
                self.repairs.note("file without a size, 0 bytes assumed", name)
                self.sizes[name] = 0

    def _refuse_document_type(self, *_: object) -> None:
        raise self._fault("a document type (DOCTYPE) is not allowed in DAX; remove it")

    def _start(self, qualified_tag: str, attributes: dict[str, str]) -> None:
        tag = qualified_tag.rpartition(" ")[2]
        parent_tag, parent_id = self._open[-1] if self._open else ("", "")
        own_id = ""
        if not self._open:
            self._start_root(tag, attributes)
        elif parent_tag == "adag" and tag in _JOB_TAGS:
            own_id = self._start_job(attributes)
        elif parent_tag in _JOB_TAGS and tag == "uses" and parent_id:
            self._use(self.jobs[parent_id], attributes)
        elif parent_tag == "adag" and tag == "child":
            own_id = self._text(attributes, "ref", required=True)
        elif parent_tag == "child" and tag == "parent" and parent_id:
            pair = (self._text(attributes, "ref", required=True), parent_id)
            if pair in self.pairs:
                self.repairs.note("dependency stated twice, merged", f"{pair[0]} -> {pair[1]}")
            self.pairs[pair] = None
        self._open.append((tag, own_id))

    def _end(self, _: str) -> None:
        self._open.pop()

    def _start_root(self, tag: str, attributes: dict[str, str]) -> None:
        if tag != "adag":
            shown = reprlib.repr(tag)
            raise self._fault(f"not DAX: the outermost element is {shown}, 'adag' is expected")
        self.name = self._text(attributes, "name")
        self.declared = self._number(attributes, "jobCount", MAX_COUNT)

    def _start_job(self, attributes: dict[str, str]) -> str:
        job = _Job(
            id=self._text(attributes, "id", required=True),
            name=self._text(attributes, "name"),
            namespace=self._text(attributes, "namespace"),
            runtime_s=self._number(attributes, "runtime", MAX_TIME_S),
            cores=self._number(attributes, "cores", _MAX_CORES),
        )
        if job.id in self.jobs:
            raise WorkflowError(
                f"{self._place()}: job id '{job.id}' occurs more than once; ids must be unique"
            )
        self.jobs[job.id] = job
        return job.id

    def _use(self, job: _Job, attributes: dict[str, str]) -> None:
        name = self._text(attributes, "file" if "file" in attributes else "name", required=True)
        is_read, is_written = _LINKS.get(attributes.get("link", ""), (False, False))
        if not (is_read or is_written):
            return
        if (is_read and name in job.reads) or (is_written and name in job.writes):
            self.repairs.note("job that uses a file twice, merged", job.id)
        if is_read:
            job.reads[name] = None
        if is_written:
            job.writes[name] = None
        if (number := self._number(attributes, "size", MAX_BYTES)) is not None:
            size = math.ceil(number)
            if self.sizes.setdefault(name, size) != size:
                self.repairs.note("file with different sizes, the largest is used", name)
                self.sizes[name] = max(self.sizes[name], size)

    def _text(self, attributes: dict[str, str], key: str, *, required: bool = False) -> str:
        value = attributes.get(key, "")
        if (required and not value) or not value.isprintable() or len(value) > _MAX_NAME_LENGTH:
            found = reprlib.repr(value) if value else "missing"
            raise self._fault(f"{key} is {found}; one line of text is expected")
        return value

    def _number(self, attributes: dict[str, str], key: str, largest: float) -> float | None:
        if key not in attributes:
            return None
        text = attributes[key].strip()
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if value < 0 and self.name == _GENERATOR_NAME:
            what = f"negative {key}, which the Pegasus generator draws at times; sign dropped"
            self.repairs.note(what, f"line {self._parser.CurrentLineNumber}")
            value = -value
        if not 0 <= value <= largest:
            raise self._fault(
                f"{key} is {reprlib.repr(text)}; a number from 0 to {largest:g} is expected"
            )
        return value

    def _place(self) -> str:
        return f"{self.source}:{self._parser.CurrentLineNumber}"

    def _fault(self, what: str) -> FormatError:
        return FormatError(f"{self._place()}: {what}")


def _writers(jobs: Iterable[_Job]) -> dict[str, list[str]]:
    writers: dict[str, list[str]] = {}
    for job in jobs:
        for name in job.writes:
            writers.setdefault(name, []).append(job.id)
    return writers


def _dependencies(document: _Document) -> tuple[Dependency, ...]:
    jobs = document.jobs
    dependencies = []
    for parent, child in document.pairs:
        for role, name, other in (("child", child, parent), ("parent", parent, child)):
            if name not in jobs:
                raise WorkflowError(f"job '{other}' has an unknown {role} '{name}'")
        shared = jobs[parent].writes.keys() & jobs[child].reads.keys()
        data_bytes = sum(document.sizes[name] for name in shared)
        dependencies.append(Dependency(parent, child, data_bytes))
    return tuple(dependencies)


def _task(
    job: _Job, sizes: dict[str, int], writers: dict[str, list[str]], repairs: Repairs
) -> Task:
    runtime_s = job.runtime_s
    if runtime_s is None:
        repairs.note(f"job without a run time, {DEFAULT_RUNTIME_S:g} s assumed", job.id)
        runtime_s = DEFAULT_RUNTIME_S
    elif runtime_s == 0:
        repairs.note("job with a run time of 0 s, kept", job.id)
    if not job.cores:
        repairs.note(f"job without cores, {DEFAULT_CPU_MILLICORES} millicores assumed", job.id)
    # A job that updates a file in place still has to fetch it.
    external = (name for name in job.reads if all(w == job.id for w in writers.get(name, ())))
    return Task(
        id=job.id,
        runtime_s=runtime_s,
        kind=job.name,
        request={
            CPU: math.ceil(1000 * job.cores) if job.cores else DEFAULT_CPU_MILLICORES,
            MEMORY: DEFAULT_MEMORY_BYTES,
        },
        input_bytes=sum(sizes[name] for name in external),
        output_bytes=sum(sizes[name] for name in job.writes),
    )
