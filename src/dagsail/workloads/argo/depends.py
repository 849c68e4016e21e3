"""`depends` expressions of a DAG task, decided on the path on which every task succeeds.

Grammar and meaning: https://argo-workflows.readthedocs.io/en/latest/enhanced-depends-logic/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dagsail.domain.errors import FormatError


class State(Enum):
    """How a task of a DAG ends where nothing fails."""

    SUCCEEDED = "Succeeded"
    SKIPPED = "Skipped"
    """Its `when` condition is false, or its loop has no items."""
    OMITTED = "Omitted"
    """Its `depends` expression is false."""
    DAEMONED = "Daemoned"
    """It runs on in the background while its dependents start."""


_RESULTS: Final[dict[str, frozenset[State]]] = {
    "": frozenset({State.SUCCEEDED, State.SKIPPED, State.DAEMONED}),
    "Succeeded": frozenset({State.SUCCEEDED}),
    "Failed": frozenset(),
    "Errored": frozenset(),
    "Skipped": frozenset({State.SKIPPED}),
    "Omitted": frozenset({State.OMITTED}),
    "Daemoned": frozenset({State.DAEMONED}),
    "AnySucceeded": frozenset({State.SUCCEEDED}),
    "AllFailed": frozenset(),
}
_TOKEN: Final = re.compile(r"\s*(?:(&&|\|\||[!()])|([\w-]+)(?:\.(\w+))?)")
_MAX_NESTING: Final = 50

States = Mapping[str, State]
Rule = Callable[[States], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """When a task of a DAG runs.

    Attributes:
        names: the tasks that it names, each once, in order; it waits for all of them.
        holds: whether it runs, given how those tasks ended.
    """

    names: tuple[str, ...]
    holds: Rule


def all_succeed(names: list[str]) -> Condition:
    """The condition of the older `dependencies: [...]` list."""
    unique = tuple(dict.fromkeys(names))
    return Condition(unique, lambda states: all(states[n] in _RESULTS[""] for n in unique))


def parse(expression: str, where: str) -> Condition:
    """Parse a `depends` expression.

    Raises:
        FormatError: if it is malformed; the message shows where.
    """
    parser = _Parser(expression, where)
    rule = parser.any_of(0)
    parser.expect_end()
    return Condition(tuple(dict.fromkeys(parser.names)), rule)


class _Parser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, expression: str, where: str) -> None:
        self._expression = expression.strip()
        self._where = where
        self._place = 0
        self.names: list[str] = []

    def any_of(self, depth: int) -> Rule:
        rules = [self._all_of(depth)]
        while self._take("||"):
            rules.append(self._all_of(depth))
        return rules[0] if len(rules) == 1 else lambda states: any(r(states) for r in rules)

    def expect_end(self) -> None:
        if self._place < len(self._expression):
            raise self._error("&& or ||")

    def _all_of(self, depth: int) -> Rule:
        rules = [self._operand(depth)]
        while self._take("&&"):
            rules.append(self._operand(depth))
        return rules[0] if len(rules) == 1 else lambda states: all(r(states) for r in rules)

    def _operand(self, depth: int) -> Rule:
        if depth > _MAX_NESTING:
            raise FormatError(f"{self._where}: depends is nested more than {_MAX_NESTING} deep")
        if self._take("!"):
            denied = self._operand(depth + 1)
            return lambda states: not denied(states)
        if self._take("("):
            rule = self.any_of(depth + 1)
            if not self._take(")"):
                raise self._error("a closing parenthesis")
            return rule
        return self._task()

    def _task(self) -> Rule:
        match = _TOKEN.match(self._expression, self._place)
        if match is None or not match[2]:
            raise self._error("a task name")
        name, result = match[2], match[3] or ""
        if result not in _RESULTS:
            allowed = ", ".join(key for key in _RESULTS if key)
            raise FormatError(
                f"{self._where}: depends asks for '{name}.{result}'; allowed are {allowed}"
            )
        self._place = match.end()
        self.names.append(name)
        accepted = _RESULTS[result]
        return lambda states: states[name] in accepted

    def _take(self, sign: str) -> bool:
        match = _TOKEN.match(self._expression, self._place)
        if match is None or match[1] != sign:
            return False
        self._place = match.end()
        return True

    def _error(self, wanted: str) -> FormatError:
        shown = self._expression if len(self._expression) <= 80 else self._expression[:77] + "..."
        return FormatError(
            f"{self._where}: depends '{shown}' is malformed:"
            f" expected {wanted} at character {self._place + 1}"
        )
