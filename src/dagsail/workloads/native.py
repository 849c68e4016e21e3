"""Reader of the native workflow format (`kind: Workflow`, `apiVersion: dagsail.io/v1alpha1`).

Carries everything that `dagsail.domain.workflow` knows. Keys are camelCase and placement rules
are spelled as in a Kubernetes pod spec; `docs/file-formats.md` documents every key.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from msgspec import Meta, field

from dagsail.documents import (
    API_VERSION,
    ApiVersion,
    Metadata,
    Name,
    Strict,
    by_default,
    json_schema,
    read_documents,
)
from dagsail.domain.errors import WorkflowError
from dagsail.domain.units import CPU, MEMORY
from dagsail.domain.workflow import Dependency, Priority, Task, Workflow
from dagsail.scalars import Bytes, Number, Resources, Scalar, Seconds, describe, nearest
from dagsail.workloads.native_placement import PlacementSpec, placement_of
from dagsail.workloads.reading import (
    DEFAULT_CPU_MILLICORES,
    DEFAULT_MEMORY_BYTES,
    DEFAULT_RUNTIME_S,
    Reading,
    Repairs,
)

PriorityName = Literal["P0", "P1", "P2", "P3", "urgent", "high", "normal", "low"]
_PRIORITY_WORDS: Final = ("urgent", "high", "normal", "low")


class Demand(Scalar, float):
    """A share of a node's bandwidth, 0 to 1, or a word for one."""

    WORDS: ClassVar[Mapping[str, float]] = {"none": 0.0, "low": 0.2, "medium": 0.5, "high": 0.8}
    EXPECTED = "a share from 0 to 1, or none (0), low (0.2), medium (0.5) or high (0.8)"
    SCHEMA: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"enum": list(WORDS)}]
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a share or a word."""
        if isinstance(value, str) and value in cls.WORDS:
            return cls(cls.WORDS[value])
        try:
            share = Number.parse(value)
        except ValueError:
            raise cls._refusal(value) from None
        if not 0 <= share <= 1:
            raise cls._refusal(value)
        return cls(share)


class DependencySpec(Strict, frozen=True, kw_only=True):
    """A dependency that carries data."""

    task: Name
    """Id of the task that must finish first."""
    data: Bytes = by_default(Bytes(0))
    """Data that flows from it to this task."""


class TaskSpec(PlacementSpec, frozen=True, kw_only=True):
    """One task."""

    id: Name
    """Unique within the workflow."""
    kind: str = ""
    """Class of alike tasks (program name), for run-time history and speed by kind."""
    runtime: Seconds | None = None
    """Expected run time on a node of speed 1, without data transfer. Default: the mean of
    runtimeByNodeType, else 60 s; reported as a warning."""
    runtime_by_node_type: dict[Name, Seconds] = field(default_factory=dict)
    """Expected run time by node type; replaces runtime and the node's speed on listed types."""
    request: Resources = by_default(Resources())
    """Resources of one worker. Default for each of the two: cpu 1, memory 1Gi; reported as a
    warning."""
    workers: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Workers that must start together (all or nothing), each with its own request."""
    comm_data: Bytes = by_default(Bytes(0))
    """Data that each worker exchanges with the others over the whole run."""
    depends_on: tuple[str | DependencySpec, ...] = ()
    """Tasks that must finish first: their ids, or `{task: id, data: 1Gi}`."""
    input_data: Bytes = by_default(Bytes(0))
    """Input that no task of the workflow produces."""
    output_data: Bytes = by_default(Bytes(0))
    """Everything that the task writes."""
    image: str = ""
    """Container image; without one there is nothing to pull."""
    image_size: Bytes = by_default(Bytes(0))
    """Compressed size of the image."""
    priority: PriorityName | None = None
    """P0 (most urgent) to P3 (least), or urgent, high, normal, low. Default: the workflow's."""
    start_deadline: Seconds | None = None
    """Latest start, after submission. Default: none."""
    deadline: Seconds | None = None
    """Latest finish, after submission. Default: none."""
    critical: bool = False
    """Marks a task that the user knows to be critical; a soft hint."""
    io_demand: Demand = by_default(Demand(0))
    """Share of a node's disk bandwidth used while running: 0 to 1, or none, low, medium, high."""
    memory_bandwidth_demand: Demand = by_default(Demand(0))
    """Likewise of its memory bandwidth."""
    retries: Annotated[int, Meta(ge=0, le=1000)] = 0
    """How often a failed attempt is repeated."""
    timeout: Seconds | None = None
    """An attempt that runs longer fails. Default: none."""


class WorkflowSpec(Strict, frozen=True, kw_only=True):
    """The tasks and what holds for all of them."""

    tasks: tuple[TaskSpec, ...]
    """At least one task; the order breaks ties."""
    priority: PriorityName = "P2"
    """P0 (most urgent) to P3 (least), or urgent, high, normal, low."""
    start_deadline: Seconds | None = None
    """Latest start of the first task, after submission. Default: none."""
    deadline: Seconds | None = None
    """Latest finish of the last task, after submission. Default: none."""
    tenant: Name = "default"
    """Owner, for quotas and fair share."""
    family: str = ""
    """What kind of workload it is, for statistics."""
    submitted_at: Seconds | None = None
    """Recorded time of submission, from the start of the recording. Default: not recorded."""


