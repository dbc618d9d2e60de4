"""What docs/migration.md shows happens as it is printed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from penstock.migration.cli import Direction
from storage.rdb import codes
from storage.rdb.write import write_rdb
from tests.migration.running import PAGE, Ended, allowed, migrate
from tests.migration.streams import RICH, Client, everything
from tests.support.servers import PenstockThread

COMMANDS = re.findall(r"^    penstock (.*)$", PAGE, re.MULTILINE)


def run(command: str, far: Client, near: Client) -> Ended:
    """Runs a command of the page with the servers of the test in the place of those it names."""
    command = re.sub(r"(user:password@)?(old|new)\.example:6379", f"127.0.0.1:{far.port}", command)
    direction, *args = shlex.split(command.replace("127.0.0.1:6379", f"127.0.0.1:{near.port}"))
    return migrate(*args, direction=cast(Direction, direction))


@pytest.fixture
def far(
    source: Client, penstock: PenstockThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Client:
    """A server that has something of everything, as has the file ``dump.rdb``."""
    source.script(RICH)
    source.script("XADD orders:1 1-1 f v\nXADD invoices 1-1 f v\nSET text value")
    with Client(source.port, db=3) as third:
        third.send("XADD three 1-1 f v")
    monkeypatch.chdir(tmp_path)
    chunks = write_rdb(penstock.server.state.keyspace, version=codes.REDIS_7_2)
    Path("dump.rdb").write_bytes(b"".join(chunks))
    return source


@pytest.fixture
def near(target: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    """The server that the commands take to be the one on this machine."""
    monkeypatch.setattr("penstock.migration.cli.LOCAL", f"redis://127.0.0.1:{target.port}/0")
    return target


def test_every_command_is_tried_out() -> None:
    assert len(COMMANDS) == PAGE.count("\n    penstock ") == 11
    assert re.findall(r"^```(.*)$", PAGE, re.MULTILINE) == ["text", ""]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_does_what_the_page_says(command: str, far: Client, near: Client) -> None:
    if command.startswith("export"):
        far, near = near, far
    with Client(near.port, db=5) as fifth, Client(near.port, db=3) as third:
        ended = run(command, far, near)
        assert (ended.status, ended.err) == (0, "")
        copied = [set(everything(client)) for client in (near, third, fifth)]
    assert copied == expected(command)


STREAMS = {b"orders", b"trimmed", b"empty", b"counted", b"orders:1", b"invoices"}


def expected(command: str) -> list[set[bytes]]:
    """The keys in the databases 0, 3 and 5 of the local server after a command."""
    if command.startswith("export"):
        return [STREAMS | {b"text"}, {b"three"}, set()]
    if "--dry-run" in command:
        return [set(), set(), set()]
    if command.endswith("6379/5"):
        return [set(), set(), STREAMS]
    if "--match orders " in command:
        return [{b"orders"}, set(), set()]
    if "--match" in command:
        return [{b"orders:1", b"invoices"}, set(), set()]
    if "--db" in command:
        return [STREAMS, {b"three"}, set()]
    others = {b"text"} if "--strings" in command or "--values" in command else set()
    return [STREAMS | others, set(), set()]


def test_the_output_is_as_printed(source: Client, near: Client) -> None:
    source.script(RICH)
    source.send("DEL trimmed empty counted")
    ended = run(COMMANDS[0], source, near)
    printed = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    lines = [line.rstrip() for line in ended.out.splitlines()]
    assert lines[1:] == printed.splitlines()


@pytest.fixture
def restricted(real: Client) -> Iterator[Client]:
    yield real
    real.send("ACL DELUSER clerk")


@pytest.mark.parametrize("end", ["source", "target"])
def test_the_commands_that_a_user_needs_are_enough(
    restricted: Client, penstock: PenstockThread, here: Client, end: str
) -> None:
    known = [name for name in allowed(end) if restricted.call("COMMAND", "INFO", name)[0]]
    rules = [f"+{name.lower()}" for name in known]
    restricted.call("ACL", "SETUSER", "clerk", "on", ">secret", "~*", "-@all", *rules)
    clerk = f"redis://clerk:secret@127.0.0.1:{restricted.port}"
    if end == "source":
        restricted.script(RICH)
        ended = migrate(clerk, "--to", penstock.url)
    else:
        here.script(RICH)
        restricted.script("XADD counted 5-0 f v\nPEXPIREAT counted 99999999999999")
        ended = migrate(penstock.url, "--to", clerk)
    assert (ended.status, ended.err) == (0, "")
    assert everything(here) == everything(restricted)


def test_a_user_who_lacks_one_of_them_is_told_which(restricted: Client, near: Client) -> None:
    rules = [f"+{name.lower()}" for name in allowed("source") if name != "XPENDING"]
    restricted.call("ACL", "SETUSER", "clerk", "on", ">secret", "~*", "-@all", *rules)
    restricted.script(RICH)
    ended = migrate(f"redis://clerk:secret@127.0.0.1:{restricted.port}")
    assert ended.status == 1
    assert ended.results["counted"] == "equal"
    assert re.search(r"failed: the source .* refuses: NOPERM .*xpending", ended.out)
