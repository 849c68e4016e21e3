"""`depends` expressions on the path on which everything succeeds."""

from __future__ import annotations

import pytest

from dagsail.domain.errors import FormatError
from dagsail.workloads.argo.depends import State, all_succeed, parse

STATES = {
    "A": State.SUCCEEDED,
    "B-1": State.SKIPPED,
    "C": State.OMITTED,
    "D": State.DAEMONED,
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("A", True),
        ("B-1", True),
        ("C", False),
        ("D", True),
        ("A.Succeeded", True),
        ("B-1.Succeeded", False),
        ("B-1.Skipped", True),
        ("C.Omitted", True),
        ("D.Daemoned", True),
        ("D.Succeeded", False),
        ("A.Failed", False),
        ("A.Errored || A.Succeeded", True),
        ("A.AnySucceeded", True),
        ("A.AllFailed", False),
        ("A && C", False),
        ("A || C", True),
        ("!A", False),
        ("!!A", True),
        ("!A.Failed && B-1", True),
        ("C && A || A", True),
        ("C && (A || A)", False),
        ("A && (C.Succeeded || C.Omitted)", True),
    ],
)
def test_expressions_are_decided_for_success(expression: str, expected: bool) -> None:
    assert parse(expression, "x").holds(STATES) is expected


def test_every_task_named_is_waited_for_once_and_in_order() -> None:
    assert parse("C && (A.Failed || !C.Succeeded) && B-1", "x").names == ("C", "A", "B-1")


def test_the_older_list_means_that_all_of_them_succeed() -> None:
    condition = all_succeed(["A", "B-1", "A"])
    assert condition.names == ("A", "B-1")
    assert condition.holds(STATES)
    assert not all_succeed(["A", "C"]).holds(STATES)


@pytest.mark.parametrize(
    "expression", ["A &&", "(A", "A)", "A B", "&& A", "A & B", "A.", "!", "()"]
)
def test_malformed_expressions_are_refused(expression: str) -> None:
    with pytest.raises(FormatError, match=r"^task 'x': depends .* is malformed: expected"):
        parse(expression, "task 'x'")


def test_unknown_results_are_refused_with_those_there_are() -> None:
    with pytest.raises(FormatError, match=r"asks for 'A\.Done'; allowed are Succeeded, Failed"):
        parse("A.Done", "task 'x'")


def test_nesting_is_bounded() -> None:
    with pytest.raises(FormatError, match="nested more than 50 deep"):
        parse("(" * 1000 + "A" + ")" * 1000, "task 'x'")
    with pytest.raises(FormatError, match="nested more than 50 deep"):
        parse("!" * 1000 + "A", "task 'x'")
