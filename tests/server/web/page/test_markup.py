"""Markup, names, numbers and entries: how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.html.markup import Html, joined, tag
from server.web.page.charts import histogram, sparkline
from server.web.page.page_request import Fields, packed, unpacked, url
from server.web.page.preview import MOST_FIELDS, SEARCHED, has, id_of, preview
from server.web.page.wording import (
    deliveries,
    duration,
    id_moment,
    moment,
    shown,
    shown_part,
    size,
)
from storage.engine.entries import encode_entry

# --- markup ----------------------------------------------------------------------------------


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "<b>", Html("<i>"), None) == "<p>&lt;b&gt;<i></p>"
    assert joined(["&", tag("br")]) == "&amp;<br/>"


def test_attributes_are_escaped_or_left_out() -> None:
    assert tag("a", href="\"'<>&", class_="x", data_x=None, hidden=True, checked=False) == (
        '<a href="&quot;&#x27;&lt;&gt;&amp;" class="x" hidden></a>'
    )


@given(st.text())
def test_no_text_becomes_an_element(text: str) -> None:
    markup = tag("p", text, title=text)
    assert markup.count("<") == markup.count(">") == 2
    assert markup.count('"') == 2


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (b"orders", "orders"),
        ("café".encode(), "café"),
        (b"", '""'),
        (b"\xff", "\N{REPLACEMENT CHARACTER}\\xff"),
        (b"a\r\nb\0", "a\\r\\nb\\x00"),
        ("\u202egnp".encode(), "\\u202egnp"),
        (b"a" * 201, "a" * 200 + "… (1 more bytes)"),
        ("ä".encode() * 101, "ä" * 100 + "… (2 more bytes)"),
        (b"a" + "ä".encode() * 100, "a" + "ä" * 99 + "… (1 more bytes)"),
        (b"\xff" * 300, "\N{REPLACEMENT CHARACTER}" + "\\xff" * 200 + "… (100 more bytes)"),
    ],
)  # fmt: skip
def test_how_names_are_shown(name: bytes, text: str) -> None:
    assert shown(name) == text


def test_a_part_that_is_shorter_than_a_character() -> None:
    assert shown_part("ä".encode()[:1], 2) == "… (1 more bytes)"


@given(st.binary())
def test_a_packed_name_survives_forms_and_addresses(name: bytes) -> None:
    assert packed(name).isascii()
    assert unpacked(packed(name)) == name
    assert Fields(url("", key=packed(name)).removeprefix("?")).name("key") == name


def test_numbers_of_forms_are_brought_into_their_bounds() -> None:
    fields = Fields("a=5&b=-1&c=x&d=99&e=" + "9" * 50 + "&f=\N{SUPERSCRIPT TWO}")
    assert [fields.whole(name, 1, 2, 10) for name in "abcdefg"] == [5, 1, 1, 10, 1, 1, 1]
    assert fields.every("a") == ["5"]
    assert url("/", a=None) == "/"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "0 ms"), (999, "999 ms"), (1000, "1 s"), (61_000, "1 min 1 s"), (600_000, "10 min"),
        (3_600_000, "1 h"), (5_400_000, "1 h 30 min"), (90_000_000, "1 d 1 h"), (10**12, "11574 d"),
    ],
)  # fmt: skip
def test_lengths_of_time(ms: int, text: str) -> None:
    assert duration(ms) == text


def test_times_sizes_and_counts() -> None:
    assert moment(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert moment(10**18) == id_moment(5 << 64) == "–"  # noqa: RUF001
    assert id_moment(1_700_000_000_000 << 64) == "2023-11-14 22:13:20 UTC"
    assert [size(n) for n in (999, 1000, 2_500_000, 10**9)] == [
        "999 bytes", "1.0 KB", "2.5 MB", "1.0 GB",
    ]  # fmt: skip
    assert [deliveries(n) for n in (1000, 2**63 - 1)] == ["1,000", "given up"]


def test_charts_are_drawn_from_numbers() -> None:
    assert sparkline([1], "lag") is None
    line = sparkline([0, 5, 10], "lag")
    assert line is not None
    assert 'points="0.0,22.0 48.0,12.0 96.0,2.0"' in line
    assert "lag: from 0 to 10" in line
    long = sparkline(range(1000), "lag")
    assert long is not None
    assert len(long.split('points="')[1].split('"')[0].split()) == 59
    assert "to 999" in long
    bars = histogram((0, 0, 0, 1, 0, 0, 0, 0, 400))
    assert "never" in bars
    assert "4 to 5" in bars
    assert "over 100" in bars
    assert [f'width="{width}"' in bars for width in (0, 1, 200)] == [True] * 3


# --- entries ---------------------------------------------------------------------------------


def test_the_beginning_of_an_entry_is_read() -> None:
    payload = encode_entry(5 << 64 | 1, [b"item", b"tea", b"note", b"x" * 500])
    found = preview(payload)
    assert found.entry_id == id_of(payload) == 5 << 64 | 1
    assert found.fields == [("item", "tea"), ("note", "x" * 160 + "… (340 more bytes)")]
    assert (found.more, found.size) == (0, len(payload))


def test_of_many_fields_some_are_shown() -> None:
    payload = encode_entry(1, [b"%d" % at for at in range(2000)])
    found = preview(payload)
    assert (len(found.fields), found.more) == (MOST_FIELDS, 1000 - MOST_FIELDS)


def test_a_filter_finds_fields_by_name_and_a_part_of_the_value() -> None:
    payload = encode_entry(1, [b"item", b"green tea", b"tea", b"no", b"item", b"x"])
    assert has(payload, b"item", b"tea")
    assert has(payload, b"item", b"")
    assert has(payload, b"item", b"x")
    assert not has(payload, b"tea", b"yes")
    assert not has(payload, b"ite", b"tea")
    late = encode_entry(1, [b"a", b"b"] * SEARCHED + [b"item", b"tea"])
    assert not has(late, b"item", b"tea")
