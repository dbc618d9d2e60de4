"""Options, help, progress and the summary."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from penstock.client.urls import parse
from penstock.migration.cli import Direction, parse_arguments
from penstock.migration.report import Depth
from penstock.migration.runner import MigrationOptions
from penstock.terminal import plural
from tests.migration.running import copy, migrate
from tests.migration.streams import RICH, Client, everything
from tests.support.ports import free_port
from tests.support.process import ROOT
from tests.support.servers import PenstockThread


@pytest.mark.parametrize("direction", ["import", "export"])
def test_help_names_every_option(direction: Direction) -> None:
    ended = migrate("--help", direction=direction)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(f"usage: penstock {direction} [-h] ")
    other = "--to" if direction == "import" else "--from"
    options = set(re.findall(r"^  (--[a-z-]+)", ended.out, re.MULTILINE))
    assert options == {
        other,
        "--match",
        "--db",
        "--replace",
        "--strings",
        "--values",
        "--verify",
        "--dry-run",
    }


def test_the_local_server_is_the_other_end_by_default() -> None:
    far, local = parse("redis://far:7000/2"), parse("redis://127.0.0.1:6379/0")
    assert parse_arguments(["redis://far:7000/2"], "import") == MigrationOptions(far, local)
    assert parse_arguments(["redis://far:7000/2"], "export") == MigrationOptions(local, far)


def test_options_are_understood() -> None:
    args = "redis://a --to redis://b --match x* --match y --db 3 --db 1 --db 3 --replace --strings"
    options = parse_arguments([*args.split(), "--verify", "quick", "--dry-run"], "import")
    a, b = parse("redis://a"), parse("redis://b")
    what = (b"x*", b"y"), (3, 1), True, True, False
    assert options == MigrationOptions(a, b, *what, Depth.QUICK, True)
    assert parse_arguments(["redis://a", "--values"], "import").copied_kinds == {
        *("string", "hash", "list", "set", "zset")
    }
    assert parse_arguments(["redis://a", "--db", "all"], "import").databases == ()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ("", "the following arguments are required: URL"),
        ("redis://a redis://u:secret@b", "unrecognized arguments: redis://***@b"),
        ("redis://a --from redis://b", "unrecognized arguments: --from redis://b"),
        ("redis://a --verify no", "argument --verify: invalid choice: 'no'"),
        ("redis://a --db x", "argument --db: 'x' is neither a number nor 'all'"),
        ("redis://a/1 --db 1", "a database may be named by --db or in a URL, not in both ways"),
        (
            "redis://a --to redis://b/1 --db 1",
            "a database may be named by --db or in a URL, not in both ways",
        ),
        (
            "http://u:secret@a",
            "the URL is not of the right form; allowed: redis://[user:password@]",
        ),
        ("redis://b --to redis://u:se/cret@a", "the URL is one with a bad port, database or host;"),
        ("redis://a?speed=9", "option 'url?speed' is 'not an option'; allowed: client_name, "),
    ],
)
def test_a_wrong_command_line_is_explained(args: str, reason: str) -> None:
    ended = migrate(*args.split())
    assert (ended.status, ended.out) == (2, "")
    assert f"penstock import: error: {reason}" in ended.err
    assert "secret" not in ended.err


def test_a_unix_socket_is_as_good(target: Client, tmp_path: Path) -> None:
    path = tmp_path / "penstock.sock"
    listening = {"port": free_port(), "unixsocket": str(path)}
    with PenstockThread(**listening) as penstock, Client(penstock.port) as source:
        source.script(RICH)
        ended = migrate(f"unix://{path}?db=0", "--to", url_of(target))
        assert (ended.status, everything(target)) == (0, everything(source))
    assert ended.out.startswith(f"source {path}/0 -> target ")


def url_of(client: Client) -> str:
    return f"redis://127.0.0.1:{client.port}"


PROGRAM = (
    "import sys; from penstock.migration.cli import main; sys.exit(main(sys.argv[1:], 'import'))"
)


# --- output ----------------------------------------------------------------------------------


def test_names_are_printed_whatever_the_encoding(source: Client, target: Client) -> None:
    source.call("XADD", "K\u00f6ln", "1-1", "f", "v")
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, url_of(source), "--to", url_of(target)],
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert ended.stdout.splitlines()[1] == b"K\\xf6ln: 1 entry added; 0 groups, 0 pending entries"


def test_without_a_terminal_there_is_a_line_for_each_stream(source: Client, target: Client) -> None:
    source.script(RICH)
    target.script("XADD counted 5-0 f v\nSET trimmed text")
    ended = copy(source.port, target.port)
    refusal = "the target's key is a string; --replace puts the source's in its place"
    assert ended.out.splitlines() == [
        f"source 127.0.0.1:{source.port}/0 -> target 127.0.0.1:{target.port}/0",
        "counted: 0 entries added to the 1 there; 0 groups, 0 pending entries",
        "empty: 0 entries added; 0 groups, 0 pending entries",
        "orders: 4 entries added; 3 groups, 6 pending entries",
        f"trimmed: {refusal}",
        "stream   entries  added  groups  pending  result" + " " * (len(refusal) + 3),
        *(
            row.ljust(42) + "equal".ljust(len(refusal) + 9)
            for row in (
                "counted        1      0       0        0",
                "empty          0      0       0        0",
                "orders         4      4       3        6",
            )
        ),
        "trimmed                                   refused: " + refusal,
        "4 streams: 3 equal, 1 refused",
    ]


def test_many_equal_streams_are_only_counted(source: Client, target: Client) -> None:
    source.call_all([("XADD", f"k{number:02}", "1-1", "f", "v") for number in range(60)])
    ended = copy(source.port, target.port)
    assert list(ended.results)[:50] == [f"k{number:02}" for number in range(50)]
    assert ended.out.splitlines()[-2:] == [
        "... and 10 more streams, equal on both servers",
        "60 streams: 60 equal",
    ]


def test_an_empty_source_is_no_error(source: Client, target: Client) -> None:
    ended = copy(source.port, target.port)
    assert (ended.status, ended.out.splitlines()[1:]) == (0, ["No streams there to be copied."])


def test_a_quick_verification_is_enough_for_those_who_ask_for_it(
    source: Client, target: Client
) -> None:
    source.script(RICH)
    assert copy(source.port, target.port, "--verify", "quick").status == 0


def test_an_interruption_is_told(
    source: Client, target: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    source.script(RICH)
    monkeypatch.setattr("penstock.migration.runner.copy_stream", interrupted)
    ended = copy(source.port, target.port)
    text = "interrupted; what was copied is kept, and the same command goes on from there"
    assert (ended.status, ended.err) == (130, f"penstock import: {text}\n")


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "entry", "1 entry"), (0, "entry", "0 entries"), (2000, "key", "2,000 keys")],
)
def test_numbers_come_with_the_right_noun(number: int, noun: str, text: str) -> None:
    assert plural(number, noun) == text


def test_a_terminal_shows_bars_that_end_full(source: Client, target: Client) -> None:
    source.call_all([("XADD", "k", f"1-{n}", "n", n) for n in range(1, 3001)])
    target.call_all([("XADD", "k", f"1-{n}", "n", n) for n in range(1, 1001)])
    source.send("SET taken text")
    source.send("XADD other 1-1 f v")
    child = pexpect.spawn(
        sys.executable,
        ["-c", PROGRAM, url_of(source), "--to", url_of(target)],
        cwd=str(ROOT),
        dimensions=(24, 100),
        encoding="utf-8",
        timeout=20,
    )
    child.expect(pexpect.EOF)
    child.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", child.before)
    lines = [line.strip() for line in re.split(r"[\r\n]+", shown) if line.strip()]
    assert child.exitstatus == 0
    for title, entries in (("Copying", "2,001/2,001"), ("Verifying", "3,001/3,001")):
        last = [line for line in lines if line.startswith(title)][-1]
        assert re.search(rf" {entries} entries, 2/2 streams [\d,]+ entries/s ", last), last
        assert "━" in last
    assert lines[-3].split() == ["k", "3,000", "2,000", "0", "0", "equal"]
    assert lines[-1] == "2 streams: 2 equal"
