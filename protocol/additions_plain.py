"""Cut XADD requests as :mod:`protocol.additions` does, in Python that is not compiled.

What costs there is every step of a loop. So forms are remembered by what requests begin with, a
read is split at that in one call, and one regular expression proves each piece and finds its field
names. A value may hold the beginning of a request too: then the pieces around it do not match, and
are looked at step by step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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

LEARNED_AFTER: Final = 10_000
"""After how many requests that are alike but for their values an expression of their own is made:
that takes as long as proving some thousands without it."""
MOST_LEARNED: Final = 64
"""How many such expressions there are."""

_MANY: Final = 8
"""From how many requests on it pays to find all of a read."""
_LONGEST_PREFIX: Final = 512
"""How long what requests of a form begin with may be, in bytes."""
_WINDOW: Final = 16 * 1024
"""How much of a read is split at once."""
_STEPS: Final = 64
"""How many requests are looked at step by step before an expression is tried again."""
_names_of: Final = re.Match[bytes].groups


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
            if form is not None and form.size == len(prefix):
                form.prefix = prefix
                if len(self.known) >= MOST_FORMS:
                    self.known.clear()
                self.known[prefix] = form
        return form


def cut(
    data: bytes, at: int, form: Form, most: int, names: list[bytes]
) -> tuple[list[bytes], int, bool]:
    """See :func:`protocol.additions.cut`; the next call goes on where this one ends early."""
    prefix = form.prefix
    if form.fields > MOST_FIELDS or not data.startswith(prefix, at):
        return additions.cut(data, at, form, most, names)
    learned = _learned.get(prefix) if most >= _MANY else None
    if learned is not None and learned.names == names:
        pieces = learned.find(data, at, at + _WINDOW)[:most]
        proved = prefix + prefix.join(pieces)
        if pieces and data.startswith(proved, at):
            return pieces, at + len(proved), True
        del _learned[prefix]
    first = _entry(form.fields)(data, at + len(prefix))
    if first is not None:
        end = first.end()
        if most == 1 or not data.startswith(prefix, end):
            return [first[0]], end, [*first.groups()] == names
        many = _cut_many(data[at : at + _WINDOW], at, form, most, names)
        if many[0]:
            return many
    return additions.cut(data, at, form, min(most, _STEPS), names)


class _Learned:
    """What finds the fields and values of requests that begin with the same and have the same
    field names. What it finds follows each other only if nothing is left out between."""

    def __init__(self, prefix: bytes, names: list[bytes]) -> None:
        self.names = names
        items = b"".join([re.escape(name) + BULK for name in names])
        self.find = re.compile(b"%b(%b)" % (re.escape(prefix), items), re.DOTALL).findall


_learned: Final[dict[bytes, _Learned]] = {}
_alike: Final[dict[bytes, int]] = {}
"""How many requests that begin with this had the same field names."""


def _learn(prefix: bytes, names: list[bytes], count: int) -> None:
    """Notes that so many requests had these names; makes an expression when they are many."""
    if len(_alike) >= MOST_FORMS:
        _alike.clear()
    _alike[prefix] = count + _alike.get(prefix, 0)
    if _alike[prefix] >= LEARNED_AFTER:
        del _alike[prefix]
        if len(_learned) >= MOST_LEARNED:
            _learned.clear()
        _learned[prefix] = _Learned(prefix, names)


def _cut_many(
    data: bytes, at: int, form: Form, most: int, names: list[bytes]
) -> tuple[list[bytes], int, bool]:
    """Return what is cut out of ``data``, which began at ``at``."""
    _, *found = data.split(form.prefix, most + 1)
    matches = list(takewhile(bool, map(_whole_entry(form.fields), found[:most])))
    pieces = found[: len(matches)]
    if len(pieces) < min(most, len(found)):  # Another request stands behind the last one.
        last = _entry(form.fields)(found[len(pieces)], 0)
        if last is not None:
            matches.append(last)
            pieces.append(last[0])
    end = at + sum(map(len, pieces)) + len(form.prefix) * len(pieces)
    found_names = list(map(_names_of, matches))
    alike = found_names.count(tuple(names)) == len(pieces)
    if alike:
        _learn(form.prefix, names, len(pieces))
    return pieces, end, alike


@lru_cache(maxsize=MOST_FIELDS)
def _pattern(fields: int) -> re.Pattern[bytes]:
    """Return what matches so many fields and values, the fields as groups."""
    return re.compile(b"(%b)%b" % (BULK, BULK) * fields, re.DOTALL)


@lru_cache(maxsize=MOST_FIELDS)
def _entry(fields: int) -> Callable[[bytes, int], Any]:
    """Return what matches so many fields and values at a place."""
    return _pattern(fields).match


@lru_cache(maxsize=MOST_FIELDS)
def _whole_entry(fields: int) -> Callable[[bytes], Any]:
    """Return what tells whether a piece is so many fields and values."""
    return _pattern(fields).fullmatch
