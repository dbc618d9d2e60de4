"""COMMAND: what the commands are, and their documentation, read from the table of commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import Bulk, Map, Reply, Set, Simple
from server.commands.declare import command, help_command, share
from server.commands.server import errors as server_errors
from server.core.table import (
    Arguments,
    Command,
    Definition,
    KeySpec,
    Table,
    commands,
    every,
    find,
    find_by_name,
    subcommands,
)
from server.services import Services
from server.state.session import Session
from storage.keyspace.glob import matches

if TYPE_CHECKING:
    from server.core.command_syntax import Argument

_FLAGS: Final = "loading stale"
_UNORDERED: Final = ["nondeterministic_output_order"]


# --- COMMAND and COMMAND INFO ----------------------------------------------------------------


def describe(entry: Command) -> Reply:
    """The ten elements of COMMAND INFO."""
    first, last, step = entry.key_range
    return [
        entry.fullname,
        entry.arity,
        _words(entry.flags),
        first,
        last,
        step,
        _words([f"@{category}" for category in entry.categories]),
        Set(entry.about.tips),
        Set([_describe_keys(spec) for spec in entry.keys]),
        # A real server answers with a set only if it is empty.
        [describe(sub) for sub in subcommands(entry)] or Set([]),
    ]


def _words(names: list[str]) -> Set:
    return Set([Simple(name) for name in names])


def _describe_keys(spec: KeySpec) -> Map:
    pairs: list[tuple[Reply, Reply]] = [("notes", spec.notes)] if spec.notes else []
    return Map(
        [
            *pairs,
            ("flags", _words(spec.flags)),
            ("begin_search", _begin_search(spec)),
            ("find_keys", _find_keys(spec)),
        ]
    )


_UNKNOWN: Final = Map([("type", "unknown"), ("spec", Map([]))])


def _begin_search(spec: KeySpec) -> Map:
    if spec.anywhere:
        return _UNKNOWN
    if spec.keyword is None:
        return Map([("type", "index"), ("spec", Map([("index", spec.index)]))])
    where = Map([("keyword", spec.keyword), ("startfrom", spec.index)])
    return Map([("type", "keyword"), ("spec", where)])


def _find_keys(spec: KeySpec) -> Map:
    if spec.anywhere:
        return _UNKNOWN
    if spec.counted:
        count = Map([("keynumidx", 0), ("firstkey", 1), ("keystep", spec.step)])
        return Map([("type", "keynum"), ("spec", count)])
    span = Map([("lastkey", spec.last), ("keystep", spec.step), ("limit", spec.limit)])
    return Map([("type", "range"), ("spec", span)])


share("COMMAND", flags=_FLAGS, since="2.8.13", categories="connection")


@command(
    "COMMAND",
    arity=-1,
    summary="Describes every command.",
    complexity="O(N) in the number of commands.",
    tips=_UNORDERED,
)
def command_(server: Services, session: Session, args: Arguments) -> Reply:
    """Every command, as COMMAND INFO describes it."""
    return [describe(entry) for entry in commands(server.state.table)]


@command("COMMAND COUNT", summary="Counts the commands.")
def count(server: Services, session: Session, args: Arguments) -> Reply:
    """The number of commands, subcommands not counted."""
    return len(commands(server.state.table))


@command(
    "COMMAND INFO",
    summary="Describes commands: how many arguments, which flags, where their keys are.",
    complexity="O(N) in the number of commands asked for.",
    syntax="[command-name [command-name ...]]",
    tips=_UNORDERED,
    history=[("7.0.0", "Without names, every command is described.")],
)
def info(server: Services, session: Session, args: Arguments) -> Reply:
    """The description of each command named, null for one that does not exist."""
    table = server.state.table
    if len(args) == 2:
        return [describe(entry) for entry in commands(table)]
    found = [find_by_name(table, name) for name in args[2:]]
    return [None if entry is None else describe(entry) for entry in found]


@command(
    "COMMAND DOCS",
    since="7.0.0",
    summary="Documents commands for people: what they do, since when, with which arguments.",
    complexity="O(N) in the number of commands asked for.",
    syntax="[command-name [command-name ...]]",
    tips=_UNORDERED,
)
def docs(server: Services, session: Session, args: Arguments) -> Reply:
    """The documentation of each command named that exists, or of every command."""
    table = server.state.table
    if len(args) == 2:
        entries = commands(table)
    else:
        entries = [entry for name in args[2:] if (entry := find_by_name(table, name)) is not None]
    return Map([(entry.fullname, documentation(entry)) for entry in entries])


# --- COMMAND LIST ----------------------------------------------------------------------------

Filter = Callable[[Command, bytes], bool]


def _of_module(entry: Command, name: bytes) -> bool:
    return False


def _of_category(entry: Command, name: bytes) -> bool:
    return name.decode("utf-8", "replace").lower() in entry.categories


def _of_pattern(entry: Command, pattern: bytes) -> bool:
    return matches(pattern, entry.fullname.encode(), ignore_case=True)


_LIST_FILTERS: Final[dict[bytes, Filter]] = {
    b"MODULE": _of_module,
    b"ACLCAT": _of_category,
    b"PATTERN": _of_pattern,
}


@command(
    "COMMAND LIST",
    since="7.0.0",
    summary="Lists the names of commands.",
    complexity="O(N) in the number of commands.",
    syntax="[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
    tips=_UNORDERED,
)
def list_(server: Services, session: Session, args: Arguments) -> Reply:
    """The names of all commands and subcommands, or of those that pass a filter."""
    table = server.state.table
    if len(args) == 2:
        return [entry.fullname for entry in every(table)]
    if len(args) != 5 or args[2].upper() != b"FILTERBY":
        raise CommandError(errors.SYNTAX)
    passes = _LIST_FILTERS.get(args[3].upper())
    if passes is None:
        raise CommandError(errors.SYNTAX)
    return [entry.fullname for entry in every(table) if passes(entry, args[4])]


# --- COMMAND GETKEYS -------------------------------------------------------------------------


def _keys_of(table: Table, request: Arguments) -> list[tuple[bytes, list[str]]]:
    """The keys of a request, each with what the command does to it; raises CommandError."""
    entry = find(table, request)
    if entry is None or (entry.subcommands and len(request) > 1):
        raise CommandError(server_errors.GETKEYS_UNKNOWN_COMMAND)
    specs = [spec for spec in entry.keys if spec.names_keys]
    if not specs:
        raise CommandError(server_errors.GETKEYS_NO_KEYS)
    if not entry.fits(len(request)):
        raise CommandError(server_errors.GETKEYS_WRONG_ARITY)
    groups = [(spec, spec.extract(request)) for spec in specs]
    lacks = not any(keys for _, keys in groups) or any(
        spec.counted and not keys for spec, keys in groups
    )
    if lacks and "no_mandatory_keys" not in entry.flags:
        raise CommandError(server_errors.GETKEYS_NOT_EXTRACTABLE)
    return [(key, spec.flags_in(request)) for spec, keys in groups for key in keys]


@command(
    "COMMAND GETKEYS",
    summary="Finds the keys in a whole command.",
    complexity="O(N) in the number of the command's arguments.",
    syntax="command [arg [arg ...]]",
)
def getkeys(server: Services, session: Session, args: Arguments) -> Reply:
    """The keys of a request, which is not run."""
    return [Bulk(key) for key, _ in _keys_of(server.state.table, args[2:])]


@command(
    "COMMAND GETKEYSANDFLAGS",
    since="7.0.0",
    summary="Finds the keys in a whole command, and what it does to them.",
    complexity="O(N) in the number of the command's arguments.",
    syntax="command [arg [arg ...]]",
)
def getkeysandflags(server: Services, session: Session, args: Arguments) -> Reply:
    """The keys of a request, each with its flags."""
    return [[Bulk(key), _words(flags)] for key, flags in _keys_of(server.state.table, args[2:])]


_COMMAND_HELP: Final = """\
(no subcommand)
    Return details about all Redis commands.
