"""Commands of replication: a server that replicas may follow, and that follows no other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.inline import split_words
from protocol.replies import NO_REPLY, OK, Encoded, Reply
from server.commands.declare import command
from server.commands.replication import errors as replication_errors
from server.core.outcomes import Wait, wait_for_sync
from server.core.table import Arguments
from server.runtime.arguments import integer, integer_between, parse_integer, timeout_end
from server.services import Services
from server.state.session import Session

_HIGHEST_PORT: Final = 65535
_LONGEST_ADDRESS: Final = 255
_SYNC_FLAGS: Final = "admin noscript no_async_loading no_multi"


@command(
    "ROLE",
    flags="noscript loading stale fast",
    since="2.8.12",
    categories="admin dangerous",
    summary="Tells the part that the server has in replication, and who follows it.",
)
def role(server: Services, session: Session, args: Arguments) -> Reply:
    """The role, how long the stream of replication is, and of each replica that follows it the
    address, the port, and how much of the stream it has."""
    replicas: Reply = [
        [replica.address, str(replica.introduction.port), str(replica.acknowledged)]
        for replica in server.replication.following()
    ]
    return ["master", server.replication.feed.end, replicas]


# --- synchronising ---------------------------------------------------------------------------


@command(
    "PSYNC",
    arity=-3,
    flags=_SYNC_FLAGS,
    since="2.8.0",
    summary="Makes the client a replica, which continues where it was if possible.",
    syntax="replicationid offset",
)
def psync(server: Services, session: Session, args: Arguments) -> Reply:
    """Whether the replica may go on; if not, the beginning of the stream is told once a snapshot
    is being made."""
    if session.follower is not None:
        return NO_REPLY
    _require_silence(session)
    offset = integer(args[2])
    if len(args) > 3 and args[3].upper() == b"FAILOVER":
        raise CommandError(replication_errors.PSYNC_FAILOVER)
    replication = server.replication
    # A replica names the first byte that it lacks, and counts from one.
    name = args[1].decode("ascii", "replace")
    reply = replication.resume_from(session, name, offset - 1)
    if reply:
        return Encoded(reply)
    replication.synchronise(session, speaks=True)
    return NO_REPLY


@command(
    "SYNC",
    flags=_SYNC_FLAGS,
    since="1.0.0",
    summary="Makes the client a replica, which gets a snapshot and then what happens.",
)
def sync(server: Services, session: Session, args: Arguments) -> Reply:
    """Nothing yet: the snapshot follows, once it has been made."""
    if session.follower is None:
        _require_silence(session)
        server.replication.synchronise(session, speaks=False)
    return NO_REPLY


def _require_silence(session: Session) -> None:
    """Raises :class:`CommandError` if the client is told of anything else."""
    if session.subscriptions or session.monitoring or session.tracking is not None:
        raise CommandError(replication_errors.TOLD_OF_OTHERS)


@command(
    "REPLCONF",
    arity=-1,
    flags="admin noscript loading stale allow_busy",
    since="3.0.0",
    summary="Says something about a replica, or how much of the stream it has.",
)
def replconf(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, or nothing to what a replica acknowledges."""
    if len(args) % 2 == 0:
        raise CommandError(errors.SYNTAX)
    for at in range(1, len(args), 2):
        name = args[at].lower()
        if name == b"ack":
            _acknowledge(server, session, args[at + 1 :])
            return NO_REPLY
        if name == b"getack":  # This asks a replica, which the server is not.
            return NO_REPLY
        _introduce(server, session, args[at], args[at + 1])
    return OK


def _acknowledge(server: Services, session: Session, args: Arguments) -> None:
    """``offset [FACK offset]``: how much a replica has, and has on its disk."""
    position = parse_integer(args[0])
    if session.follower is None or position is None:
        return
    on_disk = None
    if len(args) > 2 and args[1].lower() == b"fack":
        on_disk = parse_integer(args[2])
    server.replication.acknowledge(session, position, on_disk)


def _introduce(server: Services, session: Session, name: bytes, value: bytes) -> None:
    """Takes what a replica says of itself; raises :class:`CommandError`."""
    introduction = server.replication.introduction_of(session)
    option = name.lower()
    if option == b"listening-port":
        introduction.port = integer(value)
    elif option == b"ip-address":
        if len(value) > _LONGEST_ADDRESS:
            raise CommandError(replication_errors.address_too_long(len(value)))
        text = value.decode("utf-8", "replace")
        # It stands in lines of INFO and of the log, and must not begin another.
        introduction.address = "".join(each if each.isprintable() else " " for each in text)
    elif option == b"capa":
        introduction.capabilities.add(value.lower())
    elif option == b"rdb-only":
        introduction.only_snapshot = bool(integer_between(value, 0, 1))
    elif option == b"rdb-filter-only":
        introduction.contents = _contents(value)
    elif option == b"version":
        introduction.version = _version(value)
    else:
        raise CommandError(replication_errors.unrecognized_replconf(name))


def _contents(value: bytes) -> frozenset[str]:
    """Parse what a snapshot is to hold besides keys: functions, or nothing."""
    words = split_words(value)
    if words is None:
        raise CommandError(replication_errors.RDB_FILTER_MISSING)
    for word in words:
        if word.lower() != b"functions":
            raise CommandError(replication_errors.unsupported_rdb_filter(word))
    return frozenset(word.decode().lower() for word in words)


