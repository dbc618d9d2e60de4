"""``penstock debug``: what it prints, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from penstock.debug import main
from penstock.testing import RemoteServer
from tests.support.ports import free_port
from tests.support.servers import PenstockThread
from tests.support.wire import Client

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url() -> Iterator[str]:
    with PenstockThread(enable_debug_command="yes") as thread:
        yield thread.url


@pytest.fixture
def server(url: str) -> Iterator[RemoteServer]:
    with RemoteServer(url) as remote:
        yield remote


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command; returns its exit status and what it has printed."""
    monkeypatch.setenv("PENSTOCK_URL", url)

    def run(*args: str) -> tuple[int, str, str]:
        status = main(args)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def test_a_fault_is_added_listed_and_cleared(run: Run, server: RemoteServer) -> None:
    assert run("fault", "add", "XADD", "ERROR", "ERR no ink", "TIMES", "1")[0] == 1
    assert run("fault", "add", "XADD", "TIMES", "1", "ERROR", "ERR no ink") == (0, "1\n", "")
    _, out, _ = run("fault", "list")
    words = ["XADD", "TIMES", "1", "ERROR", "ERR no ink"]
    assert json.loads(out) == {"id": 1, "words": words, "matched": 0, "struck": 0}
    assert run("FAULT", "clear") == (0, "1\n", "")
    assert run("fault", "list") == (0, "", "")


def test_the_clock_is_moved(run: Run, server: RemoteServer) -> None:
    assert run("clock", "freeze", "1000") == (0, "OK\n", "")
    assert run("clock", "advance", "500") == (0, "OK\n", "")
    assert server.clock.now_ms == 1500


def test_a_trace_is_a_line_of_json_for_each_command(run: Run, server: RemoteServer) -> None:
    server.clock.freeze(1000)
    assert run("trace", "start") == (0, "OK\n", "")
    server.ask("XADD", "orders", "*", "item", "\xe9")
    server.ask("XLEN", "orders")
    _, out, _ = run("trace", "get")
    number = server.ask("CLIENT", "ID")
    assert [json.loads(line) for line in out.splitlines()] == [
        [1000, number, "", 0, ["XADD", "orders", "*", "item", "\xe9"]],
        [1000, number, "", 0, ["XLEN", "orders"]],
    ]
    assert json.loads(run("trace", "status")[1])["running"] == 1
    assert run("trace", "stop") == (0, "OK\n", "")


def test_workers_are_lines_of_json(run: Run, server: RemoteServer) -> None:
    status, port, _ = run("port", "open", "ann")
    listed = json.loads(run("port", "list")[1])
    assert (status, listed) == (0, {"name": "ann", "port": int(port), "connections": 0})
    run("fault", "add", "*", "CLIENT", "ann", "HOLD")
    with Client(int(port)) as ann:
        ann.send("GET k")
        worker = json.loads(run("fault", "rest", "ann")[1])
        held = json.loads(run("fault", "held")[1])
        assert worker == {"name": "ann", "state": "held", "clients": [held]}
        assert held["words"] == ["GET", "k"]
        assert run("fault", "release", str(held["client"])) == (0, "1\n", "")
        assert ann.line() == b"$-1\r\n"


def test_the_counters_of_a_group_are_an_object(run: Run, server: RemoteServer) -> None:
    server.ask("XADD", "orders", "*", "item", "tea")
    server.ask("XGROUP", "CREATE", "orders", "kitchen", "0")
    assert json.loads(run("group", "orders", "kitchen")[1])["pending"] == 0


def test_it_waits_for_a_group_for_readers_and_for_all(run: Run, server: RemoteServer) -> None:
    server.ask("XADD", "orders", "1-1", "item", "tea")
    server.ask("XGROUP", "CREATE", "orders", "kitchen", "0")
    text = "waited for 0 seconds until the group 'kitchen' has acknowledged everything in 'orders'"
    status, out, error = run("--timeout", "0", "wait", "acknowledged", "orders", "kitchen")
    assert (status, out) == (1, "")
    assert error == f"penstock debug: {text}: 1 entry is not delivered\n"
    assert run("--timeout", "0", "wait", "idle")[0] == 1
    assert run("--timeout", "0", "wait", "readers", "1")[0] == 1
    assert run("delivered-once", "orders", "kitchen") == (
        1,
        "",
        "penstock debug: not delivered once to the group 'kitchen' of 'orders': nothing was"
        " delivered\n",
    )
    server.ask("XREADGROUP", "GROUP", "kitchen", "alice", "NOACK", "STREAMS", "orders", ">")
    assert run("wait", "acknowledged", "orders", "kitchen") == (0, "", "")
    assert run("wait", "idle") == (0, "", "")
    assert run("wait", "readers", "0") == (0, "", "")
    assert run("delivered-once", "orders", "kitchen") == (0, "", "")


def test_help_comes_from_the_server(run: Run) -> None:
    status, out, _ = run("help")
    assert status == 0
    assert "CLOCK ADVANCE <milliseconds>" in out.splitlines()


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((), "what is to be done? --help tells what there is"),
        (("wait",), "wait for acknowledged, readers or idle, and not for nothing"),
        (("wait", "tea"), "wait for acknowledged, readers or idle, and not for tea"),
        (("wait", "readers"), "NUMBER is expected at the end, and not nothing"),
        (("wait", "readers", "two"), "the number of readers is 0 or more, and not two"),
        (("wait", "idle", "now"), "nothing is expected at the end, and not now"),
        (("wait", "acknowledged", "orders"), "STREAM GROUP is expected at the end, and not orders"),
        (
            ("clock", "advance", "x"),
            "DEBUG clock advance x: ERR value is not an integer or out of range",
        ),
        (("--url", "http://host", "help"), "the URL is not one of a server; allowed: redis://"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(
    run: Run, args: tuple[str, ...], text: str
) -> None:
    status, out, error = run(*args)
    assert (status, out) == (1, "")
    assert error.startswith(f"penstock debug: {text}")
    assert error.count("\n") == 1


def test_a_server_that_is_not_there_is_named(run: Run) -> None:
    port = free_port()
    status, _, error = run("--url", f"redis://127.0.0.1:{port}", "help")
    assert status == 1
    assert error.startswith(f"penstock debug: the server at 127.0.0.1:{port} does not answer: ")


def test_a_server_without_debug_says_which_setting_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with PenstockThread() as thread:
        assert main(["--url", thread.url, "clock", "reset"]) == 1
    assert "enable-debug-command" in capsys.readouterr().err
