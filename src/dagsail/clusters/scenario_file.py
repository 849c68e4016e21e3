"""Reader of the native scenario format (`kind: Scenario`, `apiVersion: dagsail.io/v1alpha1`).

Sections and keys are those of `dagsail.domain.scenario` in camelCase: the structs that a file is
checked against are made from its dataclasses, so the two cannot differ. A key that ends in `S`
takes seconds or a duration, one that ends in `BytesPerS` a bandwidth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, get_args, get_origin, get_type_hints

import msgspec

from dagsail.documents import (
    API_VERSION,
    ApiVersion,
    Metadata,
    Strict,
    json_schema,
    read_document,
)
from dagsail.domain.errors import ScenarioError
from dagsail.domain.scenario import Scenario
from dagsail.domain.workflow import Priority
from dagsail.scalars import BytesPerS, Number, Seconds, describe

_Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
_NAMED_BY_METADATA: Final = "name"


def read_scenario(text: str, source: str) -> Scenario:
    """Read the scenario of a native YAML or JSON text; what it leaves out keeps its default.

    Args:
        text: one document.
        source: what messages call the text, usually the file name.

    Raises:
        FormatError: if it is not exactly one `kind: Scenario`; names the place.
        ScenarioError: if a setting is impossible.
    """
    document: Any = read_document(text, source, _document_struct())
    _check_priorities(document.spec.fairness.max_wait_s, source)
    try:
        settings = _plain_fields(document.spec, Scenario)
        return Scenario(name=document.metadata.name, **settings)
    except ScenarioError as error:
        raise ScenarioError(f"{source}: {error}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of `kind: Scenario`."""
    documented = {owner.__name__: owner for owner in _sections(Scenario)}
    return json_schema(_document_struct(), documented)


@cache
def _document_struct() -> type[msgspec.Struct]:
    spec = _struct(Scenario)
    return msgspec.defstruct(
        "ScenarioDocument",
        [
            ("kind", Literal["Scenario"]),
            ("metadata", Metadata),
            ("api_version", ApiVersion, API_VERSION),
            ("spec", spec, msgspec.field(default_factory=spec)),
        ],
        bases=(Strict,),
        frozen=True,
        kw_only=True,
    )


def _struct(section: type[Any]) -> type[msgspec.Struct]:
    hints = get_type_hints(section)
    entries: list[Any] = []
    for item in dataclasses.fields(section):
        if item.name == _NAMED_BY_METADATA:
            continue
        kind = _file_type(item.name, hints[item.name])
        if item.default_factory is not dataclasses.MISSING:
            entries.append((item.name, kind, msgspec.field(default_factory=item.default_factory)))
        elif dataclasses.is_dataclass(item.default):
            entries.append((item.name, kind, msgspec.field(default_factory=kind)))
        elif item.default is dataclasses.MISSING:
            entries.append((item.name, kind))
        else:
            entries.append((item.name, kind, item.default))
    return msgspec.defstruct(section.__name__, entries, bases=(Strict,), frozen=True, kw_only=True)


def _file_type(name: str, hint: Any) -> Any:
    """How a file writes a field of the domain."""
    if dataclasses.is_dataclass(hint):
        return _struct(hint)  # type: ignore[arg-type]
    if hint is float:
        return _number_type(name)
    if hint is int:
        return _Count
    if get_origin(hint) is tuple:
        return tuple[_file_type(name, get_args(hint)[0]), ...]  # type: ignore[misc]
    if get_origin(hint) is Mapping:
        return dict[str, _number_type(name)]  # type: ignore[misc]
    if float in get_args(hint):
        return _number_type(name) | None
    return hint


def _number_type(name: str) -> Any:
    if name.endswith("_bytes_per_s"):
        return BytesPerS
    return Seconds if name.endswith("_s") else Number


def _plain_fields(values: object, section: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(section)
    names = [f.name for f in dataclasses.fields(section) if f.name != _NAMED_BY_METADATA]
    return {name: _plain(getattr(values, name), hints[name]) for name in names}


def _plain(value: object, hint: Any) -> object:
    if isinstance(value, msgspec.Struct):
        return hint(**_plain_fields(value, hint))
    if isinstance(value, tuple):
        return tuple(_plain(item, get_args(hint)[0]) for item in value)
    if isinstance(value, dict):
        return {key: float(number) for key, number in value.items()}
    return float(value) if isinstance(value, float) else value


def _sections(section: type[Any]) -> Iterator[type[Any]]:
    """The dataclass and all that it is made of."""
    yield section
    for hint in get_type_hints(section).values():
        for part in (hint, *get_args(hint)):
            if dataclasses.is_dataclass(part):
                yield from _sections(part)  # type: ignore[arg-type]


def _check_priorities(max_wait_s: Mapping[str, float], source: str) -> None:
    for name in max_wait_s:
        if name not in Priority.__members__:
            raise ScenarioError(
                f"{source}: spec.fairness.maxWaitS: found {describe(name)};"
                f" allowed are {', '.join(Priority.__members__)}"
            )
