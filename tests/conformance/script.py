"""The scripts: conversations between named connections and a server.

A script file holds cases. ``## sentence`` begins one; ``#`` begins a comment. ``since X.Y`` before
the first case says that the file is about features that older servers lack: its replies are written
down in the script and are not recorded. Every case begins on an empty server with its default
settings.

==============================  ===================================================================
``XADD k 1-0 a 1``              connection A sends a command and receives one reply
``B: XLEN k``                   connection B does
``B blocks: XREAD BLOCK 0 ...`` B sends a command, and no reply comes
``B silent: CLIENT REPLY OFF``  the same, for commands that are never answered
``B still waits``               nothing has come for B
``B receives``                  the next reply comes; ``receives 3`` for three of them
``B receives after 90 ms``      ... no sooner than that after B's last command
``A repeats 1..5: XADD k {n}``  a pipeline of commands, as many replies
``A sends "PING\\r\\n" "..."``    raw bytes, no reply read
``A closed``                    the server has closed the connection and sent nothing more
``A leaves``                    the client closes its connection
``pause 20 ms``                 waits, where nothing can be waited for
``no greeting``                 connections of this case don't send HELLO 3 in the RESP3 run
==============================  ===================================================================

Indented lines below a step say more about its reply: see marks.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .marks import Mark, Version, parse_mark, parse_version

SCRIPTS = Path(__file__).parent / "scripts"
FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("pause", re.compile(r"pause (?P<low>\d+) ms")),
    ("command", re.compile(r"(?P<client>[A-Z]): (?P<text>.*)")),
    ("unanswered", re.compile(r"(?P<client>[A-Z]) (?:blocks|silent): (?P<text>.*)")),
    (
        "repeats",
        re.compile(r"(?P<client>[A-Z]) repeats (?P<low>\d+)\.\.(?P<high>\d+): (?P<text>.*)"),
    ),
    ("sends", re.compile(r"(?P<client>[A-Z]) sends (?P<text>.*)")),
    ("receives", re.compile(r"(?P<client>[A-Z]) receives after (?P<low>\d+) ms")),
    ("receives", re.compile(r"(?P<client>[A-Z]) receives(?: (?P<count>\d+))?")),
    ("waits", re.compile(r"(?P<client>[A-Z]) still waits")),
    ("closed", re.compile(r"(?P<client>[A-Z]) closed")),
    ("leaves", re.compile(r"(?P<client>[A-Z]) leaves")),
)
OBSERVED = ("command", "repeats", "receives", "closed")


@dataclass
class Step:
    """One line of a case, and the marks below it."""

    line: str
    action: str
    client: str = "A"
    text: str = ""
    low: int = 0
    high: int = 0
    count: int = 1
    marks: list[Mark] = field(default_factory=list)

    @property
    def observed(self) -> bool:
        """Whether the step yields something to compare."""
        return self.action in OBSERVED


@dataclass
class Case:
    """One conversation, and the promise it checks."""

    name: str
    greets: bool = True
    steps: list[Step] = field(default_factory=list)


@dataclass
class Topic:
    """One script file."""

    name: str
    since: Version | None = None
    cases: list[Case] = field(default_factory=list)


class ScriptError(ValueError):
    """A script that can't be understood."""


def all_topics() -> Iterator[Topic]:
    """Every script, in the order of their names."""
    for path in sorted(SCRIPTS.glob("*.txt")):
        yield read_topic(path)


def read_topic(path: Path) -> Topic:
    """The cases of a script file."""
    topic = Topic(path.stem)
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            _read_line(topic, line.rstrip())
        except (ValueError, IndexError) as error:
            raise ScriptError(f"{path.name}:{number}: {error}") from error
    _refuse_duplicates(topic)
    return topic


def _read_line(topic: Topic, line: str) -> None:
    """Add what one line says to the topic."""
    if line.startswith("## "):
        topic.cases.append(Case(line[3:]))
    elif not line or line.startswith("#"):
        return
    elif line.startswith("since "):
        topic.since = parse_version(line[6:])
    elif line == "no greeting":
        topic.cases[-1].greets = False
    elif line.startswith("  "):
        topic.cases[-1].steps[-1].marks.append(parse_mark(line.strip()))
    else:
        topic.cases[-1].steps.append(read_step(line))


def read_step(line: str) -> Step:
    """The step that a line describes; a line of no other form is a command of connection A."""
    for action, form in FORMS:
        found = form.fullmatch(line)
        if found:
            return _step(line, action, found.groupdict())
    return Step(line, "command", text=line)


def _step(line: str, action: str, words: dict[str, str | None]) -> Step:
    """A step with what its form found in the line."""
    return Step(
        line,
        action,
        client=words.get("client") or "A",
        text=words.get("text") or "",
        low=int(words.get("low") or 0),
        high=int(words.get("high") or 0),
        count=int(words.get("count") or 1),
    )


def _refuse_duplicates(topic: Topic) -> None:
    """Case names tell cases apart in transcripts and in test reports."""
    names = [case.name for case in topic.cases]
    for name in names:
        if names.count(name) > 1:
            raise ScriptError(f"{topic.name}: two cases are named {name!r}")
