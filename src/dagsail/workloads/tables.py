"""Comma-separated traces: rows with named fields, and numbers that are checked when read."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagsail.domain.errors import FormatError


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table; `where` is `file:line`, for messages."""

    where: str
    fields: Mapping[str, str]

    def text(self, column: str) -> str:
        """A field that must not be empty.

        Raises:
            FormatError: if it is.
        """
        value = self.fields[column]
        if not value:
            raise FormatError(f"{self.where}: {column} is empty; every row needs one")
        return value

    def number(self, column: str, largest: float, *, smallest: float = 0.0) -> float | None:
        """A number, or None where the field is empty or the table lacks the column.

        Raises:
            FormatError: if it is no finite number from `smallest` to `largest`.
        """
        text = self.fields.get(column, "")
        if not text:
            return None
        try:
            value = math.nan if "_" in text else float(text)
        except ValueError:
            value = math.nan
        if not smallest <= value <= largest:
            raise FormatError(
                f"{self.where}: {column} is {text[:40]!r};"
                f" allowed are numbers from {smallest:g} to {largest:g}"
            )
        return value

    def count(self, column: str, largest: float) -> int | None:
        """A whole number from 0, or None where the field is empty or the table lacks the column.

        Raises:
            FormatError: if it is anything else.
        """
        value = self.number(column, largest)
        if value is None:
            return None
        if not value.is_integer():
            raise FormatError(f"{self.where}: {column} is {value:g}; it must be a whole number")
        return int(value)


def read_rows(text: str, source: str, columns: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of a table, without blank lines; without `columns` the first line names them.

    Raises:
        FormatError: if a row has not one field a column, or a field spans lines.
    """
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for fields in reader:
            where = f"{source}:{reader.line_num}"
            values = [value.strip() for value in fields]
            if not any(values):
                continue
            if not all(map(str.isprintable, values)):
                raise FormatError(
                    f"{where}: a field spans lines or holds control characters;"
                    " is a quotation mark left open?"
                )
            if not columns:
                columns = _unique(values, where)
                continue
            if len(values) != len(columns):
                raise FormatError(
                    f"{where}: {len(values)} fields instead of {len(columns)}"
                    f" ({','.join(columns)[:200]}); is the file cut off?"
                )
            yield Row(where, dict(zip(columns, values, strict=True)))
    except csv.Error as error:
        raise FormatError(f"{source}:{reader.line_num}: not a CSV table ({error})") from None


def _unique(names: list[str], where: str) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise FormatError(f"{where}: column '{name[:40]}' occurs more than once")
    return names
