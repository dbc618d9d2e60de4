"""DEBUG: what tests need of a server, its own and those of client libraries."""

from __future__ import annotations

import re
import secrets
import time
from typing import Final

from protocol import errors
from protocol.encoder import error_line
from protocol.errors import CommandError, shown
from protocol.replies import OK, Encoded, Reply, Simple
from server.commands.declare import command, help_reply
from server.commands.keys.objects import encoding_of, references
from server.commands.testing import (
    debug_clock,
    debug_faults,
    debug_groups,
    debug_snapshots,
    debug_trace,
)
from server.commands.testing.debug_table import Subcommand, unknown
from server.persistence.manager import PersistenceError
from server.road.session import Session
from server.road.state import Phase
from server.road.table import Arguments
from server.services import Services
from storage.aof.snapshot import serialized_length

_NUMBER: Final = re.compile(rb"\s*[+-]?(?:\d+\.?\d*|\.\d+)")
_LRU_BITS: Final = 0xFFFFFF


# --- the life of the server ------------------------------------------------------------------


def _sleep(server: Services, session: Session, args: Arguments) -> Reply:
    """Nobody is served meanwhile: that is what tests of time-outs ask for it for."""
    time.sleep(max(0.0, _leading_number(args[2])))
    return OK


def _leading_number(text: bytes) -> float:
    """The number that the text begins with, 0 if there is none: DEBUG takes anything."""
    found = _NUMBER.match(text)
    return float(found[0]) if found is not None else 0.0


def _set_active_expire(server: Services, session: Session, args: Arguments) -> Reply:
    server.state.active_expiry = _leading_number(args[2]) != 0
    return OK


def _log(server: Services, session: Session, args: Arguments) -> Reply:
    server.state.log.warning(f"DEBUG LOG: {shown(args[2])}")
    return OK


def _change_replication_id(server: Services, session: Session, args: Arguments) -> Reply:
    server.state.replication_id = secrets.token_hex(20)
    return OK


def _load_again(server: Services, session: Session, args: Arguments) -> Reply:
    if server.state.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)
    try:
        server.replication.forget()
        server.persistence.load_again()
    except PersistenceError as error:
        server.state.log.warning(f"DEBUG LOADAOF: {error}")
        raise CommandError(errors.LOAD_FAILED) from None
    server.tracking.flush()
    return OK


def _reload(server: Services, session: Session, args: Arguments) -> Reply:
    if server.state.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)
    try:
        server.persistence.reload()
    except PersistenceError as error:
        raise CommandError(errors.save_failed(str(error))) from None
    server.tracking.flush()
    return OK


# --- replies ---------------------------------------------------------------------------------


def _error(server: Services, session: Session, args: Arguments) -> Reply:
    """The error is no failure of the command, and is not counted as one."""
    return error_line(shown(args[2]))


_SAMPLES: Final[dict[bytes, tuple[bytes, bytes]]] = {
    b"STRING": (b"$11\r\nHello World\r\n", b"$11\r\nHello World\r\n"),
    b"INTEGER": (b":12345\r\n", b":12345\r\n"),
    b"DOUBLE": (b"$5\r\n3.141\r\n", b",3.141\r\n"),
    b"BIGNUM": (
        b"$37\r\n1234567999999999999999999999999999999\r\n",
        b"(1234567999999999999999999999999999999\r\n",
    ),
    b"NULL": (b"$-1\r\n", b"_\r\n"),
    b"ARRAY": (b"*3\r\n:0\r\n:1\r\n:2\r\n", b"*3\r\n:0\r\n:1\r\n:2\r\n"),
    b"SET": (b"*3\r\n:0\r\n:1\r\n:2\r\n", b"~3\r\n:0\r\n:1\r\n:2\r\n"),
    b"MAP": (
        b"*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
        b"%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
    ),
    b"ATTRIB": (
        b"$39\r\nSome real reply following the attribute\r\n",
        b"|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n"
        b"$39\r\nSome real reply following the attribute\r\n",
    ),
    b"PUSH": (
        b"-ERR RESP2 is not supported by this command\r\n",
        b"$40\r\nSome real reply following the push reply\r\n"
        b">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n",
    ),
    b"VERBATIM": (
        b"$25\r\nThis is a verbatim\nstring\r\n",
        b"=29\r\ntxt:This is a verbatim\nstring\r\n",
    ),
    b"TRUE": (b":1\r\n", b"#t\r\n"),
    b"FALSE": (b":0\r\n", b"#f\r\n"),
}
"""A reply of each type, in RESP2 and in RESP3, for those who write parsers."""


