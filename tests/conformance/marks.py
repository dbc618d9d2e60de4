"""Marks: what a script says about the reply of a step, on indented lines below it.

Marks that take the chance out of a reply before it is compared or recorded:

``mask now``            times within a minute of now become ``T`` (13 digits) or ``t`` (10 digits)
``mask idle``           the idle times of XPENDING and of XINFO CONSUMERS become ``#``
``mask /regex/``        what the groups of the expression match becomes ``#``
``within LOW HIGH``     integers of that range become ``#``
``keep /regex/``        only what the expression matches remains, a line each
``unordered 0.9``       the elements of the reply, or of an inner array, are sorted
``save NAME``           the value becomes ``<NAME>``, and ``{NAME}`` stands for it in later lines

Marks that say what the reply must be, each with an optional ``from X.Y`` before it, for servers of
that version or newer (without it the recorded transcript says so):

``is REPLY``            exactly this, in the notation of notation.py
``is2 REPLY`` ``is3``   the same for one protocol
``starts REPLY``        a simple string or an error that begins so
``bytes TEXT``          these very bytes, with the escapes of the transcripts (after ``keep``)
``adds idmp``           the recorded reply of XINFO STREAM, with the six fields of idempotent XADD
``adds nacked-count``   the reply of XINFO STREAM FULL so far, with that field in each group
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .notation import reply_bytes
from .resp import Frame, bulk, encode, integer, parse, unescape

NEAR_NOW_MS = 60_000
NUMBER = re.compile(rb"(?<![\d])(\d{13}|\d{10})(?![\d])")
INTEGER_FRAME = re.compile(rb"(?<=:)(-?\d+)(?=\r\n)")
IDLE = re.compile(
    rb"(?:\*4\r\n\$\d+\r\n\d+-\d+\r\n\$\d+\r\n[^\r]*\r\n:|\$4\r\nidle\r\n:|\$8\r\ninactive\r\n:)"
    rb"(\d{1,4})(?=\r\n)"
)
IDMP_FIELDS: tuple[tuple[bytes, int], ...] = (
    (b"idmp-duration", 100),
    (b"idmp-maxsize", 100),
    (b"pids-tracked", 0),
    (b"iids-tracked", 0),
    (b"iids-added", 0),
    (b"iids-duplicates", 0),
)

Version = tuple[int, ...]


@dataclass(frozen=True)
class Mark:
    """One indented line: its word, the rest of it, and the version it begins with."""

    word: str
    argument: str = ""
    since: Version | None = None


@dataclass(frozen=True)
class Expectation:
    """What a reply must be: these bytes, or bytes that begin with these, or just no error."""

    data: bytes
    how: str = "exact"

    def met_by(self, reply: bytes) -> bool:
        """Whether the reply is what is expected."""
        if self.how == "exact":
            return reply == self.data
        if self.how == "prefix":
            return reply.startswith(self.data)
        return not reply.startswith(b"-")


def parse_version(text: str) -> Version:
    """``"8.10.0"`` as a tuple that compares in the right order."""
    return tuple(int(part) for part in text.split("."))


def parse_mark(line: str) -> Mark:
    """The mark on an indented line of a script."""
    since: Version | None = None
    if line.startswith("from "):
        _, version, line = line.split(" ", 2)
        since = parse_version(version)
    word, _, argument = line.partition(" ")
    if word not in NORMALISERS and word not in EXPECTATIONS and word != "save":
        raise ValueError(f"unknown mark: {line}")
    return Mark(word, argument, since)


def normalise(reply: bytes, marks: Iterable[Mark], saved: dict[str, bytes]) -> bytes:
    """The reply without what differs from run to run; saved values go to ``saved``."""
    for mark in marks:
        if mark.word == "save":
            reply = _save(reply, mark.argument, saved)
        elif mark.word in NORMALISERS:
            reply = NORMALISERS[mark.word](reply, mark.argument)
    return reply


def expectation(
    marks: Iterable[Mark], protocol: int, version: Version, recorded: bytes | None
) -> Expectation:
    """What the marks and the transcript demand; the last mark that applies wins."""
    wanted = Expectation(b"", "no error") if recorded is None else Expectation(recorded)
    for mark in marks:
        applies = mark.since is None or version >= mark.since
        if not applies or mark.word not in EXPECTATIONS:
            continue
        if mark.word in ("is2", "is3") and mark.word != f"is{protocol}":
            continue
        wanted = EXPECTATIONS[mark.word](mark.argument, protocol, wanted.data)
    return wanted


def _save(reply: bytes, name: str, saved: dict[str, bytes]) -> bytes:
    """Keep the text of a scalar reply under a name, and show the name in its place."""
    text = parse(reply)[0].text or b""
    saved[name] = text
    return reply.replace(text, b"<%b>" % name.encode("ascii"))


def _mask(reply: bytes, argument: str) -> bytes:
    """Hide the times of now, the idle times, or what an expression's groups match."""
    if argument == "now":
        return NUMBER.sub(_hide_if_now, reply)
    expression = IDLE if argument == "idle" else _expression(argument)
    return expression.sub(_hide_groups, reply)


