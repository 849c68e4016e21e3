"""Argo files into workflows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from dagsail.domain.errors import FormatError, InputError
from dagsail.domain.workflow import Priority, Workflow
from dagsail.files import parse_yaml
from dagsail.workloads.argo.expand import Expansion
from dagsail.workloads.argo.fields import check_size, mapping, name, seconds, sequence, text
from dagsail.workloads.argo.hints import (
    DEADLINE_ANNOTATION,
    PRIORITY_ANNOTATION,
    annotated_priority,
    annotations_of,
    priority_of,
)
from dagsail.workloads.argo.library import TEMPLATE_KINDS, Library, Manifest
from dagsail.workloads.argo.pods import PodReader
from dagsail.workloads.argo.recorded import read_status
from dagsail.workloads.argo.submissions import SUBMITTED_KINDS, Submission, find_submissions
from dagsail.workloads.argo.unmodelled import note_spec
from dagsail.workloads.reading import Reading, Repairs

KINDS: Final = (*SUBMITTED_KINDS, *TEMPLATE_KINDS)
_LISTS: Final = ("List", "WorkflowList")


def looks_like(document: object) -> bool:
    """Whether a parsed YAML or JSON document is an Argo workflow or a list that holds one.

    That is an object of one of `KINDS` in the API group `argoproj.io`; one without `apiVersion`
    whose spec has templates; or, as Onepanel writes them, a bare spec with `entrypoint` and
    `templates`.
    """
    if not isinstance(document, dict):
        return False
    kind, version = document.get("kind"), document.get("apiVersion")
    if isinstance(kind, str) and kind in _LISTS:
        items = document.get("items")
        return isinstance(items, list) and any(_is_object(item) for item in items)
    if isinstance(version, str):
        return _is_object(document)
    if version is not None or kind not in (None, *KINDS):
        return False
    spec = document.get("spec") if kind is not None or "spec" in document else document
    return (
        isinstance(spec, dict)
        and isinstance(spec.get("templates"), list)
        and (kind is not None or "entrypoint" in spec)
    )


def _is_object(document: object) -> bool:
    if not isinstance(document, dict):
        return False
    version, kind = document.get("apiVersion"), document.get("kind")
    return isinstance(version, str) and version.startswith("argoproj.io/") and kind in KINDS


def read(text: str, source: str) -> Reading:
    """Read all Argo objects of a YAML or JSON text.

    Args:
        text: one or more documents; those that are not Argo's are skipped with a warning.
        source: name of the file, for messages and for objects without a name.

    Raises:
        FormatError: if nothing in it is an Argo workflow, or something is malformed.
        WorkflowError: if tasks and dependencies form no valid workflow.
    """
    documents = parse_yaml(text, source)
    repairs = Repairs(source)
    try:
        workflows = _workflows(documents, PurePath(source).name.split(".")[0], repairs)
    except RecursionError:
        raise FormatError(f"{source}: nested too deeply") from None
    except InputError as error:
        raise type(error)(f"{source}: {_one_line(str(error))}") from None
    return Reading(workflows, tuple(map(_one_line, repairs.warnings())))


def _one_line(message: str) -> str:
    """Values from the file that a message quotes may hold line breaks."""
    return " ".join(message.split())


def _workflows(documents: list[Any], default_name: str, repairs: Repairs) -> tuple[Workflow, ...]:
    check_size(documents, "the file")
    manifests = list(_manifests(documents, default_name, repairs))
    if not manifests:
        raise FormatError(f"holds no Argo workflow; it needs an object of kind {', '.join(KINDS)}")
    library = Library(manifests)
    workflows: dict[str, Workflow] = {}
    for submission in find_submissions(manifests, library):
        workflow_id = _unique(submission.workflow_id, workflows)
        workflows[workflow_id] = _workflow(workflow_id, submission, library, repairs)
    if not workflows:
        raise FormatError("no template to start with; give one object an entrypoint")
    return tuple(workflows.values())


def _manifests(documents: list[Any], default_name: str, repairs: Repairs) -> Iterator[Manifest]:
    for document in documents:
        if not looks_like(document):
            kind = document.get("kind") if isinstance(document, dict) else "no object"
            repairs.note("documents that are no Argo workflow are skipped", f"{kind!r:.40}")
        elif document.get("kind") in _LISTS:
            yield from _manifests(sequence(document["items"], "items"), default_name, repairs)
        else:
            yield _manifest(mapping(document, "an object"), default_name)


def _manifest(body: dict[str, Any], default_name: str) -> Manifest:
    kind = body.get("kind", SUBMITTED_KINDS[0])
    metadata = mapping(body.get("metadata"), "metadata")
    given = metadata.get("name") or metadata.get("generateName") or default_name or kind
    key = name(given, "metadata.name").rstrip("-") or kind
    where = f"{kind} '{key}'"
    spec = mapping(body.get("spec") if "spec" in body else body, f"{where}: spec")
    if kind == "CronWorkflow":
        spec = mapping(spec.get("workflowSpec"), f"{where}: workflowSpec")
    return Manifest(kind, key, where, body, spec)


def _unique(wanted: str, taken: Mapping[str, object]) -> str:
    candidate, count = wanted, 1
    while candidate in taken:
        count += 1
        candidate = f"{wanted}-{count}"
    return candidate


def _workflow(
    workflow_id: str, submission: Submission, library: Library, repairs: Repairs
) -> Workflow:
    spec, source, where = submission.spec, submission.source, submission.source.where
    metadata = mapping(source.body.get("metadata"), f"{where}: metadata")
    tenant = text(metadata.get("namespace"), f"{where}: namespace") or "default"
    note_spec(spec, where, repairs)
    expansion = Expansion(
        library,
        PodReader(spec, where, repairs),
        read_status(source.body.get("status"), where, repairs),
        {
            "workflow.name": workflow_id,
            "workflow.namespace": tenant,
            **{f"workflow.parameters.{k}": value for k, value in submission.arguments.items()},
        },
        where,
        repairs,
    )
    if isinstance(submission.entrypoint, str):
        expansion.add_external(submission.entrypoint, submission.entrypoint, ())
    else:
        expansion.run(submission.entrypoint, submission.arguments)
    exit_handler = _exit_handler(submission, where)
    if exit_handler is not None:
        expansion.run_exit_handler(exit_handler, submission.home)
    if not expansion.tasks:
        raise FormatError(f"{where}: no task is left to run; all conditions are false")
    notes = _annotations(submission, where)
    return Workflow(
        id=workflow_id,
        tasks=tuple(expansion.tasks),
        dependencies=tuple(expansion.dependencies),
        priority=_priority(notes, spec, where),
        deadline_s=_deadline_s(notes, spec, where),
        tenant=tenant,
    )


def _exit_handler(submission: Submission, where: str) -> dict[str, Any] | None:
    """The call of the exit handler; like the entrypoint it gets the workflow's arguments."""
    hooks = mapping(submission.spec.get("hooks"), f"{where}: hooks")
    if hooks.get("exit") is not None:
        return mapping(hooks["exit"], f"{where}: hooks.exit")
    handler = submission.spec.get("onExit")
    if handler is None or isinstance(submission.entrypoint, str):
        return None
    given = [{"name": key, "value": value} for key, value in submission.arguments.items()]
    return {"template": handler, "arguments": {"parameters": given}}


def _annotations(submission: Submission, where: str) -> dict[str, Any]:
    """Annotations of the object, over those that its `workflowMetadata` gives each run."""
    outer = submission.source.body.get("spec")
    found: dict[str, Any] = {}
    for owner in (submission.spec, outer if isinstance(outer, dict) else {}):
        found |= annotations_of({"metadata": owner.get("workflowMetadata")}, where)
    return found | annotations_of(submission.source.body, where)


def _priority(notes: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> Priority:
    if notes.get(PRIORITY_ANNOTATION) is not None:
        return annotated_priority(notes[PRIORITY_ANNOTATION], where)
    found = priority_of(spec.get("priority"), spec.get("podPriorityClassName"), where)
    return Priority.P2 if found is None else found


def _deadline_s(notes: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> float | None:
    if notes.get(DEADLINE_ANNOTATION) is not None:
        return seconds(notes[DEADLINE_ANNOTATION], f"{where}: annotation {DEADLINE_ANNOTATION}")
    deadline = spec.get("activeDeadlineSeconds")
    return None if deadline is None else seconds(deadline, f"{where}: activeDeadlineSeconds")