class WorkflowDocument(Strict, frozen=True, kw_only=True):
    """A whole `kind: Workflow` document."""

    api_version: ApiVersion = API_VERSION
    """Version of the format."""
    kind: Literal["Workflow"]
    """Says that this is a workflow."""
    metadata: Metadata
    """Name and labels."""
    spec: WorkflowSpec
    """The workflow."""


def schema() -> dict[str, Any]:
    """The JSON Schema of `kind: Workflow`."""
    return json_schema(WorkflowDocument)


def looks_like(document: object) -> bool:
    """Whether a parsed document claims to be a native workflow (Argo's have argoproj.io)."""
    if not isinstance(document, dict):
        return False
    version = document.get("apiVersion")
    if isinstance(version, str) and version.startswith("dagsail.io"):
        return True
    return document.get("kind") == "Workflow" and not str(version).startswith("argoproj.io")


def read(text: str, source: str) -> Reading:
    """Read every workflow of a native YAML or JSON text.

    Args:
        text: one or several documents.
        source: what messages call the text, usually the file name.

    Raises:
        FormatError: if a document is not exactly a `kind: Workflow`; names the place.
        WorkflowError: if tasks and dependencies form no valid workflow.
    """
    repairs = Repairs(source)
    workflows: dict[str, Workflow] = {}
    for document in read_documents(text, source, WorkflowDocument):
        name = document.metadata.name
        if name in workflows:
            raise WorkflowError(
                f"{source}: metadata.name {describe(name)} occurs in more than one document;"
                " names must be unique in a file"
            )
        workflows[name] = _workflow(document, source, repairs)
    return Reading(tuple(workflows.values()), repairs.warnings())


def _workflow(document: WorkflowDocument, source: str, repairs: Repairs) -> Workflow:
    name, spec = document.metadata.name, document.spec
    try:
        return Workflow(
            id=name,
            tasks=tuple(_task(task, f"{name}/{task.id}", repairs) for task in spec.tasks),
            dependencies=tuple(_dependencies(spec.tasks)),
            priority=_priority(spec.priority),
            start_deadline_s=_plain(spec.start_deadline),
            deadline_s=_plain(spec.deadline),
            tenant=spec.tenant,
            family=spec.family,
            submitted_s=_plain(spec.submitted_at),
        )
    except WorkflowError as error:
        raise WorkflowError(f"{source}: {error}") from None


def _task(spec: TaskSpec, where: str, repairs: Repairs) -> Task:
    by_type = {node_type: float(time) for node_type, time in spec.runtime_by_node_type.items()}
    return Task(
        id=spec.id,
        runtime_s=_runtime(spec, where, repairs),
        runtime_s_by_node_type=by_type,
        kind=spec.kind,
        request=_request(spec.request, where, repairs),
        num_workers=spec.workers,
        comm_bytes=int(spec.comm_data),
        input_bytes=int(spec.input_data),
        output_bytes=int(spec.output_data),
        image=spec.image,
        image_bytes=int(spec.image_size),
        priority=None if spec.priority is None else _priority(spec.priority),
        start_deadline_s=_plain(spec.start_deadline),
        deadline_s=_plain(spec.deadline),
        is_critical=spec.critical,
        io_demand=float(spec.io_demand),
        memory_bandwidth_demand=float(spec.memory_bandwidth_demand),
        max_retries=spec.retries,
        timeout_s=_plain(spec.timeout),
        placement=placement_of(spec),
    )


def _runtime(spec: TaskSpec, where: str, repairs: Repairs) -> float:
    if spec.runtime is not None:
        return float(spec.runtime)
    if by_type := spec.runtime_by_node_type:
        repairs.note(
            "task without runtime: node types that runtimeByNodeType does not list use its mean",
            where,
        )
        return math.fsum(by_type.values()) / len(by_type)
    repairs.note(f"task without runtime: {DEFAULT_RUNTIME_S:g} s assumed", where)
    return DEFAULT_RUNTIME_S


def _request(stated: Mapping[str, int], where: str, repairs: Repairs) -> dict[str, int]:
    request = dict(stated)
    if CPU not in request:
        repairs.note(f"task without cpu request: {DEFAULT_CPU_MILLICORES}m assumed", where)
        request[CPU] = DEFAULT_CPU_MILLICORES
    if MEMORY not in request:
        repairs.note("task without memory request: 1 GiB assumed", where)
        request[MEMORY] = DEFAULT_MEMORY_BYTES
    return request


def _dependencies(tasks: tuple[TaskSpec, ...]) -> Iterator[Dependency]:
    ids = {task.id: None for task in tasks}
    for number, task in enumerate(tasks):
        for place, item in enumerate(task.depends_on):
            parent, data = (item, 0) if isinstance(item, str) else (item.task, int(item.data))
            if parent not in ids:
                raise WorkflowError(
                    f"spec.tasks[{number}].dependsOn[{place}]: task '{task.id}' depends on"
                    f" {describe(parent)}, which is no task of this workflow;"
                    f" {nearest(parent, ids) or 'add the task or remove the dependency'}"
                )
            yield Dependency(parent, task.id, data)


def _priority(name: PriorityName) -> Priority:
    if name in _PRIORITY_WORDS:
        return Priority(_PRIORITY_WORDS.index(name))
    return Priority[name]


def _plain(seconds: Seconds | None) -> float | None:
    return None if seconds is None else float(seconds)
