"""Glob patterns, as KEYS, SCAN, PSUBSCRIBE and CONFIG GET read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.keyspace.glob import matches


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (b"", b""),
        (b"abc", b"abc"),
        (b"*", b"anything\r\n\x00"),
        (b"a*", b"a"),
        (b"a**", b"a"),
        (b"*b", b"aab"),
        (b"a*c*e", b"abcde"),
        (b"a*bc*c", b"abcbc"),
        (b"*a*b*", b"xaxbx"),
        (b"h?llo", b"hello"),
        (b"h?llo", b"h\nllo"),
        (b"h[ae]llo", b"hallo"),
        (b"h[^e]llo", b"hallo"),
        (b"h[a-c]llo", b"hbllo"),
        (b"h[c-a]llo", b"hbllo"),
        (b"[^]", b"x"),
        (b"[a-]]", b"^"),
        (b"[a", b"a"),
        (b"[a-", b"-"),
        (b"[\\]]", b"]"),
        (b"[\\a-z]", b"-"),
        (b"[a\\", b"\\"),
        (b"h\\*llo", b"h*llo"),
        (b"a\\", b"a\\"),
        (b"a\\\\", b"a\\"),
        (b"a.c", b"a.c"),
        (b"(a|b)+$", b"(a|b)+$"),
        (b"[.]", b"."),
        (b"\xff*", b"\xff\xfe"),
    ],
)
def test_a_text_that_fits(pattern: bytes, text: bytes) -> None:
    assert matches(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (b"", b"a"),
        (b"abc", b"abcd"),
        (b"abc", b"ABC"),
        (b"a*c", b"abcd"),
        (b"a*bc*cb", b"abcbc"),
        (b"h?llo", b"hllo"),
        (b"h[ae]llo", b"hillo"),
        (b"h[^e]llo", b"hello"),
        (b"[]", b"]"),
        (b"[]a]", b"a"),
        (b"[", b"["),
        (b"[a-c]", b"-"),
        (b"[\\a-z]", b"b"),
        (b"a.c", b"abc"),
        (b"?", b""),
    ],
)
def test_a_text_that_does_not_fit(pattern: bytes, text: bytes) -> None:
    assert not matches(pattern, text)


@pytest.mark.parametrize("pattern", [b"*", b"**"])
def test_an_empty_text_fits_no_star(pattern: bytes) -> None:
    assert not matches(pattern, b"")


def test_case_may_be_ignored() -> None:
    assert matches(b"MaX[A-C]*", b"maxbclients", ignore_case=True)
    assert not matches(b"MaX*", b"min", ignore_case=True)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (b"*a" * 200 + b"*b", b"a" * 20_000),
        (b"a*" * 200 + b"b", b"a" * 20_000),
        (b"*" * 20_000 + b"b", b"a" * 20_000),
        (b"*?" * 100 + b"[^a]", b"a" * 20_000),
        (b"*?" * 50_000 + b"b", b"a" * 50_000),
        (b"*" + b"a?" * 500 + b"b*", b"a" * 20_000),
        (b"*" + b"[ab]?" * 500 + b"c*", b"ab" * 10_000),
        (b"a?" * 500_000, b"key"),
        (b"[" + b"a" * 1_000_000 + b"]", b"key"),
    ],
    ids=[
        "stars first",
        "stars last",
        "only stars",
        "question marks",
        "more stars than may be",
        "a part that nearly fits everywhere",
        "a part of classes",
        "a long pattern",
        "a long class",
    ],
)
def test_no_pattern_takes_more_than_a_moment(pattern: bytes, text: bytes) -> None:
    assert not matches(pattern, text)


@pytest.mark.parametrize("unit", [b"*a", b"*?", b"*[a-c]", b"**a"])
def test_a_pattern_may_hold_a_thousand_stars_before_its_end(unit: bytes) -> None:
    assert matches(unit * 1000, b"a" * 1000)
    assert matches(unit * 1000 + b"**", b"a" * 1002)
    assert not matches(unit * 1001, b"a" * 1001)
    assert matches(b"a*" * 1001, b"a" * 1001)
    assert not matches(b"a*" * 1002, b"a" * 1002)


@pytest.mark.parametrize("distance", [0, 1, 4095, 4096, 4097, 10_000])
def test_a_part_is_found_wherever_it_is(distance: int) -> None:
    text = b"ax" * (distance // 2) + b"x" * (distance % 2) + b"aybzc" + b"ax" * 100
    assert matches(b"*a[^x]b?c*", text)
    assert not matches(b"*a[^x]b?d*", text)


def test_a_literal_pattern_of_any_length_is_compared_as_a_whole() -> None:
    text = b"x" * 1_000_000
    assert matches(text, text)
    assert not matches(text, text[:-1])


def naive(pattern: bytes, text: bytes) -> bool:
    """The plain meaning of a pattern of letters, simple classes, stars and question marks."""
    expression = pattern.replace(b"?", b".").replace(b"*", b".*")
    return re.fullmatch(expression, text, re.DOTALL) is not None


@given(
    st.lists(st.sampled_from([b"a", b"b", b"*", b"?", b"[ab]", b"[^a]"]), max_size=8).map(b"".join),
    st.lists(st.sampled_from(b"ab"), min_size=1, max_size=10).map(bytes),
)
def test_stars_question_marks_and_classes_mean_what_they_say(pattern: bytes, text: bytes) -> None:
    assert matches(pattern, text) is naive(pattern, text)


@given(st.binary(max_size=12), st.binary(max_size=6))
def test_any_bytes_are_a_pattern(pattern: bytes, text: bytes) -> None:
    assert matches(pattern, text) in (True, False)


@given(st.binary(min_size=1, max_size=12))
def test_an_escaped_text_fits_itself_alone(text: bytes) -> None:
    pattern = b"".join(b"\\" + bytes([char]) for char in text)
    assert matches(pattern, text)
    assert not matches(pattern, text + b"x")