COUNT
    Return the total number of commands in this Redis server.
LIST
    Return a list of all commands in this Redis server.
INFO [<command-name> ...]
    Return details about multiple Redis commands.
    If no command names are given, documentation details for all
    commands are returned.
DOCS [<command-name> ...]
    Return documentation details about multiple Redis commands.
    If no command names are given, documentation details for all
    commands are returned.
GETKEYS <full-command>
    Return the keys from a full Redis command.
GETKEYSANDFLAGS <full-command>
    Return the keys and the access flags from a full Redis command.
"""

help_command("COMMAND", since="5.0.0", categories="connection", text=_COMMAND_HELP)


# --- COMMAND DOCS: the documentation of a command ----------------------------------------------


Pairs = list[tuple[Reply, Reply]]


def documentation(entry: Command) -> Map:
    """Return what COMMAND DOCS says of a command: facts, history, arguments and subcommands."""
    from server.core.command_syntax import parse  # A start has no time for it.

    about = entry.about
    pairs: Pairs = [("summary", about.summary), ("since", about.since), ("group", about.group)]
    if about.complexity:
        pairs.append(("complexity", about.complexity))
    pairs += _deprecation(about)
    if about.history:
        pairs.append(("history", Set([[version, what] for version, what in about.history])))
    arguments = parse(about.syntax)
    if arguments:
        places = _key_places(entry, arguments)
        pairs.append(("arguments", [_describe(argument, places) for argument in arguments]))
    subs = subcommands(entry)
    if subs:
        pairs.append(("subcommands", Map([(sub.fullname, documentation(sub)) for sub in subs])))
    return Map(pairs)


def _deprecation(about: Definition) -> Pairs:
    if about.deprecated is None:
        return []
    since, replacement = about.deprecated
    return [
        ("doc_flags", Set([Simple("deprecated")])),
        ("deprecated_since", since),
        ("replaced_by", replacement),
    ]


def _key_places(entry: Command, arguments: list[Argument]) -> dict[str, int]:
    """Which key specification each argument that is a key belongs to."""
    if not entry.keys:
        return {}
    names = dict.fromkeys(argument.name for argument in _walk(arguments) if argument.type == "key")
    last = len(entry.keys) - 1
    return {name: min(index, last) for index, name in enumerate(names)}


def _walk(arguments: list[Argument] | tuple[Argument, ...]) -> Iterator[Argument]:
    for argument in arguments:
        yield argument
        yield from _walk(argument.arguments)


def _describe(argument: Argument, places: dict[str, int]) -> Map:
    pairs: Pairs = [("name", argument.name), ("type", argument.type)]
    if not argument.arguments:
        pairs.append(("display_text", argument.name))
    if argument.type == "key" and argument.name in places:
        pairs.append(("key_spec_index", places[argument.name]))
    if argument.token:
        pairs.append(("token", argument.token))
    flags = _flags(argument)
    if flags:
        pairs.append(("flags", Set([Simple(flag) for flag in flags])))
    if argument.arguments:
        pairs.append(("arguments", [_describe(inner, places) for inner in argument.arguments]))
    return Map(pairs)


def _flags(argument: Argument) -> list[str]:
    flags = {
        "optional": argument.optional,
        "multiple": argument.multiple,
        "multiple_token": argument.multiple_token,
    }
    return [name for name, applies in flags.items() if applies]
