"""DEBUG SNAPSHOT: the data of this moment is kept under a name, and put back later."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Reply
from server.commands.testing.debug_table import Subcommand, require_serving, unknown
from server.faults import errors as fault_errors
from server.road.session import Session
from server.road.table import Arguments
from server.services import Services
from storage.keyspace.copies import copy_of, put_back


def _take(server: Services, name: bytes) -> Reply:
    server.state.snapshots[name] = copy_of(server.state.keyspace)
    return OK


def _restore(server: Services, name: bytes) -> Reply:
    """What was changed is written to the append-only file and to replicas as it is by any command
    that writes, so a disk that cannot take it prevents it."""
    state = server.state
    copy = state.snapshots.get(name)
    if copy is None:
        raise CommandError(fault_errors.no_such_snapshot(name))
    if state.disk_error is not None:
        raise CommandError(errors.disk_error(state.disk_error))
    put_back(state.keyspace, copy)
    server.tracking.flush()
    return OK


def _drop(server: Services, name: bytes) -> Reply:
    return int(server.state.snapshots.pop(name, None) is not None)


_WAYS: Final = {b"TAKE": _take, b"RESTORE": _restore, b"DROP": _drop}


def snapshot(server: Services, session: Session, args: Arguments) -> Reply:
    """Takes, restores, drops or lists snapshots. Not within a transaction, of which the rest would
    be about other data."""
    way = args[2].upper()
    if way == b"LIST" and len(args) == 3:
        return [Bulk(name) for name in sorted(server.state.snapshots)]
    run = _WAYS.get(way)
    if run is None or len(args) != 4:
        raise unknown(args)
    require_serving(server, session)
    return run(server, args[3])


SUBCOMMANDS: Final[dict[bytes, Subcommand]] = {
    b"SNAPSHOT": Subcommand(
        snapshot,
        range(1, 3),
        (
            ("SNAPSHOT TAKE <name>", "Keeps all data as it is now, in memory, under this name."),
            ("SNAPSHOT RESTORE <name>", "Puts it back, in place of everything there is."),
            ("SNAPSHOT DROP <name>", "Forgets it; tells whether it was there."),
            ("SNAPSHOT LIST", "Lists the names."),
        ),
        "SNAPSHOT <TAKE name | RESTORE name | DROP name | LIST>",
    ),
}
