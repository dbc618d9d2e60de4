"""Cut XADD requests as :mod:`protocol.additions` does, in Python that is not compiled.

What costs there is every step of a loop. So forms are remembered by what requests begin with, a
read is split at that in one call, and one regular expression proves each piece. A value may hold
the beginning of a request too: then the pieces around it do not match, and are looked at step by
step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import takewhile
from typing import Any, Final

from protocol import additions
from protocol.additions import AUTOMATIC, Form
from protocol.scanner_plain import BULK

MOST_FORMS: Final = 1024
"""How many forms are remembered."""
MOST_FIELDS: Final = 8
"""The most fields of an entry for which an expression is made, which takes milliseconds."""
WORTH: Final = 16
"""How often the same field names have to come one after the other before one is made for them."""

_LONGEST_PREFIX: Final = 512
"""How long what requests of a form begin with may be, in bytes."""
_WINDOW: Final = 16 * 1024
"""How much of a read is split at once."""
_STEPS: Final = 64
"""How many requests are looked at step by step before an expression is tried again."""

_Match = Callable[[bytes], object]


class _Memory:
    """The field names that came last with a form, and how often in a row; and an expression, if
    some have come often enough, with the names that it knows."""

    __slots__ = ("alone", "known", "match", "names", "uses")

    def __init__(self) -> None:
        self.alone = False
        """Whether the last request was the only one: then the next one is likely to be so, too."""
        self.names: list[bytes] = []
        self.uses = 0
        self.known: list[bytes] = []
        self.match: _Match | None = None

    def note(self, names: list[bytes]) -> None:
        """Notes that these names have come."""
        if names != self.names:
            self.names, self.uses = names, 0
        self.uses += 1
        if self.uses >= WORTH and names != self.known:
            text = b"".join([re.escape(_bulk(name)) + BULK for name in names])
            self.known, self.match = names, re.compile(text, re.DOTALL).fullmatch


class Forms:
    """Remembers the forms of requests by what these begin with."""

    def __init__(self) -> None:
        self.known: dict[bytes, Form] = {}

    def form_at(self, data: bytes, at: int) -> Form | None:
        """See :func:`protocol.additions.form_at`; requests that begin with very much have none."""
        end = data.find(AUTOMATIC, at, at + _LONGEST_PREFIX)
        if end < 0:
            return None
        prefix = data[at : end + len(AUTOMATIC)]
        form = self.known.get(prefix)
        if form is None:
            form = additions.form_at(data, at)
            if form is not None and form.prefix == prefix:
                if len(self.known) >= MOST_FORMS:
                    self.known.clear()
                self.known[prefix] = form
        return form


def cut(data: bytes, at: int, form: Form, most: int) -> tuple[list[bytes], int, list[bytes] | None]:
    """See :func:`protocol.additions.cut`; the next call goes on where this one ends early."""
    if form.fields > MOST_FIELDS or not data.startswith(form.prefix, at):
        return additions.cut(data, at, form, most)
    memory = form.memory = form.memory if isinstance(form.memory, _Memory) else _Memory()
    if most == 1 or memory.alone:
        first = _first(form.fields)(data, at + len(form.prefix))
        if first is not None and (most == 1 or not data.startswith(form.prefix, first.end())):
            return [first[0]], first.end(), _texts(first.groups())
    pieces: list[bytes] = []
    names: list[bytes] | None = None
    if memory.match is not None:
        pieces, names = _cut_usual(data[at : at + _WINDOW], form, most, memory, memory.match)
        end = at + sum(map(len, pieces)) + len(form.prefix) * len(pieces)
    if not pieces:
        steps = most if memory.match is None else min(most, _STEPS)
        pieces, end, names = additions.cut(data, at, form, steps)
        if names is not None:
            memory.note(names)
    memory.alone = len(pieces) == 1
    return pieces, end, names


def _cut_usual(
    data: bytes, form: Form, most: int, memory: _Memory, match: _Match
) -> tuple[list[bytes], list[bytes] | None]:
    """Return what is cut with expressions: the pieces, and their field names if all are known."""
    _, *found = data.split(form.prefix, most + 1)
    pieces = list(takewhile(match, found[:most]))
    others = list(takewhile(_of_any_names(form.fields), found[len(pieces) : most]))
    if not others:
        return pieces, memory.known
    if not pieces:
        memory.note(_texts(_first(form.fields)(others[0], 0).groups()))
    return pieces + others, None


def _texts(bulks: Iterable[bytes]) -> list[bytes]:
    """Return what these bulk strings hold."""
    return [bulk[bulk.index(b"\n") + 1 : -2] for bulk in bulks]


@lru_cache(maxsize=MOST_FIELDS)
def _first(fields: int) -> Callable[[bytes, int], Any]:
    """Return what matches so many fields and values, the fields as groups."""
    return re.compile(b"(%b)%b" % (BULK, BULK) * fields, re.DOTALL).match


@lru_cache(maxsize=MOST_FIELDS)
def _of_any_names(fields: int) -> _Match:
    """Return what tells whether a piece is so many fields and values."""
    return re.compile(rb"%b{%d}+" % (BULK, 2 * fields), re.DOTALL).fullmatch


def _bulk(text: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(text), text)
