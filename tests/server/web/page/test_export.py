"""Entries as lines of JSON: the same text however large they are, in pieces."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.runtime.clockwork import Slice
from server.web.metrics.text import readable
from server.web.page import export
from server.web.page.export import lines_of
from server.web.page.walking import PIECE
from storage.engine.limits import StreamLimits
from storage.engine.log import EntryLog
from tests.server.web.page.test_walking import MEGABYTE, Hurried

ESCAPED: Final = 6
"""How many characters JSON has for one at most."""


async def every(payload: bytes, pace: Slice) -> bool:
    """A search that all entries fit."""
    return True


def log_of(*entries: list[bytes]) -> EntryLog:
    log = EntryLog(StreamLimits())
    for at, items in enumerate(entries):
        log.append(at + 1, items)
    return log


def pieces(log: EntryLog, pace: Hurried) -> list[str]:
    """What is sent of all entries."""

    async def collected() -> list[str]:
        return [text async for text in lines_of(log, every, pace.slice)]

    return asyncio.run(collected())


def line(number: int, items: list[bytes]) -> str:
    """An entry as it is to be written."""
    texts = list(map(readable, items))
    pairs = [list(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
    return json.dumps({"id": f"0-{number}", "fields": pairs}, ensure_ascii=False) + "\n"


def test_small_entries_leave_together() -> None:
    entries = [[b"n", b"%d" % at] for at in range(1000)]
    assert pieces(log_of(*entries), Hurried()) == [
        "".join(line(at + 1, items) for at, items in enumerate(entries))
    ]
    assert pieces(log_of(), Hurried()) == []


@pytest.mark.parametrize(
    "value",
    [
        *(b"x", "é".encode(), "a€".encode(), b"\xff", b"\\\xc3", b'"\n\x00'),
        "\ufffd!".encode(),
    ],
)
def test_a_large_value_leaves_in_pieces_that_are_the_same_text(value: bytes) -> None:
    items = [b"name", value * (MEGABYTE // len(value)), b"m\xff", b"v", b"n", b""]
    pace = Hurried()
    sent = pieces(log_of([b"a", b"b"], items, [b"c", b"d"]), pace)
    assert "".join(sent) == line(1, [b"a", b"b"]) + line(2, items) + line(3, [b"c", b"d"])
    assert max(map(len, sent)) <= 2 * ESCAPED * PIECE
    assert pace.rests >= MEGABYTE // PIECE


def test_an_entry_of_many_fields_leaves_in_pieces() -> None:
    items = [b"name", b"value"] * (MEGABYTE // 20)
    pace = Hurried()
    sent = pieces(log_of(items), pace)
    assert "".join(sent) == line(1, items)
    assert max(map(len, sent)) <= 2 * PIECE
    assert pace.rests >= len(items)


def test_a_text_that_is_cut_within_a_character_is_escaped() -> None:
    items = [b"f", "é".encode() * PIECE + b"\xc3"]
    assert "".join(pieces(log_of(items), Hurried())) == line(1, items)


@given(st.lists(st.tuples(st.binary(max_size=12), st.binary(max_size=12)), min_size=1, max_size=3))
def test_any_entry_is_the_same_text_in_pieces(pairs: list[tuple[bytes, bytes]]) -> None:
    items = [each for pair in pairs for each in pair]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export, "PIECE", 3)
        assert "".join(pieces(log_of(items), Hurried())) == line(1, items)
