"""RESP frames as trees: just enough to find where a reply ends, and to build one."""

from __future__ import annotations

from dataclasses import dataclass, field

AGGREGATES = b"*%~>"
SIZED_TEXTS = b"$=!"
PRINTABLE = range(0x20, 0x7F)
NAMED_ESCAPES = {0x0D: "\\r", 0x0A: "\\n", 0x09: "\\t", 0x5C: "\\\\"}


class Incomplete(Exception):
    """The buffer ends before the frame does."""


@dataclass
class Frame:
    """One reply: its type byte, its text when it has one, its elements when it has some.

    A map holds its keys and values in turn in ``items``; a null bulk or array has neither.
    """

    kind: bytes
    text: bytes | None = None
    items: list[Frame] = field(default_factory=list)


def parse(buffer: bytes, start: int = 0) -> tuple[Frame, int]:
    """The frame that begins at ``start``, and the position after it."""
    end = buffer.find(b"\r\n", start)
    if end < 0:
        raise Incomplete
    kind, header, after = buffer[start : start + 1], buffer[start + 1 : end], end + 2
    if kind in SIZED_TEXTS:
        return _parse_sized(buffer, kind, int(header), after)
    if kind not in AGGREGATES:
        return Frame(kind, header), after
    if int(header) < 0:
        return Frame(kind, header), after
    frame = Frame(kind)
    for _ in range(int(header) * (2 if kind == b"%" else 1)):
        item, after = parse(buffer, after)
        frame.items.append(item)
    return frame, after


def _parse_sized(buffer: bytes, kind: bytes, size: int, start: int) -> tuple[Frame, int]:
    """A frame whose text is preceded by its length."""
    if size < 0:
        return Frame(kind), start
    if len(buffer) < start + size + 2:
        raise Incomplete
    return Frame(kind, buffer[start : start + size]), start + size + 2


def encode(frame: Frame) -> bytes:
    """The bytes of a frame: the inverse of ``parse``."""
    if frame.kind in SIZED_TEXTS:
        if frame.text is None:
            return frame.kind + b"-1\r\n"
        return b"%b%d\r\n%b\r\n" % (frame.kind, len(frame.text), frame.text)
    if frame.text is not None or frame.kind not in AGGREGATES:
        return frame.kind + (frame.text or b"") + b"\r\n"
    count = len(frame.items) // (2 if frame.kind == b"%" else 1)
    return b"%b%d\r\n" % (frame.kind, count) + b"".join(map(encode, frame.items))


def bulk(text: bytes) -> Frame:
    """A bulk string."""
    return Frame(b"$", text)


def integer(number: int) -> Frame:
    """An integer."""
    return Frame(b":", b"%d" % number)


def escape(data: bytes) -> str:
    """Bytes as one readable line of ASCII."""
    return "".join(
        NAMED_ESCAPES.get(byte) or (chr(byte) if byte in PRINTABLE else f"\\x{byte:02x}")
        for byte in data
    )


def unescape(text: str) -> bytes:
    """The bytes that ``escape`` was given."""
    return text.encode("ascii").decode("unicode_escape").encode("latin-1")