def _hide_if_now(found: re.Match[bytes]) -> bytes:
    """Letters in place of a time that is near now; other numbers as they are."""
    digits, now_ms = found.group(1), time.time() * 1000
    if len(digits) == 13 and abs(int(digits) - now_ms) < NEAR_NOW_MS:
        return b"T" * 13
    if len(digits) == 10 and abs(int(digits) * 1000 - now_ms) < NEAR_NOW_MS:
        return b"t" * 10
    return digits


def _hide_groups(found: re.Match[bytes]) -> bytes:
    """The match with ``#`` in place of each group."""
    text, offset = found.group(0), found.start()
    for number in range(len(found.groups()), 0, -1):
        start, end = found.span(number)
        if start >= 0:
            text = text[: start - offset] + b"#" + text[end - offset :]
    return text


def _expression(argument: str) -> re.Pattern[bytes]:
    """The regular expression between two slashes."""
    return re.compile(argument.strip("/").encode("ascii"))


def _within(reply: bytes, argument: str) -> bytes:
    """Hide the integers of a range."""
    low, high = map(int, argument.split())
    return INTEGER_FRAME.sub(
        lambda m: b"#" if low <= int(m.group(1)) <= high else m.group(1), reply
    )


def _keep(reply: bytes, argument: str) -> bytes:
    """Only the parts that an expression matches."""
    return b"\n".join(found.group(0) for found in _expression(argument).finditer(reply))


def _unordered(reply: bytes, argument: str) -> bytes:
    """The reply with its elements sorted, or those of the array at a path of indexes."""
    frame, _ = parse(reply)
    inner = frame
    for index in argument.split(".") if argument else []:
        if int(index) >= len(inner.items):
            return reply
        inner = inner.items[int(index)]
    step = 2 if inner.kind == b"%" else 1
    groups = [inner.items[i : i + step] for i in range(0, len(inner.items), step)]
    inner.items = [item for group in sorted(groups, key=_group_key) for item in group]
    return encode(frame)


def _group_key(group: list[Frame]) -> tuple[bytes, bytes]:
    """What an element, or a pair of a map, is sorted by: its text if it has one."""
    return group[0].text or b"", encode(group[0])


def _exactly(argument: str, protocol: int, recorded: bytes) -> Expectation:
    """A reply written by hand."""
    del recorded
    return Expectation(reply_bytes(argument, protocol))


def _prefix(argument: str, protocol: int, recorded: bytes) -> Expectation:
    """The beginning of a reply written by hand."""
    del protocol, recorded
    return Expectation(argument.encode("utf-8"), "prefix")


def _text(argument: str, protocol: int, recorded: bytes) -> Expectation:
    """Bytes written with escapes."""
    del protocol, recorded
    return Expectation(unescape(argument))


def _adds(argument: str, protocol: int, recorded: bytes) -> Expectation:
    """The recorded reply with the fields that newer servers have."""
    del protocol
    frame, _ = parse(recorded)
    if argument == "idmp":
        _insert_idmp(frame)
    else:
        groups = frame.items[_index(frame, b"groups") + 1]
        for group in groups.items:
            group.items += [bulk(b"nacked-count"), integer(0)]
    return Expectation(encode(frame))


def _insert_idmp(frame: Frame) -> None:
    """Put the six fields of a stream that never saw an idempotent XADD into its description."""
    place = _index(frame, b"recorded-first-entry-id") + 2
    for name, value in reversed(IDMP_FIELDS):
        frame.items[place:place] = [bulk(name), integer(value)]


def _index(frame: Frame, name: bytes) -> int:
    """Where a field's name stands in a map or in a flat array."""
    return next(i for i, item in enumerate(frame.items) if i % 2 == 0 and item.text == name)


NORMALISERS: dict[str, Callable[[bytes, str], bytes]] = {
    "mask": _mask,
    "within": _within,
    "keep": _keep,
    "unordered": _unordered,
}
EXPECTATIONS: dict[str, Callable[[str, int, bytes], Expectation]] = {
    "is": _exactly,
    "is2": _exactly,
    "is3": _exactly,
    "starts": _prefix,
    "bytes": _text,
    "adds": _adds,
}
