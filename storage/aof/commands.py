"""Commands as the append-only file holds them: RESP arrays of bulk strings.

Frequent commands are built from prepared pieces: an entry's RESP form is sliced rather than decoded
and encoded again, and the entries of one delivery that have the same delivery count share a claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from storage.engine.effects import Delivered
from storage.engine.entries import ID_AT, items_of
from storage.engine.ids import split, text

MULTI: Final = b"*1\r\n$5\r\nMULTI\r\n"
EXEC: Final = b"*1\r\n$4\r\nEXEC\r\n"
SELECT: Final = b"*2\r\n$6\r\nSELECT\r\n"
"""How a SELECT begins."""

_REWRITTEN: Final = b"$6\r\nJUSTID\r\n$5\r\nFORCE\r\n"
_FORCED: Final = b"$5\r\nFORCE\r\n$6\r\nJUSTID\r\n"
_LASTID: Final = b"$6\r\nLASTID\r\n"

CLAIMED_AT_ONCE: Final = 1000
"""How many entries one XCLAIM names at most: readers take longer commands the long way."""

_THOUSAND: Final = 1000
_REST: Final = [b"%03d-" % number for number in range(_THOUSAND)]
_SEQUENCE: Final = [b"%d\r\n" % number for number in range(_THOUSAND)]
_LENGTH: Final = [b"$%d" % number for number in range(_THOUSAND)]


def command(*words: bytes) -> bytes:
    """Encode one command."""
    parts = [b"*%d" % len(words)]
    for word in words:
        parts.append(_length(word))
        parts.append(word)
    parts.append(b"")
    return b"\r\n".join(parts)


def bulk(word: bytes) -> bytes:
    """Encode one word of a command, as a bulk string."""
    return b"%b\r\n%b\r\n" % (_length(word), word)


def _length(word: bytes) -> bytes:
    size = len(word)
    return _LENGTH[size] if size < _THOUSAND else b"$%d" % size


def bulk_id(entry_id: int) -> bytes:
    """A stream ID as a bulk string."""
    return bulk(text(entry_id))


def bulk_ids(entry_ids: Sequence[int]) -> bytes:
    """Stream IDs as bulk strings, one after the other.

    Those of one millisecond with equally long sequence numbers begin with the same bytes, and those
    of one second with nearly the same: most that are delivered together are such IDs.
    """
    parts: list[bytes] = []
    before, second, digits, head, start = -1, -1, 0, b"", b""
    base = ms = seq = 0
    for entry_id in entry_ids:
        if base:
            seq = entry_id - base
            if not 0 <= seq < _THOUSAND:
                base = 0
        if not base:
            ms, seq = split(entry_id)
            if seq >= _THOUSAND or ms < _THOUSAND:
                parts.append(bulk_id(entry_id))
                continue
            if ms == before:  # A third one is likely: to subtract takes a third of the time.
                base = entry_id - seq
        end = _SEQUENCE[seq]
        if ms != before or len(end) != digits:
            if ms // _THOUSAND != second or len(end) != digits:
                second, digits = ms // _THOUSAND, len(end)
                text = b"%d" % second
                head = b"$%d\r\n%b" % (len(text) + len(b"000-") + digits - len(b"\r\n"), text)
            before, start = ms, head + _REST[ms - second * _THOUSAND]
        parts.append(start)
        parts.append(end)
    return b"".join(parts)


def number(value: int) -> bytes:
    """A number as a word."""
    return b"%d" % value


def add_entry(key: bytes, payload: bytes, maxlen: int | None = None) -> bytes:
    """The XADD of the entry with this RESP form, trimming to ``maxlen`` entries if that is given.

    The payload is ``*2 $id *n $field $value ...``: the ID and what follows its second header are
    words of the command as they are.
    """
    star, fields, items = items_of(payload)
    # Places between which bytes are cut out are no native integers: see protocol.additions.
    text, words = payload[ID_AT:star], payload[fields:]
    if maxlen is None:
        return b"*%d\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n%b%b" % (items + 3, len(key), key, text, words)
    trim = b"$6\r\nMAXLEN\r\n$1\r\n=\r\n" + bulk(number(maxlen))
    head = b"*%d\r\n$4\r\nXADD\r\n%b" % (items + 6, bulk(key))
    return b"%b%b%b%b" % (head, trim, text, words)


def add_entries(key: bytes, payloads: Sequence[bytes]) -> bytes:
    """The XADDs of many entries of one stream."""
    head = b"\r\n$4\r\nXADD\r\n" + bulk(key)
    heads: dict[bytes, bytes] = {}
    parts: list[bytes] = []
    for payload in payloads:
        star = payload.index(b"*", 4)
        end = payload.index(b"\r", star)
        count = payload[star + 1 : end]
        start = heads.get(count)
        if start is None:
            start = heads[count] = b"*%d%b" % (int(count) + 3, head)
        parts.append(start)
        parts.append(payload[4:star])
        parts.append(payload[end + 2 :])
    return b"".join(parts)


def _claim_head(words: int, names: bytes) -> bytes:
    return b"*%d\r\n$6\r\nXCLAIM\r\n%b$1\r\n0\r\n" % (words, names)


def _names(key: bytes, group: bytes, consumer: bytes) -> bytes:
    return b"".join((bulk(key), bulk(group), bulk(consumer)))


def _claim_state(time: int, count: int) -> bytes:
    times, counts = bulk(number(time)), bulk(number(count))
    return b"$4\r\nTIME\r\n%b$10\r\nRETRYCOUNT\r\n%b" % (times, counts)


class Claim:
    """An XCLAIM that makes entries pending, as a delivery or a claim leaves them; others can be
    added to it."""

    __slots__ = ("_names", "_state", "count", "same")

    def __init__(self, effect: Delivered, count: int) -> None:
        self._names = _names(effect.key, effect.group, effect.consumer)
        self.same = (effect.consumer, effect.time, count)
        """What entries must have in common to share a claim, beside the group."""
        self._state = _claim_state(effect.time, count) + _FORCED + _LASTID
        self.count = 0
        """How many entries it names."""

    def head(self) -> bytes:
        """The beginning, before the IDs."""
        return _claim_head(13 + self.count, self._names)

    def end(self, last_id: bytes) -> bytes:
        """The end, behind them; it names the group's last-delivered-id, a bulk string."""
        return self._state + last_id


