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
_ABOVE: Final = [10 ** len(b"%d" % number) for number in range(_THOUSAND)]
"""The lowest number that has more digits than this one."""
_HEADS: Final = [b"$%d\r\n" % size for size in range(_THOUSAND)]
"""What words of so many bytes begin with, as bulk strings."""


def command(*words: bytes) -> bytes:
    """Encode one command."""
    parts = [b"*%d\r\n" % len(words)]
    parts += [bulk(word) for word in words]
    return b"".join(parts)


def bulk(word: bytes) -> bytes:
    """Encode one word of a command, as a bulk string."""
    size = len(word)
    if size < _THOUSAND:
        return b"%b%b\r\n" % (_HEADS[size], word)
    return b"$%d\r\n%b\r\n" % (size, word)


def bulk_id(entry_id: int) -> bytes:
    """A stream ID as a bulk string."""
    return bulk(text(entry_id))


def bulks(words: Sequence[bytes]) -> bytes:
    """Words of a command as bulk strings, one after the other. Those that follow each other and are
    equally long, as most IDs are, share what stands between them."""
    listed = list(words)
    parts: list[bytes] = []
    at, count = 0, len(listed)
    while at < count:
        start, size = at, len(listed[at])
        while at < count and len(listed[at]) == size:
            at += 1
        first = bulk(listed[start])
        parts.append(first)
        if at - start > 1:
            head = first[: len(first) - size - len(b"\r\n")]
            parts += (head, (b"\r\n" + head).join(listed[start + 1 : at]), b"\r\n")
    return b"".join(parts)


def bulk_ids(entry_ids: Sequence[int], ascending: bool = False) -> bytes:
    """Stream IDs as bulk strings, one after the other.

    Those of one second nearly begin with the same bytes. Where it is known that they ascend, and
    two are one apart, more such are likely: these have all but their sequence numbers in common.
    """
    listed = list(entry_ids)
    parts: list[bytes] = []
    before, after, second, digits, text, head = -1, -1, -1, 0, b"", b""
    at, count = 0, len(listed)
    while at < count:
        ms, seq = split(listed[at])
        if seq >= _THOUSAND or ms < _THOUSAND:
            parts.append(bulk_id(listed[at]))
            at += 1
            continue
        size = 1
        if ascending and seq == after and ms == before:
            size = _consecutive(listed, at, min(count - at, _ABOVE[seq] - seq))
        ends = len(_SEQUENCE[seq])
        if ms != before or ends != digits:
            if ms // _THOUSAND != second or ends != digits:
                second, digits = ms // _THOUSAND, ends
                text = b"%d" % second
                text = b"$%d\r\n%b" % (len(text) + len(b"000-") + ends - len(b"\r\n"), text)
            before, head = ms, text + _REST[ms - second * _THOUSAND]
        parts.append(head)
        parts.append(_SEQUENCE[seq] if size == 1 else head.join(_SEQUENCE[seq : seq + size]))
        at += size
        after = seq + size
    return b"".join(parts)


def _consecutive(entry_ids: list[int], at: int, most: int) -> int:
    """Return how many ascending IDs from this place on follow each other: up to ``most``, and at
    least half as many as there are."""
    first, size = entry_ids[at], most
    while size > 1 and entry_ids[at + size - 1] - first != size - 1:
        size //= 2
    return size


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
    return b"%b%b%b" % (bulk(key), bulk(group), bulk(consumer))


def _claim_state(time: int, count: int) -> bytes:
    times, counts = bulk(number(time)), bulk(number(count))
    return b"$4\r\nTIME\r\n%b$10\r\nRETRYCOUNT\r\n%b" % (times, counts)


class ClaimCommand:
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
        claim = ClaimCommand(effect, effect.counts[at])
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
