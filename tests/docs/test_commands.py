"""The pages of commands say what the table of commands says."""

from __future__ import annotations

import re
from functools import cache

import pytest

from server.commands import load
from server.core.table import TABLE, Command
from server.runtime.version import REDIS_VERSION
from tests.conformance.script import SCRIPTS, read_topic
from tests.docs.markdown import blocks, pages_of_docs
from tests.support.process import ROOT
from tools.docs.commands_page import DOCS, listed, notes, pages, returns
from tools.docs.examples import rendered

OF_REDIS = set((ROOT / "tests/server/data/commands-8.0.6.txt").read_text().split())
"""What COMMAND LIST of Redis 8.0.6 has, without subcommands and commands of modules."""

WITHOUT_EXAMPLE = {"PSYNC", "REPLCONF", "SHUTDOWN", "SYNC"}
"""What ends the server, or is for replicas alone."""

WITHOUT_REPLY = {"MEMORY DOCTOR", "MEMORY MALLOC-STATS", "MEMORY STATS"}
"""Whose example shows no reply: it is the state of the process."""

OF_OTHER_SERVERS: dict[str, set[str]] = {}
"""What pages say is called on another server than Penstock."""


def test_the_pages_are_what_the_table_of_commands_gives() -> None:
    there = {f"commands/{path.name}" for path in (DOCS / "commands").iterdir()} | {"commands.md"}
    written = {name: (DOCS / name).read_text() for name in there}
    assert written == pages(), "run: python -m tools.docs.commands_page"


@cache
def entries() -> dict[str, str]:
    """What pages say of each command, by its name."""
    text = "".join(page for name, page in pages().items() if name != "commands.md")
    parts = re.split(r"^## (.*)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names() -> list[str]:
    return [command.name.upper() for command in listed()]


def about_streams() -> list[Command]:
    return [command for command in listed() if command.about.group == "stream"]


def test_every_command_has_one_entry_with_syntax_reply_and_example() -> None:
    assert sorted(entries()) == sorted(names())
    for command in listed():
        name = command.name.upper()
        entry = entries()[name]
        assert f"\n    {name} {command.about.syntax}".rstrip() + "\n" in entry
        assert f"\n**Returns:** {returns(command)}\n" in entry
        assert re.search(r"\w\w.*\.$", returns(command)), name
        has_example = len(blocks(entry, "text")) == 1
        assert has_example == (name not in WITHOUT_EXAMPLE), f"no case {name} in reference-*.txt"


def test_every_line_of_an_example_is_one_of_a_script_that_is_played() -> None:
    topics = [read_topic(path) for path in SCRIPTS.glob("reference-*.txt")]
    cases = {case.name: case for topic in topics for case in topic.cases}
    assert sorted(cases) == sorted(set(names()) - WITHOUT_EXAMPLE)
    for name, case in cases.items():
        [example] = blocks(entries()[name], "text")
        sent = re.findall(
            r"^(?:[A-Z]?> (.*)|\((\w (?:receives|closed).*)\))$", example, re.MULTILINE
        )
        assert ["".join(each) for each in sent] == [step.text or step.line for step in case.steps]
        assert any(name in step.text for step in case.steps), name
        assert ("…" in example.splitlines() and "keep" not in str(case)) == (name in WITHOUT_REPLY)


def test_every_option_of_a_command_for_streams_is_explained() -> None:
    for command in about_streams():
        note = notes().get(command.name.upper(), "")
        assert note, f"command_notes.md says nothing of {command.name.upper()}"
        options = re.findall(r"(?<![\w-])[A-Z]+(?![\w-])", command.about.syntax)
        explained = " ".join(re.findall(r"`(.*?)`", note))
        assert set(options) <= set(re.findall(r"[\w-]+", explained)), command.name


def test_notes_are_of_commands_and_say_something() -> None:
    assert set(notes()) <= set(names())
    assert all(note.endswith(".") for note in notes().values())


@pytest.mark.parametrize(
    ("reply", "lines"),
    [
        (b"+OK\r\n", ["OK"]),
        (b"-ERR no\r\n", ["(error) ERR no"]),
        (b'$4\r\na"\n\xff\r\n', [r'"a\"\n\xff"']),
        (b"$-1\r\n", ["(nil)"]),
        (b"*-1\r\n", ["(nil)"]),
        (b"_\r\n", ["(nil)"]),
        (b",1.5\r\n", ["(double) 1.5"]),
        (b"#t\r\n", ["(true)"]),
        (b"=7\r\ntxt:a b\r\n", ["a b"]),
        (b"~0\r\n", ["(empty set)"]),
        (
            b"*2\r\n*2\r\n:1\r\n:2\r\n>1\r\n:3\r\n",
            ["1) 1) (integer) 1", "   2) (integer) 2", "2) 1> (integer) 3"],
        ),
        (b"%1\r\n+a\r\n*2\r\n:1\r\n:2\r\n", ["1# a =>", "   1) (integer) 1", "   2) (integer) 2"]),
        (b"%1\r\n+a\r\n:1\r\n", ["1# a => (integer) 1"]),
        (b"*%d\r\n" % 10 + b":0\r\n" * 10, [f"{n:>2}) (integer) 0" for n in range(1, 11)]),
        (b"$12\r\n<id>\r\n", ['"{id}"']),
        (b"*1\r\n$#\r\n#\r\n", ['1) "#"']),
        (b"proto\n3", ["proto", "3", "…"]),
    ],
)
def test_replies_look_as_in_redis_cli(reply: bytes, lines: list[str]) -> None:
    assert rendered(reply) == lines


def test_where_the_version_of_redis_is_named_it_is_said_what_was_not_compared_with_a_server() -> (
    None
):
    pages = [ROOT / "README.md", *pages_of_docs()]
    naming = [
        path for path in pages if REDIS_VERSION in re.sub(r"(?m)^\|.*$", "", path.read_text())
    ]
    assert {path.name for path in naming} == {"README.md", "commands.md"}
    for path in naming:
        assert re.search(
            r"8\.2 to 8\.10\b[^|]*documentation[^|]*suites", path.read_text(), re.DOTALL
        )


def test_pages_name_no_command_of_redis_that_is_not_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *pages_of_docs()]
    load()
    there = {entry.name.upper() for entry in TABLE.values()}
    for path in pages:
        words = re.findall(r"(?<![\w.-])[A-Z]{3,}(?![\w-])", path.read_text())
        missing = {word for word in words if word in OF_REDIS and word not in there}
        assert missing == OF_OTHER_SERVERS.get(path.name, set()), path
