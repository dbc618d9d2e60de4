"""Where plain requests end: both forms say the same, and hiredis finds the same requests there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hiredis import Reader
from hypothesis import example, given
from hypothesis import strategies as st

from protocol import inline, scanner, scanner_plain
from protocol.scanner import bulk_end, count_at
from protocol.scanner_plain import LONGEST, MOST_WORDS
from storage.keyspace import glob
from tests.support.wire import bulk, pack

PING = pack(b"PING")


@pytest.fixture(autouse=True, scope="module", params=[False, True], ids=["one by one", "many"])
def many(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let plain Python prove requests one by one, or as after many of them."""
    before = scanner_plain._proved[0]
    scanner_plain._proved[0] = scanner_plain.MADE_AFTER if request.param else -(10**9)
    yield
    scanner_plain._proved[0] = before


FORMS = pytest.mark.parametrize("form", [scanner, scanner_plain], ids=["loop", "plain"])


def requests_end(form: Any, data: bytes, at: int) -> int:
    """Where requests end; those that are cut out on the way are what hiredis makes of them."""
    if form is scanner_plain:
        return scanner_plain.requests_end(data, at)
    requests: list[list[bytes]] = []
    end: int = scanner.read_requests(data, at, requests)
    assert requests == built(data[at:end])
    return end


@pytest.mark.parametrize(
    "pattern",
    [scanner_plain._requests()(b"", 0).re, inline._LINE, glob._TOKEN, glob._ONE_OF],
    ids=["requests", "line", "token", "one of"],
)
def test_no_group_is_repeated_possessively_which_python_before_3_11_5_gets_wrong(
    pattern: re.Pattern[bytes],
) -> None:
    assert re.search(rb"[^\\]\)[*+?]\+", pattern.pattern) is None


NO_BULKS = [
    b"",
    b"$",
    b"$1\r\nv\r",
    b"$10\r\nv\r\n",
    b"$99999999999999999999\r\nv\r\n",
    b"$123456",
    b":1\r\nv\r\n",
    b"$-1\r\nv\r\n",
    b"$v\r\nv\r\n",
    b"$1v\r\nv\r\n.........",
    b"$01\r\nv\r\n",
    b"$1\rxv\r\n",
    b"$1\r\nvx\n",
    b"$1\r\nv\rx",
    b"$1\nv\r\n..",
    b"$123\r\n" + b"v" * 125,
]


@pytest.mark.parametrize("length", [0, 1, 9, 10, 99, 100, 12345])
def test_a_bulk_string_ends_behind_its_value(length: int) -> None:
    data = b"abc" + bulk(b"v" * length) + b"more"
    assert bulk_end(data, 3) == len(data) - 4


@FORMS
@pytest.mark.parametrize("data", NO_BULKS)
def test_what_is_no_plain_bulk_string_has_no_end(form: Any, data: bytes) -> None:
    assert bulk_end(data, 0) == -1
    assert form.bulks_end(data, 0, 1) == -1
    assert form.bulks_end(bulk(b"before") + data, 0, 2) == -1
    request = b"*2\r\n" + bulk(b"before") + data
    assert requests_end(form, PING + request, 0) == len(PING)


@FORMS
def test_so_many_bulk_strings_end_where_the_last_one_does(form: Any) -> None:
    data = bulk(b"a") + bulk(b"") + bulk(b"c" * 1000) + bulk(b"d") * 100
    assert form.bulks_end(data, 0, 0) == 0
    assert form.bulks_end(data, 0, 3) == len(data) - 100 * len(bulk(b"d"))
    assert form.bulks_end(data, 0, 103) == len(data)
    assert form.bulks_end(data, 0, 104) == -1


@FORMS
@pytest.mark.parametrize("words", [1, 2, 9, 10, MOST_WORDS, MOST_WORDS + 1, 100, 300])
@pytest.mark.parametrize("word", [b"", b"a", b"\r\n", b"x" * LONGEST, b"x" * (LONGEST + 1), PING])
def test_requests_end_behind_their_last_word(form: Any, words: int, word: bytes) -> None:
    mixed = pack(b"first", *[b"w"] * (words - 1), word)
    data = b"..." + pack(*[word] * words) + mixed * 2
    for end in (b"", b"PING\r\n", mixed[:-1], mixed[:-2], mixed[:7], b"*0\r\n", b"*"):
        assert requests_end(form, data + end, 3) == len(data)


