"""Argo's template variables: parameters into text, loops into items, texts into durations.

Substitution follows https://argo-workflows.readthedocs.io/en/latest/variables/ for what can be
known before a workflow runs: literal parameters and loop items. What only a run can tell stays
in the text as `{{...}}`, and `is_known` says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

from dagsail.domain.errors import FormatError
from dagsail.files import parse_json
from dagsail.workloads.argo.fields import integer, mapping, sequence

Scope = MutableMapping[str, str]
"""Variable name, such as `inputs.parameters.x`, to its text."""

MAX_TEXT: Final = 1_000_000
"""Characters that one text may grow to by substitution."""
MAX_ITEMS: Final = 200_000
"""Items of one loop."""
UNKNOWN: Final = "{{valueFrom}}"
"""The text of a parameter that only a run can tell."""

_TAG: Final = re.compile(r"\{\{([^{}]*)\}\}")
_PATH: Final = r"[\w$-]+(?:\.[\w$-]+)*"
_EXPRESSION: Final = re.compile(rf"=\s*(?:({_PATH})|sprig\.trim\(\s*({_PATH})\s*\))")
_BRACKET: Final = re.compile(r"\[\s*(['\"])([\w$-]+)\1\s*\]")
_FORMAT: Final = re.compile(r"(?:[^%]|%%)*%[-+0# ]{0,4}[0-9]{0,2}[dxXov](?:[^%]|%%)*")
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h|d)")
_UNIT_S: Final = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def is_known(text: str) -> bool:
    """Whether no variable is left in a text after substitution."""
    return "{{" not in text


def variable(tag: str) -> str:
    """The variable that the inside of a `{{tag}}` stands for; empty where it computes something.

    Of expressions (`{{=...}}`) only a lone variable and `sprig.trim` of one are understood.
    """
    tag = tag.strip()
    if not tag.startswith("="):
        return tag
    match = _EXPRESSION.fullmatch(_BRACKET.sub(r".\2", tag))
    return (match[1] or match[2]) if match else ""


def variables(text: str) -> list[str]:
    """All variables that a text names, in order, each once."""
    return list(dict.fromkeys(variable(tag) for tag in _TAG.findall(text)))


def substitute(text: str, scope: Scope) -> str:
    """Replace every variable that the scope knows.

    Raises:
        FormatError: if the result is longer than `MAX_TEXT`.
    """
    if "{{" not in text:
        return text
    grown = 0

    def value_of(match: re.Match[str]) -> str:
        nonlocal grown
        value = scope.get(variable(match[1]))
        if value is None:
            return match[0]
        grown += len(value)
        if grown > MAX_TEXT:
            raise FormatError(f"a parameter grows beyond {MAX_TEXT} characters: {text[:60]!r}")
        return value

    return _TAG.sub(value_of, text)


def substitute_all(value: Any, scope: Scope) -> Any:
    """`substitute` on every text inside nested mappings and lists; keys stay as they are."""
    if isinstance(value, str):
        return substitute(value, scope)
    if isinstance(value, list):
        return [substitute_all(child, scope) for child in value]
    if isinstance(value, dict):
        return {key: substitute_all(child, scope) for key, child in value.items()}
    return value


def as_text(value: object) -> str:
    """A parameter value as Argo writes it into a text: scalars plain, the rest as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    except ValueError:
        raise FormatError("a number in a parameter has too many digits; put it in quotes") from None


def parameters(owner: Mapping[str, Any], scope: Scope, where: str) -> dict[str, str]:
    """Name and text of the parameters under `arguments:` or `inputs:` that have a value.

    `value` wins over `default`; both are substituted. One that comes from elsewhere
    (`valueFrom`) gets a text that is not known.

    Raises:
        FormatError: on a malformed parameter.
    """
    found: dict[str, str] = {}
    for entry in sequence(owner.get("parameters"), f"{where}: parameters"):
        parameter = mapping(entry, f"{where}: parameters")
        key = parameter.get("name")
        if not isinstance(key, str) or not key:
            raise FormatError(f"{where}: a parameter has no name")
        value = parameter.get("value")
        if value is None and parameter.get("valueFrom") is not None:
            value = UNKNOWN
        if value is None:
            value = parameter.get("default")
        if isinstance(value, list | dict):
            raise FormatError(f"{where}: parameter '{key}' must be text, not a list or mapping")
        if value is not None:
            found[key] = substitute(as_text(value), scope)
    return found


