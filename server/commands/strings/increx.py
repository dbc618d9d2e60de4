"""INCREX: a counter with bounds and an expiry, in one step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Double, Reply
from server.commands.declare import command
from server.commands.strings import errors as string_errors
from server.commands.strings.set_options import Lifetime, option_value
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import INT64_MAX, INT64_MIN, integer
from server.services import Services
from server.state.session import Session
from storage.types.strings import LONGEST_EMBEDDED

if TYPE_CHECKING:
    from fractions import Fraction

_VALUED: Final = frozenset({b"BYINT", b"BYFLOAT", b"LBOUND", b"UBOUND"})
_FLAGS: Final = frozenset({b"SATURATE", b"ENX"})

_Number = TypeVar("_Number", int, "Fraction")


class _IncrexOptions:
    """The options of one INCREX: each of the values, and of the flags, that were given."""

    def __init__(self, args: Arguments) -> None:
        self.lifetime = Lifetime(b"PERSIST")
        self.values: dict[bytes, bytes] = {}
        self.flags: set[bytes] = set()
        options = iter(args[2:])
        for option in options:
            word = option.upper()
            if word in _FLAGS:
                self.flags.add(word)
            elif word in _VALUED:
                self.values[word] = option_value(options)
            elif not self.lifetime.take(word, options):
                raise CommandError(errors.SYNTAX)
        if {b"BYINT", b"BYFLOAT"} <= self.values.keys():
            raise CommandError(errors.SYNTAX)
        if b"ENX" in self.flags and not self.lifetime.is_new:
            raise CommandError(
                errors.SYNTAX if self.lifetime.is_without else string_errors.ENX_WITHOUT_EXPIRATION
            )


class _Step(NamedTuple, Generic[_Number]):
    """An increment, the bounds of the sum, and whether the sum is brought within them."""

    increment: _Number
    low: _Number
    high: _Number
    saturates: bool


def _step(
    options: _IncrexOptions,
    parse: Callable[[bytes], _Number],
    increment: bytes,
    limits: tuple[_Number, _Number],
) -> _Step[_Number]:
    """The step that the options say, in numbers as ``parse`` reads them."""
    amount = parse(options.values.get(increment, b"1"))
    low, high = limits
    if b"LBOUND" in options.values:
        low = parse(options.values[b"LBOUND"])
    if b"UBOUND" in options.values:
        high = parse(options.values[b"UBOUND"])
    if low > high:
        raise CommandError(string_errors.LBOUND_ABOVE_UBOUND)
    return _Step(amount, low, high, b"SATURATE" in options.flags)


def _bound(step: _Step[_Number], total: _Number) -> _Number | None:
    """The sum if it is within bounds, or has been brought there; else ``None``."""
    if step.low <= total <= step.high:
        return total
    if not step.saturates:
        return None
    return step.low if total < step.low else step.high


@command(
    "INCREX",
    flags="write denyoom fast",
    since="8.8.0",
    summary="Adds to the number at a key within bounds, and sets its expiry; no key counts as 0.",
    syntax="key [BYFLOAT increment | BYINT increment] [LBOUND lowerbound] [UBOUND upperbound]"
    " [SATURATE] [EX seconds | PX milliseconds | EXAT unix-time-seconds |"
    " PXAT unix-time-milliseconds | PERSIST] [ENX]",
    keys=[KeySpec("RW access update")],
)
def increx(server: Services, session: Session, args: Arguments) -> Reply:
    """The sum and what was added: 0 if the sum would be out of bounds, and nothing was changed."""
    options = _IncrexOptions(args)
    if b"BYFLOAT" in options.values:
        return _add_float(session, args[1], options)
    return _add_integer(session, args[1], options)


def _add_integer(session: Session, key: bytes, options: _IncrexOptions) -> Reply:
    step = _step(options, integer, b"BYINT", (INT64_MIN, INT64_MAX))
    expires_at = options.lifetime.expires_at(session.db.keyspace.now_ms, "increx")
    text = session.db.string(key)
    value = 0 if text is None else integer(text)
    total = _bound(step, value + step.increment)
    if total is None:
        return [value, 0]
    if not INT64_MIN <= total - value <= INT64_MAX:
        raise CommandError(string_errors.INCREMENT_OVERFLOW)
    _store(session, key, b"%d" % total, options, expires_at, "incrby")
    return [total, total - value]


def _add_float(session: Session, key: bytes, options: _IncrexOptions) -> Reply:
    from server.commands.strings import long_double

    limits = (-long_double.HIGHEST, long_double.HIGHEST)
    step = _step(options, _float, b"BYFLOAT", limits)
    expires_at = options.lifetime.expires_at(session.db.keyspace.now_ms, "increx")
    text = session.db.string(key)
    value = _float(b"0" if text is None else text)
    total = _bound(step, long_double.rounded(value + step.increment))
    if total is None:
        return [Double(long_double.text_of(value)), Double(b"0")]
    added = long_double.rounded(total - value)
    if abs(added) > long_double.HIGHEST:
        raise CommandError(string_errors.INCREMENT_NOT_FINITE)
    sum_text = long_double.text_of(total)
    _store(session, key, sum_text, options, expires_at, "incrbyfloat")
    return [Double(sum_text), Double(long_double.text_of(added))]


def _store(
    session: Session, key: bytes, text: bytes, options: _IncrexOptions, new: int | None, event: str
) -> None:
    """Puts the sum at the key, with the expiry that it had before, a ``new`` one, or none."""
    database = session.db
    present = database.expires.get(key)
    expires_at = present
    if options.lifetime.is_without:
        expires_at = None
        event += " persist" * (present is not None)
    elif new is not None and not (b"ENX" in options.flags and present is not None):
        expires_at = new
        event += " expire"
    database.set_string(key, text, expires_at, event, _encoding(event, text))


def _encoding(event: str, text: bytes) -> str | None:
    """Sums of floats are kept as text, even if they are integers."""
    floating = event.startswith("incrbyfloat")
    return "embstr" if floating and len(text) <= LONGEST_EMBEDDED else None


def _float(text: bytes) -> Fraction:
    from server.commands.strings import long_double

    try:
        value = long_double.parse(text)
    except ValueError:
        raise CommandError(errors.NOT_A_FLOAT) from None
    if value is None:
        raise CommandError(string_errors.INCREMENT_NOT_FINITE)
    return value
