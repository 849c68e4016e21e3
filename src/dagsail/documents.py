"""Native documents (`kind: Workflow | Cluster | Scenario`): plain YAML or JSON into typed structs.

Strict, so that a slip of the pen never passes for a default: an unknown key is an error with the
nearest allowed key, a wrong type names the place (`spec.tasks[3].request`), what was found and
what is allowed. The struct classes are also the source of the published JSON Schemas: types and
defaults come from the annotations, descriptions from the string below each field.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_origin

import msgspec

from dagsail.domain.errors import FormatError
from dagsail.files import parse_json, parse_yaml
from dagsail.scalars import Scalar, describe, nearest

API_VERSION: Final = "dagsail.io/v1alpha1"
ApiVersion = Literal["dagsail.io/v1alpha1"]
Name = Annotated[
    str, msgspec.Meta(min_length=1, max_length=253, pattern=r"^(?![\s\S]*[\x00-\x1f])")
]
"""Text on one line, so that messages which name an object stay on one line."""

T = TypeVar("T", bound=msgspec.Struct)
S = TypeVar("S", bound=Scalar)

_TYPE_NAMES: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_SNAKE: Final = re.compile(r"`([a-z]+(?:_[a-z]+)+)`")
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of every section of a document: camelCase keys, none of them unknown."""


class Metadata(Strict, frozen=True, kw_only=True):
    """What names a document."""

    name: Name
    """Name of the object."""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    """Free labels for people and other tools; Dagsail does not read them."""


_USUAL_WORDS: Final = {
    "name": "id",
    "duration": "runtime",
    "parents": "dependsOn",
    "dependencies": "dependsOn",
    "cpu": "request",
    "memory": "request",
    "resources": "request",
}
"""What other formats call our keys."""


def by_default(value: S) -> S:
    """Give a field a default of its own notation, which msgspec cannot write into a schema."""
    made: S = msgspec.field(default_factory=lambda: value)
    return made


def read_documents(text: str, source: str, kind: type[T]) -> list[T]:
    """All documents of a YAML stream or JSON text, each of them a `kind`.

    Raises:
        FormatError: if there is none, or one is not exactly a `kind`; names file and place.
    """
    documents = _parse(text, source)
    if not documents:
        raise FormatError(f"{source}: holds no document; expected kind: {_kind_of(kind)}")
    several = len(documents) > 1
    return [
        convert(document, kind, f"{source} (document {number})" if several else source)
        for number, document in enumerate(documents, start=1)
    ]


def read_document(text: str, source: str, kind: type[T]) -> T:
    """The only document of a YAML or JSON text.

    Raises:
        FormatError: if there is none or several, or it is not exactly a `kind`.
    """
    documents = read_documents(text, source, kind)
    if len(documents) > 1:
        raise FormatError(f"{source}: holds {len(documents)} documents; expected only one")
    return documents[0]


def _parse(text: str, source: str) -> list[Any]:
    if text.lstrip().startswith("{"):
        try:
            return [parse_json(text, source)]
        except FormatError as error:
            try:
                return parse_yaml(text, source)
            except FormatError:
                raise error from None
    return parse_yaml(text, source)


def convert(document: object, kind: type[T], source: str) -> T:
    """Turn one plain document into a struct.

    Raises:
        FormatError: naming `source`, the path inside it, what was found and what is allowed.
    """
    wanted = _kind_of(kind)
    if wanted and isinstance(document, dict) and document.get("kind") != wanted:
        found = describe(document.get("kind"))
        raise FormatError(f"{source}: kind: found {found}, expected '{wanted}'")
    try:
        return msgspec.convert(document, kind, dec_hook=_parse_scalar)
    except msgspec.ValidationError as error:
        raise FormatError(f"{source}: {_explain(str(error), document, kind)}") from None


def _kind_of(kind: type[msgspec.Struct]) -> str:
    for field in msgspec.structs.fields(kind):
        if field.encode_name == "kind" and get_origin(field.type) is Literal:
            return str(get_args(field.type)[0])
    return ""


def _parse_scalar(kind: type, value: object) -> object:
    if issubclass(kind, Scalar):
        return kind.parse(value)
    raise NotImplementedError(kind)


def _explain(message: str, document: object, kind: Any) -> str:
    """Rewrite msgspec's message: the place first, then what was found and what is allowed."""
    problem, _, place = message.rpartition(" - at `")
    if not problem:
        problem, place = message, "$`"
    in_key = place.startswith("key` in `")
    steps = _STEP.findall(place.removeprefix("key` in `").removesuffix("`"))
    path, value, kind = _follow(steps, document, kind)
    if in_key:
        return f"{path or 'top level'}: {_explain_key(value, kind)}"
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", problem, re.DOTALL):
        return _explain_unknown(path, unknown[1], kind)
    if missing := re.fullmatch(r"Object missing required field `(.*)`", problem):
        return f"{path or 'top level'}: the key '{missing[1]}' is missing"
    if get_origin(kind) is Literal:
        allowed = [str(choice) for choice in get_args(kind)]
        hint = nearest(value, allowed) if isinstance(value, str) else ""
        choices = f"allowed are {', '.join(allowed)}"
        return f"{path}: found {describe(value)}; {f'{hint} ' if hint else ''}{choices}"
    if expected := re.match(r"Expected `([^`]*)`,? ?(.*)", problem):
        names = [_TYPE_NAMES.get(name, name) for name in expected[1].split(" | ")]
        bound = "" if expected[2].startswith("got") else f" {expected[2].replace('`', '')}"
        bound = " on one line" if "regex" in bound else bound
        quote = "; put it in quotes" if "text" in names and _needs_quotes(value) else ""
        where = path or "top level"
        return f"{where}: found {describe(value)}, expected {' or '.join(names)}{bound}{quote}"
    return f"{path}{problem}" if problem.startswith("[") else f"{path}: {problem}"


