"""The texts of scores: those that Redis 8.0.6 printed of these numbers, and those that it took."""

from __future__ import annotations

from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import CommandError
from server.commands.sorted_sets.scores import end_of_range, score_of, text_of

PRINTED = {
    0.0: b"0",
    1e15: b"1000000000000000",
    -3.0: b"-3",
    123456789012345678.0: b"123456789012345680",
    2.0**62: b"4611686018427387904",
    2.0**62 + 1024: b"4611686018427389000",
    -(2.0**63): b"-9223372036854776000",
    1e19: b"1e+19",
    1e22 / 3: b"3333333333333333500000",
    1.1e21: b"1.1e+21",
    0.1: b"0.1",
    -0.00001: b"-0.00001",
    1e-7: b"1e-7",
    1.5e-6: b"1.5e-6",
    0.00012345: b"1.2345e-4",
    0.0012345: b"0.0012345",
    12345678.9: b"12345678.9",
    1e5 / 3: b"3.3333333333333336e+4",
    1e15 / 3: b"333333333333333.3",
    1 / 3: b"0.3333333333333333",
    5e-324: b"5e-324",
    2.2250738585072014e-308: b"2.2250738585072014e-308",
    1.7976931348623157e308: b"1.7976931348623157e+308",
    inf: b"inf",
    -inf: b"-inf",
    # Not the shortest, or not the nearest digits.
    1e23: b"99999999999999990000000",
}


@pytest.mark.parametrize(("score", "text"), PRINTED.items())
def test_a_score_is_printed_as_redis_prints_it(score: float, text: bytes) -> None:
    assert text_of(score) == text


def test_minus_zero_has_its_sign() -> None:
    assert text_of(-0.0) == b"-0"


@given(st.floats(allow_nan=False))
def test_what_is_printed_is_the_same_number_when_it_is_read(score: float) -> None:
    assert score_of(text_of(score)) == score


@pytest.mark.parametrize(
    ("text", "score"),
    [
        (b"1", 1.0),
        (b"+5", 5.0),
        (b"5.", 5.0),
        (b".5", 0.5),
        (b"-.5e1", -5.0),
        (b"1E+3", 1000.0),
        (b"0x1p3", 8.0),
        (b"-0X.8", -0.5),
        (b"0x10", 16.0),
        (b"inf", inf),
        (b"-INF", -inf),
        (b"+infinity", inf),
        (b"0e400", 0.0),
        (b"0x0p-5000", 0.0),
        (b"4.9e-324", 5e-324),
        (b"1.7976931348623158e308", 1.7976931348623157e308),
    ],
)
def test_a_score_is_read(text: bytes, score: float) -> None:
    assert score_of(text) == score


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"x", b" 1", b"1 ", b"1\n", b"1\0", b"1_0", b"nan", b"-nan", b"nan(1)", b"0x"),
        *(b"1e", b"1d", b".", b"+", b"++1", b"infinit", b"1e400", b"-1e400", b"1e-400"),
        *(b"2.4703282292062327e-324", b"0x1p99999", b"0x1p-99999", b"0x1p-1075"),
    ],
)
def test_a_text_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError) as raised:
        score_of(text)
    assert raised.value.text == "ERR value is not a valid float"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b"1", (1.0, True)),
        (b"(1.5", (1.5, False)),
        (b"(+inf", (inf, False)),
        (b"-1e400", (-inf, True)),
        (b"1e-400", (0.0, True)),
        (b"", (0.0, True)),
        (b"(", (0.0, False)),
        (b"1\0x", (1.0, True)),
    ],
)
def test_the_end_of_a_range_is_read(text: bytes, end: tuple[float, bool]) -> None:
    assert end_of_range(text) == end


@pytest.mark.parametrize(
    "text", [b"x", b"((1", b"nan", b" 1", b"1 ", b"0x1", b"1_0", b"-", b"+", b"(nan", b"1x\0"]
)
def test_the_end_of_a_range_is_refused(text: bytes) -> None:
    with pytest.raises(CommandError) as raised:
        end_of_range(text)
    assert raised.value.text == "ERR min or max is not a float"


@given(st.binary(max_size=6) | st.text("0123456789.+-eEinfxXpP_ ", max_size=8).map(str.encode))
def test_no_text_makes_a_score_that_is_not_a_number(text: bytes) -> None:
    for read in (score_of, end_of_range):
        try:
            found = read(text)
        except CommandError:
            continue
        assert not isnan(found[0] if isinstance(found, tuple) else found)
