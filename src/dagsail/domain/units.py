"""Units: resource names, Kubernetes quantities, and the limits beyond which a number is absurd.

Time is float seconds. Resources are exact integers: `cpu` in millicores, `memory` and
`ephemeral-storage` in bytes, every other resource in whole units (devices).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Final

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
GPU: Final = "nvidia.com/gpu"
GPU_MILLI: Final = "gpu-milli"
"""Thousandths of shareable GPU devices; a request below 1000 must fit into one device."""

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3

MAX_TIME_S: Final = 10 * 365 * 86400.0
"""Ten years. A longer runtime or deadline is taken for a wrong unit."""
MAX_BYTES: Final = 2**60
"""One exbibyte. More data or memory is taken for a wrong unit."""
MAX_MILLICORES: Final = 10**9
MAX_COUNT: Final = 10**9

_SUFFIXES: Final[dict[str, Fraction]] = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{s: Fraction(1000 ** (i + 1)) for i, s in enumerate("kMGTPE")},
    **{f"{s}i": Fraction(1024 ** (i + 1)) for i, s in enumerate("KMGTPE")},
}
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exp>[+-]?\d{1,3}))?",
    re.ASCII,
)


def parse_quantity(text: str | int | float) -> Fraction:
    """Parse a Kubernetes quantity exactly (`100m`, `1.5Gi`, `12e-3`, `.5`, `5.`).

    Follows the grammar of apimachinery `resource.Quantity`; what the API server refuses
    (`1K`, `1mi`, `NaN`, `1_000`, `" 1"`, `0x10`) is refused here.

    Raises:
        ValueError: if `text` is not a quantity.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not a quantity")
    if isinstance(text, float):
        if not math.isfinite(text):
            raise ValueError(f"{text!r} is not a finite quantity")
        return Fraction(str(text))
    if isinstance(text, int):
        return Fraction(text)
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > 64:
        raise ValueError(f"{text[:40]!r} is not a quantity such as '500m', '2', '1.5Gi' or '1e3'")
    number = match["number"]
    value = Fraction(number if number[-1] != "." else number[:-1])
    if match["exp"]:
        return value * Fraction(10) ** int(match["exp"])
    return value * _SUFFIXES[match["suffix"] or ""]


def parse_amount(resource: str, text: str | int | float) -> int:
    """Parse the quantity of one resource into its integer unit, rounding up as Kubernetes does.

    Raises:
        ValueError: if it is no quantity, negative, or beyond what a real machine has.
    """
    value = parse_quantity(text)
    if resource == CPU:
        value *= 1000
    amount = math.ceil(value)
    if amount < 0:
        raise ValueError(f"{resource} {text!r} is negative")
    if amount > max_amount(resource):
        raise ValueError(f"{resource} {text!r} is absurdly large; check the unit")
    return amount


def max_amount(resource: str) -> int:
    """The largest amount of a resource that is not taken for a wrong unit."""
    if resource == CPU:
        return MAX_MILLICORES
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-"):
        return MAX_BYTES
    return MAX_COUNT


def format_amount(resource: str, amount: int) -> str:
    """Write an amount as a person would read it: `1500m` cores as `1.5`, bytes as `4.0 GiB`."""
    if resource == CPU:
        return f"{amount / 1000:g} cores"
    if resource in (MEMORY, EPHEMERAL_STORAGE):
        return format_bytes(amount)
    return str(amount)


def format_bytes(amount: float) -> str:
    """Write bytes with a binary suffix: `1536` as `1.5 KiB`."""
    for suffix in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(amount) < 1024 or suffix == "PiB":
            return f"{amount:.4g} {suffix}"
        amount /= 1024
    raise AssertionError("unreachable")


def format_seconds(seconds: float) -> str:
    """Write a duration with the unit that keeps it short: `0.012 s`, `4.5 min`, `3.2 h`."""
    for unit, scale in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= 2 * scale:
            return f"{format_number(seconds / scale)} {unit}"
    return f"{format_number(seconds)} s"


def format_number(value: float) -> str:
    """Write a number to three digits, large ones in full: `0.0123`, `45.6`, `7,890`."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"
