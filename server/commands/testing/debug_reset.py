"""DEBUG RESET: back to the state of the start, for the next test.

It gets through whatever a test has left (:func:`server.dispatch.refusals.is_reset`). What belongs
to the server is put back; what belongs to others stays: the data, the snapshots of it, connections
with all that their clients wait for or listen to, and the files. Only what a test holds may not run
in the next one: those connections end, and so do those that came by a port of DEBUG PORT.
"""

from __future__ import annotations

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.connection.connection import RESET_DONE, leave_all
from server.commands.server.configuration import forget_counts
from server.commands.testing.subcommands import require_serving, subcommand
from server.config.registry import BadSetting
from server.core.table import Arguments
from server.faults import errors as fault_errors
from server.services import Services
from server.state.session import Session


@subcommand(
    (
        "RESET",
        "Puts everything back as it was at the start, but data and snapshots. It is always heard.",
    )
)
def _reset(server: Services, session: Session, args: Arguments) -> Reply:
    """Put the server and the asking connection back, from what holds others up to what was counted.

    The connection stays who it is, if there was such a user at the start."""
    require_serving(server, session)
    server.scripting.reset()
    _restore_settings(server)
    server.interception.reset(session)
    server.pauses.unpause()
    server.state.release_clock()
    server.cron.turn_clock(-server.state.timekeeper.offset_ms)
    server.cron.active_expiry = True
    leave_all(server, session)
    session.reset(server.state.keyspace.databases[0], session.account, session.authenticated)
    session.seen_ms = server.state.clock()
    server.access.restore(session)
    server.state.timings.forget_all()
    server.policies.happenings.forget()
    forget_counts(server)
    return RESET_DONE


def _restore_settings(server: Services) -> None:
    try:
        server.state.config.restore()
    except BadSetting as error:
        raise CommandError(fault_errors.not_put_back(error.name, error.reason)) from error