def _explain_unknown(path: str, name: str, kind: Any) -> str:
    keys = [field.encode_name for field in msgspec.structs.fields(kind)]
    usual = _USUAL_WORDS.get(name, "")
    hint = f"did you mean '{usual}'?" if usual in keys else nearest(name, keys)
    hint = hint or f"allowed are {', '.join(keys)}"
    return f"{f'{path}.' if path else ''}{_shown(name)}: unknown key; {hint}"


def _explain_key(mapping: dict[Any, Any], kind: Any) -> str:
    key_kind = get_args(kind)[0] if get_origin(kind) is dict else str
    key = next(key for key in mapping if not _is_valid(key, key_kind))
    if isinstance(key, str):
        return f"key {describe(key)} must be text of 1 to 253 characters on one line"
    return f"key {describe(key)} is not text; put it in quotes"


def _shown(key: str) -> str:
    return key if len(key) <= 60 and key.isprintable() else describe(key)


def _needs_quotes(value: object) -> bool:
    return isinstance(value, bool | int | float)


def _follow(steps: list[tuple[str, str]], value: Any, kind: Any) -> tuple[str, Any, Any]:
    """Walk a path through the plain value and its type: path as text, value and type there."""
    path = ""
    for field, index in steps:
        tags = _tags(kind)
        kind = _alternative(kind, value)
        if tags and field == kind.__struct_config__.tag_field:
            path, value, kind = f"{path}.{field}", value.get(field), Literal[tuple(tags)]
        elif field:
            path = f"{path}.{field}" if path else field
            fields = {item.encode_name: item.type for item in msgspec.structs.fields(kind)}
            value, kind = value.get(field), fields[field]
        elif index == "...":
            kind = get_args(kind)[1]
            key, value = next(pair for pair in value.items() if not _is_valid(pair[1], kind))
            path += f"[{_shown(key)}]"
        else:
            path += f"[{index}]"
            value, kind = value[int(index)], get_args(kind)[0]
    return path, value, _alternative(kind, value)


def _is_valid(value: object, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind, dec_hook=_parse_scalar)
    except msgspec.ValidationError:
        return False
    return True


def _alternative(kind: Any, value: object) -> Any:
    """The bare type that a value is checked against: no annotation, one choice of a union."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    choices = [choice for choice in get_args(kind) if choice is not type(None)]
    if get_origin(kind) in (dict, list, tuple, Literal) or not choices:
        return kind
    mapping = isinstance(value, dict)
    matching = [c for c in choices if (isinstance(c, type) and issubclass(c, Strict)) == mapping]
    tagged = [c for tag, c in _tags(kind).items() if mapping and _tag_of(value, c) == tag]
    return _alternative((tagged or matching or choices)[0], value)


def _tag_of(mapping: Any, struct: Any) -> Any:
    return mapping.get(struct.__struct_config__.tag_field)


def _tags(kind: Any) -> dict[str, Any]:
    """The structs of a union by the tag that tells them apart; empty where there is no such."""
    configs = {c: getattr(c, "__struct_config__", None) for c in get_args(kind)}
    return {str(config.tag): c for c, config in configs.items() if config and config.tag}


def json_schema(
    kind: type[msgspec.Struct], documented: Mapping[str, type] = MappingProxyType({})
) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one kind of document.

    Args:
        kind: the struct of a whole document.
        documented: by name of a struct, another class that carries the descriptions of its keys.
    """
    schema = msgspec.json.schema(kind, schema_hook=_scalar_schema)
    for struct in _structs(kind):
        properties = schema["$defs"][struct.__name__]["properties"]
        for item in msgspec.structs.fields(struct):
            default = item.default_factory() if callable(item.default_factory) else None
            if isinstance(default, Scalar):
                properties[item.encode_name]["default"] = default
        for base in documented.get(struct.__name__, struct).__mro__:
            for field, description in _field_descriptions(base).items():
                if _camel(field) in properties:
                    properties[_camel(field)]["description"] = description
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Dagsail {_kind_of(kind)}, {API_VERSION}",
        **schema,
    }


def _structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    """All structs that a type is made of, outermost first."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind
        parts = [field.type for field in msgspec.structs.fields(kind)]
    else:
        parts = list(get_args(kind))
    for part in parts:
        yield from _structs(part)


def _scalar_schema(kind: type) -> dict[str, Any]:
    if issubclass(kind, Scalar):
        return dict(kind.SCHEMA)
    raise NotImplementedError(kind)


def _field_descriptions(owner: type) -> dict[str, str]:
    try:
        source = inspect.getsource(owner)
    except (OSError, TypeError):  # made at run time or in C: it describes nothing
        return {}
    body = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            description = " ".join(str(text.value.value).split())
            found[field.target.id] = _SNAKE.sub(lambda m: f"`{_camel(m[1])}`", description)
    return found


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
