"""CLIENT: who is connected, and what is done about them.

CLIENT LIST lists, and CLIENT KILL closes, the clients that pass all filters. These are the filters
of Redis, and those that Valkey has besides, with their ``NOT-`` forms.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import NO_REPLY, OK, Bulk, Reply, Verbatim
from server.clients.client_line import (
    KNOWN_FLAGS,
    client_flags,
    client_line,
    client_type,
    is_printable,
)
from server.commands.connection import errors as connection_errors
from server.commands.connection.connection import checked_name
from server.commands.declare import command, container, help_command
from server.core.outcomes import AT_ONCE, Steps, reply_of
from server.core.table import Arguments
from server.runtime.arguments import integer, parse_integer, timeout_end
from server.services import Services
from server.state.session import Session

# --- the clients that are meant ----------------------------------------------------------------


Filter = Callable[[Session], bool]
Maker = Callable[[Services, bytes], Filter]

TYPES: Final = {
    b"normal": "normal",
    b"pubsub": "pubsub",
    b"replica": "replica",
    b"slave": "replica",
    b"master": "master",
}
"""The types of clients as they are asked for, and as they are called."""


class ClientFilters:
    """The filters that CLIENT LIST or CLIENT KILL asks for; raises :class:`CommandError`.

    Without SKIPME the caller is spared if ``spares_caller``. ``only_numbers`` are the numbers
    asked for in their order, if nothing else is asked for."""

    def __init__(
        self, server: Services, session: Session, args: Arguments, *, spares_caller: bool
    ) -> None:
        self._server = server
        self._session = session
        self._filters: dict[bytes, Filter] = {}  # By name: where one is repeated the last counts.
        self._spares_caller = spares_caller
        self._lists = not spares_caller
        self.only_numbers: list[int] | None = None
        at = 2
        while at < len(args):
            if at + 1 == len(args):
                raise CommandError(errors.SYNTAX)
            at = self._take(args, at)
        if self._filters.keys() != {b"ID"}:
            self.only_numbers = None

    def _take(self, args: Arguments, at: int) -> int:
        """Takes the filter at a place; returns where the next one is."""
        label, value = args[at].upper(), args[at + 1]
        negated, name = label.startswith(b"NOT-"), label.removeprefix(b"NOT-")
        if name == b"ID":
            numbers = self._numbers(args, at + 1)
            if not negated:
                self.only_numbers = numbers
            self._filters[label] = _unless(negated, _one_of(numbers))
            return at + 1 + len(numbers)
        if name == b"SKIPME" and not negated:
            self._spares_caller = _is(value, b"yes", b"no")
            self._filters[label] = _anybody
        elif name in _NEGATABLE or (name in _OTHERS and not negated):
            maker = _NEGATABLE.get(name) or _OTHERS[name]
            self._filters[label] = _unless(negated, maker(self._server, value))
        else:
            raise CommandError(errors.SYNTAX)
        return at + 2

    def _numbers(self, args: Arguments, at: int) -> list[int]:
        """The numbers of clients from a place on, up to the next filter."""
        found: list[int] = []
        for arg in args[at:]:
            if found and arg.upper().removeprefix(b"NOT-") in _NAMES:
                break
            found.append(self._number(arg, first=not found))
        return found

    def _number(self, arg: bytes, first: bool) -> int:
        number = parse_integer(arg)
        if self._lists:
            if number is None:
                raise CommandError(connection_errors.INVALID_CLIENT_ID)
        elif number is None and not first:
            raise CommandError(errors.SYNTAX)
        elif number is None or number < 1:
            raise CommandError(connection_errors.CLIENT_ID_NOT_POSITIVE)
        return number

    def match(self, other: Session) -> bool:
        """Whether the client is asked for."""
        if other is self._session and self._spares_caller:
            return False
        return all(passes(other) for passes in self._filters.values())


def _anybody(other: Session) -> bool:
    return True


def _unless(negated: bool, passes: Filter) -> Filter:
    """The filter, or the one that lets everybody else pass."""
    return (lambda other: not passes(other)) if negated else passes


def _one_of(numbers: list[int]) -> Filter:
    wanted = set(numbers)
    return lambda other: other.id in wanted


def _is(arg: bytes, yes: bytes, no: bytes) -> bool:
    """Whether the argument is the one of two words, and not the other."""
    word = arg.lower()
    if word not in (yes, no):
        raise CommandError(errors.SYNTAX)
    return word == yes


# --- the filters -----------------------------------------------------------------------------


def _by_type(server: Services, value: bytes) -> Filter:
    wanted = TYPES.get(value.lower())
    if wanted is None:
        raise CommandError(connection_errors.unknown_client_type(value))
    return lambda other: client_type(other) == wanted


def _by_user(server: Services, value: bytes) -> Filter:
    if not server.state.users.exists(value):
        raise CommandError(connection_errors.no_such_user(value))
    return lambda other: other.user == value


def _equal(attribute: Callable[[Session], bytes | None]) -> Maker:
    """Return what makes a filter for clients of which this is the value."""
    return lambda server, value: lambda other: attribute(other) == value


def _by_flags(server: Services, value: bytes) -> Filter:
    wanted = set(value.decode("latin-1"))
    if not wanted <= KNOWN_FLAGS:
        raise CommandError(connection_errors.unknown_client_flags(value))
    return lambda other: wanted <= set(client_flags(other))


def _by_database(server: Services, value: bytes) -> Filter:
    count = len(server.state.keyspace.databases)
    index = integer(value, connection_errors.FILTER_DB_NOT_INTEGER)
    if not 0 <= index < count:
        raise CommandError(connection_errors.filter_db_out_of_range(count))
    return lambda other: other.db.index == index


def _by_time(since_ms: Callable[[Session], int], not_integer: str, not_positive: str) -> Maker:
    """Return what makes a filter for clients of which this time is so many seconds ago."""

    def make(server: Services, value: bytes) -> Filter:
        seconds = integer(value, not_integer)
        if seconds <= 0:
            raise CommandError(not_positive)
        now = server.state.clock()
        return lambda other: (now - since_ms(other)) // 1000 >= seconds

    return make


_NEGATABLE: Final[dict[bytes, Maker]] = {
    b"TYPE": _by_type,
    b"USER": _by_user,
    b"ADDR": _equal(lambda other: other.link.addr.encode()),
    b"LADDR": _equal(lambda other: other.link.laddr.encode()),
    b"IP": _equal(lambda other: other.link.addr.rpartition(":")[0].strip("[]").encode()),
    b"NAME": _equal(lambda other: other.name or None),
    b"LIB-NAME": _equal(lambda other: other.library[0] or None),
    b"LIB-VER": _equal(lambda other: other.library[1] or None),
    b"FLAGS": _by_flags,
    b"DB": _by_database,
}
_OTHERS: Final[dict[bytes, Maker]] = {
    b"MAXAGE": _by_time(
        lambda other: other.link.created_ms,
        connection_errors.MAXAGE_NOT_INTEGER,
        connection_errors.MAXAGE_NOT_POSITIVE,
    ),
    b"IDLE": _by_time(
        lambda other: other.seen_ms,
        connection_errors.IDLE_NOT_INTEGER,
        connection_errors.IDLE_NOT_POSITIVE,
    ),
}
_NAMES: Final = {b"ID", b"SKIPME", *_NEGATABLE, *_OTHERS}


_ANYBODY: Final = "noscript loading stale"
_ADMIN: Final = "admin noscript loading stale"
_FILTERS: Final = (
    " [USER username] [ADDR addr] [LADDR laddr] [SKIPME <YES | NO>] [MAXAGE maxage]"
    " [IP ip] [NAME name] [LIB-NAME libname] [LIB-VER libver] [FLAGS flags] [DB index] [IDLE idle]"
)
_ON_ALL_NODES: Final = ("request_policy:all_nodes", "response_policy:all_succeeded")

container(
    "CLIENT",
    summary="Commands about the clients that are connected.",
    since="2.4.0",
    flags=_ANYBODY,
)


# --- the client itself -----------------------------------------------------------------------


@command("CLIENT ID", since="5.0.0", summary="Tells the number of this connection.")
def client_id(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of this connection; later ones have higher numbers."""
    return session.id


