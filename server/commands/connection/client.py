"""CLIENT: who is connected, and what is done about them."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import NO_REPLY, OK, Bulk, Reply, Verbatim
from server.clients.client_line import client_line, is_printable
from server.commands.connection import errors as connection_errors
from server.commands.connection.client_filters import ClientFilters
from server.commands.connection.connection import checked_name
from server.commands.declare import command, container, help_command
from server.road.session import Session
from server.road.table import Arguments
from server.runtime.arguments import integer, timeout_end
from server.services import Services

_ANYBODY: Final = "noscript loading stale"
_ADMIN: Final = "admin noscript loading stale"
_FILTERS: Final = (
    " [USER username] [ADDR addr] [LADDR laddr] [SKIPME <YES | NO>] [MAXAGE maxage]"
    " [IP ip] [NAME name] [LIB-NAME libname] [LIB-VER libver] [FLAGS flags] [DB index] [IDLE idle]"
)
_ON_ALL_NODES: Final = ("request_policy:all_nodes", "response_policy:all_succeeded")

container(
    "CLIENT",
    since="2.4.0",
    summary="Commands about the clients that are connected.",
)


def _on_or_off(arg: bytes) -> bool:
    word = arg.lower()
    if word not in (b"on", b"off"):
        raise CommandError(errors.SYNTAX)
    return word == b"on"


# --- the client itself -----------------------------------------------------------------------


@command(
    "CLIENT ID",
    flags=_ANYBODY,
    since="5.0.0",
    summary="Tells the number of this connection.",
)
def client_id(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of this connection; later ones have higher numbers."""
    return session.id


@command(
    "CLIENT GETNAME",
    flags=_ANYBODY,
    since="2.6.9",
    summary="Tells the name that this connection was given.",
)
def getname(server: Services, session: Session, args: Arguments) -> Reply:
    """The connection's name, or null."""
    return Bulk(session.name) if session.name else None


@command(
    "CLIENT SETNAME",
    flags=_ANYBODY,
    since="2.6.9",
    summary="Names this connection.",
    syntax="connection-name",
    tips=_ON_ALL_NODES,
)
def setname(server: Services, session: Session, args: Arguments) -> Reply:
    """Names the connection; an empty name takes its name away."""
    session.name = checked_name(args[2])
    return OK


@command(
    "CLIENT SETINFO",
    flags=_ANYBODY,
    since="7.2.0",
    summary="Notes the library that speaks for the client, or its version.",
    syntax="<LIB-NAME libname | LIB-VER libver>",
    tips=_ON_ALL_NODES,
)
def setinfo(server: Services, session: Session, args: Arguments) -> Reply:
    """Notes the client's library."""
    option = args[2].upper()
    if option not in (b"LIB-NAME", b"LIB-VER"):
        raise CommandError(connection_errors.unrecognized_attribute(args[2]))
    if not is_printable(args[3]):
        raise CommandError(connection_errors.bad_client_attribute(args[2]))
    if option == b"LIB-NAME":
        session.lib_name = args[3]
    else:
        session.lib_ver = args[3]
    return OK


@command(
    "CLIENT INFO",
    flags=_ANYBODY,
    since="6.2.0",
    summary="Describes this connection.",
    tips=["nondeterministic_output"],
)
def info(server: Services, session: Session, args: Arguments) -> Reply:
    """This connection's line of CLIENT LIST."""
    return Verbatim(client_line(session, server.state.clock()))


@command(
    "CLIENT NO-EVICT",
    flags=_ADMIN,
    since="7.0.0",
    summary="Spares this connection when clients are closed to free memory.",
    syntax="<ON | OFF>",
)
def no_evict(server: Services, session: Session, args: Arguments) -> Reply:
    """Sets the mark that the line of CLIENT LIST shows as ``e``."""
    session.no_evict = _on_or_off(args[2])
    return OK


@command(
    "CLIENT NO-TOUCH",
    flags=_ANYBODY,
    since="7.2.0",
    summary="Lets this connection's commands leave the idle time of keys alone.",
    syntax="<ON | OFF>",
)
def no_touch(server: Services, session: Session, args: Arguments) -> Reply:
    """Sets the mark that the line of CLIENT LIST shows as ``T``."""
    session.no_touch = _on_or_off(args[2])
    return OK


@command(
    "CLIENT REPLY",
    flags=_ANYBODY,
    since="3.2.0",
    summary="Turns the replies to this connection on or off, or leaves out the next one.",
    syntax="<ON | OFF | SKIP>",
)
def reply(server: Services, session: Session, args: Arguments) -> Reply:
    """Says whether replies are sent; only ON is itself answered."""
    mode = args[2].lower()
    if mode == b"on":
        session.muting = None
        session.update_reasons()
        return OK
    if mode not in (b"off", b"skip"):
        raise CommandError(errors.SYNTAX)
    if session.muting != "off":
        session.muting = mode.decode()
        session.update_reasons()
    return NO_REPLY


# --- other clients ---------------------------------------------------------------------------


