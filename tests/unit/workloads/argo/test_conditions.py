"""`when` conditions: true, false, or only known at run time."""

from __future__ import annotations

import time

import pytest

from dagsail.workloads.argo.conditions import decide


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("true", True),
        ("false", False),
        ("heads == heads", True),
        ("heads == tails", False),
        ("heads != tails", True),
        ("'' == ''", True),
        ("'a b' == \"a b\"", True),
        ("true == true", True),
        ("'true' == true", False),
        ("5 > 3", True),
        ("5 <= 3.5", False),
        ("-1 < 0", True),
        ("10 == 10.0", True),
        ("b > a", True),
        ("'2193' =~ '2193|3857'", True),
        ("'4326' =~ '2193|3857'", False),
        ("'webp' !~ 'dem_lerc|rgbnir_zstd'", True),
        ("2193 =~ '2193|3857'", True),
        ("false || 1 == 1 && true", True),
        ("(false || true) && false", False),
        ("!(a == b)", True),
        ("!false", True),
    ],
)
def test_literal_conditions_are_decided(condition: str, expected: bool) -> None:
    assert decide(condition) is expected


@pytest.mark.parametrize(
    "condition",
    [
        "{{steps.flip.outputs.result}} == heads",
        "'{{x}}' == 'a'",
        "!{{x}}",
        "{{=len(x) > 0}}",
        "{{x}} == a && true",
    ],
)
def test_what_only_a_run_can_tell_stays_open(condition: str) -> None:
    assert decide(condition) is None


def test_an_open_part_does_not_hide_a_decided_whole() -> None:
    assert decide("{{x}} == a && false") is False
    assert decide("{{x}} == a || true") is True


@pytest.mark.parametrize(
    "condition", ["", "a b", "==", "(a", "a == ", "1 < a", "true < false", "len(a) > 0", "a'", "!5"]
)
def test_what_is_not_understood_stays_open(condition: str) -> None:
    assert decide(condition) is None


def test_patterns_that_could_backtrack_for_ever_are_not_tried() -> None:
    start = time.perf_counter()
    assert decide(f"'{'a' * 200}b' =~ '(a+)+$'") is None
    assert decide("(" * 5000 + "a") is None
    assert decide("!" * 5000 + "true") is None
    assert time.perf_counter() - start < 1.0
