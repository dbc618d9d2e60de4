"""The same as :func:`protocol.additions.cut` for Python that is not compiled.

What costs there is every step of a loop, so that a read is split at what its requests begin with,
in one call, and one regular expression verifies each piece. A value may hold the beginning of a
request too: then the pieces around it do not match, and are looked at step by step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import takewhile
from typing import Final, cast

from protocol import additions
from protocol.additions import Fields

LONGEST_VALUE: Final = 64
"""The longest value that the expressions know."""
MOST_FIELDS: Final = 8
"""The most fields of an entry for which an expression is made, which takes milliseconds."""
WORTH: Final = 16
"""How often field names have to be seen before one is made for them."""

_WINDOW: Final = 16 * 1024
"""How much of a read is split at once."""
_STEPS: Final = 64
"""How many requests are looked at step by step before an expression is tried again."""

_VALUE: Final = (
    rb"\$(?:"
    + b"|".join(rb"%d\r\n.{%d}" % (length, length) for length in (*range(1, LONGEST_VALUE + 1), 0))
    + rb")\r\n"
)

_Match = Callable[[bytes], object]


def cut(data: bytes, at: int, prefix: bytes, fields: Fields, most: int) -> tuple[list[bytes], int]:
    """See :func:`protocol.additions.cut`; the next call goes on where this one ends early."""
    if fields.uses < WORTH or most == 1 or len(fields.bulks) > MOST_FIELDS:
        fields.uses += 1
        return additions.cut(data, at, prefix, fields, most)
    start, *found = data[at : at + _WINDOW].split(prefix, most + 1)
    pieces = [] if start else list(takewhile(_matcher(fields), found[:most]))
    if not pieces:
        return additions.cut(data, at, prefix, fields, min(most, _STEPS))
    return pieces, at + sum(map(len, pieces)) + len(prefix) * len(pieces)


def _matcher(fields: Fields) -> _Match:
    """Tells whether a piece is entirely these field names, each with a value."""
    if fields.pattern is None:
        text = b"".join([re.escape(bulk) + _VALUE for bulk in fields.bulks])
        fields.pattern = re.compile(text, re.DOTALL).fullmatch
    return cast(_Match, fields.pattern)