def _protocol(server: Services, session: Session, args: Arguments) -> Reply:
    sample = _SAMPLES.get(args[2].upper())
    if sample is None:
        raise CommandError(errors.BAD_PROTOCOL_TYPE)
    return Encoded(sample[session.resp3])


# --- keys ------------------------------------------------------------------------------------


def _object(server: Services, session: Session, args: Arguments) -> Reply:
    """How a value is kept. Its serialized length is that of the commands that make it anew."""
    database, key = session.db, args[2]
    if database.get(key) is None:
        raise CommandError(errors.NO_SUCH_KEY)
    value, used = database.values[key], database.used[key]
    idle = max(0, database.keyspace.now_ms - used) // 1000
    return Simple(
        f"Value at:0x{id(value):x} refcount:{references(database, key)}"
        f" encoding:{encoding_of(database, key)}"
        f" serializedlength:{serialized_length(database, key)}"
        f" lru:{used // 1000 & _LRU_BITS} lru_seconds_idle:{idle}"
    )


# --- the command -----------------------------------------------------------------------------


OWN: Final[dict[bytes, Subcommand]] = {
    b"CHANGE-REPL-ID": Subcommand(
        _change_replication_id,
        range(1),
        (("CHANGE-REPL-ID", "Gives the server another replication ID."),),
        "CHANGE-REPL-ID",
    ),
    b"ERROR": Subcommand(
        _error, range(1, 2), (("ERROR <text>", "Answers with the error."),), "ERROR text"
    ),
    b"LOADAOF": Subcommand(
        _load_again,
        range(1),
        (("LOADAOF", "Makes all data anew from the append-only file."),),
        "LOADAOF",
    ),
    b"LOG": Subcommand(
        _log,
        range(1, 2),
        (("LOG <message>", "Writes the message to the server's log."),),
        "LOG message",
    ),
    b"OBJECT": Subcommand(
        _object, range(1, 2), (("OBJECT <key>", "Tells how a value is kept."),), "OBJECT key"
    ),
    b"PROTOCOL": Subcommand(
        _protocol,
        range(1, 2),
        (
            (
                "PROTOCOL <type>",
                "Answers with a value of the type: string, integer, double, bignum, null, array,"
                " set, map, attrib, push, verbatim, true or false.",
            ),
        ),
        "PROTOCOL type",
    ),
    b"RELOAD": Subcommand(
        _reload,
        range(1),
        (("RELOAD", "Makes all data anew from what a new base would hold."),),
        "RELOAD",
    ),
    b"SET-ACTIVE-EXPIRE": Subcommand(
        _set_active_expire,
        range(1, 2),
        (
            (
                "SET-ACTIVE-EXPIRE <0|1>",
                "Stops and starts the removal of expired keys that nobody uses.",
            ),
        ),
        "SET-ACTIVE-EXPIRE enabled",
    ),
    b"SLEEP": Subcommand(
        _sleep,
        range(1, 2),
        (("SLEEP <seconds>", "Stops the server for that long; fractions are allowed."),),
        "SLEEP seconds",
    ),
}
"""The subcommands of this module."""

SUBCOMMANDS: Final[dict[bytes, Subcommand]] = dict(
    sorted(
        {
            **OWN,
            **debug_clock.SUBCOMMANDS,
            **debug_faults.SUBCOMMANDS,
            **debug_groups.SUBCOMMANDS,
            **debug_snapshots.SUBCOMMANDS,
            **debug_trace.SUBCOMMANDS,
        }.items()
    )
)
"""All subcommands, by name."""


@command(
    "DEBUG",
    flags="admin noscript loading stale",
    since="1.0.0",
    summary="Commands for testing.",
    complexity="Depends on subcommand.",
    syntax=f"<{' | '.join(entry.syntax for entry in SUBCOMMANDS.values())} | HELP>",
    protected=True,
)
def debug(server: Services, session: Session, args: Arguments) -> Reply:
    """Runs a subcommand; one that is unknown, or has another shape, is an error."""
    name = args[1].upper()
    if name == b"HELP" and len(args) == 2:
        calls = [call for entry in SUBCOMMANDS.values() for call in entry.described]
        lines = [line for call, told in calls for line in (call, f"    {told}")]
        return help_reply("DEBUG", lines)
    entry = SUBCOMMANDS.get(name)
    if entry is None or len(args) - 2 not in entry.counts:
        raise unknown(args)
    return entry.run(server, session, args)
