"""How numbers, sizes and lengths of time are written."""

from __future__ import annotations

import pytest

from server.runtime.quantities import duration, latency, number, size


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"), (999, "999 ms"), (1000, "1 s"), (2500, "2.5 s"), (9_999, "9.99 s"),
        (10_500, "10 s"), (61_000, "1 min 1 s"), (600_000, "10 min"), (3_600_000, "1 h"),
        (5_400_000, "1 h 30 min"), (11_340_000, "3 h 9 min"), (90_000_000, "1 d 1 h"),
        (10**12, "11574 d"),
    ],
)  # fmt: skip
def test_a_length_of_time_has_its_two_largest_units(ms: int, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(0, "0 µs"), (500, "0.5 µs"), (41_234, "41.2 µs"), (3_140_000, "3.14 ms"), (2 * 10**9, "2 s")],
)
def test_a_short_length_of_time_has_three_digits(nanoseconds: int, text: str) -> None:
    assert latency(nanoseconds) == text


def test_sizes_and_numbers_have_units_and_commas() -> None:
    assert [size(n) for n in (999, 1000, 2_500_000, 10**9)] == [
        "999 B", "1.0 KB", "2.5 MB", "1.0 GB",
    ]  # fmt: skip
    assert number(1_234_567) == "1,234,567"
