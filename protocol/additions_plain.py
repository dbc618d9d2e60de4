"""The same as :func:`protocol.additions.cut` for Python that is not compiled.

What costs there is every step of a loop, so that a read is split at what its requests begin with,
in one call, and one regular expression verifies each piece. A value may hold the beginning of a
request too: then the pieces around it do not match, and are looked at step by step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import takewhile
from typing import Final

from protocol import additions
from protocol.additions import Form

LONGEST_VALUE: Final = 64
"""The longest value that the expressions know."""
MOST_FIELDS: Final = 8
"""The most fields of an entry for which an expression is made, which takes milliseconds."""
WORTH: Final = 16
"""How often the same field names have to come one after the other before one is made for them."""

_WINDOW: Final = 16 * 1024
"""How much of a read is split at once."""
_STEPS: Final = 64
"""How many requests are looked at step by step before an expression is tried again."""

_BULK: Final = (
    rb"\$(?:"
    + b"|".join(rb"%d\r\n.{%d}" % (length, length) for length in (*range(1, LONGEST_VALUE + 1), 0))
    + rb")\r\n"
)

_Match = Callable[[bytes], object]


class _Memory:
    """The field names that came last with a form, and how often in a row; and an expression, if
    some have come often enough, with the names that it knows."""

    __slots__ = ("known", "match", "names", "uses")

    def __init__(self) -> None:
        self.names: list[bytes] = []
        self.uses = 0
        self.known: list[bytes] = []
        self.match: _Match | None = None

    def note(self, names: list[bytes]) -> None:
        """These names have come."""
        if names != self.names:
            self.names, self.uses = names, 0
        self.uses += 1
        if self.uses >= WORTH and names != self.known:
            text = b"".join([re.escape(_bulk(name)) + _BULK for name in names])
            self.known, self.match = names, re.compile(text, re.DOTALL).fullmatch


def cut(data: bytes, at: int, form: Form, most: int) -> tuple[list[bytes], int, list[bytes] | None]:
    """See :func:`protocol.additions.cut`; the next call goes on where this one ends early."""
    if most == 1 or form.fields > MOST_FIELDS:
        return additions.cut(data, at, form, most)
    memory = form.memory = form.memory if isinstance(form.memory, _Memory) else _Memory()
    pieces: list[bytes] = []
    names: list[bytes] | None = memory.known
    if memory.match is not None and data.startswith(form.prefix, at):
        _, *found = data[at : at + _WINDOW].split(form.prefix, most + 1)
        pieces += takewhile(memory.match, found[:most])
        others = list(takewhile(_of_any_names(form.fields), found[len(pieces) : most]))
        if others:
            if not pieces:
                memory.note(_names_in(others[0], form.fields))
            pieces += others
            names = None
    if not pieces:
        steps = most if memory.match is None else min(most, _STEPS)
        pieces, end, names = additions.cut(data, at, form, steps)
        if names is not None:
            memory.note(names)
        return pieces, end, names
    return pieces, at + sum(map(len, pieces)) + len(form.prefix) * len(pieces), names


def _names_in(piece: bytes, fields: int) -> list[bytes]:
    """The field names in a piece."""
    bulks: list[bytes] = []
    additions.first_end(piece, 0, fields, bulks)
    return additions.texts_of(bulks)


@lru_cache(maxsize=MOST_FIELDS)
def _of_any_names(fields: int) -> _Match:
    """Tells whether a piece is so many fields and values."""
    return re.compile(rb"(?:%b){%d}" % (_BULK, 2 * fields), re.DOTALL).fullmatch


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)
