"""Markup, names, numbers and entries: how they are written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.web.page.charts import chart, delivery_names, points, top_of
from server.web.page.entry_screen import hex_lines, json_tokens
from server.web.page.marks import ChartMark
from server.web.page.page_request import Fields, packed, unpacked, url
from server.web.page.preview import MOST_FIELDS, id_of, preview
from server.web.page.traces import History, Window
from server.web.page.wording import counted, deliveries, moment, rate, shown, shown_part, value_text
from storage.engine.entries import encode_entry

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


def test_times_and_counts() -> None:
    assert moment(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert moment(10**18) == "–"  # noqa: RUF001
    assert [deliveries(n) for n in (1000, 2**63 - 1)] == ["1,000", "given up"]


@pytest.mark.parametrize(
    ("high", "top"),
    [
        (0, 1),
        (1, 1),
        (7, 8),
        (10, 10),
        (11, 15),
        (101, 150),
        (214, 250),
        (25_209, 30_000),
        (0.3, 0.3),
    ],
)
def test_a_scale_ends_at_a_round_number(high: float, top: float) -> None:
    assert top_of(high) == pytest.approx(top)


@given(st.floats(0.01, 1e15))
def test_no_value_is_above_its_scale(high: float) -> None:
    assert high <= top_of(high) * 1.0001


def test_a_line_goes_through_all_values_at_their_places() -> None:
    assert points([0, 5, 10], 10) == "0.0,40.0 60.0,20.5 120.0,1.0"
    assert points([5], 10) == "0.0,20.5 120.0,20.5"
    assert points([0, 10], 10, ["30.0", "60.0"]) == "30.0,40.0 60.0,1.0"


def test_a_chart_says_what_it_shows() -> None:
    history = History()
    trace = Window(history, 15 * 60_000)
    assert chart(None, ("lag",), "Lag") is None
    for at in range(3):
        history.note(at * 10_000, at * 50, 0, at * 7, 0, 0, at * 60_000, 0)
        trace = Window(history, 15 * 60_000, [ChartMark(12_345, "something happened")])
        assert (chart(trace, ("lag",), "Lag") is None) is (at == 0)
    lag = chart(trace, ("lag",), "Lag")
    assert lag is not None
    assert (lag.top, lag.times, lag.says) == ("15", (0, 10_000, 20_000), "Lag: up to 14, now 14")
    assert lag.at == [("0.0", 0, "0"), ("60.0", 10_000, "7"), ("120.0", 20_000, "14")]
    assert lag.marks == [("60.0", "something happened")]
    both = chart(trace, ("added", "acked"), "In and out", 1, "/s")
    assert both is not None
    assert (both.top, both.says) == ("5.0 /s", "In and out: up to 5.0, now 5.0 and 0")
    assert both.at[-1] == ("120.0", 20_000, "5.0 / 0 /s")
    age = chart(trace, ("age",), "Age", 1000, "ms")
    assert age is not None
    assert age.says.endswith("now 2 min")


def test_delivery_counts_have_names() -> None:
    names = delivery_names()
    assert [name for name in names if name in ("Never", "Once", "Twice", "4 to 5", "over 100")] == [
        "Never", "Once", "Twice", "4 to 5", "over 100",
    ]  # fmt: skip


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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", '""'),
        (b"two\r\nlines", "two\\r\\nlines"),
        (b"\xff\xd8\xff\xe0" + bytes(48_196), "<binary, 48.2 KB, JPEG>"),
        (b"\x00\x01", "<binary, 2 B>"),
        ("ä".encode() * 100, "ä" * 80 + "… (40 more bytes)"),
    ],
)
def test_a_value_in_a_list_is_text_or_says_what_it_is(value: bytes, text: str) -> None:
    assert value_text(value[:160], len(value)) == text


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "reader waits", "readers wait") for n in (1, 2)] == [
        "1 reader waits", "2 readers wait",
    ]  # fmt: skip
    assert [counted(n, "group") for n in (0, 1, 1200)] == ["0 groups", "1 group", "1,200 groups"]
    assert [rate(n) for n in (None, 0, 4.06, 148.2)] == ["–", "0", "4.1", "148"]  # noqa: RUF001


def test_json_is_shown_with_its_parts_apart() -> None:
    value = b'{"a": [1, true, "<script>"], "b": null}'
    tokens = json_tokens(value, len(value))
    assert tokens is not None
    assert [pair for pair in tokens if pair[0]] == [
        ("k", '"a"'), ("d", "1"), ("d", "true"), ("s", '"<script>"'), ("k", '"b"'), ("d", "null"),
    ]  # fmt: skip
    assert json.loads("".join(text for _, text in tokens)) == json.loads(value)


@pytest.mark.parametrize(
    "value", [b"{", b"12", b'"text"', b"[" * 30_000, b"[" + b"9" * 5000 + b"]"]
)
def test_what_is_no_json_is_not_shown_as_such(value: bytes) -> None:
    assert json_tokens(value, len(value)) is None


def test_bytes_are_shown_in_lines_of_eight() -> None:
    assert hex_lines(b"tea\x00\xff is")[0] == ("000000", "74 65 61 00 ff 20 69 73", "tea·· is")
    assert hex_lines(b"123456789")[1] == ("000008", f"{'39':<23}", "9")
