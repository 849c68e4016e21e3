"""Numbers as people write and read them."""

from __future__ import annotations

import pytest

from dagsail.domain.units import (
    CPU,
    MEMORY,
    format_amount,
    format_bytes,
    format_number,
    format_seconds,
    parse_amount,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.0123, "0.0123 s"),
        (119.0, "119 s"),
        (120.0, "2 min"),
        (7200.0, "2 h"),
        (86400.0, "24 h"),
        (1030.4 * 86400.0, "1,030 d"),
    ],
)
def test_a_duration_is_short_and_never_in_powers_of_ten(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.5"), (999.4, "999"), (999.6, "1,000"), (12345.6, "12,346")]
)
def test_large_numbers_are_written_in_full(value, text):
    assert format_number(value) == text


def test_amounts_are_written_in_the_unit_that_people_use():
    assert format_amount(CPU, 1500) == "1.5 cores"
    assert format_amount(MEMORY, 3 * 2**29) == "1.5 GiB"
    assert format_amount("nvidia.com/gpu", 2) == "2"
    assert format_bytes(1536) == "1.5 KiB"


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [(CPU, "100m", 100), (CPU, "0.0001", 1), (MEMORY, "1Gi", 2**30), (MEMORY, "1e3", 1000)],
)
def test_quantities_round_up_to_the_integer_unit(resource, text, amount):
    assert parse_amount(resource, text) == amount


@pytest.mark.parametrize("text", ["-1", "1e30", "one", "1.2.3", ""])
def test_what_is_no_amount_is_refused(text):
    with pytest.raises(ValueError, match=r"quantity|negative|absurdly"):
        parse_amount(MEMORY, text)
