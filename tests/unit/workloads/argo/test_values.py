"""Substitution, loops and durations."""

from __future__ import annotations

from typing import Any

import pytest

from dagsail.domain.errors import FormatError
from dagsail.workloads.argo.values import (
    duration_s,
    item_scope,
    loop_items,
    parameters,
    substitute,
    substitute_all,
    variables,
)


def test_known_variables_are_replaced_and_others_stay() -> None:
    scope = {"inputs.parameters.a-b": "1", "item": "x"}
    assert substitute("{{inputs.parameters.a-b}}/{{ item }}/{{tasks.t.ip}}", scope) == (
        "1/x/{{tasks.t.ip}}"
    )


def test_only_the_simplest_expressions_are_understood() -> None:
    scope = {"workflow.parameters.v": "v5", "inputs.parameters.a-b": "1"}
    assert substitute("{{=sprig.trim(workflow.parameters.v)}}", scope) == "v5"
    assert substitute("{{= inputs.parameters['a-b'] }}", scope) == "1"
    assert substitute("{{=workflow.parameters.v + 'x'}}", scope) == (
        "{{=workflow.parameters.v + 'x'}}"
    )


def test_values_are_not_substituted_twice() -> None:
    assert substitute("{{a}}", {"a": "{{b}}", "b": "no"}) == "{{b}}"


def test_nested_values_are_substituted_and_keys_are_not() -> None:
    assert substitute_all({"{{a}}": ["{{a}}", 1, None]}, {"a": "x"}) == {"{{a}}": ["x", 1, None]}


def test_a_text_cannot_grow_without_end() -> None:
    with pytest.raises(FormatError, match="grows beyond"):
        substitute("{{a}}" * 20, {"a": "x" * 100_000})


def test_variables_are_listed_once() -> None:
    assert variables("{{a}} {{ b.c }} {{=sprig.trim(a)}}") == ["a", "b.c"]


def test_values_win_over_defaults_and_numbers_become_text() -> None:
    owner = {
        "parameters": [
            {"name": "a", "value": 3, "default": "4"},
            {"name": "b", "default": True},
            {"name": "c"},
            {"name": "d", "value": 1.0},
            {"name": "e", "valueFrom": {"configMapKeyRef": {}}, "default": "x"},
            {"name": "f", "value": "{{a}}"},
        ]
    }
    assert parameters(owner, {"a": "sub"}, "x") == {
        "a": "3",
        "b": "true",
        "d": "1",
        "e": "{{valueFrom}}",
        "f": "sub",
    }


def test_items_can_be_texts_numbers_and_mappings() -> None:
    assert item_scope(2) == {"item": "2"}
    assert item_scope({"image": "debian", "tag": 9.1}) == {
        "item": '{"image":"debian","tag":9.1}',
        "item.image": "debian",
        "item.tag": "9.1",
    }


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({}, None),
        ({"withItems": ["{{a}}", 2]}, ["x", 2]),
        ({"withItems": []}, []),
        ({"withParam": '["p", {"k": 1}]'}, ["p", {"k": 1}]),
        ({"withParam": "{{list}}"}, [1, 2]),
        ({"withParam": "{{tasks.a.outputs.result}}"}, "{{tasks.a.outputs.result}}"),
        ({"withSequence": {"count": "3"}}, ["0", "1", "2"]),
        ({"withSequence": {"count": 0}}, []),
        ({"withSequence": {"start": 100, "end": "102"}}, ["100", "101", "102"]),
        ({"withSequence": {"start": "2", "end": "0"}}, ["2", "1", "0"]),
        ({"withSequence": {"end": 0}}, ["0"]),
        ({"withSequence": {"start": 200, "count": "{{n}}"}}, ["200", "201"]),
        ({"withSequence": {"count": 2, "start": 10, "format": "u%02X"}}, ["u0A", "u0B"]),
        ({"withSequence": {"count": 1, "format": "100%% %v"}}, ["100% 0"]),
        ({"withSequence": {"count": "{{tasks.a.outputs.result}}"}}, "{{tasks.a.outputs.result}}"),
    ],
)
def test_loops(call: dict[str, Any], expected: object) -> None:
    assert loop_items(call, {"a": "x", "list": "[1, 2]", "n": "2"}, "x") == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"withItems": "a"}, "withItems: must be a list, found text"),
        ({"withItems": {"a": 1}}, "withItems: must be a list, found a mapping"),
        ({"withParam": "a, b"}, "not valid JSON"),
        ({"withParam": '{"a": 1}'}, "withParam: must be a list"),
        ({"withParam": "[NaN]"}, "NaN is not a number"),
        ({"withItems": [1], "withParam": "[1]"}, "both withItems and withParam"),
        ({"withSequence": {}}, "needs a count or an end"),
        ({"withSequence": {"count": 1, "end": 2}}, "both count and end"),
        ({"withSequence": {"count": "many"}}, "count: must be a whole number, found 'many'"),
        ({"withSequence": {"count": 1.5}}, "must be a whole number"),
        ({"withSequence": {"count": "99999999999"}}, "99999999999 items; at most 200000"),
        ({"withSequence": {"start": 0, "end": -(10**30)}}, "at most 200000"),
        ({"withSequence": {"count": 1, "format": "%999d"}}, "must hold one verb"),
        ({"withSequence": {"count": 1, "format": "plain"}}, "must hold one verb"),
        ({"withSequence": {"count": 1, "format": "%d%d"}}, "must hold one verb"),
    ],
)
def test_malformed_loops_are_refused(call: dict[str, Any], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        loop_items(call, {}, "task 'x'")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("20", 20.0), (20, 20.0), ("90s", 90.0), ("1h30m", 5400.0), ("1.5m", 90.0), ("2d", 172800.0)],
)
def test_durations(text: object, expected: float) -> None:
    assert duration_s(text, "x") == expected


@pytest.mark.parametrize("text", ["", "soon", "-5s", "5 m", "m", True, 1.5, None, "9" * 100, "1s!"])
def test_malformed_durations_are_refused(text: object) -> None:
    with pytest.raises(FormatError, match="is not a duration"):
        duration_s(text, "x")