def item_scope(item: object) -> dict[str, str]:
    """What `{{item}}` and `{{item.key}}` mean for one item of a loop."""
    scope = {"item": as_text(item)}
    if isinstance(item, dict):
        scope.update((f"item.{key}", as_text(value)) for key, value in item.items())
    return scope


def loop_items(call: Mapping[str, Any], scope: Scope, where: str) -> list[Any] | str | None:
    """The items that a task or step is repeated for.

    Returns:
        The items; or None where the call is no loop; or, where only a run can tell, the text
        that the items come from.

    Raises:
        FormatError: if the loop is malformed or has more than `MAX_ITEMS` items.
    """
    kinds = [key for key in ("withItems", "withParam", "withSequence") if call.get(key) is not None]
    if not kinds:
        return None
    if len(kinds) > 1:
        raise FormatError(f"{where}: has both {kinds[0]} and {kinds[1]}; keep one")
    given = substitute_all(call[kinds[0]], scope)
    if kinds[0] == "withSequence":
        return _sequence_items(mapping(given, f"{where}: withSequence"), f"{where}: withSequence")
    if kinds[0] == "withParam":
        if isinstance(given, str) and not is_known(given):
            return given
        given = parse_json(given, f"{where}: withParam") if isinstance(given, str) else given
    return _checked(sequence(given, f"{where}: {kinds[0]}"), where)


def _checked(items: list[Any], where: str) -> list[Any]:
    if len(items) > MAX_ITEMS:
        raise FormatError(f"{where}: a loop over {len(items)} items; at most {MAX_ITEMS} are read")
    return items


def _sequence_items(given: Mapping[str, Any], where: str) -> list[Any] | str:
    if "count" in given and "end" in given:
        raise FormatError(f"{where}: has both count and end; keep one")
    if "count" not in given and "end" not in given:
        raise FormatError(f"{where}: needs a count or an end")
    for key in ("start", "end", "count"):
        if isinstance(given.get(key), str) and not is_known(given[key]):
            return str(given[key])
    start = integer(given.get("start", 0), f"{where}.start")
    if "count" in given:
        count = integer(given["count"], f"{where}.count")
        numbers = range(start, start + max(count, 0))
    else:
        end = integer(given["end"], f"{where}.end")
        step = 1 if end >= start else -1
        numbers = range(start, end + step, step)
    if abs(numbers.stop - numbers.start) > MAX_ITEMS:
        raise FormatError(
            f"{where}: {abs(numbers.stop - numbers.start)} items; at most {MAX_ITEMS} are read"
        )
    pattern = given.get("format", "%d")
    if not isinstance(pattern, str) or len(pattern) > 200 or not _FORMAT.fullmatch(pattern):
        raise FormatError(
            f"{where}.format: {str(pattern)[:40]!r} must hold one verb such as %d or %02X"
        )
    pattern = re.sub(r"(%[-+0# ]*\d*)v", r"\1d", pattern)
    return [pattern % number for number in numbers]


def duration_s(value: object, where: str) -> float:
    """Seconds of an Argo duration: `20`, `"90s"`, `"1h30m"`, `"2d"`.

    Raises:
        FormatError: if it is none.
    """
    text = str(value).strip() if isinstance(value, str | int) and value is not True else ""
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return float(text)
    parts = _DURATION.findall(text) if len(text) <= 64 else []
    if not parts or "".join(parts) != text:
        raise FormatError(
            f"{where}: {str(value)[:40]!r} is not a duration such as '90s', '5m' or '1h30m'"
        )
    total = 0.0
    for part in parts:
        unit = part.lstrip("0123456789.")
        total += float(part.removesuffix(unit)) * _UNIT_S[unit]
    return total