def counted_alike(counts: Sequence[int], at: int) -> int:
    """Where the entries end that have the same delivery count as the one at this place, and fit
    into a claim with it."""
    end = min(len(counts), at + CLAIMED_AT_ONCE)
    count = counts[at]
    if counts[at:end].count(count) == end - at:
        return end
    while counts[at] == count:
        at += 1
    return at


def deliver(effect: Delivered, last_id: int | None) -> list[bytes]:
    """The XCLAIMs that make the entries pending, as a delivery or a claim leaves them.

    Each names ``last_id`` as the group's last-delivered-id; if that is ``None``, its last entry.
    """
    claims: list[bytes] = []
    at = 0
    while at < len(effect.ids):
        end = counted_alike(effect.counts, at)
        claim = Claim(effect, effect.counts[at])
        claim.count = end - at
        named = bulk_ids(effect.ids[at:end])
        last = effect.ids[end - 1] if last_id is None else last_id
        claims.append(b"".join((claim.head(), named, claim.end(bulk_id(last)))))
        at = end
    return claims


def claim(
    key: bytes, group: bytes, consumer: bytes, entry_ids: Sequence[int], time: int, count: int
) -> bytes:
    """Encode an XCLAIM that makes the entries pending with this delivery time and count."""
    head = _claim_head(11 + len(entry_ids), _names(key, group, consumer))
    return b"".join((head, bulk_ids(entry_ids), _claim_state(time, count), _FORCED))


def deliver_again(
    key: bytes, group: bytes, consumer: bytes, entry_ids: Sequence[int], time: int
) -> bytes:
    """Encode an XCLAIM that counts one more delivery of each of the entries."""
    head = _claim_head(7 + len(entry_ids), _names(key, group, consumer))
    return b"".join((head, bulk_ids(entry_ids), b"$4\r\nTIME\r\n", bulk(number(time))))


def hold(
    key: bytes,
    group: bytes,
    consumer: bytes,
    entries: Sequence[tuple[int, int, int]],
) -> bytes:
    """The XCLAIMs that make entries pending as they stand: ID, delivery time, delivery count."""
    head = _claim_head(12, _names(key, group, consumer))
    parts: list[bytes] = []
    known = (-1, -1)
    state = b""
    for entry_id, time, count in entries:
        if (time, count) != known:
            known = (time, count)
            state = _claim_state(time, count) + _REWRITTEN
        parts.append(head)
        parts.append(bulk_id(entry_id))
        parts.append(state)
    return b"".join(parts)
