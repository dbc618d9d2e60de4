"""Commands about the server as a whole: its clock, its life, and what it has none of.

Modules do not exist here. Clients that ask for them are told so in the words of a Redis that has
none.
"""

from __future__ import annotations

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NO_REPLY, Reply
from server.commands.declare import command, container, help_command
from server.commands.server import errors as server_errors
from server.core.table import Arguments
from server.persistence.manager import PersistenceError
from server.services import Services
from server.state.server_state import Phase
from server.state.session import Session

# --- time and life ---------------------------------------------------------------------------


@command(
    "TIME",
    flags="loading stale fast",
    since="2.6.0",
    summary="Tells the server's time.",
    tips=["nondeterministic_output"],
)
def time_(server: Services, session: Session, args: Arguments) -> Reply:
    """Unix seconds, and the microseconds of the second."""
    now = session.db.keyspace.now_ms
    return [str(now // 1000), str(now % 1000 * 1000)]


@command(
    "SHUTDOWN",
    flags="admin noscript loading stale no_multi allow_busy",
    since="1.0.0",
    summary="Ends the server.",
    syntax="[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    history=[("7.0.0", "The modifiers `NOW`, `FORCE` and `ABORT`.")],
)
def shutdown(server: Services, session: Session, args: Arguments) -> Reply:
    """Nothing: the server ends. It waits for its replicas unless it shall do so NOW; that cannot be
    aborted."""
    words = [arg.upper() for arg in args[1:]]
    given = set(words)
    if not given <= {b"NOSAVE", b"SAVE", b"NOW", b"FORCE", b"ABORT"}:
        raise CommandError(errors.SYNTAX)
    if given >= {b"NOSAVE", b"SAVE"} or (b"ABORT" in given and len(given) > 1):
        raise CommandError(errors.SYNTAX)
    if given == {b"ABORT"}:
        raise CommandError(server_errors.NO_SHUTDOWN)
    if server.scripting.busy and b"NOSAVE" not in given:
        raise CommandError(errors.BUSY)
    server.persistence.saves_at_end = b"NOSAVE" not in given
    if not _is_safe_to_end(server, save=b"SAVE" in given) and not given & {b"NOSAVE", b"FORCE"}:
        raise CommandError(server_errors.SHUTDOWN_FAILED)
    server.replication.hurried = b"NOW" in given
    session.closing = True
    server.state.instance.stopping.set()
    return NO_REPLY


def _is_safe_to_end(server: Services, save: bool) -> bool:
    """Writes what is to be written before the server ends; whether that went well."""
    persistence = server.persistence
    if server.state.phase is not Phase.SERVING:  # What there is so far must replace nothing.
        return True
    if save or (persistence.unsaved and persistence.saves_at_end):
        try:
            persistence.save()
        except PersistenceError as error:
            server.state.log.warning(f"SHUTDOWN: the data could not be saved: {error}")
            return False
    return persistence.make_safe()


# --- modules ---------------------------------------------------------------------------------

container("MODULE", since="4.0.0", summary="Commands about modules.")


@command(
    "MODULE LIST",
    flags="admin noscript",
    summary="Lists the modules that are loaded: none.",
    tips=["nondeterministic_output_order"],
)
def module_list(server: Services, session: Session, args: Arguments) -> Reply:
    """An empty list."""
    return EMPTY_ARRAY


help_command("MODULE", since="5.0.0")
