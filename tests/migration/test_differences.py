"""Comparing streams page by page finds what comparing them as a whole finds."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from penstock.migration.copy import with_placeholders
from penstock.migration.model import (
    PLACEHOLDER,
    Digest,
    Entry,
    EntryChange,
    EntryFault,
    Pending,
    PendingChange,
    compare_entries,
    compare_pending,
    noted,
)

CONTENTS = st.dictionaries(st.integers(1, 12), st.sampled_from(["a", "b"]), max_size=12)


def pages(contents: dict[int, str], cuts: list[int]) -> Iterator[list[Entry]]:
    """The contents as entries in order, in pages of the sizes given."""
    entries: list[Entry] = [
        [b"0-%d" % number, [b"f", contents[number].encode()]] for number in sorted(contents)
    ]
    for size in cuts:
        if entries:
            yield entries[:size]
        entries = entries[size:]
    if entries:
        yield entries


SIZES = st.lists(st.integers(1, 5), max_size=6)


@given(CONTENTS, CONTENTS, SIZES, SIZES)
def test_entries_are_compared_whatever_the_pages(
    wanted: dict[int, str], found: dict[int, str], cuts: list[int], others: list[int]
) -> None:
    results = list(compare_entries(pages(wanted, cuts), pages(found, others)))
    expected = dict.fromkeys(wanted.keys() - found.keys(), EntryFault.MISSING)
    expected |= dict.fromkeys(found.keys() - wanted.keys(), EntryFault.EXTRA)
    shared = wanted.keys() & found.keys()
    expected |= {
        number: EntryFault.DIFFERENT for number in shared if wanted[number] != found[number]
    }
    changes = [result for result in results if isinstance(result, EntryChange)]
    assert [(change.id, change.fault) for change in changes] == sorted(expected.items())
    equal = sum(result for result in results if isinstance(result, int))
    assert equal == sum(wanted[number] == found[number] for number in shared)


ROWS = st.dictionaries(
    st.integers(1, 12), st.tuples(st.sampled_from([b"ann", None]), st.integers(0, 1))
)


def rows(contents: dict[int, tuple[bytes | None, int]]) -> list[Pending]:
    return [Pending(n, owner, 7, count) for n, (owner, count) in sorted(contents.items())]


@given(ROWS, ROWS)
def test_pending_entries_are_compared(
    wanted: dict[int, tuple[bytes | None, int]], found: dict[int, tuple[bytes | None, int]]
) -> None:
    here = {row.id: row for row in rows(wanted)}
    there = {row.id: row for row in rows(found)}
    assert list(compare_pending(rows(wanted), rows(found))) == [
        PendingChange(number, here.get(number), there.get(number))
        for number in sorted(here.keys() | there.keys())
        if here.get(number) != there.get(number)
    ]


@given(CONTENTS, SIZES, st.sets(st.integers(1, 12)))
def test_placeholders_stand_where_entries_lack(
    contents: dict[int, str], cuts: list[int], pending: set[int]
) -> None:
    batches = list(with_placeholders(pages(contents, cuts), iter(sorted(pending))))
    assert all(batches)
    assert [entry for batch in batches for entry in batch] == [
        [b"0-%d" % number, [b"f", contents[number].encode()] if number in contents else PLACEHOLDER]
        for number in sorted(contents.keys() | pending)
    ]


@given(ROWS, ROWS)
def test_digests_are_equal_for_equal_rows_only(
    some: dict[int, tuple[bytes | None, int]], others: dict[int, tuple[bytes | None, int]]
) -> None:
    one, other = Digest(), Digest()
    assert list(noted(rows(some), one)) == rows(some)
    list(noted(rows(others), other))
    assert (one.value() == other.value()) == (some == others)
    assert (one.count, other.count) == (len(some), len(others))
