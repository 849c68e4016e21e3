"""Comma-separated traces: named fields, checked numbers."""

from __future__ import annotations

import pytest

from dagsail.domain.errors import FormatError
from dagsail.workloads.tables import Row, read_rows


def test_the_first_line_names_the_columns_unless_they_are_given():
    named = list(read_rows("a,b\r\n1, 2\r\n\r\n3,4\r\n", "t.csv"))
    assert [dict(row.fields) for row in named] == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    assert [row.where for row in named] == ["t.csv:2", "t.csv:4"]
    given = list(read_rows("1,2\n", "t.csv", ["a", "b"]))
    assert [dict(row.fields) for row in given] == [{"a": "1", "b": "2"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1\n", r"t\.csv:2: 1 fields instead of 2 \(a,b\)"),
        ("a,b\n1,2,3\n", r"t\.csv:2: 3 fields instead of 2"),
        ("a,a\n1,2\n", r"t\.csv:1: column 'a' occurs more than once"),
        ('a,b\n"1,2\n3,4\n', r"t\.csv:3: a field spans lines"),
        (f"a,b\n{'x' * 200_000},1\n", r"t\.csv:2: not a CSV table"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(text, message):
    with pytest.raises(FormatError, match=message):
        list(read_rows(text, "t.csv"))


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "1e300", "1_0", "x", "0x10", "1,5"])
def test_a_number_must_be_finite_and_within_its_limits(text):
    with pytest.raises(FormatError, match=r"^t:1: c is .*; allowed are numbers from 0 to 100"):
        Row("t:1", {"c": text}).number("c", 100)


def test_a_number_that_is_not_there_is_none():
    row = Row("t:1", {"c": "", "d": "-2.5", "e": "3.0"})
    assert row.number("c", 1) is None
    assert row.number("absent", 1) is None
    assert row.number("d", 1, smallest=-3) == -2.5
    assert row.count("e", 10) == 3


def test_counts_are_whole_and_texts_are_not_empty():
    row = Row("t:1", {"c": "1.5", "d": ""})
    with pytest.raises(FormatError, match=r"t:1: c is 1\.5; it must be a whole number"):
        row.count("c", 10)
    with pytest.raises(FormatError, match="t:1: d is empty"):
        row.text("d")