@FORMS
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"*",
        b"PING\r\n",
        b"*0\r\n" + PING,
        b"*-1\r\n" + PING,
        b"*01\r\n$4\r\nPING\r\n",
        b"*1 \r\n$4\r\nPING\r\n",
        b"*1x\r\n$4\r\nPING\r\n",
        b"*1\rx$4\r\nPING\r\n",
        b"*99999999999\r\n$4\r\nPING\r\n",
        b"*2\r\n$4\r\nPING\r\n",
        b"*1\r\n+PING\r\n......",
        b"*1\r\n" + PING,
    ],
)
def test_anything_else_is_no_request(form: Any, data: bytes) -> None:
    assert requests_end(form, data, 0) == 0
    assert requests_end(form, PING * 2 + data, len(PING)) == 2 * len(PING)


@pytest.mark.parametrize("name", [b"XADD", b"xAdd"])
def test_requests_may_end_where_another_one_is_an_xadd(name: bytes) -> None:
    xadd = pack(name, b"s", b"*", b"f", b"v")
    others = pack(b"PADD") + pack(b"XDEL") + pack(b"XXDD") + pack(b"XAXD") + pack(b"XADX") + PING
    data = xadd + others + pack(b"X") + xadd
    requests: list[list[bytes]] = []
    first = scanner.read_requests(data, 0, requests, apart=True)
    assert first == len(data) - len(xadd)
    assert requests == built(data[:first])
    assert scanner.read_requests(data, first, requests, apart=True) == len(data)
    assert scanner.read_requests(data, 0, [], apart=False) == len(data)


def test_a_request_announces_its_words_if_the_data_can_hold_them() -> None:
    many = pack(*[b""] * 12)
    assert count_at(b"." + many, 1) == 12
    assert count_at(many[:-10], 0) == 0


HEADERS = st.builds(
    lambda sign, count, end: sign + b"%d" % count + end,
    st.sampled_from([b"*", b"*", b"$", b"$", b"%", b"~", b">", b"|", b":", b"("]),
    st.integers(0, 99) | st.integers(1000, 5000) | st.integers(10**6, 10**12),
    st.sampled_from([b"\r\n", b"\r\n", b"\r", b""]),
)
WORDS = st.binary(max_size=12) | st.sampled_from([b"x" * 98, b"x" * 100, b"*1\r\n", PING])
REQUESTS = st.lists(WORDS, min_size=1, max_size=30).map(lambda words: pack(*words))
PARTS = HEADERS | REQUESTS | st.sampled_from([b"$1\r\na\r\n", b"$1\r\naXX", b"PING\r\n"])


def built(data: bytes) -> list[Any]:
    """What hiredis makes of the data."""
    reader = Reader()
    reader.feed(data)
    return list(iter(reader.gets, False))


@given(st.lists(PARTS, max_size=12).map(b"".join), st.integers(0, 30))
@example(PING * 3, 10)
def test_what_is_proved_is_what_hiredis_finds_and_nothing_else(data: bytes, end: int) -> None:
    data = data[: len(data) - end]
    proved = requests_end(scanner, data, 0)
    assert scanner_plain.requests_end(data, 0) == proved
    requests = built(data[:proved])
    assert b"".join([pack(*request) for request in requests]) == data[:proved]
    # Behind that there is no whole one.
    for count in range(1, 31):
        head = b"*%d\r\n" % count
        if data.startswith(head, proved):
            assert scanner.bulks_end(data, proved + len(head), count) == -1
            assert not any(data.startswith(pack(*one), proved) for one in _first(data[proved:]))


def _first(data: bytes) -> list[Any]:
    """The first thing that hiredis finds, if it is a list of byte strings."""
    reader = Reader()
    reader.feed(data)
    try:
        found = reader.gets()
    except Exception:  # It is no RESP at all.
        return []
    whole = isinstance(found, list) and found and all(isinstance(word, bytes) for word in found)
    return [found] if whole else []


@given(st.lists(WORDS.map(bulk) | HEADERS, max_size=80), st.integers(0, 80))
def test_both_forms_find_the_same_bulk_strings(bulks: list[bytes], count: int) -> None:
    data = b"".join(bulks)
    assert scanner.bulks_end(data, 0, count) == scanner_plain.bulks_end(data, 0, count)
