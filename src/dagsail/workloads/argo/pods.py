"""The pod that a leaf template makes: what it asks for, where it may run, how it is repeated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.domain.placement import ANYWHERE, Placement
from dagsail.domain.units import CPU, MEMORY, MIB
from dagsail.domain.workflow import Priority
from dagsail.files import parse_yaml
from dagsail.workloads.argo.fields import (
    check_size,
    integer,
    mapping,
    seconds,
    sequence,
    text,
    texts,
)
from dagsail.workloads.argo.hints import Hints, annotations_of, priority_of, read_hints
from dagsail.workloads.argo.library import Template
from dagsail.workloads.argo.placement import read_placement
from dagsail.workloads.argo.requests import pod_request
from dagsail.workloads.argo.values import Scope, duration_s, is_known, substitute_all, variables
from dagsail.workloads.reading import DEFAULT_CPU_MILLICORES, DEFAULT_MEMORY_BYTES, Repairs

DEFAULT_RETRIES: Final = 3
"""Stands for a `retryStrategy` without a limit, which Argo repeats for ever."""
EXECUTOR_REQUEST: Final = {CPU: 100, MEMORY: 64 * MIB}
"""Of the small pods that Argo itself makes for resource, http, data and plugin templates."""

_SILENT: Final = Hints()
_RULES: Final = ("nodeSelector", "affinity", "tolerations")
_KEPT: Final = (
    "podSpecPatch",
    "podResources",
    "retryStrategy",
    "timeout",
    "activeDeadlineSeconds",
    "priority",
    "priorityClassName",
    "suspend",
)


@dataclass(frozen=True, slots=True)
class Pod:
    """All that a task inherits from its template."""

    request: Mapping[str, int] = field(default_factory=dict)
    image: str = ""
    placement: Placement = ANYWHERE
    max_retries: int = 0
    timeout_s: float | None = None
    priority: Priority | None = None
    hints: Hints = _SILENT


class PodReader:
    """Reads each template once for each distinct set of values of the variables it uses."""

    def __init__(self, spec: Mapping[str, Any], where: str, repairs: Repairs) -> None:
        """Use the defaults that a workflow spec states for all its templates."""
        self._spec = spec
        self._where = where
        self._repairs = repairs
        self._outlines: dict[tuple[Template, Template | None], dict[str, Any]] = {}
        self._variables: dict[tuple[Template, Template | None], tuple[str, ...]] = {}
        self._pods: dict[tuple[object, ...], Pod] = {}

    def read(self, template: Template, boundary: Template | None, scope: Scope) -> Pod:
        """The pod of a leaf template called from `boundary` (a dag or steps template).

        Raises:
            FormatError: on a malformed pod.
        """
        key = (template, boundary)
        if key not in self._outlines:
            outline = self._outline(template, boundary)
            self._outlines[key] = outline
            self._variables[key] = tuple(
                dict.fromkeys(name for value in texts(outline) for name in variables(value))
            )
        values = tuple(scope.get(name) for name in self._variables[key])
        if (*key, values) not in self._pods:
            outline = substitute_all(self._outlines[key], scope)
            self._pods[*key, values] = self._build(outline, template)
        return self._pods[*key, values]

    def _outline(self, template: Template, boundary: Template | None) -> dict[str, Any]:
        """The parts of a template that matter here, with the defaults that apply to it."""
        body = self._with_defaults(template)
        outline = {key: body[key] for key in _KEPT if body.get(key) is not None}
        outline["annotations"] = annotations_of(body, template.where)
        outline["containers"] = _containers(template.kind, body, template.where)
        outline["initContainers"] = [
            _essentials(entry, "", template.where)
            for entry in sequence(body.get("initContainers"), f"{template.where}: initContainers")
        ]
        # Argo takes each rule from the innermost place that states it, it never merges them.
        for rule in _RULES:
            outline[rule] = (
                body.get(rule)
                or (boundary.body.get(rule) if boundary else None)
                or self._spec.get(rule)
            )
        for key in ("podResources", "retryStrategy"):
            outline.setdefault(key, self._spec.get(key))
        outline["patches"] = [self._spec.get("podSpecPatch"), outline.pop("podSpecPatch", None)]
        return outline

    def _with_defaults(self, template: Template) -> dict[str, Any]:
        where = f"{self._where}: templateDefaults"
        defaults = mapping(self._spec.get("templateDefaults"), where)
        if not defaults:
            return dict(template.body)
        return _merge(
            {k: v for k, v in defaults.items() if k not in template.KINDS or k == template.kind},
            template.body,
        )

    def _build(self, outline: Mapping[str, Any], template: Template) -> Pod:
        where = template.where
        hints = read_hints(mapping(outline["annotations"], where), where, self._repairs)
        if template.kind == "suspend":
            return Pod(hints=self._suspended(outline, hints, where))
        pod = {
            "containers": outline["containers"],
            "initContainers": outline["initContainers"],
            "resources": outline["podResources"],
            "priorityClassName": outline.get("priorityClassName"),
            **{rule: outline[rule] for rule in _RULES},
        }
        for patch in outline["patches"]:
            pod = self._patched(pod, text(patch, f"{where}: podSpecPatch"), where)
        return Pod(
            request=self._with_default_request(pod, where),
            image=_main_image(pod, where),
            placement=read_placement(pod, where, self._repairs),
            max_retries=self._max_retries(outline.get("retryStrategy"), where),
            timeout_s=self._timeout_s(outline, where),
            priority=priority_of(outline.get("priority"), pod.get("priorityClassName"), where),
            hints=hints,
        )

    def _with_default_request(self, pod: Mapping[str, Any], where: str) -> dict[str, int]:
        request = pod_request(pod, where, self._repairs)
        defaults = {CPU: DEFAULT_CPU_MILLICORES, MEMORY: DEFAULT_MEMORY_BYTES}
        if not defaults.keys() <= request.keys():
            self._repairs.note(
                "templates state no cpu or memory request;"
                f" {DEFAULT_CPU_MILLICORES}m and {DEFAULT_MEMORY_BYTES // MIB}Mi stand in",
                where,
            )
        return {**defaults, **request}

    def _patched(self, pod: dict[str, Any], patch: str, where: str) -> dict[str, Any]:
        """Apply a `podSpecPatch` as a strategic merge."""
        if not patch.strip():
            return pod
        try:
            documents = parse_yaml(patch, f"{where}: podSpecPatch")
            check_size(documents, f"{where}: podSpecPatch")
            fields = mapping(documents[0] if documents else None, f"{where}: podSpecPatch")
        except FormatError:
            if is_known(patch):
                raise
            self._repairs.note("podSpecPatch is made by an earlier task; it is left out", where)
            return pod
        return _merge(pod, fields)

    def _suspended(self, outline: Mapping[str, Any], hints: Hints, where: str) -> Hints:
        suspend = mapping(outline.get("suspend"), f"{where}: suspend")
        duration = suspend.get("duration")
        if hints.runtime_s is not None or duration is None:
            return hints
        if isinstance(duration, str) and not is_known(duration):
            return hints
        return Hints(duration_s(duration, f"{where}: suspend.duration"), hints.output_bytes)

    def _max_retries(self, value: object, where: str) -> int:
        if value is None:
            return 0
        strategy = mapping(value, f"{where}: retryStrategy")
        if text(strategy.get("expression"), f"{where}: retryStrategy").strip() == "false":
            return 0
        limit = strategy.get("limit")
        if limit is None or (isinstance(limit, str) and not is_known(limit)):
            self._repairs.note(
                f"retryStrategy has no known limit; {DEFAULT_RETRIES} retries stand in", where
            )
            return DEFAULT_RETRIES
        retries = integer(limit, f"{where}: retryStrategy.limit")
        if retries < 0:
            raise FormatError(f"{where}: retryStrategy.limit is {retries}; it must be 0 or more")
        return retries

    def _timeout_s(self, outline: Mapping[str, Any], where: str) -> float | None:
        found = []
        for key, read in (("activeDeadlineSeconds", seconds), ("timeout", duration_s)):
            value = outline.get(key)
            if isinstance(value, str) and not is_known(value):
                self._repairs.note(
                    "timeouts name a parameter without a value and are left out", where
                )
            elif value not in (None, ""):
                found.append(read(value, f"{where}: {key}"))
        return min(found, default=None)


def _containers(kind: str, body: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """The ordinary containers of a pod; Argo's sidecars are such, too."""
    sidecars = [
        _essentials(entry, "", where)
        for entry in sequence(body.get("sidecars"), f"{where}: sidecars")
    ]
    if kind in ("container", "script"):
        return [_essentials(body[kind], "main", where), *sidecars]
    if kind == "containerSet":
        members = mapping(body[kind], f"{where}: containerSet").get("containers")
        found = sequence(members, f"{where}: containerSet.containers")
        if not found:
            raise FormatError(f"{where}: containerSet has no containers")
        return [*(_essentials(entry, "", where) for entry in found), *sidecars]
    amounts = {CPU: f"{EXECUTOR_REQUEST[CPU]}m", MEMORY: EXECUTOR_REQUEST[MEMORY]}
    return [{"name": "main", "resources": {"requests": amounts}}, *sidecars]


