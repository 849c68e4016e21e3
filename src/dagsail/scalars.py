"""Values that native documents write in their own notation: durations, bytes, resources.

Each is a class that parses itself and states its JSON Schema, so that a struct of
`dagsail.documents` names it as a field type and gets a checked value in the units of
`dagsail.domain`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Self

from dagsail.domain.units import (
    CPU,
    EPHEMERAL_STORAGE,
    GPU,
    GPU_MILLI,
    MAX_BYTES,
    MAX_TIME_S,
    MEMORY,
    parse_amount,
    parse_quantity,
)

_FLOAT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_UNIT_S: Final = {
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    **{"s": Fraction(1), "m": Fraction(60), "h": Fraction(3600), "d": Fraction(86400)},
}
_DURATION: Final = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(us|ms|s|m|h|d)", re.ASCII)
_PLAIN_RESOURCES: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, GPU_MILLI)
_RESOURCE: Final = (
    "|".join(_PLAIN_RESOURCES) + "|hugepages-[A-Za-z0-9.]+|[A-Za-z0-9._-]+/[A-Za-z0-9._-]+"
)
_NICKNAMES: Final = {
    "gpu": GPU,
    "gpus": GPU,
    "cpus": CPU,
    "cores": CPU,
    "mem": MEMORY,
    "ram": MEMORY,
}
_QUANTITY_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^\+?[0-9.]+([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$"},
    ],
}


class Scalar:
    """A value with its own notation."""

    EXPECTED: ClassVar[str]
    SCHEMA: ClassVar[dict[str, Any]]

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse one plain YAML or JSON value of any type.

        Raises:
            ValueError: what was found and what is expected. Text that starts with `[` continues
                the path of the value, as in `[cpu]: found ...`.
        """
        raise NotImplementedError

    @classmethod
    def _refusal(cls, value: object) -> ValueError:
        return ValueError(f"found {describe(value)}, expected {cls.EXPECTED}")


class Number(Scalar, float):
    """A finite number; `1e6` counts, though YAML 1.1 reads exponents without a dot as text."""

    EXPECTED = "a finite number"
    SCHEMA: ClassVar[dict[str, Any]] = {"type": "number"}

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a number, or the text of one."""
        number = _finite(value)
        if number is None:
            raise cls._refusal(value)
        return cls(number)


class Seconds(Scalar, float):
    """A time span: a number of seconds, or text such as `90s`, `15m`, `1h30m` or `200us`."""

    EXPECTED = "seconds or a duration such as '90s', '15m', '1h30m' or '2d' (us, ms, s, m, h, d)"
    SCHEMA: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"type": "number", "minimum": 0, "maximum": MAX_TIME_S},
            {"type": "string", "pattern": r"^(\d+(\.\d+)?(us|ms|s|m|h|d))+$"},
        ],
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a number of seconds or a duration."""
        seconds = _finite(value)
        if seconds is None and isinstance(value, str) and len(value) <= 64:
            seconds = _duration(value)
        if seconds is None:
            raise cls._refusal(value)
        if seconds < 0:
            raise ValueError(f"found {describe(value)}; it must not be negative")
        if seconds > MAX_TIME_S:
            raise ValueError(f"found {describe(value)}, more than ten years; check the unit")
        return cls(seconds)


class Bytes(Scalar, int):
    """A number of bytes, or a Kubernetes quantity of them (`1500`, `500M`, `10Gi`)."""

    EXPECTED = "bytes or a quantity of them such as '500M' or '10Gi'"
    SCHEMA: ClassVar[dict[str, Any]] = _QUANTITY_SCHEMA

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a quantity of bytes."""
        return cls(_amount(MEMORY, value, cls.EXPECTED))


class BytesPerS(Scalar, float):
    """A bandwidth: bytes per second as a number or quantity (`1.25G`), or bits as `10Gbit`."""

    EXPECTED = "bytes per second as a number or quantity such as '1.25G', or bits as '10Gbit'"
    SCHEMA: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "string", "pattern": r"^[0-9.]+([kMGT]bit|[kMGTP]|[KMGTP]i|[eE]\+?\d+)?$"},
        ],
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a bandwidth."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise cls._refusal(value)
        in_bits = isinstance(value, str) and value.endswith("bit")
        quantity = value.removesuffix("bit") if isinstance(value, str) else value
        try:
            rate = parse_quantity(quantity) / (8 if in_bits else 1)
        except ValueError:
            raise cls._refusal(value) from None
        if not 0 < rate <= MAX_BYTES:
            raise ValueError(f"found {describe(value)}; it must be above 0 and at most 1 EiB/s")
        return cls(float(rate))


class CudaVersion(Scalar, str):
    """A CUDA version as text, because the number 12.10 would be 12.1."""

    EXPECTED = "a version in quotes such as '12.4'"
    SCHEMA: ClassVar[dict[str, Any]] = {"type": "string", "pattern": r"^\d{1,3}\.\d{1,3}$"}

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse `major.minor`."""
        if not isinstance(value, str) or not re.fullmatch(cls.SCHEMA["pattern"], value, re.ASCII):
            raise cls._refusal(value)
        return cls(value)

    @property
    def pair(self) -> tuple[int, int]:
        """The version as (major, minor), which compares as versions do."""
        major, minor = self.split(".")
        return int(major), int(minor)


