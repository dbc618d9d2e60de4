"""Requests out of the command table: words, keywords, and values at the limits of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from server.commands import load
from server.core.command_syntax import Argument, parse
from server.core.table import Command, every, new_table

KEPT_OUT: Final = frozenset({"shutdown", "debug"})
"""What would end the run, or take its time."""

KEYS: Final = (b"s", b"s", b"s", b"t", b"k", b"", b"\r\n")
GROUPS: Final = (b"g", b"g", b"h", b"")
CONSUMERS: Final = (b"ann", b"bob", b"")
IDS: Final = (
    b"*", b"$", b">", b"+", b"-", b"0", b"0-0", b"0-1", b"1-1", b"1-*", b"2-3", b"(1-1", b"5",
    b"18446744073709551615", b"18446744073709551615-18446744073709551615",
    b"1-18446744073709551616",
    b"-1-1", b"1-", b"1-1-1", b"1700000000000-0", b"9999999999999-5",
)  # fmt: skip
INTEGERS: Final = (
    b"0", b"1", b"2", b"3", b"10", b"100", b"-1", b"-2", b"00", b"+1", b" 1", b"1.0", b"1e3",
    b"0x10",
    b"2147483647", b"2147483648", b"-2147483649", b"4294967296", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775808", b"-9223372036854775809", b"9" * 40,
)  # fmt: skip
DOUBLES: Final = (*INTEGERS, b"1.5", b"-0", b"1e308", b"1e400", b"nan", b"inf", b"-inf", b"0x1p3")
STRINGS: Final = (
    b"v",
    b"",
    b"f",
    b"hello",
    b"10",
    b"\r\n",
    b"\x00\xff",
    b"x" * 300,
    b"$1\r\n*\r\n",
)
PATTERNS: Final = (b"*", b"s*", b"[a-z]", b"?", b"[", b"\\", b"*?" * 20, b"")

COMMON: Final = ("xadd", "xreadgroup", "xack", "xclaim", "xgroup|create", "xtrim", "xdel", "set")
"""What comes more often, so that there is something for the others to work on."""


def commands() -> list[Command]:
    """Every command that can be called, with :data:`COMMON` ones several times."""
    load()
    leaves = [one for one in every(new_table()) if not one.subcommands]
    wanted = sorted(
        (one for one in leaves if one.fullname not in KEPT_OUT), key=lambda one: one.fullname
    )
    return wanted + 12 * [one for one in wanted if one.fullname in COMMON]


_arguments = functools.cache(parse)


def values_of(argument: Argument) -> Sequence[bytes]:
    """What may stand for an argument."""
    if argument.type == "key":
        return KEYS
    if argument.type in ("integer", "unix-time"):
        return INTEGERS
    if argument.type == "double":
        return DOUBLES
    if argument.type == "pattern":
        return PATTERNS
    name = argument.name
    for part, values in (("group", GROUPS), ("consumer", CONSUMERS), ("id", IDS)):
        if part in name:
            return values
    if any(part in name for part in ("start", "end", "threshold", "position")):
        return IDS
    return STRINGS


class Requests:
    """Makes requests from a source of random numbers."""

    def __init__(self, random: Random, table: Sequence[Command]) -> None:
        self._random = random
        self._table = table

    def one(self) -> list[bytes]:
        """A request: mostly as its syntax says, sometimes with other words."""
        command = self._random.choice(self._table)
        words = [word.encode() for word in command.fullname.split("|")]
        words[0] = self._spelled(words[0])
        for argument in _arguments(command.about.syntax):
            words += self._words(argument)
        while self._random.random() < 0.15:
            self._damage(words)
        return words

    def _spelled(self, name: bytes) -> bytes:
        return name if self._random.random() < 0.5 else name.upper()

    def _words(self, argument: Argument) -> list[bytes]:
        if argument.optional and self._random.random() < 0.6:
            return []
        times = self._random.choice((1, 1, 2, 3)) if argument.multiple else 1
        words: list[bytes] = []
        for turn in range(times):
            if argument.token and (turn == 0 or argument.multiple_token):
                words.append(argument.token.encode())
            words += self._value(argument)
        return words

    def _value(self, argument: Argument) -> list[bytes]:
        if argument.type == "pure-token":
            return []
        if argument.type == "oneof":
            return self._words(self._random.choice(argument.arguments))
        if argument.type == "block":
            return [word for one in argument.arguments for word in self._words(one)]
        return [self._random.choice(values_of(argument))]

    def _damage(self, words: list[bytes]) -> None:
        """Changes the words behind the command's name in one place."""
        random = self._random
        at = random.randrange(1, len(words) + 1)
        changes: list[Callable[[], object]] = [
            lambda: words.insert(at, random.choice((*STRINGS, *IDS, *INTEGERS))),
            lambda: words.__delitem__(slice(at, at + 1)),
            lambda: words.__setitem__(slice(at, at + 1), [random.choice((*INTEGERS, *IDS))]),
            lambda: words.extend(words[at : at + 3]),
            lambda: words.__setitem__(slice(at, at + 1), [random.randbytes(random.randrange(5))]),
        ]
        random.choice(changes)()