@command(
    "CLIENT LIST",
    flags=_ADMIN,
    since="2.4.0",
    summary="Describes the connections, a line each.",
    complexity="O(N) in the number of connections.",
    syntax="[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>] [ID client-id [client-id ...]]" + _FILTERS,
    tips=["nondeterministic_output"],
    history=[
        ("2.8.12", "Each connection has a number, `id`."),
        ("5.0.0", "The option `TYPE`."),
        ("6.0.0", "The field `user`."),
        ("6.2.0", "The fields `argv-mem`, `tot-mem`, `laddr` and `redir`; the option `ID`."),
        ("7.0.0", "The fields `resp`, `multi-mem`, `rbs` and `rbp`."),
        ("7.0.3", "The field `ssub`."),
        ("7.2.0", "The fields `lib-name` and `lib-ver`."),
        ("7.4.0", "The field `watch`."),
        ("8.0.0", "The field `io-thread`."),
        ("8.8.0", "The fields `read-events`, `parse-batch-cmd-sum` and `parse-batch-cnt`."),
    ],
)
def list_(server: Services, session: Session, args: Arguments) -> Reply:
    """The lines of all clients, or of those that pass the filters."""
    now = server.state.clock()
    return Verbatim(b"".join(client_line(chosen, now) for chosen in _listed(server, session, args)))


def _listed(server: Services, session: Session, args: Arguments) -> list[Session]:
    sessions = server.state.sessions
    filters = ClientFilters(server, session, args, spares_caller=False)
    if filters.only_numbers is not None:
        return [sessions[number] for number in filters.only_numbers if number in sessions]
    return [other for other in sessions.values() if filters.match(other)]


@command(
    "CLIENT KILL",
    arity=-3,
    flags=_ADMIN,
    since="2.4.0",
    summary="Closes connections.",
    complexity="O(N) in the number of connections.",
    syntax="<ip:port | [ID client-id [client-id ...]] [TYPE <NORMAL | MASTER | REPLICA | PUBSUB>]"
    f"{_FILTERS}>",
    history=[
        ("2.8.12", "Several filters, each with its name."),
        ("2.8.12", "The filter `ID`."),
        ("3.2.0", "The type `master`."),
        ("5.0.0", "The type `slave` is called `replica`; the old name is understood."),
        ("6.2.0", "The filter `LADDR`."),
        ("7.4.0", "The filter `MAXAGE`."),
    ],
)
def kill(server: Services, session: Session, args: Arguments) -> Reply:
    """Closes the client at an address, or those that pass the filters, and says how many."""
    sessions = list(server.state.sessions.values())
    if len(args) == 3:
        chosen = [other for other in sessions if other.addr.encode() == args[2]]
        if not chosen:
            raise CommandError(connection_errors.NO_SUCH_CLIENT)
        _close(session, chosen[:1])
        return OK
    filters = ClientFilters(server, session, args, spares_caller=True)
    chosen = [other for other in sessions if filters.match(other)]
    _close(session, chosen)
    return len(chosen)


def _close(session: Session, chosen: list[Session]) -> None:
    """Closes the clients; the caller hears the reply first."""
    for other in chosen:
        if other is session:
            session.closing = True
        else:
            other.close()


@command(
    "CLIENT UNBLOCK",
    flags=_ADMIN,
    since="5.0.0",
    summary="Ends the wait of a client that is blocked.",
    syntax="client-id [TIMEOUT | ERROR]",
)
def unblock(server: Services, session: Session, args: Arguments) -> Reply:
    """Lets a client's wait end as if its time were up, or with an error."""
    if len(args) > 4:
        raise CommandError(errors.bad_subcommand("client", args[1]))
    reason = args[3].upper() if len(args) == 4 else b"TIMEOUT"
    if reason not in (b"TIMEOUT", b"ERROR"):
        raise CommandError(connection_errors.UNBLOCK_REASON)
    other = server.state.sessions.get(integer(args[2]))
    if other is None or other.waiter is None:
        return 0
    if reason == b"ERROR":
        server.blocking.fail(other.waiter, connection_errors.CLIENT_UNBLOCKED)
    else:
        server.blocking.time_out(other.waiter)
    return 1


@command(
    "CLIENT PAUSE",
    flags=_ADMIN,
    since="3.0.0",
    summary="Holds commands back for a while, all of them or those that write.",
    syntax="timeout [WRITE | ALL]",
    history=[("6.2.0", "The modes `WRITE` and `ALL`.")],
)
def pause(server: Services, session: Session, args: Arguments) -> Reply:
    """Lets the commands of every client wait."""
    if len(args) > 4:
        raise CommandError(errors.bad_subcommand("client", args[1]))
    mode = args[3].upper() if len(args) == 4 else b"ALL"
    if mode not in (b"WRITE", b"ALL"):
        raise CommandError(connection_errors.PAUSE_MODE)
    until = timeout_end(args[2], session.db.keyspace.now_ms)
    server.pauses.pause(until, mode == b"ALL")
    return OK


@command(
    "CLIENT UNPAUSE",
    flags=_ADMIN,
    since="6.2.0",
    summary="Ends a pause.",
    complexity="O(N) in the number of clients that wait.",
)
def unpause(server: Services, session: Session, args: Arguments) -> Reply:
    """Lets commands that were held back go on."""
    server.pauses.unpause()
    return OK


help_command("CLIENT", since="5.0.0")
