"""COMMAND DOCS: the documentation of a command, made from its entry in the table of commands."""

from __future__ import annotations

from collections.abc import Iterator

from protocol.replies import Map, Reply, Set, Simple
from server.road.command_syntax import Argument, parse
from server.road.table import Command, Definition, subcommands

Pairs = list[tuple[Reply, Reply]]


def documentation(entry: Command) -> Map:
    """What COMMAND DOCS says of a command: facts, history, arguments and subcommands."""
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
    subs = [sub for sub in subcommands(entry) if not sub.about.own]
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