def _essentials(value: object, default_name: str, where: str) -> dict[str, Any]:
    container = mapping(value, f"{where}: a container")
    return {
        "name": text(container.get("name"), f"{where}: name of a container") or default_name,
        **{k: container[k] for k in ("image", "resources", "restartPolicy") if k in container},
    }


def _main_image(pod: Mapping[str, Any], where: str) -> str:
    found = sequence(pod.get("containers"), f"{where}: containers")
    containers = [mapping(entry, f"{where}: a container") for entry in found]
    main = next((c for c in containers if c.get("name") == "main"), (*containers, {})[0])
    return text(main.get("image"), f"{where}: image")


def _merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Strategic merge: mappings key by key, containers by name, null deletes, else replace."""
    merged = dict(base)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _merge(merged[key], value)
        elif key in ("containers", "initContainers") and isinstance(value, list):
            merged[key] = _merge_named(merged.get(key) or [], value)
        else:
            merged[key] = value
    return merged


def _merge_named(base: list[Any], patch: list[Any]) -> list[Any]:
    named = {entry.get("name"): entry for entry in base if isinstance(entry, dict)}
    for entry in patch:
        fields = mapping(entry, "podSpecPatch: a container")
        key = text(fields.get("name"), "podSpecPatch: name of a container")
        named[key] = _merge(named.get(key, {}), fields)
    return list(named.values())
