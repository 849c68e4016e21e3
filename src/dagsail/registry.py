"""Names to implementations: duplicates are refused, the near miss is suggested.

Entries are `module:attribute` strings, so that listing names imports nothing and using one
imports only what it needs.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dagsail.domain.errors import UnknownNameError


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered name."""

    name: str
    target: str
    """Where the implementation lives, as `package.module:attribute`."""
    summary: str
    """One line for people who choose by reading a list."""

    def load(self) -> Any:
        """Import and return the implementation."""
        module, attribute = self.target.split(":")
        return getattr(importlib.import_module(module), attribute)


@dataclass(slots=True)
class Registry:
    """All implementations of one kind (`policy`, `family`, `cluster`)."""

    kind: str
    plural: str
    _entries: dict[str, Entry] = field(default_factory=dict)

    def add(self, name: str, target: str, summary: str) -> None:
        """Register a name.

        Raises:
            ValueError: if it is taken.
        """
        if name in self._entries:
            raise ValueError(f"{self.kind} '{name}' is registered twice")
        self._entries[name] = Entry(name, target, summary)

    def get(self, name: str) -> Entry:
        """The entry of that name.

        Raises:
            UnknownNameError: naming the near miss and where to see all names.
        """
        if name in self._entries:
            return self._entries[name]
        raise UnknownNameError(
            f"unknown {self.kind} '{name}'; {self.hint(name)}"
            f"'dagsail {self.plural}' lists all: {', '.join(self._entries)}"
        )

    def hint(self, name: str) -> str:
        """`did you mean 'x'? ` for the nearest name, or nothing."""
        near = difflib.get_close_matches(name, self._entries, n=1, cutoff=0.6)
        return f"did you mean '{near[0]}'? " if near else ""

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())
