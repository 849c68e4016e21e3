"""The Argo objects of one file and the templates in them, found by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from dagsail.domain.errors import FormatError
from dagsail.workloads.argo.fields import mapping, name, sequence, text

TEMPLATE_KINDS: Final = ("WorkflowTemplate", "ClusterWorkflowTemplate")


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """One template; two are the same only if they are the same object.

    Attributes:
        name: as the file gives it; of an inline template, the name of its task.
        kind: which of `KINDS` it is.
        body: the template as written.
        home: the object whose templates it may call by name.
        where: names object and template in messages.
    """

    KINDS: ClassVar = (
        "dag",
        "steps",
        "container",
        "script",
        "containerSet",
        "resource",
        "suspend",
        "http",
        "data",
        "plugin",
    )

    name: str
    kind: str
    body: Mapping[str, Any]
    home: Manifest
    where: str

    @property
    def is_leaf(self) -> bool:
        """Whether it makes one pod rather than calls other templates."""
        return self.kind not in ("dag", "steps")

    @property
    def is_daemon(self) -> bool:
        """Whether it runs on while what depends on it starts."""
        return self.body.get("daemon") is True


@dataclass(slots=True, eq=False)
class Manifest:
    """One Argo object of a file, with its workflow spec and templates.

    Attributes:
        kind: `Workflow`, `WorkflowTemplate`, `ClusterWorkflowTemplate` or `CronWorkflow`.
        name: `metadata.name`, else `generateName` without its dash, else the file's name.
        where: names the object in messages.
        body: the whole object.
        spec: the workflow spec in it.
        templates: by name, in file order.
    """

    kind: str
    name: str
    where: str
    body: Mapping[str, Any]
    spec: Mapping[str, Any]
    templates: dict[str, Template] = field(default_factory=dict)
    _inline: dict[int, Template] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Find the templates.

        Raises:
            FormatError: on a malformed or duplicate template.
        """
        for value in sequence(self.spec.get("templates"), f"{self.where}: templates"):
            body = mapping(value, f"{self.where}: a template")
            key = name(body.get("name"), f"{self.where}: the name of a template")
            if key in self.templates:
                raise FormatError(f"{self.where}: two templates are named '{key}'")
            self.templates[key] = self._template(key, body)

    def find(self, wanted: str, where: str) -> Template:
        """The template of that name.

        Raises:
            FormatError: naming those there are.
        """
        if wanted in self.templates:
            return self.templates[wanted]
        raise FormatError(f"{where}: no template is named '{wanted}'{self._known_names(wanted)}")

    def inline(self, value: object, key: str, where: str) -> Template:
        """The template written into a task itself; one object however often it is called."""
        body = mapping(value, f"{where}: inline")
        if id(body) not in self._inline:
            self._inline[id(body)] = self._template(key, body)
        return self._inline[id(body)]

    def _template(self, key: str, body: Mapping[str, Any]) -> Template:
        where = f"{self.where}: template '{key}'"
        kinds = [kind for kind in Template.KINDS if body.get(kind) is not None]
        if len(kinds) != 1:
            found = "has none" if not kinds else f"has {' and '.join(kinds)}"
            raise FormatError(f"{where}: needs exactly one of {', '.join(Template.KINDS)}; {found}")
        return Template(key, kinds[0], body, self, where)

    def _known_names(self, wanted: str) -> str:
        near = difflib.get_close_matches(wanted, self.templates, n=1, cutoff=0.6)
        if near:
            return f"; did you mean '{near[0]}'?"
        names = list(self.templates)
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        return f"; there are: {shown}" if names else "; there are none"


class Library:
    """The workflow templates of one file, which its other objects may refer to."""

    def __init__(self, manifests: Iterable[Manifest]) -> None:
        """Index the workflow templates among these objects.

        Raises:
            FormatError: if two share kind and name.
        """
        self._shared: dict[tuple[bool, str], Manifest] = {}
        for manifest in manifests:
            if manifest.kind in TEMPLATE_KINDS:
                key = (manifest.kind == "ClusterWorkflowTemplate", manifest.name)
                if key in self._shared:
                    raise FormatError(f"{manifest.where}: occurs twice in this file")
                self._shared[key] = manifest

    def manifest(self, reference: object, where: str) -> Manifest | None:
        """What a `templateRef` or `workflowTemplateRef` points to; None if not in this file."""
        fields = mapping(reference, where)
        wanted = text(fields.get("name"), f"{where}: name")
        return self._shared.get((fields.get("clusterScope") is True, wanted))

    def called(self, call: Mapping[str, Any], home: Manifest, where: str) -> Template | str:
        """The template that a task, step or hook calls, or its name if it is in another file.

        Raises:
            FormatError: if the call names no template, several, or one that does not exist.
        """
        given = [key for key in ("template", "templateRef", "inline") if call.get(key) is not None]
        if len(given) != 1:
            found = "none" if not given else " and ".join(given)
            raise FormatError(f"{where}: needs one of template, templateRef, inline; has {found}")
        if given[0] == "inline":
            return home.inline(call["inline"], text(call.get("name"), f"{where}: name"), where)
        if given[0] == "template":
            return home.find(name(call["template"], f"{where}: template"), where)
        reference = mapping(call["templateRef"], f"{where}: templateRef")
        wanted = name(reference.get("template"), f"{where}: templateRef.template")
        home_name = name(reference.get("name"), f"{where}: templateRef.name")
        manifest = self.manifest(reference, f"{where}: templateRef")
        if manifest is None:
            return f"{home_name}/{wanted}"
        return manifest.find(wanted, where)
