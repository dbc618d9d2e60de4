"""Commands about the connection: which protocol it speaks, as whom, and with which database."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, OK, Bulk, Encoded, Map, Reply
from server.acl.users import DEFAULT_USER
from server.clients.client_line import is_printable
from server.commands.connection import errors as connection_errors
from server.commands.declare import command
from server.core.table import Arguments
from server.runtime.arguments import database_index, integer
from server.runtime.version import REDIS_VERSION
from server.services import Services
from server.state.session import NOTHING, Session

PONG: Final = Encoded(b"+PONG\r\n")
RESET_DONE: Final = Encoded(b"+RESET\r\n")

_ALWAYS: Final = "noscript loading stale fast no_auth allow_busy"


class HelloOptions:
    """The arguments of HELLO: a protocol, a user, a name."""

    def __init__(self, args: Arguments) -> None:
        self.resp3: bool | None = None
        self.credentials: tuple[bytes, bytes] | None = None
        self.name: bytes | None = None
        if len(args) > 1:
            self.resp3 = _protocol(args[1])
        at = 2
        while at < len(args):
            at += self._take(args[at:])

    def _take(self, words: Arguments) -> int:
        """Takes the option that begins ``words``; returns how many words it is."""
        option = words[0].upper()
        if option == b"AUTH" and len(words) > 2:
            self.credentials = words[1], words[2]
            return 3
        if option == b"SETNAME" and len(words) > 1:
            self.name = checked_name(words[1])
            return 2
        raise CommandError(connection_errors.bad_hello_option(words[0]))


def _protocol(version: bytes) -> bool:
    """Whether RESP3 is asked for, and not RESP2."""
    number = integer(version, connection_errors.PROTOCOL_NOT_INTEGER)
    if number not in (2, 3):
        raise CommandError(connection_errors.NO_PROTOCOL)
    return number == 3


def checked_name(name: bytes) -> bytes:
    """A name that a client may have; raises :class:`CommandError`."""
    if not is_printable(name):
        raise CommandError(connection_errors.BAD_CLIENT_NAME)
    return name


@command(
    "HELLO",
    flags=_ALWAYS,
    since="6.0.0",
    summary="Greets the server: chooses the protocol, logs in, and tells who is there.",
    syntax="[protover [AUTH username password] [SETNAME clientname]]",
    history=[("6.2.0", "The protocol version may be left out, to ask without changing anything.")],
)
def hello(server: Services, session: Session, args: Arguments) -> Reply:
    """A map that describes the server, in the protocol switched to."""
    options = HelloOptions(args)
    if options.credentials is not None:
        user, password = options.credentials
        server.access.log_in(session, user, password, "HELLO")
    if not session.authenticated:
        raise CommandError(connection_errors.HELLO_NEEDS_AUTHENTICATION)
    if options.name is not None:
        session.name = options.name
    if options.resp3 is not None:
        session.resp3 = options.resp3
        session.update_reasons()
    return Map(
        [
            ("server", "redis"),
            ("version", REDIS_VERSION),
            ("proto", 3 if session.resp3 else 2),
            ("id", session.id),
            ("mode", "standalone"),
            ("role", "master"),
            ("modules", EMPTY_ARRAY),
        ]
    )


@command(
    "AUTH",
    flags=_ALWAYS,
    since="1.0.0",
    summary="Logs in.",
    complexity="O(N) in the number of the user's passwords.",
    syntax="[username] password",
    history=[("6.0.0", "A user may be named.")],
)
def auth(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the error WRONGPASS if there is no such user, or the password is wrong."""
    if len(args) > 3:
        raise CommandError(errors.SYNTAX)
    if len(args) == 2 and server.state.users.default.nopass:
        raise CommandError(connection_errors.NO_PASSWORD_CONFIGURED)
    user = args[1] if len(args) == 3 else DEFAULT_USER
    server.access.log_in(session, user, args[-1], "AUTH")
    return OK


@command(
    "PING",
    flags="fast",
    since="1.0.0",
    summary="Shows that the server answers.",
    syntax="[message]",
    tips=["request_policy:all_shards", "response_policy:all_succeeded"],
)
def ping(server: Services, session: Session, args: Arguments) -> Reply:
    """PONG, or the message; a RESP2 subscriber gets both in the shape of a message."""
    if len(args) > 2:
        raise CommandError(errors.wrong_arity("ping"))
    if session.listening is not NOTHING and session.subscriptions and not session.resp3:
        return ["pong", Bulk(args[1] if len(args) == 2 else b"")]
    return Bulk(args[1]) if len(args) == 2 else PONG


@command(
    "ECHO",
    flags="loading stale fast",
    since="1.0.0",
    summary="Answers with the message.",
    syntax="message",
)
def echo(server: Services, session: Session, args: Arguments) -> Reply:
    """The message."""
    return Bulk(args[1])


@command(
    "SELECT",
    flags="loading stale fast",
    since="1.0.0",
    summary="Changes the database that the connection's commands work on.",
    syntax="index",
)
def select(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; an error if there is no such database."""
    databases = server.state.keyspace.databases
    session.db = databases[database_index(args[1], len(databases))]
    return OK


def leave_all(server: Services, session: Session) -> None:
    """Ends what the client is told or shown of without asking, and what it watches."""
    server.pubsub.leave_all(session)
    server.watching.forget(session)
    server.tracking.stop(session)
    server.state.timings.stop_monitoring(session)


@command(
    "RESET",
    flags=_ALWAYS,
    since="6.2.0",
    summary="Puts the connection back into the state of a new one.",
)
def reset(server: Services, session: Session, args: Arguments) -> Reply:
    """RESET, once everything that the client has begun is left."""
    leave_all(server, session)
    users = server.state.users
    is_open = users.default_is_open()
    if server.access.limits.refuse_connection(session, users.default) is not None:
        is_open = False  # It is told why when it logs in.
    session.reset(server.state.keyspace.databases[0], users.default, is_open)
    return RESET_DONE


@command(
    "QUIT",
    arity=-1,
    flags=_ALWAYS,
    since="1.0.0",
    summary="Closes the connection.",
    deprecated=("7.2.0", "just closing the connection"),
)
def quit_(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, and then the connection ends."""
    session.closing = True
    return OK
