"""The server that the plugin runs, used without pytest's help."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock.testing
from penstock.testing import PenstockError, PenstockServer, ServerClock
from penstock.testing import control as control_module
from penstock.testing import process as process_module
from penstock.testing.process import find_command
from tests.plugin.conftest import Installation

HOUR = 3_600_000


# --- life ------------------------------------------------------------------------------------


def test_it_leaves_nothing_behind(installation: Installation) -> None:
    with PenstockServer("--appendonly", "yes", command=[str(installation.command)]) as server:
        folder = Path(server.ask("CONFIG", "GET", "dir")[1])
        process = server.ask("INFO", "server").partition("process_id:")[2].split()[0]
        assert (folder / "appendonlydir").is_dir()
        assert server.url == f"redis://127.0.0.1:{server.port}"
    assert server.output[-1].endswith("Bye")
    assert not folder.exists()
    assert not Path("/proc", process).exists()


def test_files_may_stay_and_ids_go_on_behind_those_of_a_turned_clock(
    installation: Installation, tmp_path: Path
) -> None:
    command = [str(installation.command)]
    with PenstockServer("--appendonly", "yes", command=command, folder=tmp_path) as server:
        server.clock.advance(hours=1)
        last = server.ask("XADD", "k", "*", "a", "b")
        server.clock.set(0)
        assert server.ask("XADD", "k", "*", "a", "b") == last.replace("-0", "-1")
    with PenstockServer("--appendonly", "yes", command=command, folder=tmp_path) as server:
        assert server.ask("XADD", "k", "*", "a", "b") == last.replace("-0", "-2")


@pytest.mark.parametrize(
    ("bind", "host", "url"),
    [("*", "127.0.0.1", "redis://127.0.0.1:"), ("::1", "::1", "redis://[::1]:")],
)
def test_where_to_connect_follows_from_where_it_listens(
    installation: Installation, bind: str, host: str, url: str
) -> None:
    with PenstockServer("--bind", bind, command=[str(installation.command)]) as server:
        assert (server.host, server.url) == (host, f"{url}{server.port}")
        assert server.ask("PING") == "PONG"


def test_a_server_that_was_not_started_has_no_port() -> None:
    server = PenstockServer()
    with pytest.raises(PenstockError, match=r"^the server has not been started$"):
        _ = server.port
    with pytest.raises(PenstockError, match=r"^the server has not been started$"):
        server.ask("PING")


def test_a_password_in_the_environment_is_not_for_the_servers_of_tests(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_PASSWORD", "sesame")
    monkeypatch.setenv("PENSTOCK_PASSWORD_FILE", str(tmp_path / "missing"))
    with PenstockServer(command=[str(installation.command)]) as server:
        assert server.ask("PING") == "PONG"


def test_the_command_is_looked_for_in_the_environment_then_on_the_path(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(installation.scripts))
    monkeypatch.setenv("PATH", str(empty))
    assert find_command() == [str(installation.command)]
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(empty))
    with pytest.raises(
        PenstockError, match=r"^there is no command 'penstock', neither in /.*empty"
    ):
        find_command()
    monkeypatch.setenv("PATH", str(installation.scripts))
    assert find_command() == [str(installation.command)]


def test_a_command_that_does_not_exist_is_named() -> None:
    text = r"^the server could not be started: /no/such/penstock: No such file or directory$"
    with pytest.raises(PenstockError, match=text):
        PenstockServer(command=["/no/such/penstock"]).start()


def test_a_server_that_is_never_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "START_TIMEOUT_S", 0)
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(PenstockError, match=r"it did not say within 0 seconds that it was ready"):
        PenstockServer(command=command).start()


def test_a_server_that_does_not_shut_down_is_killed(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = PenstockServer(command=[str(installation.command)])
    server.start()
    process = server._running
    monkeypatch.setattr(process_module, "STOP_TIMEOUT_S", 0)
    monkeypatch.setattr(process._popen, "terminate", lambda: None)
    server.stop()
    assert process.status_if_ended(0) == -9


# --- asking ----------------------------------------------------------------------------------


def test_replies_are_plain_values(server: PenstockServer) -> None:
    assert server.ask("SET", "k", "\xe9") == "OK"
    assert server.ask("GET", "k") == "\xe9"
    assert server.ask("GET", "missing") is None
    assert server.ask("DEL", "k", "l") == 1
    assert server.ask("TIME")[0].isdigit()


def test_an_error_reply_is_raised_with_what_was_asked(server: PenstockServer) -> None:
    with pytest.raises(PenstockError, match=r"^XLEN: ERR wrong number of arguments"):
        server.ask("XLEN")
    assert server.ask("PING") == "PONG"


def test_a_connection_that_is_lost_is_made_anew(server: PenstockServer) -> None:
    own = server.ask("CLIENT", "ID")
    server.ask("CLIENT", "KILL", "ID", own, "SKIPME", "no")
    with pytest.raises(PenstockError, match=r"^the server does not answer PING: "):
        server.ask("PING")
    assert server.ask("CLIENT", "ID") != own


def test_a_server_that_is_held_is_not_waited_for(
    server: PenstockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "TIMEOUT_S", 0.05)
    server._control.close()
    text = r"^the server does not answer WAIT 1 0: is it held by CLIENT PAUSE or DEBUG SLEEP\?$"
    with pytest.raises(PenstockError, match=text):
        server.ask("WAIT", 1, 0)
    monkeypatch.undo()
    server._control.close()
    assert server.ask("PING") == "PONG"


def test_several_threads_may_ask(server: PenstockServer) -> None:
    def count() -> None:
        for _ in range(50):
            server.ask("INCR", "k")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.ask("GET", "k") == "200"


def test_reset_undoes_what_was_done(server: PenstockServer) -> None:
    before = server.ask("CONFIG", "GET", "*")
    server.ask("SET", "k", "v")
    server.ask("SELECT", 3)
    server.ask("SET", "k", "v")
    server.ask("CONFIG", "SET", "hz", 100, "notify-keyspace-events", "KEA", "loglevel", "verbose")
    server.ask("CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 1mb 1")
    server.ask("CLIENT", "PAUSE", 60_000, "WRITE")
    server.clock.advance(days=400)
    server.reset()
    assert server.ask("CONFIG", "GET", "*") == before
    assert server.ask("INFO", "keyspace") == "# Keyspace\r\n"
    assert server.ask("SET", "k", "v") == "OK"
    server.ask("SELECT", 0)


# --- the clock -------------------------------------------------------------------------------


class Asked:
    """Takes the place of a server, and keeps what was asked."""

    def __init__(self) -> None:
        self.words: tuple[str | int, ...] = ()
        self.clock = ServerClock(self.ask)

    def ask(self, *words: str | int) -> Any:
        self.words = words
        return ""


@pytest.mark.parametrize(
    ("turn", "milliseconds"),
    [
        (lambda clock: clock.advance(5), 5),
        (lambda clock: clock.advance(seconds=1.5), 1500),
        (lambda clock: clock.advance(1, minutes=1), 60_001),
        (lambda clock: clock.advance(days=1, hours=1), 25 * HOUR),
        (lambda clock: clock.advance(seconds=0.0011), 1),
        (lambda clock: clock.advance(10**15), 10**15),
    ],
)
def test_advance_sums_up(turn: Callable[[ServerClock], None], milliseconds: int) -> None:
    asked = Asked()
    turn(asked.clock)
    assert asked.words == ("DEBUG", "CLOCK", "ADVANCE", milliseconds)


def test_the_clock_advances_forward_only() -> None:
    asked = Asked()
    for step in (0, -1):
        with pytest.raises(ValueError, match=r"^the clock advances by a millisecond or more, not"):
            asked.clock.advance(step)
    assert asked.words == ()


@given(
    st.datetimes(
        min_value=datetime(1970, 1, 2),
        max_value=datetime(9999, 12, 30),
        timezones=st.integers(-23, 23).map(lambda hours: timezone(timedelta(hours=hours))),
    )
)
def test_dates_are_unix_milliseconds(when: datetime) -> None:
    asked = Asked()
    asked.clock.set(when)
    milliseconds = asked.words[3]
    assert isinstance(milliseconds, int)
    assert asked.words[:3] == ("DEBUG", "CLOCK", "SET")
    back = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    assert timedelta(0) <= when - back < timedelta(milliseconds=1)


def test_a_date_without_a_time_zone_is_refused() -> None:
    asked = Asked()
    with pytest.raises(ValueError, match=r"has no time zone, so it may be any of several times$"):
        asked.clock.set(datetime(2030, 1, 1))
    assert asked.words == ()


@pytest.mark.parametrize("hour", ["1h", None, True])
def test_a_step_that_is_no_number_is_refused(hour: Any) -> None:
    asked = Asked()
    text = (
        f"^{hour!r} is no number; allowed: advance\\(1500\\) in milliseconds, or advance\\(hours=1"
    )
    with pytest.raises(TypeError, match=text):
        asked.clock.advance(hour)
    with pytest.raises(TypeError, match=text):
        asked.clock.advance(hours=hour)
    assert asked.words == ()


@pytest.mark.parametrize("when", ["2020-01-01", 1.5, True])
def test_a_time_that_is_neither_number_nor_date_is_refused(when: Any) -> None:
    asked = Asked()
    for turn in (asked.clock.set, asked.clock.freeze):
        with pytest.raises(TypeError, match=f"^{when!r} is no time; allowed: Unix milliseconds"):
            turn(when)
    assert asked.words == ()


@pytest.mark.parametrize("typed", [("DELAY 300",), ("DELAY", 300), ("ERROR ERR no way",)])
def test_an_action_may_be_one_text(server: PenstockServer, typed: tuple[Any, ...]) -> None:
    server.faults.add("XADD", *typed)
    [fault] = server.faults.list()
    words = ["ERROR", "ERR no way"] if "ERROR" in typed[0] else ["DELAY", "300"]
    assert fault["words"] == ["XADD", *words]
    server.faults.clear()


def test_the_servers_clock_follows(server: PenstockServer) -> None:
    server.clock.set(datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC))
    identity = server.ask("XADD", "k", "*", "a", "b")
    assert identity.startswith("10000000")
    server.clock.advance(hours=1)
    assert server.clock.now_ms >= int(identity.partition("-")[0]) + HOUR
    server.clock.set(5_000_000_000_000)
    assert server.clock.now_ms >= 5_000_000_000_000
    server.clock.reset()
    assert server.clock.now_ms < 5_000_000_000_000
    with pytest.raises(PenstockError, match=r"^DEBUG CLOCK SET -1: ERR value is out of range"):
        server.clock.set(-1)


# --- the package -----------------------------------------------------------------------------


def test_every_public_name_is_there() -> None:
    for name in penstock.testing.__all__:
        assert getattr(penstock.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Missing'"):
        _ = penstock.testing.Missing


def test_the_server_is_never_imported_into_the_tests() -> None:
    program = (
        "import sys, penstock.testing.server, penstock.testing.fixture\n"
        "print({'server', 'protocol', 'storage'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("set()\n", "")
