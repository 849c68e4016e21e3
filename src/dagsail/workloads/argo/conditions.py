"""`when` conditions: decided where literal values allow it, unknown otherwise.

The grammar is the part of govaluate that workflows use (`==`, `!=`, `=~`, `!~`, `<`, `<=`, `>`,
`>=`, `&&`, `||`, `!`, parentheses, quoted and bare words, numbers), with Kleene's three-valued
logic over what only a run can tell.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<unknown>\{\{.*?\}\})|(?P<quoted>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign>&&|\|\||==|!=|=~|!~|<=|>=|[<>!()])|(?P<word>[^\s'\"&|=!<>~(){}]+))",
    re.DOTALL,
)
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")
_SAFE_PATTERN: Final = re.compile(r"[\w\s|.^$/:,-]*")
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MAX_LENGTH: Final = 10_000
_MAX_NESTING: Final = 50

Value = str | float | bool | None
"""None stands for what only a run can tell."""


def decide(condition: str) -> bool | None:
    """Whether a condition holds after substitution; None where only a run can tell.

    A condition that is not understood counts as one that only a run can tell.
    """
    if len(condition) > _MAX_LENGTH:
        return None
    try:
        parser = _Parser(condition)
        value = parser.any_of(0)
        parser.expect_end()
    except _NotUnderstoodError:
        return None
    return value if isinstance(value, bool) else None


class _NotUnderstoodError(Exception):
    pass


class _Parser:
    """Recursive descent over the tokens of one condition."""

    def __init__(self, condition: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        self._next = 0
        place = 0
        condition = condition.rstrip()
        while place < len(condition):
            match = _TOKEN.match(condition, place)
            if match is None or match.lastgroup is None:
                raise _NotUnderstoodError
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()

    def any_of(self, depth: int) -> Value:
        value = self._all_of(depth)
        while self._take("||"):
            other = self._all_of(depth)
            if value is True or other is True:
                value = True
            else:
                value = False if value is False and other is False else None
        return value

    def expect_end(self) -> None:
        if self._next < len(self._tokens):
            raise _NotUnderstoodError

    def _all_of(self, depth: int) -> Value:
        value = self._comparison(depth)
        while self._take("&&"):
            other = self._comparison(depth)
            if value is False or other is False:
                value = False
            else:
                value = True if value is True and other is True else None
        return value

    def _comparison(self, depth: int) -> Value:
        left = self._operand(depth)
        sign = self._take("==", "!=", "=~", "!~", *_ORDER)
        return _compare(sign, left, self._operand(depth)) if sign else left

    def _operand(self, depth: int) -> Value:
        if depth > _MAX_NESTING:
            raise _NotUnderstoodError
        if self._take("!"):
            value = self._operand(depth + 1)
            if not isinstance(value, bool | None):
                raise _NotUnderstoodError
            return None if value is None else not value
        if self._take("("):
            value = self.any_of(depth + 1)
            if not self._take(")"):
                raise _NotUnderstoodError
            return value
        return self._literal()

    def _literal(self) -> Value:
        kind, text = self._tokens[self._next] if self._next < len(self._tokens) else ("", "")
        self._next += 1
        if kind == "quoted":
            return None if "{{" in text else text[1:-1]
        if kind == "word":
            return _word(text)
        if kind == "unknown":
            return None
        raise _NotUnderstoodError

    def _take(self, *signs: str) -> str:
        if self._next < len(self._tokens) and self._tokens[self._next] in [
            ("sign", sign) for sign in signs
        ]:
            self._next += 1
            return self._tokens[self._next - 1][1]
        return ""


def _word(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if _NUMBER.fullmatch(text) else text


def _compare(sign: str, left: Value, right: Value) -> bool | None:
    if left is None or right is None:
        return None
    if sign in ("==", "!="):
        equal = type(left) is type(right) and left == right
        return equal if sign == "==" else not equal
    if sign in _ORDER:
        if type(left) is not type(right) or isinstance(left, bool):
            raise _NotUnderstoodError
        return _ORDER[sign](left, right)
    if not isinstance(left, str) or not isinstance(right, str):
        left, right = _plain(left), _plain(right)
    # Patterns come from the file: only those that cannot backtrack without end are tried.
    if len(left) > 1000 or not _SAFE_PATTERN.fullmatch(right):
        raise _NotUnderstoodError
    found = re.search(right, left) is not None
    return found if sign == "=~" else not found


def _plain(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
