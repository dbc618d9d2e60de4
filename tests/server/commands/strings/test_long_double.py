"""Sums of numbers with decimal places."""

from __future__ import annotations

import pytest

from server.commands.strings.long_double import add


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [
        (b"0", b"0", b"0"),
        (b"10.50", b"0.1", b"10.6"),
        (b"5.0e3", b"2.0e2", b"5200"),
        (b"0.1", b"0.2", b"0.3"),
        (b"3.0", b"1", b"4"),
        (b"-1.5", b"0.25", b"-1.25"),
        (b"0", b"-0", b"0"),
        (b"1", b"-1", b"0"),
        (b"+1", b".5", b"1.5"),
        (b"5.", b"0", b"5"),
        (b"1e-17", b"0", b"0.00000000000000001"),
        (b"4e-18", b"0", b"0"),
        (b"-4e-18", b"0", b"0"),
        (b"1e-4940", b"0", b"0"),
        (b"0x10", b"0x1p3", b"24"),
        (b"-0x.8", b"0", b"-0.5"),
        (b"0X1F.8P-2", b"0", b"7.875"),
        (b"0e99999999999999999999999", b"1", b"1"),
        (b"1000000000000005000", b"0.1", b"1000000000000005000.125"),
        (b"123456789012345678901234567890", b"0", b"123456789012345678899921813504"),
        (b"18446744073709551615", b"1", b"18446744073709551616"),
        (b"18446744073709551616", b"1", b"18446744073709551616"),
        (b"0." + b"0" * 5000 + b"1e5001", b"0", b"1"),
    ],
)
def test_a_sum(first: bytes, second: bytes, total: bytes) -> None:
    assert add(first, second) == total


def test_a_sum_may_have_thousands_of_digits() -> None:
    total = add(b"1e4932", b"0")
    assert len(total) == 4933
    assert total.startswith(b"10000000000000000000060189493879638913238377742545331147737850413525")


@pytest.mark.parametrize(
    "text",
    [
        b"", b" 1", b"1 ", b"abc", b"nan", b"-nan", b"1e", b"e5", b".", b"0x", b"0x.", b"0x1p",
        b"1_0", b"1,5", b"1\x00", b"\xd9\xa3", b"infinit", b"1e4933", b"-1e4933", b"1e-4952",
        b"1e999999999999999999", b"1e-999999999999999999", b"0x1p16384", b"0x1p-16446",
        b"1." + b"0" * 5118, b"1" + b"0" * 5200,
    ],
)  # fmt: skip
def test_what_is_no_number(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"number|range"):
        add(text, b"1")
    with pytest.raises(ValueError, match=r"number|range"):
        add(b"1", text)


@pytest.mark.parametrize(
    ("first", "second"),
    [(b"inf", b"1"), (b"1", b"-Infinity"), (b"inf", b"-inf"), (b"1e4932", b"1e4932")],
)
def test_a_sum_that_is_not_finite(first: bytes, second: bytes) -> None:
    with pytest.raises(OverflowError):
        add(first, second)
