"""DEBUG: what tests need of a server, its own and those of client libraries."""

from __future__ import annotations

import re
import secrets
import time
from typing import Final

from protocol import errors
from protocol.encoder import error_line
from protocol.errors import CommandError, shown
from protocol.replies import OK, Bulk, Encoded, Map, Reply, Simple
from server.commands.declare import command, help_reply
from server.commands.keys.values import encoding_of, references
from server.commands.testing import debug_faults, debug_reset  # noqa: F401  declare subcommands
from server.commands.testing.subcommands import SUBCOMMANDS, require_serving, subcommand, unknown
from server.core.outcomes import Outcome
from server.core.table import Arguments
from server.faults import errors as fault_errors
from server.faults.interception import SavedData
from server.persistence.manager import PersistenceError
from server.runtime.arguments import INT64_MAX, integer_between
from server.runtime.clock import LATEST_MS
from server.services import Services
from server.state.monitors import Traced
from server.state.server_state import Phase
from server.state.session import Session
from storage.aof.snapshot import serialized_length
from storage.engine.stream import Stream
from storage.keyspace.copies import copy_of, put_back

_NUMBER: Final = re.compile(rb"\s*[+-]?(?:\d+\.?\d*|\.\d+)")
_LRU_BITS: Final = 0xFFFFFF


# --- the life of the server ------------------------------------------------------------------


@subcommand(("SLEEP <seconds>", "Stops the server for that long; fractions are allowed."))
def _sleep(server: Services, session: Session, args: Arguments) -> Reply:
    """Sleep. Nobody is served meanwhile, which is what tests of time-outs ask for it for."""
    time.sleep(max(0.0, _leading_number(args[2])))
    return OK


def _leading_number(text: bytes) -> float:
    """Return the number that the text begins with, 0 if there is none: DEBUG takes anything."""
    found = _NUMBER.match(text)
    return float(found[0]) if found is not None else 0.0


@subcommand(
    ("SET-ACTIVE-EXPIRE <0|1>", "Stops and starts the removal of expired keys that nobody uses."),
    syntax="SET-ACTIVE-EXPIRE enabled",
)
def _set_active_expire(server: Services, session: Session, args: Arguments) -> Reply:
    server.cron.active_expiry = _leading_number(args[2]) != 0
    return OK


@subcommand(("LOG <message>", "Writes the message to the server's log."))
def _log(server: Services, session: Session, args: Arguments) -> Reply:
    server.state.log.warning(f"DEBUG LOG: {shown(args[2])}")
    return OK


@subcommand(("CHANGE-REPL-ID", "Gives the server another replication ID."))
def _change_replication_id(server: Services, session: Session, args: Arguments) -> Reply:
    server.replication.id = secrets.token_hex(20)
    return OK


@subcommand(("LOADAOF", "Makes all data anew from the append-only file."))
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


@subcommand(("RELOAD", "Makes all data anew from what a new base would hold."))
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


@subcommand(("ERROR <text>", "Answers with the error."))
def _error(server: Services, session: Session, args: Arguments) -> Reply:
    """Answer with an error, which is no failure of the command, and not counted as one."""
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


@subcommand(
    (
        "PROTOCOL <type>",
        "Answers with a value of the type: string, integer, double, bignum, null, array,"
        " set, map, attrib, push, verbatim, true or false.",
    )
)
def _protocol(server: Services, session: Session, args: Arguments) -> Reply:
    sample = _SAMPLES.get(args[2].upper())
    if sample is None:
        raise CommandError(errors.BAD_PROTOCOL_TYPE)
    return Encoded(sample[session.resp3])


# --- keys and groups -------------------------------------------------------------------------


@subcommand(("OBJECT <key>", "Tells how a value is kept."))
def _object(server: Services, session: Session, args: Arguments) -> Reply:
    """Tell how a value is kept. Its serialized length is that of the commands that make it anew."""
    database, key = session.db, args[2]
    if database.get(key) is None:
        raise CommandError(errors.NO_SUCH_KEY)
    value, used = database.values[key], database.used_at(key)
    idle = max(0, database.keyspace.now_ms - used) // 1000
    return Simple(
        f"Value at:0x{id(value):x} refcount:{references(database, key)}"
        f" encoding:{encoding_of(database, key)}"
        f" serializedlength:{serialized_length(database, key)}"
        f" lru:{used // 1000 & _LRU_BITS} lru_seconds_idle:{idle}"
    )


