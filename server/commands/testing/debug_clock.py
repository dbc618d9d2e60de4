"""DEBUG CLOCK: the time of the server is what a test says."""

from __future__ import annotations

from typing import Final

from protocol.replies import OK, Reply
from server.commands.testing.debug_table import Subcommand, require_serving, unknown
from server.road.session import Session
from server.road.table import Arguments
from server.runtime.arguments import integer_between
from server.runtime.clock import LATEST_MS
from server.services import Services

_WITH_A_NUMBER: Final = frozenset({b"ADVANCE", b"SET", b"FREEZE"})
_ALONE: Final = frozenset({b"RESET", b"FREEZE"})


def turn_clock(server: Services, session: Session, args: Arguments) -> Reply:
    """Not within a transaction: what falls due would happen in the middle of it."""
    way = args[2].upper()
    number = _number(server, way, args)
    require_serving(server, session)
    server.cron.turn_clock(_by(server, way, number))
    # The client is not idle, whatever time it is now.
    session.seen_ms = server.state.clock()
    return OK


def _number(server: Services, way: bytes, args: Arguments) -> int | None:
    """What follows the way in which the clock is set, if anything does. Raises
    :class:`CommandError`."""
    if way not in (_ALONE if len(args) == 3 else _WITH_A_NUMBER):
        raise unknown(args)
    if len(args) == 3:
        return None
    most = LATEST_MS - server.state.clock() if way == b"ADVANCE" else LATEST_MS
    return integer_between(args[3], 0, most)


def _by(server: Services, way: bytes, number: int | None) -> int:
    """By how many milliseconds the clock is to be turned, which then stands still, or runs."""
    state = server.state
    if way == b"RESET":
        state.release_clock()
        return -state.timekeeper.offset_ms
    if way == b"FREEZE":
        state.freeze_clock()
    if number is None:
        return 0
    return number if way == b"ADVANCE" else number - state.clock()


SUBCOMMANDS: Final[dict[bytes, Subcommand]] = {
    b"CLOCK": Subcommand(
        turn_clock,
        range(1, 3),
        (
            (
                "CLOCK ADVANCE <milliseconds>",
                "Moves the server's time forward; what is due happens now.",
            ),
            (
                "CLOCK SET <unix-time-milliseconds>",
                "Sets the server's time, which runs on from there unless it stands still.",
            ),
            (
                "CLOCK FREEZE [<unix-time-milliseconds>]",
                "Lets the time stand still, at this time or as it is, until it is moved or reset.",
            ),
            ("CLOCK RESET", "Goes back to the real time, which runs."),
        ),
        "CLOCK <ADVANCE milliseconds | SET unix-time-milliseconds"
        " | FREEZE [unix-time-milliseconds] | RESET>",
    ),
}
