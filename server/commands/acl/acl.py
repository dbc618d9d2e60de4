"""ACL: users, what they may do, and what was denied to whom."""

from __future__ import annotations

import secrets
from typing import Final

from protocol import errors
from protocol.errors import CommandError, shown
from protocol.replies import EMPTY_ARRAY, OK, Bulk, Double, Map, Reply, Set
from server.acl import errors as acl_errors
from server.acl.file import FileError
from server.acl.log import LogEntry
from server.acl.selector import Denial, Selector
from server.acl.users import DEFAULT_USER
from server.commands.declare import command, container, help_command
from server.core.table import CATEGORIES, Arguments, every, find
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session

_ANYBODY: Final = "noscript loading stale"
_ADMIN: Final = "admin noscript loading stale"
_EVERYWHERE: Final = ("request_policy:all_nodes", "response_policy:all_succeeded")

DEFAULT_BITS: Final = 256
MOST_BITS: Final = 4096
SHOWN_ENTRIES: Final = 10
"""How many entries of the log are shown unless a number is given."""

container("ACL", summary="Commands about users and their rights.", since="6.0.0", flags=_ADMIN)


# --- users -----------------------------------------------------------------------------------


@command(
    "ACL SETUSER",
    summary="Makes a user, or changes its rules.",
    complexity="O(N) in the number of rules.",
    syntax="username [rule [rule ...]]",
    history=[
        ("6.2.0", "Rules about channels."),
        ("7.0.0", "Selectors, and patterns for reading or writing alone."),
    ],
    tips=_EVERYWHERE,
)
def setuser(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, and all the rules apply; or an error, and none does."""
    server.access.set_user(session, args[2], args[3:])
    return OK


@command(
    "ACL DELUSER",
    summary="Removes users, and ends their connections.",
    complexity="O(N) in the number of users, and of connections.",
    syntax="username [username ...]",
    tips=_EVERYWHERE,
)
def deluser(server: Services, session: Session, args: Arguments) -> Reply:
    """How many of them there were."""
    if DEFAULT_USER in args[2:]:
        raise CommandError(acl_errors.DEFAULT_STAYS)
    return sum(server.access.delete_user(session, name) for name in args[2:])


@command(
    "ACL GETUSER",
    summary="Shows the rules of a user.",
    complexity="O(N) in the number of rules.",
    syntax="username",
    history=[
        ("6.2.0", "Rules about channels."),
        ("7.0.0", "Selectors; keys and channels as texts instead of arrays."),
    ],
)
def getuser(server: Services, session: Session, args: Arguments) -> Reply:
    """The rules by kind, or null for a user that does not exist."""
    user = server.state.users.get(args[2])
    if user is None:
        return None
    return Map(
        [
            ("flags", Set([Bulk(flag) for flag in user.flags()])),
            ("passwords", list(user.passwords)),
            *_permissions(user.root),
            ("selectors", [Map(_permissions(selector)) for selector in user.selectors]),
        ]
    )


def _permissions(selector: Selector) -> list[tuple[Reply, Reply]]:
    return [
        ("commands", Bulk(selector.show_commands())),
        ("keys", Bulk(selector.show_keys())),
        ("channels", Bulk(selector.show_channels())),
    ]


@command(
    "ACL LIST",
    summary="Shows all users as the lines of a configuration.",
    complexity="O(N) in the number of users.",
)
def list_(server: Services, session: Session, args: Arguments) -> Reply:
    """A line for each user, by name."""
    return [Bulk(line) for line in server.state.users.lines()]


@command(
    "ACL USERS", summary="Lists the names of all users.", complexity="O(N) in the number of users."
)
def users(server: Services, session: Session, args: Arguments) -> Reply:
    """The names, sorted."""
    return [Bulk(user.name) for user in server.state.users.every()]


@command("ACL WHOAMI", flags=_ANYBODY, summary="Tells which user the connection is.")
def whoami(server: Services, session: Session, args: Arguments) -> Reply:
    """The name."""
    return Bulk(session.user)


# --- commands --------------------------------------------------------------------------------


@command(
    "ACL CAT",
    flags=_ANYBODY,
    summary="Lists the categories of commands, or the commands of one.",
    complexity="O(N) in the number of categories or commands.",
    syntax="[category]",
)
def cat(server: Services, session: Session, args: Arguments) -> Reply:
    """The names of categories, or of the commands of a category, containers left out."""
    if len(args) == 2:
        return list(CATEGORIES)
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("acl", args[1]))
    name = shown(args[2]).lower()
    if name not in CATEGORIES:
        raise CommandError(acl_errors.unknown_category(args[2]))
    return [entry.fullname for entry in every(server.state.table) if name in entry.categories]


@command(
    "ACL DRYRUN",
    since="7.0.0",
    summary="Tells whether a user may run a command, which is not run.",
    complexity="O(N) in the number of the command's arguments.",
    syntax="username command [arg [arg ...]]",
)
def dryrun(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, or what the user lacks."""
    user = server.state.users.get(args[2])
    if user is None:
        raise CommandError(acl_errors.user_not_found(args[2]))
    request = args[3:]
    entry = find(server.state.table, request)
    if entry is None or (entry.subcommands and len(request) > 1):
        raise CommandError(acl_errors.command_not_found(request[0]))
    if not entry.fits(len(request)):
        raise CommandError(errors.wrong_arity(entry.fullname))
    denial = user.denial(entry, request)
    return OK if denial is None else _explained(user.name, denial)


def _explained(user: bytes, denial: Denial) -> Reply:
    if denial.kind == "command":
        text = acl_errors.no_command(user, shown(denial.subject))
    else:
        text = acl_errors.no_access(user, denial.kind, denial.subject)
    return Bulk(text.encode("utf-8", "surrogateescape"))


@command("ACL GENPASS", flags=_ANYBODY, summary="Makes up a password.", syntax="[bits]")
def genpass(server: Services, session: Session, args: Arguments) -> Reply:
    """Hexadecimal digits that nobody can guess."""
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("acl", args[1]))
    bits = integer(args[2]) if len(args) == 3 else DEFAULT_BITS
    if not 0 < bits <= MOST_BITS:
        raise CommandError(acl_errors.PASSWORD_BITS)
    digits = (bits + 3) // 4
    return Bulk(secrets.token_hex((digits + 1) // 2)[:digits].encode())


# --- the log ---------------------------------------------------------------------------------


@command(
    "ACL LOG",
    summary="Shows what was denied lately, or forgets it.",
    complexity="O(N) in the number of entries shown.",
    syntax="[count | RESET]",
    history=[("7.2.0", "entry-id, timestamp-created and timestamp-last-updated.")],
)
def log(server: Services, session: Session, args: Arguments) -> Reply:
    """A map for each denial, the newest first; OK to RESET."""
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("acl", args[1]))
    entries = server.access.log
    if len(args) == 3 and args[2].upper() == b"RESET":
        entries.clear()
        return OK
    count = integer(args[2]) if len(args) == 3 else SHOWN_ENTRIES
    if count <= 0:
        return EMPTY_ARRAY
    now = server.state.clock()
    return [_entry(entry, now) for entry in entries.entries[:count]]


def _entry(entry: LogEntry, now: int) -> Reply:
    return Map(
        [
            ("count", entry.count),
            ("reason", entry.reason),
            ("context", entry.context),
            ("object", Bulk(entry.subject)),
            ("username", Bulk(entry.user)),
            ("age-seconds", Double(_seconds(max(0, now - entry.updated_ms)))),
            ("client-info", Bulk(entry.client)),
            ("entry-id", entry.number),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ]
    )


def _seconds(milliseconds: int) -> bytes:
    """So many seconds, without zeros at the end."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0").rstrip(".").encode()


# --- the file --------------------------------------------------------------------------------


def _require_file(server: Services) -> None:
    if not server.state.config.aclfile:
        raise CommandError(acl_errors.NO_FILE)


@command(
    "ACL LOAD",
    summary="Replaces the users by those of the file.",
    complexity="O(N) in the number of users.",
)
def load(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; or an error that names every wrong line, and the users stay as they are."""
    _require_file(server)
    try:
        server.access.load(session)
    except FileError as error:
        raise CommandError(f"ERR {error}") from None
    return OK


@command(
    "ACL SAVE",
    summary="Writes the users into the file.",
    complexity="O(N) in the number of users.",
    tips=_EVERYWHERE,
)
def save(server: Services, session: Session, args: Arguments) -> Reply:
    """OK. The file is replaced at once, or stays as it is."""
    _require_file(server)
    try:
        server.access.save()
    except OSError as error:
        path = server.state.config.aclfile
        server.state.log.warning(f"The users cannot be written to '{path}': {error.strerror}")
        raise CommandError(acl_errors.NOT_SAVED) from None
    return OK


_HELP: Final = """\
CAT [<category>]
    List all commands that belong to <category>, or all command categories
    when no category is specified.
DELUSER <username> [<username> ...]
    Delete a list of users.
DRYRUN <username> <command> [<arg> ...]
    Returns whether the user can execute the given command without executing the command.
GETUSER <username>
    Get the user's details.
GENPASS [<bits>]
    Generate a secure 256-bit user password. The optional `bits` argument can
    be used to specify a different size.
LIST
    Show users details in config file format.
LOAD
    Reload users from the ACL file.
LOG [<count> | RESET]
    Show the ACL log entries.
SAVE
    Save the current config to the ACL file.
SETUSER <username> <attribute> [<attribute> ...]
    Create or modify a user with the specified attributes.
USERS
    List all the registered usernames.
WHOAMI
    Return the current connection username.
"""

help_command("ACL", since="6.0.0", text=_HELP)
