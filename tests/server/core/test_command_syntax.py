from __future__ import annotations

from typing import Final

import pytest

from server import commands
from server.core.command_syntax import Argument, parse
from server.core.table import arity_of, every


def key(**more: bool) -> Argument:
    return Argument("key", "key", **more)  # type: ignore[arg-type]


def token(word: str, name: str = "", *, optional: bool = False) -> Argument:
    return Argument(name or word.lower(), "pure-token", word, optional)


@pytest.mark.parametrize(
    ("syntax", "arguments"),
    [
        ("", []),
        ("key", [key()]),
        ("key [key ...]", [key(multiple=True)]),
        ("[key [key ...]]", [key(optional=True, multiple=True)]),
        ("[FORCE]", [token("FORCE", optional=True)]),
        ("[EX seconds]", [Argument("seconds", "integer", "EX", optional=True)]),
        (
            "[NX | XX]",
            [Argument("nx-or-xx", "oneof", optional=True, arguments=(token("NX"), token("XX")))],
        ),
        (
            "<* | id>",
            [
                Argument(
                    "auto-or-id", "oneof", arguments=(token("*", "auto"), Argument("id", "string"))
                )
            ],
        ),
        (
            "a | b c",
            [
                Argument(
                    "a-or-b-c",
                    "oneof",
                    arguments=(
                        Argument("a", "string"),
                        Argument(
                            "b-c",
                            "block",
                            arguments=(Argument("b", "string"), Argument("c", "string")),
                        ),
                    ),
                )
            ],
        ),
        (
            "field value [field value ...]",
            [
                Argument(
                    "field-value",
                    "block",
                    multiple=True,
                    arguments=(Argument("field", "string"), Argument("value", "string")),
                )
            ],
        ),
        (
            "[PREFIX prefix [PREFIX prefix ...]]",
            [
                Argument(
                    "prefix", "string", "PREFIX", optional=True, multiple=True, multiple_token=True
                )
            ],
        ),
        (
            "GROUP group consumer [NOACK] STREAMS key [key ...] id [id ...]",
            [
                Argument(
                    "group",
                    "block",
                    "GROUP",
                    arguments=(Argument("group", "string"), Argument("consumer", "string")),
                ),
                token("NOACK", optional=True),
                Argument(
                    "streams",
                    "block",
                    "STREAMS",
                    arguments=(key(multiple=True), Argument("id", "string", multiple=True)),
                ),
            ],
        ),
        (
            "[FULL [COUNT count]]",
            [
                Argument(
                    "full-count",
                    "block",
                    optional=True,
                    arguments=(
                        token("FULL"),
                        Argument("count", "integer", "COUNT", optional=True),
                    ),
                )
            ],
        ),
        (
            "FILTERBY <PATTERN pattern | AT unix-time-seconds>",
            [
                Argument(
                    "pattern-or-unix-time-seconds",
                    "oneof",
                    "FILTERBY",
                    arguments=(
                        Argument("pattern", "pattern", "PATTERN"),
                        Argument("unix-time-seconds", "unix-time", "AT"),
                    ),
                )
            ],
        ),
        (
            "STORE PREFIX prefix [PREFIX prefix ...]",
            [
                token("STORE"),
                Argument("prefix", "string", "PREFIX", multiple=True, multiple_token=True),
            ],
        ),
        (
            "TO <AT index>",
            [Argument("to", "block", "TO", arguments=(Argument("index", "integer", "AT"),))],
        ),
        ("float-increment", [Argument("float-increment", "double")]),
    ],
)
def test_syntax_becomes_arguments(syntax: str, arguments: list[Argument]) -> None:
    assert parse(syntax) == arguments


@pytest.mark.parametrize("syntax", ["[key", "<a | b", "key]", "a>", "[...]", "key [id ...]", "<a]"])
def test_nonsense_is_refused(syntax: str) -> None:
    with pytest.raises(ValueError, match=r"missing|nothing"):
        parse(syntax)


def test_the_syntax_of_every_command_can_be_read() -> None:
    commands.load()
    for entry in every():
        parse(entry.about.syntax)
        assert bool(entry.about.syntax) <= (entry.arity != 1)


# --- arity -----------------------------------------------------------------------------------

OTHERWISE: Final = {
    "client|kill": "the address may stand alone, as it did before there were filters",
    "quit": "whatever follows is ignored",
    "psync": "whatever follows its two arguments is ignored",
    "replconf": "pairs, of which there may be none",
}
"""Commands whose arity does not follow from their syntax, and why."""


def least(argument: Argument) -> int:
    """How many words an argument takes at the least."""
    if argument.optional:
        return 0
    inner = [least(each) for each in argument.arguments]
    own = 1 if argument.type == "pure-token" else bool(argument.token)
    if argument.type == "oneof":
        return own + min(inner)
    return own + (sum(inner) if argument.type == "block" else argument.type != "pure-token")


def varies(argument: Argument) -> bool:
    """Whether it may take more words than that."""
    if argument.optional or argument.multiple:
        return True
    of_one = argument.type == "oneof" and len(set(map(least, argument.arguments))) > 1
    return of_one or any(map(varies, argument.arguments))


def expected_arity(syntax: str, words: int) -> int:
    """The arity of a command of so many words, from the tree of its arguments."""
    arguments = parse(syntax)
    count = words + sum(map(least, arguments))
    return -count if any(map(varies, arguments)) else count


def test_arity_follows_from_the_syntax() -> None:
    commands.load()
    others = set()
    for command in every():
        syntax, words = command.about.syntax, len(command.fullname.split("|"))
        assert arity_of(syntax, words) == expected_arity(syntax, words)
        if command.arity != arity_of(syntax, words):
            others.add(command.fullname)
    containers = {each.fullname for each in every() if each.subcommands}
    assert others - containers == OTHERWISE.keys()
    assert others & containers == containers


@pytest.mark.parametrize(
    ("syntax", "arity"),
    [
        ("", 2),
        ("<a | b>", 3),
        ("<a | b c>", -3),
        ("a b | c", -3),
        ("<a [b | c d]> [e f g]", -3),
        ("<a <b | c d> | e f>", -4),
    ],
)
def test_alternatives_of_another_length_let_the_arity_vary(syntax: str, arity: int) -> None:
    assert arity_of(syntax, 2) == expected_arity(syntax, 2) == arity
