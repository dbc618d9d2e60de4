"""Entries as lines of JSON, for a file: each leaves as it comes, and a large one in pieces."""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from starlette.responses import Response, StreamingResponse

from server.runtime.clockwork import Slice
from server.web.html.document import secured
from server.web.metrics.text import UNUSUAL, escaped, readable
from server.web.page.page_request import PageRequest
from server.web.page.preview import items_of
from server.web.page.stream_screen import EntrySearch
from server.web.page.walking import PIECE, entries
from server.web.survey import STEP_NS
from storage.engine import ids
from storage.engine.entries import decode_entry
from storage.engine.log import EntryLog

_UTF_8: Final = codecs.getincrementaldecoder("utf-8")


def export_response(request: PageRequest) -> Response:
    """All entries from the first to the one that is the last now, those that fit a search, as JSON
    lines; read in steps, as quickly as the browser takes them."""
    _, key, stream = request.stream()
    request.require(b"XRANGE", key, b"-", b"+")
    headers = {"Content-Disposition": 'attachment; filename="entries.jsonl"'}
    lines = lines_of(stream.log, EntrySearch(request).fits, Slice(STEP_NS))
    return secured(StreamingResponse(lines, media_type="application/jsonl", headers=headers))


async def lines_of(
    log: EntryLog, fits: Callable[[bytes, Slice], Awaitable[bool]], pace: Slice
) -> AsyncIterator[str]:
    """Yield the lines of what fits in pieces of some :data:`PIECE` bytes."""
    gathered: list[str] = []
    size = 0
    async for payload in entries(log, ids.MIN, log.last, pace):
        if not await fits(payload, pace):
            continue
        async for text in _pieces_of(payload, pace):
            gathered.append(text)
            size += len(text)
            if size >= PIECE:
                yield "".join(gathered)
                gathered, size = [], 0
    if gathered:
        yield "".join(gathered)


async def _pieces_of(payload: bytes, pace: Slice) -> AsyncIterator[str]:
    """Yield an entry as a line: its ID, and its fields in turn, as the same field may come twice;
    what is no UTF-8 has a mark in front and is escaped."""
    if len(payload) <= PIECE:
        entry_id, items = decode_entry(payload)
        texts = [readable(each) for each in items]
        pairs = [list(pair) for pair in zip(texts[::2], texts[1::2], strict=True)]
        yield json.dumps({"id": entry_id.decode(), "fields": pairs}, ensure_ascii=False) + "\n"
        return
    separator = '", "fields": [["'
    yield '{"id": "'
    places = items_of(payload)
    start, length = next(places)
    yield payload[start : start + length].decode()
    for at, (start, length) in enumerate(places):
        yield separator
        async for text in _escaped(payload, start, start + length, pace):
            yield text
        separator = '"], ["' if at % 2 else '", "'
        await pace.rest()
    yield '"]]}\n'


async def _escaped(payload: bytes, start: int, end: int, pace: Slice) -> AsyncIterator[str]:
    """Yield a name or a value as it stands between quotes."""
    is_text = not payload.startswith(UNUSUAL.encode(), start, end)
    decoder = _UTF_8()
    for at in range(start, end, PIECE):
        if not is_text:
            break
        try:
            decoder.decode(payload[at : min(at + PIECE, end)], at + PIECE >= end)
        except UnicodeDecodeError:
            is_text = False
        await pace.rest()
    if not is_text:
        yield _quoted(UNUSUAL)
    decoder.reset()
    for at in range(start, end, PIECE):
        piece = payload[at : min(at + PIECE, end)]
        yield _quoted(decoder.decode(piece) if is_text else escaped(piece))
        await pace.rest()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