@command("CLIENT GETNAME", since="2.6.9", summary="Tells the name that this connection was given.")
def getname(server: Services, session: Session, args: Arguments) -> Reply:
    """The connection's name, or null."""
    return Bulk(session.name) if session.name else None


@command(
    "CLIENT SETNAME",
    since="2.6.9",
    summary="Names this connection.",
    syntax="connection-name",
    tips=_ON_ALL_NODES,
)
def setname(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; an empty name takes the name away."""
    session.name = checked_name(args[2])
    return OK


@command(
    "CLIENT SETINFO",
    since="7.2.0",
    summary="Notes the library that speaks for the client, or its version.",
    syntax="<LIB-NAME libname | LIB-VER libver>",
    tips=_ON_ALL_NODES,
)
def setinfo(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    option = args[2].upper()
    if option not in (b"LIB-NAME", b"LIB-VER"):
        raise CommandError(connection_errors.unrecognized_attribute(args[2]))
    if not is_printable(args[3]):
        raise CommandError(connection_errors.bad_client_attribute(args[2]))
    if option == b"LIB-NAME":
        session.library = args[3], session.library[1]
    else:
        session.library = session.library[0], args[3]
    return OK


@command(
    "CLIENT INFO",
    since="6.2.0",
    summary="Describes this connection.",
    tips=["nondeterministic_output"],
)
def info(server: Services, session: Session, args: Arguments) -> Reply:
    """The connection's line of CLIENT LIST."""
    return Verbatim(client_line(session, server.state.clock()))


@command(
    "CLIENT NO-EVICT",
    flags=_ADMIN,
    since="7.0.0",
    summary="Spares this connection when clients are closed to free memory.",
    syntax="<ON | OFF>",
)
def no_evict(server: Services, session: Session, args: Arguments) -> Reply:
    """OK. The line of CLIENT LIST shows the mark ``e``."""
    session.no_evict = _is(args[2], b"on", b"off")
    return OK


@command(
    "CLIENT NO-TOUCH",
    since="7.2.0",
    summary="Lets this connection's commands leave the idle time of keys alone.",
    syntax="<ON | OFF>",
)
def no_touch(server: Services, session: Session, args: Arguments) -> Reply:
    """OK. The line of CLIENT LIST shows the mark ``T``."""
    session.no_touch = _is(args[2], b"on", b"off")
    return OK


@command(
    "CLIENT REPLY",
    since="3.2.0",
    summary="Turns the replies to this connection on or off, or leaves out the next one.",
    syntax="<ON | OFF | SKIP>",
)
def reply(server: Services, session: Session, args: Arguments) -> Reply:
    """OK to ON; nothing to the others."""
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
def list_(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """A line for each client, or for each that passes the filters; of many each as it is then."""
    chosen = _listed(server, session, args)
    return reply_of(_lines(server, chosen), session.resp3, long=len(chosen) > AT_ONCE)


def _lines(server: Services, chosen: list[Session]) -> Generator[None, None, Reply]:
    lines: list[bytes] = []
    for at in range(0, len(chosen), AT_ONCE):
        some = [each for each in chosen[at : at + AT_ONCE] if each.id in server.state.sessions]
        lines += [client_line(each, server.state.clock()) for each in some]
        yield
    return Verbatim(b"".join(lines))


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
    """OK for an address; else how many clients have passed the filters, and are closed."""
    sessions = list(server.state.sessions.values())
    if len(args) == 3:
        chosen = [other for other in sessions if other.link.addr.encode() == args[2]]
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
            other.link.close()


@command(
    "CLIENT UNBLOCK",
    flags=_ADMIN,
    since="5.0.0",
    summary="Ends the wait of a client that is blocked.",
    syntax="client-id [TIMEOUT | ERROR]",
)
def unblock(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the client was waiting: that ends as if its time were up, or with an error; else 0."""
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
    """OK; from now on the commands of every client wait."""
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
    """OK; commands that were held back go on."""
    server.pauses.unpause()
    return OK


_HELP: Final = """\
CACHING (YES|NO)
    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.
GETREDIR
    Return the client ID we are redirecting to when tracking is enabled.
GETNAME
    Return the name of the current connection.
ID
    Return the ID of the current connection.
INFO
    Return information about the current client connection.
KILL <ip:port>
    Kill connection made from <ip:port>.
KILL <option> <value> [<option> <value> [...]]
    Kill connections. Options are:
    * ADDR (<ip:port>|<unixsocket>:0)
      Kill connections made from the specified address
    * LADDR (<ip:port>|<unixsocket>:0)
      Kill connections made to specified local address
    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)
      Kill connections by type.
    * USER <username>
      Kill connections authenticated by <username>.
    * SKIPME (YES|NO)
      Skip killing current connection (default: yes).
    * ID <client-id>
      Kill connections by client id.
    * MAXAGE <maxage>
      Kill connections older than the specified age.
LIST [options ...]
    Return information about client connections. Options:
    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)
      Return clients of specified type.
UNPAUSE
    Stop the current client pause, resuming traffic.
PAUSE <timeout> [WRITE|ALL]
    Suspend all, or just write, clients for <timeout> milliseconds.
REPLY (ON|OFF|SKIP)
    Control the replies sent to the current connection.
SETNAME <name>
    Assign the name <name> to the current connection.
SETINFO <option> <value>
    Set client meta attr. Options are:
    * LIB-NAME: the client lib name.
    * LIB-VER: the client lib version.
UNBLOCK <clientid> [TIMEOUT|ERROR]
    Unblock the specified blocked client.
TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]
         [OPTIN] [OPTOUT] [NOLOOP]
    Control server assisted client side caching.
TRACKINGINFO
    Report tracking status for the current connection.
NO-EVICT (ON|OFF)
    Protect current client connection from eviction.
NO-TOUCH (ON|OFF)
    Will not touch LRU/LFU stats when this mode is on.
"""

help_command("CLIENT", since="5.0.0", text=_HELP)
