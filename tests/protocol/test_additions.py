"""XADDs recognized in bytes: what is plainly spelt and complete, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import additions, additions_plain
from protocol.additions import Form, bulk_end, bulks_end

Cut = Callable[[bytes, int, Form, int], tuple[list[bytes], int, list[bytes] | None]]

CUTS = pytest.mark.parametrize("cut", [additions.cut, additions_plain.cut], ids=["loop", "plain"])
PREFIX = b"*7\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n"
NAMES = [b"f", b"longer"]


@pytest.fixture(autouse=True)
def expressions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions_plain, "WORTH", 1)


def bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)


def piece(*values: bytes, names: list[bytes] = NAMES) -> bytes:
    pairs = zip(names, values, strict=True)
    return b"".join([bulk(name) + bulk(value) for name, value in pairs])


def cut_all(cut: Cut, data: bytes, at: int = 0) -> tuple[list[bytes], int]:
    """All that is found; what is taken at once is up to the form."""
    form = Form(PREFIX, len(NAMES))
    cut(PREFIX + piece(b"1", b"2"), 0, form, 100)
    found, at, _ = cut(data, at, form, 100)
    more = found
    while more:
        more, at, _ = cut(data, at, form, 100)
        found += more
    return found, at


@pytest.mark.parametrize("length", [0, 1, 9, 10, 99, 100, 12345])
def test_a_bulk_string_ends_behind_its_value(length: int) -> None:
    data = b"abc" + bulk(b"v" * length) + b"more"
    assert bulk_end(data, 3) == len(data) - 4


@pytest.mark.parametrize(
    "data",
    [
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
    ],
)
def test_what_is_no_plain_bulk_string_has_no_end(data: bytes) -> None:
    assert bulk_end(data, 0) == -1
    assert bulks_end(bulk(b"before") + data, 0, 2) == -1


def test_so_many_bulk_strings_end_where_the_last_one_does() -> None:
    data = bulk(b"a") + bulk(b"") + bulk(b"c")
    assert bulks_end(data, 0, 0) == 0
    assert bulks_end(data, 0, 3) == len(data)
    assert bulks_end(data, 0, 4) == -1


@CUTS
@pytest.mark.parametrize(
    "value",
    [b"", b"1", b"\r\n", b"v" * 64, b"v" * 65, b"v" * 5000, PREFIX, PREFIX + piece(b"1", b"2")],
)
def test_requests_are_cut_into_what_is_stored(cut: Cut, value: bytes) -> None:
    pieces = [piece(b"1", b"2"), piece(value, b"3"), piece(b"4", value)]
    data = b"".join([PREFIX + each for each in pieces])
    assert cut_all(cut, b"-----" + data, 5) == (pieces, 5 + len(data))


@CUTS
@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_are_cut_than_are_wanted(cut: Cut, most: int) -> None:
    request = PREFIX + piece(b"1", b"2")
    form = Form(PREFIX, 2)
    for _ in range(3):
        found = cut(request * 3, 0, form, most)
        assert found == ([piece(b"1", b"2")] * most, most * len(request), NAMES)


@CUTS
def test_entries_of_different_field_names_are_taken_together(cut: Cut) -> None:
    form = Form(PREFIX, 2)
    others = [b"f", b"g"], [b"", b"longer"], [b"longer", b"f"]
    pieces = [piece(b"1", b"2"), *(piece(b"3", b"4", names=names) for names in others)]
    for order in (pieces, pieces[::-1], pieces):
        data = b"".join([PREFIX + each for each in order])
        assert cut(data, 0, form, 100) == (order, len(data), None)
    for names in (NAMES, *others):
        data = (PREFIX + piece(b"1", b"2", names=names)) * 2
        cut(data, 0, form, 100)
        assert cut(data, 0, form, 100)[2] == names


@CUTS
def test_entries_of_the_usual_names_are_taken_with_others_behind_them(cut: Cut) -> None:
    form = Form(PREFIX, 2)
    usual, other = piece(b"1", b"2"), piece(b"3", b"4", names=NAMES[::-1])
    for _ in range(2):
        cut((PREFIX + usual) * 2, 0, form, 100)
    data = PREFIX + usual + PREFIX + other
    assert cut(data, 0, form, 100) == ([usual, other], len(data), None)


@CUTS
@pytest.mark.parametrize(
    "next_one",
    [
        b"",
        b"*1\r\n$4\r\nPING\r\n",
        PREFIX,
        PREFIX[:-1],
        PREFIX + piece(b"1", b"2")[:-1],
        b"*5" + PREFIX[2:] + piece(b"1", names=[b"f"]),
        PREFIX + bulk(b"f") + b"$01\r\nv\r\n" + bulk(b"longer") + bulk(b"v"),
        PREFIX + bulk(b"f") + b"$1\r\nvx\n" + bulk(b"longer") + bulk(b"v"),
    ],
)
def test_anything_else_ends_a_run(cut: Cut, next_one: bytes) -> None:
    request = PREFIX + piece(b"1", b"2")
    expected = ([piece(b"1", b"2")] * 2, 2 * len(request))
    assert cut_all(cut, request * 2 + next_one) == expected
    assert cut(next_one, 0, Form(PREFIX, 2), 100) == ([], 0, None)


def test_an_expression_is_made_only_for_names_that_are_seen_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(additions_plain, "WORTH", 2)
    made: list[list[bytes]] = []
    form = Form(PREFIX, 2)
    for names in (NAMES, NAMES[::-1], NAMES, NAMES, NAMES, NAMES[::-1], NAMES[::-1], NAMES):
        data = (PREFIX + piece(b"1", b"2", names=names)) * 2
        pieces, end, _ = additions_plain.cut(data, 0, form, 9)
        assert (pieces, end) == ([piece(b"1", b"2", names=names)] * 2, len(data))
        assert isinstance(form.memory, additions_plain._Memory)
        made.append(form.memory.known)
    assert made == [[], [], [], NAMES, NAMES, NAMES, NAMES[::-1], NAMES[::-1]]


def test_no_expression_is_made_for_very_many_fields() -> None:
    names = [b"n%d" % number for number in range(additions_plain.MOST_FIELDS + 1)]
    form = Form(PREFIX, len(names))
    values = piece(*[b"v"] * len(names), names=names)
    for _ in range(3):
        assert additions_plain.cut((PREFIX + values) * 2, 0, form, 9)[0] == [values] * 2
    assert form.memory is None


@given(
    values=st.lists(st.binary(max_size=80), min_size=2, max_size=20),
    end=st.integers(0, 400),
)
def test_both_forms_find_the_same(values: list[bytes], end: int) -> None:
    data = b"".join([PREFIX + piece(value, b"1") for value in values])
    data = data[: len(data) - end]
    assert cut_all(additions.cut, data) == cut_all(additions_plain.cut, data)
