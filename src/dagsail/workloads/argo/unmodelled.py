"""What Argo can do and a workflow here cannot: noted, so that nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dagsail.workloads.argo.library import Template
from dagsail.workloads.reading import Repairs

_OF_SPECS: Final = ("synchronization", "parallelism")
_OF_TEMPLATES: Final = (*_OF_SPECS, "memoize")
_OF_PODS: Final = ("retryStrategy", "timeout", "activeDeadlineSeconds")


def note_spec(spec: Mapping[str, Any], where: str, repairs: Repairs) -> None:
    """Note the fields of a workflow spec that are left out."""
    for key in _OF_SPECS:
        if spec.get(key) is not None:
            repairs.note(f"{key} is not modelled and left out", where)


def note_template(template: Template, repairs: Repairs) -> None:
    """Note the fields of a template that are left out."""
    for key in _OF_TEMPLATES:
        if template.body.get(key) is not None:
            repairs.note(f"{key} is not modelled and left out", template.where)
    if template.is_daemon:
        repairs.note(
            "daemon templates count as tasks that end before their dependents start",
            template.where,
        )
    for key in () if template.is_leaf else _OF_PODS:
        value = template.body.get(key)
        if value is not None and not _never_repeats(value):
            repairs.note(
                f"{key} of a dag or steps template is not modelled and left out", template.where
            )


def _never_repeats(value: object) -> bool:
    """Whether a `retryStrategy` says that nothing is repeated."""
    return isinstance(value, dict) and (
        value.get("expression") == "false" or str(value.get("limit")) == "0"
    )
