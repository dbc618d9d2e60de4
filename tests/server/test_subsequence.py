"""The longest common subsequence, beside the table of lengths that it is defined by."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server import subsequence
from server.subsequence import Match

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
    assert subsequence.matches(first, second) == expected
    assert subsequence.length(first, second) == len(expected)


@pytest.mark.parametrize(("first", "second"), [(b"ab", b"xaybz" * 400), (b"xaybz" * 400, b"ab")])
def test_there_is_a_row_for_each_byte_of_the_shorter_string(
    monkeypatch: pytest.MonkeyPatch, first: bytes, second: bytes
) -> None:
    made: list[int] = []
    rows = subsequence._rows

    def counted(shorter: bytes, longer: bytes) -> list[int]:
        made.append(len(table := rows(shorter, longer)))
        return table

    monkeypatch.setattr(subsequence, "_rows", counted)
    assert len(subsequence.matches(first, second)) == subsequence.length(first, second) == 2
    assert made == [3, 3]
