"""Typed access to parsed YAML: every wrong type becomes one clear `FormatError`.

`where` names the place inside the file, such as `Workflow 'ci': template 'main'`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from dagsail.domain.errors import FormatError

MAX_VALUES: Final = 2_000_000
"""Values in one document, aliases counted as often as they are used."""
MAX_NESTING: Final = 100


def check_size(document: object, where: str) -> None:
    """Refuse a document whose YAML aliases or nesting would blow up when it is walked.

    Raises:
        FormatError: beyond `MAX_VALUES` values or `MAX_NESTING` levels.
    """
    seen = 0
    waiting: list[tuple[object, int]] = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > MAX_NESTING:
            raise FormatError(f"{where}: nested more than {MAX_NESTING} levels deep")
        if seen + len(waiting) > MAX_VALUES:
            raise FormatError(
                f"{where}: more than {MAX_VALUES} values once its aliases are followed; split it"
            )
        if isinstance(value, dict):
            waiting.extend((child, depth + 1) for child in value.values())
        elif isinstance(value, list):
            waiting.extend((child, depth + 1) for child in value)
        elif value is not None and not isinstance(value, str | int | float):
            raise FormatError(
                f"{where}: a value of type {type(value).__name__}; only what JSON knows is allowed"
            )


def mapping(value: object, where: str) -> dict[str, Any]:
    """A mapping with text keys; null counts as empty.

    Raises:
        FormatError: if it is anything else.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FormatError(f"{where}: must be a mapping, found {_kind(value)}")
    for key in value:
        if not isinstance(key, str):
            raise FormatError(f"{where}: key {_shown(key)} must be text; put it in quotes")
        if not key.isprintable():
            raise FormatError(f"{where}: key {_shown(key)} holds a line break or the like")
    return value


def sequence(value: object, where: str) -> list[Any]:
    """A list; null counts as empty.

    Raises:
        FormatError: if it is anything else.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise FormatError(f"{where}: must be a list, found {_kind(value)}")
    return value


def text(value: object, where: str) -> str:
    """A text; null counts as empty.

    Raises:
        FormatError: if it is anything else; a number or truth value needs quotes.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FormatError(f"{where}: must be text, found {_kind(value)}; put it in quotes")
    return value


def name(value: object, where: str) -> str:
    """A text that is not empty.

    Raises:
        FormatError: if it is missing or anything else.
    """
    found = text(value, where)
    if not found:
        raise FormatError(f"{where}: is missing; give it a name")
    if not found.isprintable():
        raise FormatError(f"{where}: {_shown(found)} holds a line break or the like")
    return found


def seconds(value: object, where: str) -> float:
    """A number of seconds, plain or as text, finite and not negative.

    Raises:
        FormatError: if it is anything else.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise FormatError(f"{where}: must be a number of seconds, 0 or more, found {_shown(value)}")
    return number


def integer(value: object, where: str) -> int:
    """A whole number, plain or as text.

    Raises:
        FormatError: if it is anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.strip() if isinstance(value, str) else ""
    if len(digits) > 18 or not digits.lstrip("+-").isascii() or not digits.lstrip("+-").isdigit():
        raise FormatError(f"{where}: must be a whole number, found {_shown(value)}")
    try:
        return int(digits)
    except ValueError:
        raise FormatError(f"{where}: must be a whole number, found {_shown(value)}") from None


def texts(value: object) -> Iterator[str]:
    """Every text inside nested mappings and lists, keys left out, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for child in value:
            yield from texts(child)
    elif isinstance(value, dict):
        for child in value.values():
            yield from texts(child)


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    if isinstance(value, int | float):
        return f"the number {_shown(value)}"
    if isinstance(value, str):
        return "text"
    return "a list" if isinstance(value, list) else "a mapping"


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return _kind(value)
    if isinstance(value, int) and abs(value) > 10**18:
        return "a huge number"
    return repr(value)[:60]
