"""A server that is started again in the middle of a test, and what it has lost then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import ConnectionPool, Redis
from redis.exceptions import ConnectionError

from penstock.testing import PenstockError, PenstockServer
from penstock.testing import process as process_module
from tests.plugin.conftest import Installation

KINDS = {
    "without a file": (),
    "everysec": ("--appendonly", "yes"),
    "always": ("--appendonly", "yes", "--appendfsync", "always"),
}


ALIKE = pytest.mark.parametrize(
    "shared",
    [
        pytest.param(options, marks=[pytest.mark.slow] * (name == "always"), id=name)
        for name, options in KINDS.items()
    ],
    indirect=True,
)
"""For what is the same whenever the file is synced."""


@pytest.fixture(scope="module", params=KINDS.values(), ids=list(KINDS))
def shared(request: pytest.FixtureRequest, installation: Installation) -> Iterator[PenstockServer]:
    with PenstockServer(*request.param, command=[str(installation.command)]) as server:
        yield server


@pytest.fixture
def server(shared: PenstockServer) -> PenstockServer:
    shared.reset()
    return shared


@pytest.fixture
def plain(shared_server: PenstockServer) -> PenstockServer:
    """A server without a file that others use, too."""
    shared_server.reset()
    return shared_server


@pytest.fixture
def own(installation: Installation) -> Iterator[PenstockServer]:
    """One that may be spoiled."""
    with PenstockServer(command=[str(installation.command)]) as server:
        yield server


def add(server: PenstockServer, *ids: str) -> None:
    for entry in ids:
        assert server.ask("XADD", "orders", entry, "item", "tea") == entry


def ids(server: PenstockServer) -> list[str]:
    return [entry for entry, _ in server.ask("XRANGE", "orders", "-", "+")]


def is_always(server: PenstockServer) -> bool:
    return bool(server.ask("CONFIG", "GET", "appendfsync")[1] == "always")


@ALIKE
def test_nothing_is_lost_by_a_shutdown(server: PenstockServer) -> None:
    port = server.port
    add(server, "1-1")
    server.ask("XGROUP", "CREATE", "orders", "kitchen", "0")
    server.ask("XREADGROUP", "GROUP", "kitchen", "alice", "STREAMS", "orders", ">")
    server.restart()
    assert server.port == port
    assert ids(server) == ["1-1"]
    assert server.ask("XPENDING", "orders", "kitchen") == [1, "1-1", "1-1", [["alice", "1"]]]


def test_a_loss_of_power_takes_what_came_after_the_sync(server: PenstockServer) -> None:
    add(server, "1-1", "1-2")
    server.sync()
    add(server, "1-3")
    server.restart(lose="unsynced")
    assert ids(server) == (["1-1", "1-2", "1-3"] if is_always(server) else ["1-1", "1-2"])


@ALIKE
def test_what_survived_one_loss_of_power_survives_the_next(server: PenstockServer) -> None:
    add(server, "1-1")
    server.sync()
    server.restart(lose="unsynced")
    server.restart(lose="unsynced")
    assert ids(server) == ["1-1"]


def test_without_a_sync_a_loss_of_power_takes_what_the_test_has_done(
    server: PenstockServer,
) -> None:
    add(server, "1-1")
    server.restart(lose="unsynced")
    assert ids(server) == (["1-1"] if is_always(server) else [])


@ALIKE
def test_what_the_test_before_has_synced_does_not_come_back(server: PenstockServer) -> None:
    add(server, "1-1")
    server.sync()
    server.reset()
    server.restart(lose="unsynced")
    assert ids(server) == []


@ALIKE
def test_everything_can_be_lost(server: PenstockServer) -> None:
    add(server, "1-1")
    server.sync()
    server.restart(lose="everything")
    assert server.ask("DBSIZE") == 0
    add(server, "1-1")


@ALIKE
def test_a_reset_after_a_restart_leaves_nothing_and_changes_no_setting(
    server: PenstockServer,
) -> None:
    before = server.ask("CONFIG", "GET", "appendonly", "appendfsync", "hz")
    add(server, "1-1")
    server.ask("CONFIG", "SET", "hz", 50)
    server.restart()
    assert server.ask("CONFIG", "GET", "hz") == ["hz", "10"]
    server.reset()
    assert ids(server) == []
    assert server.ask("CONFIG", "GET", "appendonly", "appendfsync", "hz") == before


def test_a_base_that_was_made_since_is_safe(server: PenstockServer) -> None:
    add(server, "1-1")
    server.ask("SAVE")
    add(server, "1-2")
    server.restart(lose="unsynced")
    assert ids(server) == (["1-1", "1-2"] if is_always(server) else ["1-1"])


def test_a_file_that_was_turned_on_meanwhile_is_kept_until_the_reset(
    plain: PenstockServer,
) -> None:
    plain.ask("CONFIG", "SET", "appendonly", "yes")
    plain.sync()
    add(plain, "1-1")
    plain.restart()
    assert plain.ask("CONFIG", "GET", "appendonly") == ["appendonly", "yes"]
    assert ids(plain) == ["1-1"]
    plain.reset()
    assert plain.ask("CONFIG", "GET", "appendonly") == ["appendonly", "no"]


def test_an_rdb_file_is_lost_with_everything(installation: Installation, tmp_path: Path) -> None:
    command = [str(installation.command)]
    with PenstockServer("--dbfilename", "d.rdb", command=command, folder=tmp_path) as server:
        add(server, "1-1")
        server.sync()
        assert (tmp_path / "d.rdb").exists()
        server.restart(lose="everything")
        assert not (tmp_path / "d.rdb").exists()
        assert ids(server) == []


def test_what_waitaof_has_promised_is_not_taken_away(installation: Installation) -> None:
    command = [str(installation.command)]
    with PenstockServer("--appendonly", "yes", command=command) as server:
        add(server, "1-1")
        assert server.ask("WAITAOF", 1, 0, 0) == [1, 0]
        with pytest.raises(
            PenstockError, match=r"^a client has called WAITAOF since the last sync"
        ):
            server.restart(lose="unsynced")
        assert ids(server) == ["1-1"]
        server.sync()
        server.restart(lose="unsynced")
        assert ids(server) == ["1-1"]


@pytest.mark.parametrize(("way", "moves"), [("freeze", False), ("set", True)])
def test_the_clock_goes_on_as_it_was(plain: PenstockServer, way: str, moves: bool) -> None:
    getattr(plain.clock, way)(5_000_000_000_000)
    plain.restart()
    now = plain.clock.now_ms
    assert now >= 5_000_000_000_000 if moves else now == 5_000_000_000_000
    plain.reset()
    plain.restart()
    assert plain.clock.now_ms < 5_000_000_000_000


def test_clients_connect_again_and_waiting_ones_are_told(plain: PenstockServer) -> None:
    client = Redis.from_url(plain.url, decode_responses=True)
    client.xadd("orders", {"item": "tea"}, id="1-1")
    plain.restart()
    assert client.xlen("orders") == 1
    client.close()
    pool = ConnectionPool.from_url(plain.url, retry=None)
    connection = pool.make_connection()
    connection.connect()
    connection.send_command("XREAD", "BLOCK", 0, "STREAMS", "orders", "$")
    plain.wait_for_readers(1)
    plain.restart(lose="everything")
    with pytest.raises(ConnectionError):
        connection.read_response()
    connection.disconnect()


def test_the_log_of_both_processes_is_there(own: PenstockServer) -> None:
    own.restart()
    own.stop()
    assert sum("Ready to accept connections" in line for line in own.output) == 2


def test_a_server_that_logs_little_is_awaited(installation: Installation) -> None:
    command = [str(installation.command)]
    with PenstockServer("--loglevel", "nothing", command=command) as server:
        server.restart()
        assert server.ask("PING") == "PONG"


def test_a_server_that_does_not_start_again_shows_what_it_said(own: PenstockServer) -> None:
    folder = Path(own.ask("CONFIG", "GET", "dir")[1])
    own.sync()
    [base] = folder.glob("appendonlydir/*.base.aof")
    base.unlink()
    text = r"(?s)^the server could not be started: it ended with exit status 1\n.* is not there"
    with pytest.raises(PenstockError, match=text):
        own.restart(lose="unsynced")
    own.reset()
    assert own.ask("DBSIZE") == 0


def test_another_loss_is_refused(plain: PenstockServer) -> None:
    with pytest.raises(
        ValueError, match=r"^lose is one of nothing, unsynced, everything, and not 'some'$"
    ):
        plain.restart(lose="some")  # type: ignore[arg-type]
    assert plain.ask("PING") == "PONG"


def test_a_server_that_does_not_shut_down_in_time_is_named(
    own: PenstockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = own._running
    monkeypatch.setattr(process, "status_if_ended", lambda timeout: None)
    monkeypatch.setattr(process_module, "STOP_TIMEOUT_S", 0)
    with pytest.raises(PenstockError, match=r"^the server does not shut down within 0 seconds\n"):
        own.restart()
    monkeypatch.undo()


def test_a_server_that_cannot_save_goes_on(own: PenstockServer) -> None:
    add(own, "1-1")
    folder = Path(own.ask("CONFIG", "GET", "dir")[1])
    (folder / "appendonlydir").write_text("in the way")
    with pytest.raises(PenstockError, match=r"^SHUTDOWN SAVE: ERR Errors trying to SHUTDOWN"):
        own.restart()
    assert ids(own) == ["1-1"]
