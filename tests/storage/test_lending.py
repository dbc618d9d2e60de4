"""Strings that are lent, and what becomes of edits meanwhile."""

from __future__ import annotations

from storage.keyspace.databases import Keyspace
from storage.types.lending import Lending


def test_a_string_is_lent_as_long_as_one_of_its_loans_is_kept() -> None:
    lending, buffer = Lending(), bytearray(b"abc")
    assert not lending.is_lent(buffer)
    first, second = lending.lend(buffer), lending.lend(buffer)
    assert (first.buffer is buffer, second.buffer is buffer) == (True, True)
    assert not lending.is_lent(bytearray(b"abc"))
    del first
    assert lending.is_lent(buffer)
    del second
    assert not lending.is_lent(buffer)


def test_what_is_lent_is_not_edited() -> None:
    keyspace = Keyspace(1)
    database = keyspace.databases[0]
    database.overwrite(b"k", 0, b"abc", "setrange")
    lent = database.buffer(b"k")
    assert lent is not None
    loan = keyspace.lending.lend(lent)
    database.overwrite(b"k", 1, b"XYZ", "setrange")
    assert (loan.buffer, database.string(b"k")) == (b"abc", b"aXYZ")
