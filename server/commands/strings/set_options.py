"""The options of commands that set strings: on what condition, until when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from xxhash import xxh3_64_intdigest

from protocol import errors
from protocol.errors import CommandError
from server.commands.strings import errors as string_errors
from server.core.table import Arguments
from server.runtime.arguments import expiry_time, integer
from storage.types.kinds import Value

_UNITS_MS: Final = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
_RELATIVE: Final = frozenset({b"EX", b"PX"})

COMPARISONS: Final = frozenset({b"IFEQ", b"IFNE", b"IFDEQ", b"IFDNE"})
"""Conditions on the string that is at a key."""

EXISTENCE: Final = frozenset({b"NX", b"XX"})
"""Conditions on whether there is a key."""

_DIGEST: Final = re.compile(rb"[0-9a-fA-F]{16}")


def positive_expiry_time(arg: bytes, unit_ms: int, since_ms: int, command: str) -> int:
    """Like :func:`expiry_time`, for commands that refuse zero and negative numbers."""
    if integer(arg) <= 0:
        raise CommandError(errors.invalid_expire_time(command))
    return expiry_time(arg, unit_ms, since_ms, command)


class Lifetime:
    """At most one of EX, PX, EXAT, PXAT, and of the word that stands for no new expiry."""

    __slots__ = ("_amount", "_kind", "_without")

    def __init__(self, without: bytes) -> None:
        self._without = without
        self._kind: bytes | None = None
        self._amount = b""

    def take(self, word: bytes, following: Iterator[bytes]) -> bool:
        """Takes an option with its value; false if ``word`` is none of these."""
        if word != self._without and word not in _UNITS_MS:
            return False
        if self._kind not in (None, word):
            raise CommandError(errors.SYNTAX)
        self._kind = word
        if word != self._without:
            self._amount = option_value(following)
        return True

    @property
    def is_new(self) -> bool:
        """Whether an expiry was given."""
        return self._kind is not None and not self.is_without

    @property
    def is_without(self) -> bool:
        """Whether the word that stands for no new expiry was given."""
        return self._kind == self._without

    def expires_at(self, now_ms: int, command: str) -> int | None:
        """The Unix time in milliseconds that was given, if one was."""
        if self._kind is None or self.is_without:
            return None
        since_ms = now_ms if self._kind in _RELATIVE else 0
        return positive_expiry_time(self._amount, _UNITS_MS[self._kind], since_ms, command)


class SetCondition:
    """At most one of the ``words``, with the string or digest that belongs to it."""

    __slots__ = ("_operand", "_word", "_words")

    def __init__(self, words: frozenset[bytes]) -> None:
        self._words = words
        self._word: bytes | None = None
        self._operand = b""

    def take(self, word: bytes, following: Iterator[bytes]) -> bool:
        """Takes an option with its value; false if ``word`` is none of these."""
        if word not in self._words:
            return False
        repeated = word == self._word and word not in COMPARISONS
        if self._word is not None and not repeated:
            raise CommandError(errors.SYNTAX)
        self._word = word
        if word in COMPARISONS:
            self._operand = option_value(following)
        if word in (b"IFDEQ", b"IFDNE") and _DIGEST.fullmatch(self._operand) is None:
            raise CommandError(string_errors.DIGEST_LENGTH)
        return True

    @property
    def compares(self) -> bool:
        """Whether it is about the string that is there, which must be a string then."""
        return self._word in COMPARISONS

    def met_by(self, previous: Value | None) -> bool:
        """Whether it is met by what is at the key; that is ``None`` for no key."""
        word = self._word
        if word is None:
            return True
        if previous is None:
            return word in (b"NX", b"IFNE", b"IFDNE")
        if word in EXISTENCE:
            return word == b"XX"
        return self._is_equal(previous) is (word in (b"IFEQ", b"IFDEQ"))

    def _is_equal(self, previous: Value) -> bool:
        if self._word in (b"IFEQ", b"IFNE"):
            return previous == self._operand
        return isinstance(previous, bytes) and xxh3_64_intdigest(previous) == int(self._operand, 16)


class SetOptions:
    """The options of one SET."""

    __slots__ = ("condition", "get", "lifetime")

    def __init__(self, args: Arguments) -> None:
        self.lifetime = Lifetime(b"KEEPTTL")
        self.condition = SetCondition(EXISTENCE | COMPARISONS)
        self.get = False
        options = iter(args[3:])
        for option in options:
            self._take(option.upper(), options)

    def _take(self, word: bytes, following: Iterator[bytes]) -> None:
        if word == b"GET":
            self.get = True
        elif not (self.condition.take(word, following) or self.lifetime.take(word, following)):
            raise CommandError(errors.SYNTAX)


def set_key_flags(args: Arguments) -> str:
    """Return what a SET does to its key: with GET it tells what was there."""
    if len(args) == 3:
        return "OW update"
    try:
        reads = SetOptions(args).get
    except CommandError:
        reads = any(word.upper() == b"GET" for word in args[3:])
    return "RW access update" if reads else "OW update"


def option_value(following: Iterator[bytes]) -> bytes:
    """The value that belongs to an option."""
    value = next(following, None)
    if value is None:
        raise CommandError(errors.SYNTAX)
    return value