@subcommand(
    (
        "GROUP <key> <group>",
        "Counts what has happened to the entries of a group since it is in memory.",
    )
)
def _describe_group(server: Services, session: Session, args: Arguments) -> Reply:
    """Return the counters of a group, from when it came into memory on, and how many entries are
    pending. Looking at it is no use of the key."""
    key, name = args[2], args[3]
    stream = session.db.get(key)
    if stream is None:
        raise CommandError(errors.NO_SUCH_KEY)
    if not isinstance(stream, Stream):
        raise CommandError(errors.WRONG_TYPE)
    group = stream.groups.get(name)
    if group is None:
        raise CommandError(errors.no_group_for_key(name, key))
    return Map(
        [
            ("delivered", group.delivered),
            ("redelivered", group.redelivered),
            ("acked", group.acked),
            ("claimed", group.claimed),
            ("released", group.released),
            ("pending", len(group.pending)),
        ]
    )


# --- the clock ---------------------------------------------------------------------------------


_CLOCK_WITH_NUMBER: Final = frozenset({b"ADVANCE", b"SET", b"FREEZE"})
_CLOCK_ALONE: Final = frozenset({b"RESET", b"FREEZE"})


@subcommand(
    ("CLOCK ADVANCE <milliseconds>", "Moves the server's time forward; what is due happens now."),
    (
        "CLOCK SET <unix-time-milliseconds>",
        "Sets the server's time, which runs on from there unless it stands still.",
    ),
    (
        "CLOCK FREEZE [<unix-time-milliseconds>]",
        "Lets the time stand still, at this time or as it is, until it is moved or reset.",
    ),
    ("CLOCK RESET", "Goes back to the real time, which runs."),
    syntax="CLOCK <ADVANCE milliseconds | SET unix-time-milliseconds"
    " | FREEZE [unix-time-milliseconds] | RESET>",
    counts=range(1, 3),
)
def _turn_clock(server: Services, session: Session, args: Arguments) -> Reply:
    """Turn the clock. Not within a transaction: what falls due would happen in the middle of it."""
    way = args[2].upper()
    number = _clock_number(server, way, args)
    require_serving(server, session)
    server.cron.turn_clock(_clock_step(server, way, number))
    # The client is not idle, whatever time it is now.
    session.seen_ms = server.state.clock()
    return OK


def _clock_number(server: Services, way: bytes, args: Arguments) -> int | None:
    """Parse what follows the way in which the clock is set, if anything does."""
    if way not in (_CLOCK_ALONE if len(args) == 3 else _CLOCK_WITH_NUMBER):
        raise unknown(args)
    if len(args) == 3:
        return None
    most = LATEST_MS - server.state.clock() if way == b"ADVANCE" else LATEST_MS
    return integer_between(args[3], 0, most)


def _clock_step(server: Services, way: bytes, number: int | None) -> int:
    """Return the milliseconds by which to turn the clock, which stands still or runs from now."""
    state = server.state
    if way == b"RESET":
        state.release_clock()
        return -state.timekeeper.offset_ms
    if way == b"FREEZE":
        state.freeze_clock()
    if number is None:
        return 0
    return number if way == b"ADVANCE" else number - state.clock()


# --- snapshots of all data ---------------------------------------------------------------------


def _take_snapshot(server: Services, name: bytes) -> Reply:
    state = server.state
    taken = SavedData(copy_of(state.keyspace), state.clock(), state.timekeeper.frozen)
    server.interception.snapshots[name] = taken
    return OK


def _restore_snapshot(
    server: Services, session: Session, name: bytes, options: set[bytes]
) -> Reply:
    """Put a copy back. What was changed is written to the append-only file and to replicas as by
    any command that writes, so a disk that cannot take it prevents it."""
    state = server.state
    kept = server.interception.snapshots.get(name)
    if kept is None:
        raise CommandError(fault_errors.no_such_snapshot(name))
    if state.disk_error is not None:
        raise CommandError(errors.disk_error(state.disk_error))
    if b"CLOCK" in options:
        state.keyspace.now_ms = kept.at_ms  # What has expired since has not yet.
    put_back(state.keyspace, kept.data)
    if b"CLOCK" in options:
        # What becomes due is due with the data of that time.
        server.reactions.apply(session)
        if kept.frozen:
            state.freeze_clock()
        else:
            state.release_clock()
        server.cron.turn_clock(kept.at_ms - state.clock())
        session.seen_ms = state.clock()
    if b"FLUSHSCRIPTS" in options:
        server.scripting.flush()
    server.tracking.flush()
    return OK


def _drop_snapshot(server: Services, name: bytes) -> Reply:
    return int(server.interception.snapshots.pop(name, None) is not None)


_SNAPSHOT_WAYS: Final = {
    b"TAKE": _take_snapshot,
    b"DROP": _drop_snapshot,
}
_RESTORE_OPTIONS: Final = frozenset({b"CLOCK", b"FLUSHSCRIPTS"})


