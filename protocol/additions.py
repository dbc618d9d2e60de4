"""Cut XADD requests out of the bytes that a client sent.

The fields and values of an XADD are the same bytes in the request, in the stored entry, in a reply
and in the append-only file. So it is enough to prove (:mod:`protocol.scanner`) that they are as
many bulk strings as the request announces, and to take them out as one piece, whatever the key and
the fields are called, and whether the server is to choose the ID or a plain one is given.

The loops are made for the compiler. Places between which bytes are cut out are no native integers
there: with those a slice takes an object of its own. :mod:`protocol.additions_plain` has forms of
the loops that are quick without a compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.scanner import bulk_end, bulks_end, count_at, is_xadd, line_end

if TYPE_CHECKING:
    from mypy_extensions import i64

AUTOMATIC: Final = b"$1\r\n*\r\n"
"""The ID that leaves the choice to the server: the end of what XADDs of one form begin with."""

_NAME: Final = b"$4\r\nXADD\r\n"
_FEWEST_WORDS: Final = 3
_MOST_WORDS: Final = 16
"""How many words stand before the fields at most: name, key, options, ID."""
_MOST_DIGITS: Final = 18
"""A half of an ID with more digits is left to those who know all rules."""
_HEADERS: Final = [b"*%d\r\n" % (2 * fields) for fields in range(33)]
"""The headers of arrays of the usual numbers of fields and values."""

_NO_NAMES: Final[list[bytes]] = []
"""In the place of field names, where entries have different ones."""


class Form:
    """A form that XADDs share which are cut out together: how they begin, their ID included.

    What they begin with is ``size`` bytes long, and stands at ``begin`` in the read; ``prefix`` has
    those bytes once somebody has compared them, which most requests of a mix do not need.
    ``options`` are the bulk strings between the key and the ID. ``header`` is that of an array of
    so many ``fields`` and their values. ``ms`` and ``seq`` are the halves of the ID that is given,
    -1 if the server is to make one, and ``text`` its bulk string.
    """

    __slots__ = (
        "begin",
        "fields",
        "header",
        "key",
        "ms",
        "options",
        "prefix",
        "seq",
        "size",
        "text",
    )

    def __init__(self) -> None:
        self.prefix = self.key = self.options = self.text = self.header = b""
        self.begin = self.size = self.fields = 0
        self.ms: i64 = -1
        self.seq: i64 = -1


def may_begin(data: bytes, at: int) -> bool:
    """Return whether an XADD may begin at ``at``, with no more than a look at the bytes in which
    its name would end, behind a number of one to three digits; there must be so many."""
    for end in range(at + 12, at + 15):
        if data[end] == 0x0D and (data[end - 1] == 0x44 or data[end - 1] == 0x64):  # 'D', 'd'
            return True
    return False


def form_at(data: bytes, at: i64, spare: Form | None = None) -> Form | None:
    """Return the form of the XADD at ``at``, which is made of ``spare`` if there is one; ``None``
    if no XADD is there, or if its ID is neither ``*`` nor, where there are no options, a plain
    ``ms-seq``."""
    count = count_at(data, at)
    if count < _FEWEST_WORDS + 2:
        return None
    name = line_end(data, at)
    key = bulk_end(data, name)
    if key - name != len(_NAME) or not is_xadd(data, name):
        return None
    options = start = bulk_end(data, key)
    words: i64 = _FEWEST_WORDS
    ms: i64 = -1
    seq: i64 = -1
    fields: i64 = -1
    while start >= 0:
        fields = bulk_end(data, start)
        if fields < 0 or (fields - start == len(AUTOMATIC) and data[fields - 3] == 0x2A):  # '*'
            break
        if words == _FEWEST_WORDS:
            ms, seq = _given_id(data, line_end(data, start), fields - 2)
            if ms >= 0:
                break
        start = fields
        words += 1
    items = count - words
    if start < 0 or fields < 0 or words > _MOST_WORDS or items < 2 or items & 1:
        return None
    form = Form() if spare is None else spare
    _fill(form, data, at, key, options, start, fields, items >> 1)
    form.ms = ms
    form.seq = seq
    if ms >= 0:
        form.text = data[start:fields]
    return form


def _fill(
    form: Form, data: bytes, at: int, key: int, options: int, start: int, fields: int, count: int
) -> None:
    """Gives a form the parts that begin at these places."""
    form.prefix = b""
    form.begin = at
    form.size = fields - at
    form.key = data[line_end(data, key) : options - 2]
    form.options = data[options:start] if start > options else b""
    form.fields = count
    form.header = _HEADERS[count] if count < len(_HEADERS) else b"*%d\r\n" % (2 * count)


def _given_id(data: bytes, at: i64, end: i64) -> tuple[i64, i64]:
    """Return the halves of the ID ``ms-seq`` that stands there as it is answered; -1 for anything
    else."""
    ms, dash = _half_at(data, at)
    if dash == at or data[dash] != 0x2D:
        return -1, -1
    seq, stop = _half_at(data, dash + 1)
    if stop == dash + 1 or stop != end:
        return -1, -1
    return ms, seq


def _half_at(data: bytes, at: i64) -> tuple[i64, i64]:
    """Return the number that stands there without leading zeros, and where it ends; other bytes
    follow it."""
    number: i64 = 0
    last = at + _MOST_DIGITS
    first = at
    digit: i64 = data[at]
    while 0x30 <= digit <= 0x39 and at < last and (number > 0 or at == first):
        number = number * 10 + digit - 0x30
        at += 1
        digit = data[at]
    return number, at


def _same_end(data: bytes, at: int, names: list[bytes]) -> int:
    """Return where fields of these names and their values end that begin at ``at``; -1 if they are
    not there, or are others."""
    size = len(data)
    for name in names:
        value = at + len(name)
        # Most others end in another byte, which is seen without an object of their own.
        if value > size or data[value - 3] != name[-3] or data[at:value] != name:
            return -1
        at = bulk_end(data, value)
        if at < 0:
            return -1
    return at


def end_of(data: bytes, at: int, form: Form, names: list[bytes]) -> tuple[int, bool]:
    """Return where the fields and values end of an XADD of this form that begin at ``at``, -1 if
    they are not there; and whether the fields are ``names``, which are bulk strings."""
    if len(names) == form.fields:
        end = _same_end(data, at, names)
        if end >= 0:
            return end, True
    return bulks_end(data, at, 2 * form.fields), False


def goes_on(data: bytes, at: int, form: Form) -> bool:
    """Return whether what is at ``at`` begins as XADDs of this form do, of which the first is in
    the same read."""
    size = form.size
    end = at + size
    if end > len(data):
        return False
    if not form.prefix:
        begin = form.begin
        # Where the key ends, as far as that is known: streams differ in the end of their names.
        mark = size - len(AUTOMATIC) - len(form.options) - 3
        if data[at + mark] != data[begin + mark]:
            return False
        form.prefix = data[begin : begin + size]
    return data[at:end] == form.prefix


def cut(
    data: bytes, at: int, form: Form, most: int, names: list[bytes]
) -> tuple[list[bytes], int, bool]:
    """Return the fields and values, a piece each, of up to ``most`` XADDs of this form that follow
    each other, the first of which is at ``at``; where they end; and whether all have the fields
    ``names``, which are bulk strings."""
    pieces: list[bytes] = []
    alike = True
    while len(pieces) < most and (not pieces or goes_on(data, at, form)):
        start = at + form.size
        end, is_same = end_of(data, start, form, names if alike else _NO_NAMES)
        if end < 0:
            break
        alike = alike and is_same
        pieces.append(data[start:end])
        at = end
    return pieces, at, alike