class Resources(Scalar, dict[str, int]):
    """Resource amounts as Kubernetes writes them, in the units of `dagsail.domain.units`."""

    EXPECTED = "a mapping from resource to quantity such as {cpu: 500m, memory: 2Gi}"
    SCHEMA: ClassVar[dict[str, Any]] = {
        "type": "object",
        "propertyNames": {"pattern": f"^({_RESOURCE})$"},
        "additionalProperties": _QUANTITY_SCHEMA,
    }

    @classmethod
    def parse(cls, value: object) -> Self:
        """Parse a mapping from resource name to quantity."""
        if not isinstance(value, dict):
            raise cls._refusal(value)
        return cls({_resource_name(name): _resource(name, item) for name, item in value.items()})


@lru_cache(maxsize=4096)
def _duration(text: str) -> float | None:
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(Fraction(number) * _UNIT_S[unit] for number, unit in parts))


def _resource_name(name: object) -> str:
    if isinstance(name, str) and re.fullmatch(_RESOURCE, name):
        return name
    nickname = _NICKNAMES.get(str(name).lower()) if isinstance(name, str) else None
    hint = f"did you mean '{nickname}'?" if nickname else nearest(name, _PLAIN_RESOURCES)
    allowed = f"allowed are {', '.join(_PLAIN_RESOURCES)}, hugepages-... and names such as {GPU}"
    raise ValueError(f"unknown resource {describe(name)}; {hint or allowed}")


def _resource(name: str, quantity: object) -> int:
    try:
        amount = _amount(name, quantity, "a quantity such as 2, '500m' or '1.5Gi'")
    except ValueError as error:
        raise ValueError(f"[{name}]: {error}") from None
    if "/" in name and parse_quantity(quantity) != amount:  # type: ignore[arg-type]
        raise ValueError(f"[{name}]: found {describe(quantity)}; devices come in whole numbers")
    return amount


def _amount(resource: str, quantity: object, expected: str) -> int:
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        raise ValueError(f"found {describe(quantity)}, expected {expected}")
    return _exact_amount(resource, quantity, expected)


@lru_cache(maxsize=4096, typed=True)  # thousands of tasks state the same few quantities
def _exact_amount(resource: str, quantity: str | int | float, expected: str) -> int:
    try:
        value = parse_quantity(quantity)
    except ValueError:
        raise ValueError(f"found {describe(quantity)}, expected {expected}") from None
    if value < 0:
        raise ValueError(f"found {describe(quantity)}; it must not be negative")
    try:
        return parse_amount(resource, quantity)
    except ValueError:
        raise ValueError(f"found {describe(quantity)}, absurdly large; check the unit") from None


def _finite(value: object) -> float | None:
    if isinstance(value, str):
        value = float(value) if len(value) <= 64 and _FLOAT.fullmatch(value) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def describe(value: object) -> str:
    """A found value in one short piece of a sentence: `'abc'`, `12`, `null`, `a list`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    if isinstance(value, int) and value.bit_length() > 128:
        return "a huge number"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"a value of type {type(value).__name__}"


def nearest(name: object, allowed: Iterable[str]) -> str:
    """`did you mean 'x'?` for the allowed name most like `name`, or nothing.

    Case, `_` and `-` do not count, so that `node_mtbf_s` finds `nodeMtbfS`.
    """
    by_letters = {_letters(candidate): candidate for candidate in allowed}
    near = difflib.get_close_matches(_letters(str(name)[:60]), by_letters, n=1, cutoff=0.7)
    return f"did you mean '{by_letters[near[0]]}'?" if near else ""


def _letters(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