def _version(value: bytes) -> str:
    """The version that a Valkey says it is: three numbers."""
    parts = value.split(b".")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        raise CommandError(replication_errors.unrecognized_version(value))
    return value.decode()


# --- waiting for replicas --------------------------------------------------------------------


_waiting = partial(
    command,
    flags="blocking",
    group="generic",
    categories="-keyspace connection",
    tips=["request_policy:all_shards", "response_policy:agg_min"],
)


@_waiting(
    "WAIT",
    since="3.0.0",
    summary="Waits until so many replicas have the client's writes so far.",
    syntax="numreplicas timeout",
)
def wait(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """How many replicas have the writes."""
    replicas = integer(args[1])
    deadline = _deadline(session, args[2])
    outcome = _await_replicas(server, session, replicas, deadline)
    if isinstance(outcome, Wait):
        server.replication.ask()
    return outcome


def _deadline(session: Session, timeout: bytes) -> int | None:
    """When a wait ends, in Unix milliseconds; ``None`` for never."""
    now = session.db.keyspace.now_ms
    end = timeout_end(timeout, now)
    return end if end > now else None


def _await_replicas(
    server: Services, session: Session, replicas: int, deadline: int | None
) -> Reply | Wait:
    position = server.replication.written_by(session)
    count = server.replication.count_acknowledged(position)
    if count >= replicas:
        return count
    return wait_for_sync(
        deadline,
        lambda: _await_replicas(server, session, replicas, deadline),
        count,
    )


@_waiting(
    "WAITAOF",
    since="7.2.0",
    summary="Waits until the client's writes so far are on the disk, here and at replicas.",
    syntax="numlocal numreplicas timeout",
)
def waitaof(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """Whether the writes are on the disk here, 1 or 0, and at how many replicas."""
    local = integer_between(args[1], 0, 1)
    replicas = _count(args[2])
    outcome = _await_sync(server, session, local, replicas, _deadline(session, args[3]))
    if isinstance(outcome, Wait) and replicas:
        server.replication.ask()
    return outcome


def _count(arg: bytes) -> int:
    value = parse_integer(arg)
    if value is None or value < 0:
        raise CommandError(errors.MUST_BE_POSITIVE)
    return value


def _await_sync(
    server: Services, session: Session, local: int, replicas: int, deadline: int | None
) -> Reply | Wait:
    persistence, replication = server.persistence, server.replication
    if local and not persistence.on:
        raise CommandError(replication_errors.WAITAOF_WITHOUT_AOF)
    synced = int(persistence.on and persistence.appender.is_synced(session))
    position = replication.written_by(session)
    count = replication.count_acknowledged(position, on_disk=True)
    if synced >= local and count >= replicas:
        return [synced, count]
    return wait_for_sync(
        deadline,
        lambda: _await_sync(server, session, local, replicas, deadline),
        [synced, count],
    )


# --- being a replica -------------------------------------------------------------------------


_following = partial(
    command,
    flags="admin noscript stale no_async_loading",
    summary="Takes only NO ONE: the server cannot be a replica of another.",
    syntax="<host port | NO ONE>",
)


@_following("SLAVEOF", since="1.0.0", deprecated=("5.0.0", "`REPLICAOF`"))
@_following("REPLICAOF", since="5.0.0")
def replicaof(server: Services, session: Session, args: Arguments) -> Reply:
    """OK to ``NO ONE``, which is what the server does anyway; an error to all else."""
    if (args[1].upper(), args[2].upper()) == (b"NO", b"ONE"):
        return OK
    port = parse_integer(args[2])
    if port is None or not 0 <= port <= _HIGHEST_PORT:
        raise CommandError(replication_errors.INVALID_MASTER_PORT)
    raise CommandError(replication_errors.NO_REPLICA)


@command(
    "FAILOVER",
    flags="admin noscript stale",
    since="6.2.0",
    summary="Refused: it would hand the role of master over to a replica.",
    syntax="[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
)
def failover(server: Services, session: Session, args: Arguments) -> Reply:
    """An error, once the arguments are found to be right."""
    if [arg.upper() for arg in args[1:]] == [b"ABORT"]:
        raise CommandError(replication_errors.NO_FAILOVER)
    allowed = {b"TO", b"TIMEOUT", b"FORCE"}
    words = iter(args[1:])
    for word in words:
        option = word.upper()
        if option not in allowed:
            raise CommandError(errors.SYNTAX)
        allowed.remove(option)
        _read_failover_option(option, words)
    if not server.replication.replicas:
        raise CommandError(replication_errors.FAILOVER_NEEDS_REPLICAS)
    raise CommandError(replication_errors.NO_HANDOVER)


def _read_failover_option(option: bytes, words: Iterator[bytes]) -> None:
    """Takes what follows the option; raises :class:`CommandError` if that is not as it must be."""
    values = [next(words, None) for _ in range(_FAILOVER_VALUES[option])]
    if None in values:
        raise CommandError(errors.SYNTAX)
    if option == b"TIMEOUT" and integer(values[0] or b"") <= 0:
        raise CommandError(replication_errors.FAILOVER_TIMEOUT)
    if option == b"TO":
        integer(values[1] or b"")


_FAILOVER_VALUES: Final = {b"TO": 2, b"TIMEOUT": 1, b"FORCE": 0}
"""How many arguments follow each option."""
