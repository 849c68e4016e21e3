"""Which objects of a file are workflows to run, and which only serve them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.workloads.argo.fields import mapping, name, sequence
from dagsail.workloads.argo.library import Library, Manifest, Template
from dagsail.workloads.argo.values import parameters

SUBMITTED_KINDS: Final = ("Workflow", "CronWorkflow")


@dataclass(frozen=True, slots=True)
class Submission:
    """One workflow to be.

    Attributes:
        workflow_id: not yet unique.
        source: the object that it comes from.
        spec: its workflow spec, laid over the one of its `workflowTemplateRef` if it has one.
        arguments: the parameters of the spec that have a value.
        home: the object whose templates the entrypoint and exit handler are among.
        entrypoint: the template to start with, or its name if it is in another file.
    """

    workflow_id: str
    source: Manifest
    spec: Mapping[str, Any]
    arguments: Mapping[str, str]
    home: Manifest
    entrypoint: Template | str


def find_submissions(manifests: list[Manifest], library: Library) -> Iterator[Submission]:
    """The workflows of a file.

    Workflows and cron workflows always count. A workflow template with an entrypoint does
    unless a workflow of the same file refers to it. One without an entrypoint is a collection:
    unless something in the file refers to it, each template of it that no other calls becomes a
    workflow of its own (those of kind dag and steps, or all if there are none).

    Raises:
        FormatError: if a workflow has no entrypoint or names one that does not exist.
    """
    submitted = [m for m in manifests if m.kind in SUBMITTED_KINDS]
    used_by_submitted = _referred(submitted, library)
    used = _referred(manifests, library)
    for manifest in manifests:
        if manifest.kind in SUBMITTED_KINDS:
            yield _submission(manifest, library)
        elif manifest.spec.get("entrypoint") is not None:
            if manifest not in used_by_submitted:
                yield _submission(manifest, library)
        elif manifest not in used:
            yield from _collection(manifest)


def _submission(manifest: Manifest, library: Library) -> Submission:
    spec, home = manifest.spec, manifest
    reference = spec.get("workflowTemplateRef")
    where = f"{manifest.where}: workflowTemplateRef"
    if reference is not None:
        base = library.manifest(reference, where)
        arguments = _arguments(spec, manifest)
        if base is None:
            external = name(mapping(reference, where).get("name"), f"{where}: name")
            return Submission(manifest.name, manifest, spec, arguments, manifest, external)
        spec, home = {**base.spec, **spec}, base
        arguments = {**_arguments(base.spec, base), **arguments}
    else:
        arguments = _arguments(spec, manifest)
    if spec.get("entrypoint") is None:
        raise FormatError(
            f"{manifest.where}: entrypoint is missing; name the template to start with"
        )
    wanted = name(spec["entrypoint"], f"{manifest.where}: entrypoint")
    entrypoint = home.find(wanted, f"{manifest.where}: entrypoint")
    return Submission(manifest.name, manifest, spec, arguments, home, entrypoint)


def _arguments(spec: Mapping[str, Any], manifest: Manifest) -> dict[str, str]:
    where = f"{manifest.where}: arguments"
    return parameters(mapping(spec.get("arguments"), where), {}, where)


def _collection(manifest: Manifest) -> Iterator[Submission]:
    called = {call.get("template") for t in manifest.templates.values() for call in _calls(t)}
    called.add(manifest.spec.get("onExit"))
    roots = [t for t in manifest.templates.values() if t.name not in called]
    arguments = _arguments(manifest.spec, manifest)
    for template in [t for t in roots if not t.is_leaf] or roots:
        suffix = f".{template.name}" if len(roots) > 1 else ""
        yield Submission(
            f"{manifest.name}{suffix}", manifest, manifest.spec, arguments, manifest, template
        )


def _referred(manifests: list[Manifest], library: Library) -> list[Manifest]:
    """The objects of the file that these refer to, themselves left out."""
    found = []
    for manifest in manifests:
        references = [manifest.spec.get("workflowTemplateRef")]
        for template in manifest.templates.values():
            references.extend(call.get("templateRef") for call in _calls(template))
        for reference in references:
            # What is malformed is refused where it is followed, with its place.
            if isinstance(reference, dict) and isinstance(reference.get("name"), str):
                target = library.manifest(reference, manifest.where)
                if target is not None and target is not manifest:
                    found.append(target)
    return found


def _calls(template: Template) -> Iterator[Mapping[str, Any]]:
    """All calls that a template makes, their exit hooks included, as far as they are readable."""
    if template.kind == "dag":
        dag = mapping(template.body["dag"], f"{template.where}: dag")
        groups = [sequence(dag.get("tasks"), f"{template.where}: dag.tasks")]
    else:
        steps = template.body.get("steps")
        groups = [
            g if isinstance(g, list) else [g] for g in sequence(steps, f"{template.where}: steps")
        ]
    for call in (entry for group in groups for entry in group if isinstance(entry, dict)):
        yield call
        yield {"template": call.get("onExit")}
        hooks = call.get("hooks")
        for hook in hooks.values() if isinstance(hooks, dict) else ():
            if isinstance(hook, dict):
                yield hook
