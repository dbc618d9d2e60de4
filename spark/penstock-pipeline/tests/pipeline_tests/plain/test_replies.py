"""Servers that answer as no server does: one clear sentence in each command of a pipeline, in
bounded memory."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from penstock.testing import Penstock
from penstock_pipeline import client
from penstock_pipeline.errors import PipelineError
from penstock_pipeline.report import Reporter
from penstock_pipeline.samples.compare import Rows, show_rows
from penstock_pipeline.servers import matching, preflight, reached, single
from penstock_pipeline.status import LetterCounts
from penstock_pipeline.terminal import shown
from pipeline_tests.plain.files import Command, pipeline, text, write
from tests.support.answering import answering, with_reply

FILE = ("validate --connect", "preview")
URL = (
    "redrive --dead-letters d",
    "new FOLDER/new.toml --stream s --output lake",
)
OTHER_TYPES = [b":1\r\n", b"$1\r\n\xff\r\n", b"*1\r\n*0\r\n", b"*1\r\n$-1\r\n"]
ON_A_TERMINAL = "\x1b[2J\x9b\u202e"
LETTERS = '[parse.columns]\na = "int"\n[dead_letters]\nstream = "dead"\n'


def told(words: str, url: str, folder: Path, command: Command) -> str:
    """The line of a command that fails, behind the address of the server."""
    file = write(folder, text(url, "retries = 0"))
    where = [file] if words in FILE else ["--url", url]
    status, out, err = command(*words.replace("FOLDER", str(folder)).split(), *where)
    assert status == 1
    lines = (err if words != FILE[0] else out).splitlines()
    place = f"{url.removeprefix('redis://')}/0"
    assert lines[:-1] == ([f"{place} (source)"] if words == FILE[0] else [])
    return lines[-1].strip().removeprefix(f"{place} ")


@pytest.mark.parametrize("reply", OTHER_TYPES)
@pytest.mark.parametrize("words", URL)
def test_a_reply_of_another_type_is_one_sentence(
    words: str, reply: bytes, tmp_path: Path, command: Command
) -> None:
    with answering(with_reply(reply)) as url:
        line = told(words, url, tmp_path, command)
    verb, asked = line.split(" ", 1)
    assert verb == "answers"
    assert asked in {
        f"{each} as no Redis, Valkey or Penstock does" for each in ("XINFO STREAM d", "XRANGE s")
    }


@pytest.mark.parametrize("words", [*FILE, *URL])
def test_an_error_of_a_server_has_nothing_that_a_terminal_might_act_on(
    words: str, tmp_path: Path, command: Command
) -> None:
    with answering(with_reply(f"-WRONG {ON_A_TERMINAL}\r\n".encode())) as url:
        assert told(words, url, tmp_path, command) == r"refuses: WRONG \x1b[2J\x9b\u202e"


@pytest.mark.parametrize("words", [*FILE, *URL])
def test_a_reply_without_end_is_given_up(
    words: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MOST_BYTES", 1_000_000)
    with answering(with_reply(b"$100000000\r\n" + b"x" * 2_000_000)) as url:
        line = told(words, url, tmp_path, command)
    assert line == "sends a reply of more than 1,000,000 bytes"


def test_what_is_no_protocol_of_a_server_is_one_sentence(tmp_path: Path, command: Command) -> None:
    with answering(lambda _: b"HTTP/1.1 400 Bad Request\r\n") as url:
        line = told(URL[0], url, tmp_path, command)
    assert line.startswith("can't be reached: Protocol ")


@pytest.mark.parametrize("reply", OTHER_TYPES)
def test_a_run_does_not_begin_with_such_a_server(tmp_path: Path, reply: bytes) -> None:
    with (
        answering(with_reply(reply)) as url,
        pytest.raises(PipelineError, match=r"/0 answers XRANGE orders as no Redis"),
    ):
        preflight(pipeline(tmp_path, url))


@pytest.mark.parametrize("reply", OTHER_TYPES)
def test_streams_are_not_looked_for_on_such_a_server(reply: bytes) -> None:
    with (
        answering(with_reply(reply)) as url,
        pytest.raises(PipelineError, match=r"/0 answers SCAN as no Redis"),
        reached(single({"url": url})[0]) as connected,
    ):
        matching(connected, "*")


@pytest.mark.parametrize("reply", OTHER_TYPES)
def test_dead_letters_that_are_none_are_not_counted(tmp_path: Path, reply: bytes) -> None:
    with answering(with_reply(reply)) as url:
        counts = LetterCounts(pipeline(tmp_path, url, more=LETTERS))
        counts.poll()
        assert counts.counts() == {}
        counts.close()


def test_names_on_a_server_have_nothing_that_a_terminal_might_act_on(
    penstock: Penstock, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    penstock.client.xadd(f"o{ON_A_TERMINAL}", {"a": 1}, id="1-1")
    penstock.client.xgroup_create(f"o{ON_A_TERMINAL}", f"g{ON_A_TERMINAL}")
    penstock.client.xadd("orders", {"a": 1})
    file = write(tmp_path, text(penstock.url, 'subscribe_pattern = "o*"'))
    outputs = [command("validate", "--connect", file)]
    letters = ("--dead-letters", f"o{ON_A_TERMINAL}")
    outputs.append(command("redrive", "--url", penstock.url, *letters, "--dry-run"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    asked: list[str] = []

    def answer(question: str) -> str:
        asked.append(question)
        return ""

    monkeypatch.setattr("builtins.input", answer)
    outputs.append(command("new", tmp_path / "new.toml", "--url", penstock.url, "--output", "lake"))
    assert asked == [f"Stream [{shown(f'o{ON_A_TERMINAL}')}]: "]
    for _, out, err in outputs:
        assert shown(f"o{ON_A_TERMINAL}") in out
        assert all(line.isprintable() for line in (out + err).splitlines())


def test_rows_and_failures_that_are_shown_have_nothing_of_that_either() -> None:
    screen = io.StringIO()
    console = Console(file=screen, width=200)
    show_rows(console, Rows("entries", ("value",), ({"value": f"a\nb{ON_A_TERMINAL}"},)))
    with Reporter(console, "p", [], ["q"]) as reporter:
        reporter.warn(f"first line{ON_A_TERMINAL}\nsecond line")
    lines = [line.strip() for line in screen.getvalue().split("\n")]
    escaped = r"\x1b[2J\x9b\u202e"
    assert lines[3:] == [rf"a\nb{escaped}", f"warning: first line{escaped}", "second line", ""]
