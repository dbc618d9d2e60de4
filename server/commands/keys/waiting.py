"""Waiting for an element: what BLPOP, BLMOVE, BLMPOP, BZPOPMIN, BZMPOP and the like have in common.

Such a command is the plain one, and where that finds nothing it waits. What it does when it is
woken is the plain command's change, which is propagated as such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from math import ceil
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Reply
from server.commands.keys import errors as key_errors
from server.core.outcomes import Outcome, Steps, Wait
from server.runtime.arguments import INT64_MAX, INT64_MIN
from server.state.session import Session

Attempt = Callable[[], "Reply | Steps"]
"""Does what the command is for, and returns its reply; ``None`` if there is nothing yet, with
nothing done."""

_PLAIN: Final = re.compile(rb"(-?[0-9]{1,15})(?:\.([0-9]{1,15}))?")
"""Numbers that are read in a fraction of the time that others take."""


def wait_end(arg: bytes, now_ms: int) -> int | None:
    """When a wait of so many seconds, with decimal places, is over; ``None`` for never (0).
    Raises :class:`CommandError`."""
    milliseconds = _milliseconds(arg)
    if milliseconds < 0:
        raise CommandError(errors.TIMEOUT_NEGATIVE)
    if milliseconds + now_ms > INT64_MAX:
        raise CommandError(errors.TIMEOUT_OUT_OF_RANGE)
    return milliseconds + now_ms if milliseconds else None


def _milliseconds(arg: bytes) -> int:
    plain = _PLAIN.fullmatch(arg)
    if plain is not None:
        places = plain[2] or b""
        milliseconds: int = -(-1000 * int(plain[1] + places) // 10 ** len(places))
        return milliseconds
    from server.commands.strings import long_double

    try:
        seconds = long_double.parse(arg)
    except ValueError:
        raise CommandError(key_errors.TIMEOUT_NOT_A_FLOAT) from None
    if seconds is None:
        return INT64_MIN if arg.startswith(b"-") else INT64_MAX
    return ceil(seconds * 1000)


def blocking(
    session: Session,
    keys: Iterable[bytes],
    deadline: int | None,
    attempt: Attempt,
    kind: type,
    on_timeout: Reply = NULL_ARRAY,
) -> Outcome:
    """The reply of the attempt, or a wait until it finds something at one of the keys: it is made
    again when one of them holds a value of the class ``kind`` after a change."""
    found = attempt()
    if found is not None:
        return found
    index = session.db.index
    places = [(index, key) for key in dict.fromkeys(keys)]
    return _Blocked(places, deadline, attempt, kind, on_timeout).wait()


class _Blocked:
    """A command that waits; it keeps what it needs to wait once more."""

    __slots__ = ("_attempt", "_deadline", "_kind", "_on_timeout", "_places")

    def __init__(
        self,
        places: list[tuple[int, bytes]],
        deadline: int | None,
        attempt: Attempt,
        kind: type,
        on_timeout: Reply,
    ) -> None:
        self._places = places
        self._deadline = deadline
        self._attempt = attempt
        self._kind = kind
        self._on_timeout = on_timeout

    def wait(self) -> Wait:
        return Wait(
            self._places, self._deadline, self._again, kind=self._kind, on_timeout=self._on_timeout
        )

    def _again(self) -> Outcome:
        found = self._attempt()
        return self.wait() if found is None else found
