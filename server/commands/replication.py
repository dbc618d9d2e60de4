"""Commands of replication, as a server answers them that has no replicas and cannot be one.

WAITAOF is more than that: it waits until the client's own changes are on the disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, OK, Reply
from server.command_table import Arguments, command
from server.outcomes import Wait
from server.services import Services
from server.session import Session
from server.util.arguments import integer, integer_between, parse_integer, timeout_end

_HIGHEST_PORT: Final = 65535
_REPLICA_FLAGS: Final = "admin noscript stale no_async_loading"
_WAIT_TIPS: Final = ["request_policy:all_shards", "response_policy:agg_min"]


@command(
    "ROLE",
    1,
    flags="noscript loading stale fast",
    group="server",
    since="2.8.12",
    categories="admin dangerous",
    summary="Tells the part that the server has in replication: a master without replicas.",
)
def role(server: Services, session: Session, args: Arguments) -> Reply:
    """The role, the offset of the replication stream, which never begins, and no replicas."""
    return ["master", 0, EMPTY_ARRAY]


@command(
    "WAIT",
    3,
    flags="blocking",
    group="generic",
    since="3.0.0",
    categories="-keyspace connection",
    summary="Waits until replicas have got the writes so far; there are never any replicas.",
    syntax="numreplicas timeout",
    tips=_WAIT_TIPS,
)
def wait(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """The number of replicas that have the writes: none, however long one waits."""
    replicas = integer(args[1])
    now = session.db.keyspace.now_ms
    end = timeout_end(args[2], now)
    if replicas <= 0:
        return 0
    block = Wait([], end if end > now else None, lambda: block, needs_key=False, on_timeout=0)
    return block


@command(
    "WAITAOF",
    4,
    flags="blocking",
    group="generic",
    since="7.2.0",
    categories="-keyspace connection",
    summary="Waits until the client's writes so far are on the disk, here and at replicas.",
    syntax="numlocal numreplicas timeout",
    tips=_WAIT_TIPS,
)
def waitaof(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """Whether the writes are on the disk here, 1 or 0, and at how many replicas, always 0."""
    local = integer_between(args[1], 0, 1)
    replicas = _count(args[2])
    now = session.db.keyspace.now_ms
    end = timeout_end(args[3], now)
    return _await_sync(server, session, local, replicas, end if end > now else None)


def _count(arg: bytes) -> int:
    value = parse_integer(arg)
    if value is None or value < 0:
        raise CommandError(errors.MUST_BE_POSITIVE)
    return value


def _await_sync(
    server: Services, session: Session, local: int, replicas: int, deadline: int | None
) -> Reply | Wait:
    persistence = server.persistence
    if local and not persistence.on:
        raise CommandError(errors.WAITAOF_WITHOUT_AOF)
    synced = int(persistence.on and persistence.appender.is_synced(session))
    if synced >= local and not replicas:
        return [synced, 0]
    return Wait(
        [],
        deadline,
        lambda: _await_sync(server, session, local, replicas, deadline),
        needs_key=False,
        on_timeout=[synced, 0],
        for_sync=True,
    )


# --- being a replica -------------------------------------------------------------------------


def replicaof(server: Services, session: Session, args: Arguments) -> Reply:
    """Refuses to follow another server. ``NO ONE`` is what the server does anyway."""
    if (args[1].upper(), args[2].upper()) == (b"NO", b"ONE"):
        return OK
    port = parse_integer(args[2])
    if port is None or not 0 <= port <= _HIGHEST_PORT:
        raise CommandError(errors.INVALID_MASTER_PORT)
    raise CommandError(errors.NO_REPLICA)


command(
    "REPLICAOF",
    3,
    flags=_REPLICA_FLAGS,
    group="server",
    since="5.0.0",
    summary="Takes only NO ONE: the server cannot be a replica of another.",
    syntax="<host port | NO ONE>",
)(replicaof)

command(
    "SLAVEOF",
    3,
    flags=_REPLICA_FLAGS,
    group="server",
    since="1.0.0",
    summary="Takes only NO ONE: the server cannot be a replica of another.",
    syntax="<host port | NO ONE>",
    deprecated=("5.0.0", "`REPLICAOF`"),
)(replicaof)


@command(
    "FAILOVER",
    -1,
    flags="admin noscript stale",
    group="server",
    since="6.2.0",
    summary="Hands the role of master over to a replica, of which there are none.",
    syntax="[TO host port [FORCE]] [ABORT] [TIMEOUT milliseconds]",
)
def failover(server: Services, session: Session, args: Arguments) -> Reply:
    """Refused, as by a master without replicas, once the arguments are found to be right."""
    if [arg.upper() for arg in args[1:]] == [b"ABORT"]:
        raise CommandError(errors.NO_FAILOVER)
    allowed = {b"TO", b"TIMEOUT", b"FORCE"}
    words = iter(args[1:])
    for word in words:
        option = word.upper()
        if option not in allowed:
            raise CommandError(errors.SYNTAX)
        allowed.remove(option)
        _read_failover_option(option, words)
    raise CommandError(errors.FAILOVER_NEEDS_REPLICAS)


def _read_failover_option(option: bytes, words: Iterator[bytes]) -> None:
    """Takes what follows the option; raises :class:`CommandError` if that is not as it must be."""
    values = [next(words, None) for _ in range(_FAILOVER_VALUES[option])]
    if None in values:
        raise CommandError(errors.SYNTAX)
    if option == b"TIMEOUT" and integer(values[0] or b"") <= 0:
        raise CommandError(errors.FAILOVER_TIMEOUT)
    if option == b"TO":
        integer(values[1] or b"")


_FAILOVER_VALUES: Final = {b"TO": 2, b"TIMEOUT": 1, b"FORCE": 0}
"""How many arguments follow each option."""
