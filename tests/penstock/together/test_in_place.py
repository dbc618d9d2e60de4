"""Penstock in the place of a redis-server: its options, its files, and what start scripts read."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Final

import pytest

from penstock.cli import VERSION, configure
from server.config.file import ConfigError
from tests.support.process import PenstockProcess, run_penstock

PING: Final = b"PING\r\n"

OWN_COPY: Final = Path(__file__).parents[1] / "data" / "debian-redis.conf"
DEBIANS: Final = Path("/etc/redis/redis.conf")


def told(penstock: PenstockProcess, mark: str) -> list[str]:
    """The messages of a level so far."""
    return [line.split(f" {mark} ")[1] for line in penstock.lines if f" {mark} " in line]


# --- options and files -----------------------------------------------------------------------


def test_the_options_that_everybody_copies_start_a_server() -> None:
    with PenstockProcess("--save", "60", "1", "--loglevel", "warning", "--port", "0") as penstock:
        assert penstock.ask(PING) == b"+PONG\r\n"
        assert penstock.ask(b"CONFIG GET save\r\n") == b"*2\r\n$4\r\nsave\r\n$4\r\n60 1\r\n"
    assert told(penstock, "#") == [
        "save is '60 1', but nothing is saved by itself until there is 'appendonly yes' or a"
        " 'dbfilename': all data is in memory only"
    ]


@pytest.mark.parametrize(
    ("options", "points"),
    [
        (("--save",), ""),
        (("--save", "--loglevel", "notice"), ""),
        (("--save", ""), ""),
        (("--save 60 1",), "60 1"),
        (("--save", "60 1", "--save", "30", "2"), "60 1 30 2"),
        (("--save 3600 1 300 100 60 10000", "--save"), ""),
    ],
)
def test_save_is_given_in_each_way_that_redis_takes(options: tuple[str, ...], points: str) -> None:
    assert configure([*options, "--port", "0"], sys.stdin).get_text("save") == points


def test_no_other_option_may_be_without_a_value() -> None:
    message = r"^command line: appendonly: wrong number of arguments$"
    with pytest.raises(ConfigError, match=message):
        configure(["--appendonly", "--port", "0"], sys.stdin)


@pytest.mark.parametrize(
    "path",
    [
        OWN_COPY,
        pytest.param(
            DEBIANS,
            marks=pytest.mark.skipif(
                not os.access(DEBIANS, os.R_OK), reason="Debian's redis-server is not installed"
            ),
        ),
    ],
    ids=["our own", "Debian's"],
)
def test_debians_configuration_starts_a_server(tmp_path: Path, path: Path) -> None:
    # What it says of places is for the user that the package makes.
    own = ("--port", "0", "--dir", str(tmp_path), "--logfile", "", "--pidfile", "own.pid")
    with PenstockProcess(str(path), *own) as penstock:
        assert penstock.ask(b"SET k v\r\n") == b"+OK\r\n"
        assert penstock.ask(b"SAVE\r\n") == b"+OK\r\n"
    assert (tmp_path / "dump.rdb").exists()
    (taken,) = [line for line in told(penstock, "*") if line.startswith("Taken without effect: ")]
    names = taken.partition(": ")[2].split(", ")
    assert len(names) == len(set(names))
    assert {"daemonize", "rdbcompression", "list-compress-depth", "activerehashing"} < {*names}
    assert not {"port", "dir", "pidfile", "appendonly", "databases"} & {*names}


def test_what_cannot_be_kept_ends_the_start_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "redis.conf").write_text("port 0\ncluster-enabled yes\n")
    ended = run_penstock("redis.conf", cwd=tmp_path)
    assert ended.returncode == 1
    assert ended.stderr == (
        "penstock: redis.conf, line 2: cluster-enabled: argument must be no: there is no cluster:"
        " let clients connect to one server ('--ignore-unsupported yes' starts the server anyway)\n"
    )
    eviction = ("--maxmemory", "100gb", "--maxmemory-policy", "allkeys-lru")
    options = ("redis.conf", "--ignore-unsupported", "yes", *eviction)
    with PenstockProcess(*options, cwd=tmp_path) as penstock:
        assert penstock.ask(PING) == b"+PONG\r\n"
    assert told(penstock, "#") == [
        "Ignored, as ignore-unsupported says: cluster-enabled, maxmemory-policy"
    ]


# --- what others read ------------------------------------------------------------------------


def test_the_first_number_of_the_version_is_that_of_redis() -> None:
    found = re.search(r"\d+(?:\.\d+)+", VERSION)
    assert found is not None
    assert found[0] == "8.10.0"


def test_the_pid_file_is_there_while_the_server_runs(tmp_path: Path) -> None:
    path = tmp_path / "server.pid"
    with PenstockProcess("--port", "0", "--pidfile", str(path)) as penstock:
        assert penstock.ask(PING) == b"+PONG\r\n"
        assert path.read_text() == f"{penstock.process.pid}\n"
        assert penstock.stop(signal.SIGTERM) == 0
    assert not path.exists()


def test_a_pid_file_that_cannot_be_written_hinders_nothing(tmp_path: Path) -> None:
    path = tmp_path / "none" / "server.pid"
    with PenstockProcess("--port", "0", "--pidfile", str(path)) as penstock:
        assert penstock.ask(PING) == b"+PONG\r\n"
        assert penstock.stop() == 0
    assert told(penstock, "#") == [
        f"The pid file '{path}' cannot be written: No such file or directory"
    ]


@pytest.mark.parametrize(
    ("how", "messages"),
    [("systemd", [b"READY=1", b"STOPPING=1"]), ("auto", [b"READY=1", b"STOPPING=1"]), ("no", [])],
)
def test_systemd_is_told_when_the_server_is_ready_and_when_it_ends(
    tmp_path: Path, how: str, messages: list[bytes]
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        options = ("--port", "0", "--supervised", how)
        notify = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with PenstockProcess(*options, environment=notify) as penstock:
            assert penstock.ask(PING) == b"+PONG\r\n"
            assert penstock.stop() == 0
        heard: list[bytes] = []
        while len(heard) < len(messages):
            heard.append(systemd.recv(100))
        with pytest.raises(BlockingIOError):
            systemd.recv(100)
    assert heard == messages


def test_a_supervisor_that_is_gone_hinders_nothing(tmp_path: Path) -> None:
    options = ("--port", "0", "--supervised", "systemd", "--logfile", "log")
    gone = {"NOTIFY_SOCKET": "@gone"}
    with PenstockProcess(*options, environment=gone, cwd=tmp_path) as penstock:
        assert penstock.ask(PING) == b"+PONG\r\n"
        assert penstock.stop() == 0
    log = (tmp_path / "log").read_text()
    assert " # systemd cannot be told 'READY=1': Connection refused\n" in log
