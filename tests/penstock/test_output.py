"""Logs and output that cannot be written: nothing else changes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from penstock.output import LogFile, text_of
from tests.support.process import ROOT, PenstockProcess, run_penstock, variables
from tests.support.wire import Client, wait_until

FULL: Final = "/dev/full"

LOST: Final = {
    "nobody reads": "",
    "a full disk": f">{FULL} 2>{FULL}",
    "closed": "<&- >&- 2>&-",
    "only standard error is closed": "2>&-",
}
"""Where the output goes, for a shell; else to pipes that nobody reads."""

pytestmark = pytest.mark.skipif(not Path(FULL).exists(), reason=f"there is no {FULL}")


@contextmanager
def unheard(
    folder: Path, *options: str, redirected: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], Client]]:
    """A server whose output nobody reads, and a client."""
    path = str(folder / "s")
    command = [sys.executable, "-m", "penstock", "--port", "0", "--unixsocket", path, *options]
    with subprocess.Popen(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", *command],
        cwd=folder,
        env=variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
        try:
            wait_until(lambda: process.poll() is not None or answers(path))
            with Client(path) as client:
                yield process, client
        finally:
            process.kill()


def answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(path) == 0


@pytest.mark.parametrize("redirected", LOST.values(), ids=LOST)
def test_a_signal_ends_a_server_whose_output_is_lost(redirected: str, tmp_path: Path) -> None:
    with unheard(tmp_path, redirected=redirected) as (process, client):
        assert client.ask("PING") == b"PONG"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize("options", [("--loglevel", "nothing"), ("--logfile", FULL)])
def test_shutdown_ends_a_server_whose_log_or_ready_line_is_lost(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    with unheard(tmp_path, *options) as (process, client):
        client.send("SHUTDOWN NOSAVE")
        assert process.wait(60) == 0


def test_what_is_closed_leads_nowhere_and_no_file_gets_its_number(tmp_path: Path) -> None:
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with unheard(tmp_path, *options, redirected=LOST["closed"]) as (process, client):
        links = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        assert links == [os.devnull] * 3
        assert client.ask("XADD", "s", "1-1", "f", "v") == b"1-1"


def test_the_folder_of_the_log_file_may_be_removed(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    options = ("--port", "0", "--logfile", "logs/log")
    with PenstockProcess(*options, cwd=tmp_path) as penstock:
        shutil.rmtree(tmp_path / "logs")
        assert penstock.ask(b"PING\r\n") == b"+PONG\r\n"
        assert penstock.stop() == 0
    assert penstock.errors == ""


@pytest.mark.parametrize("removed", [False, True])
def test_a_log_file_that_is_renamed_or_removed_is_opened_again(
    removed: bool, tmp_path: Path
) -> None:
    path, old = tmp_path / "log", tmp_path / "log.1"
    file = LogFile(str(path))
    with text_of(file) as stream:
        for line in ("first", "second", "third"):
            stream.write(f"{line}\n")
            if line == "first":
                path.rename(old)
                if removed:
                    old.unlink()
        assert not os.get_inheritable(file.fileno())
    assert path.read_text() == "second\nthird\n"
    assert removed or old.read_text() == "first\n"


def test_the_log_file_stays_where_it_was_when_the_working_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with text_of(LogFile("log")) as stream:
        monkeypatch.chdir("/")
        stream.write("one\n")
        (tmp_path / "log").unlink()
        stream.write("two\n")
    assert (tmp_path / "log").read_text() == "two\n"


def test_messages_go_on_into_a_log_file_that_cannot_be_opened_again(tmp_path: Path) -> None:
    path, old = tmp_path / "log", tmp_path / "log.1"
    with text_of(LogFile(str(path))) as stream:
        path.rename(old)
        path.mkdir()
        stream.write("one\n")
        path.rmdir()
        stream.write("two\n")
    assert (old.read_text(), path.read_text()) == ("one\n", "two\n")


def test_sighup_opens_the_log_file_again_whatever_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    options = ("--port", "0", "--logfile", str(log), "--loglevel", "warning")
    with PenstockProcess(*options) as penstock:
        log.unlink()
        penstock.process.send_signal(signal.SIGHUP)
        wait_until(log.exists)
        assert penstock.stop() == 0
    assert log.read_text() == ""


def test_a_log_file_that_sighup_cannot_open_again_is_told_in_the_old_one(tmp_path: Path) -> None:
    log, old = tmp_path / "log", tmp_path / "log.1"
    with PenstockProcess("--port", "0", "--logfile", str(log)) as penstock:
        log.rename(old)
        log.mkdir()
        penstock.process.send_signal(signal.SIGHUP)
        line = f" # Received SIGHUP: can't open the log file '{log}': Is a directory\n"
        wait_until(lambda: old.read_text().endswith(line))
        assert penstock.stop() == 0


def test_the_first_loss_is_told_on_standard_error() -> None:
    with PenstockProcess("--port", "0", "--logfile", FULL) as penstock:
        assert penstock.stop() == 0
    assert penstock.errors == f"penstock: can't write to {FULL}: No space left on device\n"


# --- tools -----------------------------------------------------------------------------------

TOOLS: Final = (
    ("--help",),
    ("import", "--help"),
    ("pipeline", "--help"),
)


@pytest.mark.parametrize("words", TOOLS, ids=" ".join)
def test_who_reads_the_output_of_a_tool_may_leave(words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = run_penstock(*words, stdout=writer)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("words", [("--version",), ("check-aof", "--help")], ids=" ".join)
def test_a_tool_whose_output_is_lost_has_failed(words: tuple[str, ...]) -> None:
    with open(FULL, "w") as full:
        ended = run_penstock(*words, stdout=full.fileno())
    assert ended.returncode == 1
    assert ended.stderr == "penstock: can't write to standard output: No space left on device\n"


def test_a_tool_needs_no_standard_output_at_all(tmp_path: Path) -> None:
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-m", "penstock"]
    ended = subprocess.run([*shell, "check-aof", tmp_path / "none"], env=variables(), cwd=ROOT)
    assert ended.returncode == 1
