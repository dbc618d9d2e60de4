"""The manifest of an append-only file: which files it consists of, and in which order.

A line names a file, gives it a number and says what it is: ``file NAME seq NUMBER type b`` for the
base, ``i`` for an increment, ``h`` for history, which is what a rewrite has replaced and is about
to be deleted. A last line, which is a comment for others, has the checksum of those before it
(:mod:`storage.aof.checksum_lines`). The functions here convert text to a :class:`Manifest` and
back; the files themselves are handled by :mod:`storage.aof.folder`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from storage.aof.checksum_lines import NOTHING, may_be_line
from storage.aof.framing import printable

_MAX_NUMBER: Final = 2**63 - 1
_KINDS: Final = ("b", "i", "h")

_WORD: Final = re.compile(
    rb'"(?P<double>(?:[^"\\]|\\.)*)"(?=[ \t]|\Z)'
    rb"|'(?P<single>(?:[^'\\]|\\.)*)'(?=[ \t]|\Z)"
    rb"|(?P<plain>[^ \t\"']+)(?=[ \t]|\Z)",
    re.DOTALL,
)
_BLANKS: Final = re.compile(rb"[ \t]*")
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}
_NUMBER: Final = re.compile(rb"[1-9][0-9]{0,18}\Z")


class ManifestError(Exception):
    """A manifest cannot be used; the text says in which line, why, and what is allowed."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(printable(f"line {line}: {reason}" if line else reason))
        self.line = line
        """The number of the line, from 1; 0 if it is about the whole."""


class NamedFile(NamedTuple):
    """A file of the append-only file, in the folder of the manifest."""

    name: str
    number: int


class Manifest(NamedTuple):
    """The files that together hold the data: first the base, then the increments in their order.

    Each of the methods returns another manifest.
    """

    base: NamedFile | None = None
    increments: tuple[NamedFile, ...] = ()
    history: tuple[NamedFile, ...] = ()

    @property
    def files(self) -> tuple[NamedFile, ...]:
        """Return what is to be loaded, in this order."""
        return self.increments if self.base is None else (self.base, *self.increments)

    @property
    def next_base(self) -> int:
        """The least number that a new base may have."""
        return 1 + _highest(*self.history, self.base)

    @property
    def next_increment(self) -> int:
        """The least number that a new increment may have."""
        return 1 + _highest(*self.history, *self.increments)

    def with_increment(self, file: NamedFile) -> Manifest:
        """With one more increment, into which everything is written from now on."""
        return self._replace(increments=(*self.increments, file))

    def with_base(self, base: NamedFile, replaced: int) -> Manifest:
        """With a new base, which holds all of the old one and of the first ``replaced`` increments.

        Those become history.
        """
        old = self.increments[:replaced]
        if self.base is not None:
            old = (self.base, *old)
        return Manifest(base, self.increments[replaced:], (*reversed(old), *self.history))

    def without_history(self) -> Manifest:
        """Without the files that have been replaced, once they are gone."""
        return self._replace(history=())


def _highest(*files: NamedFile | None) -> int:
    return max((file.number for file in files if file is not None), default=0)


# --- writing ---------------------------------------------------------------------------------


def to_bytes(manifest: Manifest) -> bytes:
    """The text of a manifest, as Redis 7 and later read and write it."""
    groups = (
        ("b", () if manifest.base is None else (manifest.base,)),
        ("h", manifest.history),
        ("i", manifest.increments),
    )
    lines = b"".join(_line(kind, file) for kind, files in groups for file in files)
    return lines + NOTHING.followed_by(lines).line(b"\n")


def _line(kind: str, file: NamedFile) -> bytes:
    return b"file %s seq %d type %s\n" % (_quoted(file.name), file.number, kind.encode())


def _quoted(name: str) -> bytes:
    data = os.fsencode(name)
    # Redis writes a name with ' in it as it is, and then cannot read it.
    if re.fullmatch(rb"[!#-&(-\[\]-~]+", data):
        return data
    return b'"%s"' % b"".join(map(_quoted_byte, data))


def _quoted_byte(byte: int) -> bytes:
    if byte in b'"\\':
        return b"\\%c" % byte
    return b"%c" % byte if 32 <= byte < 127 else b"\\x%02x" % byte


# --- reading ---------------------------------------------------------------------------------


