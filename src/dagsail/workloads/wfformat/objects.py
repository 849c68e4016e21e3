"""JSON objects that know their place in the file, so that every fault can be named."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dagsail.domain.errors import FormatError

_MAX_NAME_LENGTH: Final = 4096


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object and its place in the file, so that every fault can be named."""

    fields: Mapping[str, Any]
    path: str
    source: str

    @classmethod
    def of(cls, value: object, path: str, source: str) -> Object:
        """A value that has to be an object, as one."""
        if not isinstance(value, dict):
            place = path or "the document"
            raise FormatError(f"{source}: {place} is {_shown(value)}; an object is expected")
        return cls(value, path, source)

    def child(self, key: str) -> Object:
        """The object under that key, empty where there is none."""
        value = self.fields.get(key)
        return self.of({} if value is None else value, self._place(key), self.source)

    def objects(self, key: str) -> list[Object]:
        """The list of objects under that key, empty where there is none."""
        place = self._place(key)
        return [
            self.of(value, f"{place}[{index}]", self.source)
            for index, value in enumerate(self._list(key))
        ]

    def texts(self, key: str) -> list[str]:
        """The list of names under that key, empty where there is none."""
        return [self._checked(f"{key}[{i}]", value) for i, value in enumerate(self._list(key))]

    def text(self, key: str, *, required: bool = False) -> str:
        """The name under that key, empty where there is none and none is required."""
        value = self.fields.get(key)
        return "" if value in (None, "") and not required else self._checked(key, value)

    def number(self, largest: float, *keys: str) -> float | None:
        """The first of these fields that is there and not null."""
        for key in keys:
            value = self.fields.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.fault(key, value, "a number is expected")
            if not 0 <= value <= largest:
                raise self.fault(key, value, f"0 to {largest:g} is allowed, check the unit")
            return value
        return None

    def fault(self, key: str, value: object, expected: str) -> FormatError:
        """The error that names place, value and what is expected."""
        name = self.fields.get("id") or self.fields.get("name")
        label = f" of {reprlib.repr(name)}" if isinstance(name, str) else ""
        return FormatError(
            f"{self.source}: {self._place(key)}{label} is {_shown(value)}; {expected}"
        )

    def _checked(self, key: str, value: object) -> str:
        if isinstance(value, str) and value.isprintable() and 0 < len(value) <= _MAX_NAME_LENGTH:
            return value
        raise self.fault(key, value, "one line of text is expected")

    def _list(self, key: str) -> list[Any]:
        value = self.fields.get(key)
        if value is not None and not isinstance(value, list):
            raise self.fault(key, value, "a list is expected")
        return value or []

    def _place(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return "missing" if value is None else reprlib.repr(value)
