"""The longest common subsequence, beside the table of lengths that it is defined by."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.commands.strings import lcs
from server.commands.strings.lcs import Match
from storage.steps import result

TEXTS = st.one_of(
    st.lists(st.sampled_from(b"ab"), max_size=40).map(bytes),
    st.lists(st.sampled_from(b"abcdefgh"), max_size=60).map(bytes),
    st.binary(max_size=60),
    st.lists(st.sampled_from(b"a" * 50 + b"bc"), max_size=80).map(bytes),
)


def by_definition(first: bytes, second: bytes) -> list[Match]:
    """The walk through the whole table."""
    table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, one in enumerate(first, 1):
        for j, two in enumerate(second, 1):
            above, left = table[i - 1][j], table[i][j - 1]
            table[i][j] = table[i - 1][j - 1] + 1 if one == two else max(above, left)
    found = []
    i, j = len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif table[i - 1][j] > table[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


@given(TEXTS, TEXTS)
@example(b"", b"")
@example(b"a", b"")
def test_it_is_the_one_that_the_table_gives(first: bytes, second: bytes) -> None:
    expected = by_definition(first, second)
    assert result(lcs.common_bytes(first, second)) == expected
    assert result(lcs.common_length(first, second)) == len(expected)


@pytest.mark.parametrize(("first", "second"), [(b"ab", b"xaybz" * 400), (b"xaybz" * 400, b"ab")])
def test_there_is_a_row_for_each_byte_of_the_shorter_string(
    monkeypatch: pytest.MonkeyPatch, first: bytes, second: bytes
) -> None:
    made: list[int] = []
    rows = lcs._rows

    def counted(shorter: bytes, longer: bytes) -> Generator[None, None, list[int]]:
        table = yield from rows(shorter, longer)
        made.append(len(table))
        return table

    monkeypatch.setattr(lcs, "_rows", counted)
    assert len(result(lcs.common_bytes(first, second))) == 2
    assert result(lcs.common_length(first, second)) == 2
    assert made == [3, 3]


@given(st.binary(min_size=1), st.integers(0, 20), st.integers(1, 8))
def test_the_places_of_a_byte_are_found_piece_by_piece(
    text: bytes, place: int, eighths: int
) -> None:
    byte = text[place % len(text)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lcs, "_STEP", 8 * eighths)
        found = result(lcs._places(byte, text))
    assert found == sum(1 << at for at, other in enumerate(text) if other == byte)