def from_bytes(text: bytes) -> Manifest:
    """The manifest that ``text`` spells; raises :class:`ManifestError`.

    Words are quoted as in redis.conf. Lines that begin with ``#`` are comments; checksums among
    them are compared. Pairs of words that mean nothing here, such as the ``startoffset`` of Redis
    8, are passed over.
    """
    if not text:
        raise ManifestError("the manifest is empty: expected lines 'file NAME seq N type b|i|h'")
    manifest = Manifest()
    names = set[str]()
    for number, line in _lines(text):
        kind, file = _parse_line(line, number)
        if file.name in names:
            raise ManifestError(f"the file '{file.name}' is named a second time", number)
        names.add(file.name)
        manifest = _with_file(manifest, kind, file, number)
    return manifest


def _lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Each line that is no comment, with its number."""
    *lines, rest = text.split(b"\n")
    begin = 0
    for number, line in enumerate(lines, 1):
        if not line.startswith(b"#"):
            yield number, line.rstrip(b" \t\r")
        elif may_be_line(line):
            _compare(text[:begin], line, number)
        begin += len(line) + len(b"\n")
    if rest:
        raise ManifestError("the line has no end: the manifest has been cut off", len(lines) + 1)


def _compare(lines: bytes, checksum: bytes, number: int) -> None:
    if checksum != NOTHING.followed_by(lines).line(b""):
        raise ManifestError("the lines above are not those that this checksum was made of", number)


def _parse_line(line: bytes, number: int) -> tuple[str, NamedFile]:
    words = _words(line, number)
    if not words or len(words) % 2:
        raise ManifestError("expected 'file NAME seq N type b|i|h'", number)
    pairs = {key.lower(): value for key, value in zip(words[::2], words[1::2], strict=True)}
    missing = [key.decode() for key in (b"file", b"seq", b"type") if key not in pairs]
    if missing:
        raise ManifestError(f"'{missing[0]}' is missing: expected file, seq and type", number)
    name = _name(pairs[b"file"], number)
    return _kind(pairs[b"type"], number), NamedFile(name, _number(pairs[b"seq"], number))


def _words(line: bytes, number: int) -> list[bytes]:
    words: list[bytes] = []
    at = _BLANKS.match(line, 0).end()  # type: ignore[union-attr]  # it matches anything
    while at < len(line):
        match = _WORD.match(line, at)
        if match is None:
            raise ManifestError("a quote is not closed, or not followed by a blank", number)
        words.append(_unquoted(match))
        at = _BLANKS.match(line, match.end()).end()  # type: ignore[union-attr]
    return words


def _unquoted(match: re.Match[bytes]) -> bytes:
    double, single, plain = match.group("double", "single", "plain")
    if double is not None:
        return _ESCAPE.sub(_unescaped, double)
    if single is not None:
        return single.replace(b"\\'", b"'")
    return plain


def _unescaped(match: re.Match[bytes]) -> bytes:
    digits, char = match.groups()
    return bytes([int(digits, 16)]) if digits else _ESCAPED.get(char, char)


def _name(word: bytes, number: int) -> str:
    name = os.fsdecode(word)
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ManifestError(f"'{name}' is no name of a file in this folder", number)
    return name


def _number(word: bytes, number: int) -> int:
    if not _NUMBER.match(word) or int(word) > _MAX_NUMBER:
        raise ManifestError(
            f"'{os.fsdecode(word)}' is no seq: allowed are 1 to {_MAX_NUMBER}", number
        )
    return int(word)


def _kind(word: bytes, number: int) -> str:
    kind = os.fsdecode(word)
    if kind not in _KINDS:
        raise ManifestError(
            f"'{kind}' is no type: allowed are b (base), i (increment) and h (history)", number
        )
    return kind


def _with_file(manifest: Manifest, kind: str, file: NamedFile, number: int) -> Manifest:
    if kind == "h":
        return manifest._replace(history=(*manifest.history, file))
    if kind == "b":
        if manifest.base is not None:
            raise ManifestError("a second base: one file at most has type b", number)
        return manifest._replace(base=file)
    last = _highest(*manifest.increments)
    if file.number <= last:
        raise ManifestError(f"seq {file.number} follows {last}: increments have to rise", number)
    return manifest.with_increment(file)
