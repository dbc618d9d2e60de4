"""BITOP: bits of several strings, combined."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, xor
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings.bitmaps import Operation, combine
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.services import Services


def _one(numbers: list[int]) -> int:
    """The bits that are set in exactly one."""
    once = more = 0
    for number in numbers:
        more |= once & number
        once |= number
    return once & ~more


def _any(numbers: list[int]) -> int:
    return reduce(or_, numbers, 0)


_OPERATIONS: Final[dict[bytes, Operation]] = {
    b"AND": lambda numbers: reduce(and_, numbers),
    b"OR": _any,
    b"XOR": lambda numbers: reduce(xor, numbers),
    b"NOT": lambda numbers: ~numbers[0],
    b"DIFF": lambda numbers: numbers[0] & ~_any(numbers[1:]),
    b"DIFF1": lambda numbers: _any(numbers[1:]) & ~numbers[0],
    b"ANDOR": lambda numbers: numbers[0] & _any(numbers[1:]),
    b"ONE": _one,
}


@command(
    "BITOP",
    flags="write denyoom",
    since="2.6.0",
    summary="Combines the bits of strings and puts what comes of it at a key.",
    complexity="O(N) in the length of the strings.",
    syntax="<AND | OR | XOR | NOT | DIFF | DIFF1 | ANDOR | ONE> destkey key [key ...]",
    keys=[KeySpec("OW update", index=2), KeySpec("RO access", index=3, last=-1)],
    history=[("8.2.0", "The operations `DIFF`, `DIFF1`, `ANDOR` and `ONE`.")],
)
def bitop(server: Services, session: Session, args: Arguments) -> Reply:
    """The length of the result; if that is empty there is no key any more."""
    name, target, keys = args[1].upper(), args[2], args[3:]
    operation = _OPERATIONS.get(name)
    if operation is None:
        raise CommandError(errors.SYNTAX)
    if name == b"NOT" and len(keys) > 1:
        raise CommandError(string_errors.BITOP_NOT_SOURCES)
    database = session.db
    sources = [database.buffer_to_read(key, touch=not session.no_touch) or b"" for key in keys]
    result = combine(operation, sources)
    if result:
        database.set_string(target, result, encoding="raw")
    else:
        database.delete(target)
    return len(result)
