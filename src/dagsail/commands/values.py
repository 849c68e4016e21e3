"""Numbers as people read them."""

from __future__ import annotations

import math

from dagsail.domain.units import format_number, format_seconds

NOTHING = "-"
"""Where there is nothing to measure."""


def shown(value: float, unit: str) -> str:
    """A metric's value: seconds as a duration, shares as percent, money with two digits."""
    if not math.isfinite(value):
        return NOTHING
    if unit == "s":
        return format_seconds(value)
    if unit == "ratio":
        return format_number(value)
    if unit == "USD":
        return f"${value:,.2f}"
    return f"{value:,.4g}" if unit == "ms" else f"{value:,.0f}"


def percent(value: float) -> str:
    """A share as percent."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else NOTHING


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