@subcommand(
    ("SNAPSHOT TAKE <name>", "Keeps all data as it is now, in memory, under this name."),
    (
        "SNAPSHOT RESTORE <name> [CLOCK] [FLUSHSCRIPTS]",
        "Puts it back, in place of everything there is; the time as well, and without scripts.",
    ),
    ("SNAPSHOT DROP <name>", "Forgets it; tells whether it was there."),
    ("SNAPSHOT LIST", "Lists the names."),
    syntax="SNAPSHOT <TAKE name | RESTORE name [CLOCK] [FLUSHSCRIPTS] | DROP name | LIST>",
    counts=range(1, 5),
)
def _snapshot(server: Services, session: Session, args: Arguments) -> Reply:
    """Takes, restores, drops or lists snapshots. Not within a transaction, of which the rest would
    be about other data."""
    way = args[2].upper()
    if way == b"LIST" and len(args) == 3:
        return [Bulk(name) for name in sorted(server.interception.snapshots)]
    run = _SNAPSHOT_WAYS.get(way)
    options = {word.upper() for word in args[4:]}
    restores = way == b"RESTORE" and len(args) > 3
    if not restores and (run is None or len(args) != 4):
        raise unknown(args)
    if not options <= _RESTORE_OPTIONS:
        raise CommandError(fault_errors.BAD_RESTORE)
    require_serving(server, session)
    if run is None:
        return _restore_snapshot(server, session, args[3], options)
    return run(server, args[3])


# --- the trace of what clients send ------------------------------------------------------------


@subcommand(
    ("TRACE START [CLIENT <name-pattern>]", "Notes from now on which commands other clients send."),
    (
        "TRACE GET [COUNT <count>]",
        "Takes them: time, client, its name, database and words of each.",
    ),
    ("TRACE STATUS", "Tells how many are kept, and how many were too many to be kept."),
    ("TRACE STOP", "Notes nothing more."),
    syntax="TRACE <START [CLIENT name-pattern] | GET [COUNT count] | STATUS | STOP>",
    counts=range(1, 4),
)
def _trace(server: Services, session: Session, args: Arguments) -> Reply:
    """Starts or stops the trace, takes what is in it, or tells about it."""
    way, options = args[2].upper(), args[3:]
    if way == b"START" and len(options) in (0, 2):
        return _start_trace(server, session, options)
    if way == b"GET" and len(options) in (0, 2):
        return _take_traced(server, options)
    if way == b"STOP" and not options:
        server.interception.stop_trace()
        return OK
    if way == b"STATUS" and not options:
        return _trace_status(server)
    raise unknown(args)


def _start_trace(server: Services, session: Session, options: Arguments) -> Reply:
    pattern = None
    if options:
        if options[0].upper() != b"CLIENT":
            raise CommandError(errors.SYNTAX)
        pattern = options[1]
    server.interception.start_trace(session.id, pattern)
    return OK


def _take_traced(server: Services, options: Arguments) -> Reply:
    count = None
    if options:
        if options[0].upper() != b"COUNT":
            raise CommandError(errors.SYNTAX)
        count = integer_between(options[1], 1, INT64_MAX)
    return [_traced(traced) for traced in server.interception.trace.take(count)]


def _traced(traced: Traced) -> Reply:
    words: list[Reply] = [Bulk(word) for word in traced.words]
    return [traced.at, traced.client, Bulk(traced.name), traced.db, words]


def _trace_status(server: Services) -> Reply:
    noted = server.interception.trace
    return Map(
        [
            ("running", int(noted.running)),
            ("client", None if noted.pattern is None else Bulk(noted.pattern)),
            ("kept", noted.kept),
            ("lost", noted.lost),
        ]
    )


# --- the command -------------------------------------------------------------------------------


@command(
    "DEBUG",
    flags="admin noscript loading stale",
    since="1.0.0",
    summary="Commands for testing.",
    complexity="Depends on subcommand.",
    syntax=f"<{' | '.join(SUBCOMMANDS[name].syntax for name in sorted(SUBCOMMANDS))} | HELP>",
    protected=True,
)
def debug(server: Services, session: Session, args: Arguments) -> Outcome:
    """What the subcommand answers; one that is unknown, or has another shape, is an error."""
    name = args[1].upper()
    if name == b"HELP" and len(args) == 2:
        calls = [call for name in sorted(SUBCOMMANDS) for call in SUBCOMMANDS[name].calls]
        lines = [line for call, told in calls for line in (call, f"    {told}")]
        return help_reply("DEBUG", lines)
    entry = SUBCOMMANDS.get(name)
    if entry is None or len(args) - 2 not in entry.counts:
        raise unknown(args)
    return entry.run(server, session, args)
