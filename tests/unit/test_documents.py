"""Strict reading of native documents, their scalar notations, and the published schemas."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Annotated, Any, Literal

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dagsail.clusters import catalog, scenario_file
from dagsail.documents import (
    Name,
    Strict,
    by_default,
    convert,
    json_schema,
    read_document,
    read_documents,
)
from dagsail.domain.errors import FormatError, InputError
from dagsail.scalars import Bytes, BytesPerS, CudaVersion, Number, Resources, Seconds, nearest
from dagsail.training.settings import Training, read_training
from dagsail.workloads import native

HUGE = 1 << 20_000
ROOT = Path(__file__).parents[2]
READERS: dict[str, Any] = {
    "workflow": native.read,
    "cluster": catalog.read,
    "scenario": scenario_file.read_scenario,
    "training": read_training,
}
SCHEMAS = {
    "workflow": native.schema(),
    "cluster": catalog.schema(),
    "scenario": scenario_file.schema(),
    "training": json_schema(Training),
}


class Wheel(Strict, frozen=True, kw_only=True):
    size_s: Seconds | None = None
    """How long a turn takes;
    see `other_field`."""
    weight: Bytes = by_default(Bytes(7))


class Car(Strict, frozen=True, kw_only=True):
    kind: Literal["Car"]
    wheels: tuple[str | Wheel, ...] = ()
    owner: Name = "nobody"
    shares: dict[Name, Number] = msgspec.field(default_factory=dict)
    names: dict[str, str] = msgspec.field(default_factory=dict)
    colour: Literal["red", "green"] = "red"
    seats: Annotated[int, msgspec.Meta(ge=1, le=9)] = 4
    is_new: bool = False


def refusal(**keys: object) -> str:
    with pytest.raises(FormatError) as caught:
        convert({"kind": "Car", **keys}, Car, "car.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"wheel": []}, "wheel: unknown key; did you mean 'wheels'?"),
        ({"is_new": True}, "is_new: unknown key; did you mean 'isNew'?"),
        (
            {"zzz": 1},
            "zzz: unknown key; allowed are kind, wheels, owner, shares, names, colour, ",
        ),
        ({"a\nb": 1}, r"'a\nb': unknown key; allowed are"),
        ({"wheels": [{"sizeS": 1}, {"siseS": 1}]}, "wheels[1].siseS: unknown key; did you mean"),
        ({"wheels": [3]}, "wheels[0]: found 3, expected text or a mapping; put it in quotes"),
        ({"wheels": {}}, "wheels: found a mapping, expected a list"),
        ({"wheels": None}, "wheels: found null, expected a list"),
        ({"wheels": [{"sizeS": "1 s"}]}, "wheels[0].sizeS: found '1 s', expected seconds or a"),
        ({"names": {"a": "b", "c": True}}, "names[c]: found true, expected text; put it in quotes"),
        ({"names": {"a": None}}, "names[a]: found null, expected text"),
        ({"names": {3: "a"}}, "names: key 3 is not text; put it in quotes"),
        ({"names": {"a\nb": 3}}, r"names['a\nb']: found 3, expected text"),
        ({"owner": "a\n"}, r"owner: found 'a\n', expected text on one line"),
        ({"owner": ""}, "owner: found '', expected text of length >= 1"),
        ({"shares": {"": 1}}, "shares: key '' must be text of 1 to 253 characters on one line"),
        ({"shares": {"a\nb": 1}}, r"shares: key 'a\nb' must be text of 1 to 253 characters"),
        ({"shares": {None: 1}}, "shares: key null is not text; put it in quotes"),
        ({3: "a"}, "top level: key 3 is not text; put it in quotes"),
        ({"colour": "gren"}, "colour: found 'gren'; did you mean 'green'? allowed are red, green"),
        ({"colour": 3}, "colour: found 3; allowed are red, green"),
        ({"seats": 0}, "seats: found 0, expected a whole number >= 1"),
        ({"seats": 2.5}, "seats: found 2.5, expected a whole number"),
        ({"seats": HUGE}, "seats: found a huge number, expected a whole number <= 9"),
        ({"isNew": "yes"}, "isNew: found 'yes', expected true or false"),
        ({"kind": "Cart"}, "kind: found 'Cart', expected 'Car'"),
    ],
)
def test_names_place_what_was_found_and_what_is_allowed(keys: dict[Any, Any], message: str) -> None:
    with pytest.raises(FormatError) as caught:
        convert({"kind": "Car", **keys}, Car, "car.yaml")
    assert str(caught.value).startswith(f"car.yaml: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([1], "top level: found a list, expected a mapping"),
        ("text", "top level: found 'text', expected a mapping"),
        ({}, "kind: found null, expected 'Car'"),
    ],
)
def test_refuses_what_is_no_document(document: object, message: str) -> None:
    with pytest.raises(FormatError, match=r"^car\.yaml: ") as caught:
        convert(document, Car, "car.yaml")
    assert str(caught.value) == f"car.yaml: {message}"


def test_a_long_found_text_is_cut() -> None:
    assert len(refusal(colour="x" * 10**6)) < 200
    assert len(refusal(**{"x" * 10**6: 1})) < 300


def test_reads_defaults_and_optional_values() -> None:
    car = convert({"kind": "Car", "wheels": ["a", {"sizeS": None}, {"sizeS": "2m"}]}, Car, "s")
    assert car == Car(kind="Car", wheels=("a", Wheel(), Wheel(size_s=Seconds(120))))
    assert Wheel().weight == 7


def test_reads_several_documents_and_says_which_one_is_wrong() -> None:
    cars = read_documents("kind: Car\n---\n---\nkind: Car\nseats: 2", "s", Car)
    assert [car.seats for car in cars] == [4, 2]
    with pytest.raises(FormatError, match=r"^s \(document 2\): seats: found 'x'"):
        read_documents("kind: Car\n---\nkind: Car\nseats: x", "s", Car)
    with pytest.raises(FormatError, match=r"^s: holds 2 documents; expected only one$"):
        read_document("kind: Car\n---\nkind: Car", "s", Car)
    with pytest.raises(FormatError, match=r"^s: holds no document; expected kind: Car$"):
        read_document("# nothing\n", "s", Car)


def test_reads_json_with_tabs_and_yaml_in_braces() -> None:
    assert read_document('{\n\t"kind": "Car",\n\t"seats": 2}', "s", Car).seats == 2
    assert read_document("{kind: Car, seats: 2}", "s", Car).seats == 2
    with pytest.raises(FormatError, match="s:1:16: not valid JSON"):
        read_document('{"kind": "Car",', "s", Car)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[(0, 0), (90, 90), (1.5, 1.5), ("90", 90), ("1e3", 1000), ("90s", 90), ("15m", 900)],
        *[("2h", 7200), ("1h30m", 5400), ("1d", 86400), ("0.5h", 1800), ("5ms", 0.005)],
        ("200us", 2e-4),
    ],
)
def test_reads_durations(text: object, seconds: float) -> None:
    assert Seconds.parse(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "bad",
    [
        *["", "s", "5 min", "5min", "1h 30m", "h1", "-5s", "1e999", "nan", "0x10", "1_0"],
        *["\u0663s", None, True, [], {}, float("nan"), float("inf"), -1, -0.001, 4e8, "100000d"],
        *["9" * 70, pytest.param(HUGE, id="huge")],
    ],
)
def test_refuses_what_is_no_duration(bad: object) -> None:
    with pytest.raises(ValueError, match=r"^found [^\n]{1,200}$"):
        Seconds.parse(bad)


@pytest.mark.parametrize(
    ("text", "count"), [(0, 0), (1500, 1500), ("500M", 500_000_000), ("1.5Ki", 1536), (0.2, 1)]
)
def test_reads_bytes(text: object, count: int) -> None:
    assert Bytes.parse(text) == count


@pytest.mark.parametrize("bad", ["1GB", "-1", -1, "1Ei1", None, [], True, float("nan"), "9Ei"])
def test_refuses_what_is_no_number_of_bytes(bad: object) -> None:
    with pytest.raises(ValueError, match=r"^found "):
        Bytes.parse(bad)


@pytest.mark.parametrize(
    ("text", "rate"),
    [("10Gbit", 1.25e9), ("1kbit", 125), ("125M", 125e6), ("1Ki", 1024), ("100e6", 1e8), (3, 3)],
)
def test_reads_bandwidths(text: object, rate: float) -> None:
    assert BytesPerS.parse(text) == rate


@pytest.mark.parametrize(
    "bad", ["10Gb", "0", 0, -1, "bit", "", None, {}, False, float("inf"), "8Ei"]
)
def test_refuses_what_is_no_bandwidth(bad: object) -> None:
    with pytest.raises(ValueError, match=r"^found "):
        BytesPerS.parse(bad)


def test_numbers_may_have_exponents_that_yaml_reads_as_text() -> None:
    assert Number.parse(yaml.safe_load("1e-1")) == 0.1
    for bad in ("", "x", "nan", "inf", None, True, (), float("nan"), HUGE, "1e9999"):
        with pytest.raises(ValueError, match="expected a finite number"):
            Number.parse(bad)


def test_versions_compare_as_versions() -> None:
    assert CudaVersion.parse("12.10").pair == (12, 10) > CudaVersion.parse("12.4").pair
    for bad in (12.4, 12, "12", "12.4.1", "v12.4", None, "12.4\n", "1\u0663.4"):
        with pytest.raises(ValueError, match=r"expected a version in quotes such as '12.4'"):
            CudaVersion.parse(bad)


def test_reads_resources_in_the_units_of_the_domain() -> None:
    written = {"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "2", "gpu-milli": 300}
    expected = {"cpu": 500, "memory": 2 * 1024**3, "nvidia.com/gpu": 2, "gpu-milli": 300}
    assert Resources.parse(written) == expected


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"gpu": 1}, "unknown resource 'gpu'; did you mean 'nvidia.com/gpu'?"),
        ({"mem": 1}, "unknown resource 'mem'; did you mean 'memory'?"),
        ({"memmory": 1}, "unknown resource 'memmory'; did you mean 'memory'?"),
        ({"disk": 1}, "unknown resource 'disk'; allowed are cpu, memory, ephemeral-storage"),
        ({3: 1}, "unknown resource 3; allowed are"),
        ({"a/\nb": 1}, r"unknown resource 'a/\nb'; allowed are"),
        ({"cpu": [1]}, "[cpu]: found a list, expected a quantity such as 2"),
        ({"cpu": "2 cores"}, "[cpu]: found '2 cores', expected a quantity such as 2"),
        ({"cpu": -1}, "[cpu]: found -1; it must not be negative"),
        ({"cpu": float("nan")}, "[cpu]: found nan, expected a quantity"),
        ({"memory": "9Ei"}, "[memory]: found '9Ei', absurdly large; check the unit"),
        ({"nvidia.com/gpu": 0.5}, "[nvidia.com/gpu]: found 0.5; devices come in whole numbers"),
        ([], "found a list, expected a mapping from resource to quantity"),
    ],
)
def test_refuses_what_is_no_resource(bad: object, message: str) -> None:
    with pytest.raises(ValueError, match=r"found|unknown") as caught:
        Resources.parse(bad)
    assert str(caught.value).startswith(message)


def test_near_misses_ignore_case_and_separators() -> None:
    assert nearest("node_mtbf_s", ["nodeMtbfS", "noise"]) == "did you mean 'nodeMtbfS'?"
    assert nearest("xyz", ["nodeMtbfS", "noise"]) == ""


def test_a_schema_states_defaults_notations_and_descriptions() -> None:
    wheel = json_schema(Car)["$defs"]["Wheel"]["properties"]
    assert wheel["weight"]["default"] == 7
    assert wheel["sizeS"]["description"] == "How long a turn takes; see `otherField`."


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_published_schemas_are_current(kind: str) -> None:
    place = ROOT / "docs" / "schema" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    published = place.with_name(f"{kind}.json").read_text("utf-8")
    assert published == module.schemas()[f"{kind}.json"], "run python docs/schema/generate.py"


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_schema_and_reader_accept_the_example(kind: str) -> None:
    text = (ROOT / "examples" / f"{kind}.yaml").read_text("utf-8")
    validator = jsonschema.Draft202012Validator(SCHEMAS[kind])
    validator.check_schema(SCHEMAS[kind])
    validator.validate(yaml.safe_load(text))
    READERS[kind](text, kind)


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_schema_refuses_unknown_keys_at_every_level(kind: str) -> None:
    for name, section in SCHEMAS[kind]["$defs"].items():
        assert section["additionalProperties"] is False, name
    document = yaml.safe_load((ROOT / "examples" / f"{kind}.yaml").read_text("utf-8"))
    document["spec"]["unknown"] = 1
    with pytest.raises(jsonschema.ValidationError, match="'unknown' was unexpected"):
        jsonschema.validate(document, SCHEMAS[kind])


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
def test_a_page_names_every_key(kind: str) -> None:
    page = "".join(
        (ROOT / "docs" / name).read_text("utf-8") for name in ("file-formats.md", "training.md")
    )
    keys = [key for part in SCHEMAS[kind]["$defs"].values() for key in part["properties"]]
    assert [key for key in keys if f"`{key}`" not in page and f"{key}:" not in page] == []


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(value, dict | list):
        return [path]
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    return [path] + [place for step, item in steps for place in places(item, (*path, step))]


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "P0", "1e400", "-1", "9" * 400, "a\nb", "extract", 10**400, -(10**400)])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_junk_anywhere_in_an_example_is_an_input_error_of_one_line(
    kind: str, data: st.DataObject
) -> None:
    document = yaml.safe_load((ROOT / "examples" / f"{kind}.yaml").read_text("utf-8"))
    *above, last = data.draw(st.sampled_from(places(document)[1:]))
    target = document
    for step in above:
        target = target[step]
    target[last] = data.draw(junk)
    try:
        READERS[kind](yaml.safe_dump(document), "f.yaml")
    except InputError as error:
        assert str(error).startswith("f.yaml")  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017


def test_json_and_yaml_give_the_same() -> None:
    text = (ROOT / "examples" / "workflow.yaml").read_text("utf-8")
    as_json = json.dumps(yaml.safe_load(text))
    assert native.read(as_json, "w") == native.read(text, "w")
