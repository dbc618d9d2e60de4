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
            if form is not None and form.prefix == prefix:
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
    first = _entry(form.fields)(data, at + len(prefix))
    if first is not None:
        end = first.end()
        if most == 1 or not data.startswith(prefix, end):
            return [first[0]], end, [*first.groups()] == names
        many = _cut_many(data[at : at + _WINDOW], at, form, most, names)
        if many[0]:
            return many
    return additions.cut(data, at, form, min(most, _STEPS), names)


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
    return pieces, end, found_names.count(tuple(names)) == len(pieces)


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
