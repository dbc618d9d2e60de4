"""The port of metrics: what answers there, when, and what becomes of it at the end."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import logging
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from penstock import cli
from server.app import Server
from server.config.registry import Config
from server.net.listener import ListenError, why
from server.persistence.manager import PersistenceError
from server.runtime.log import Log
from server.state.server_state import Phase
from server.web import connections
from server.web import http as http_module
from server.web.http import _LogHandler, obstacle
from server.web.metrics.exposition import CONTENT_TYPE
from tests.server.web.reading import samples, value
from tests.support.direct import Direct
from tests.support.missing import check_extra
from tests.support.ports import free_port
from tests.support.process import PenstockProcess, run_penstock
from tests.support.servers import PenstockThread
from tests.support.wire import Client, wait_until


class Answer(NamedTuple):
    """A response."""

    status: int
    text: str
    content_type: str | None


def get(port: int, path: str, method: str = "GET") -> Answer:
    """What a server answers to a request."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return Answer(
                response.status, response.read().decode(), response.headers["content-type"]
            )
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read().decode(), error.headers["content-type"])


class Served(NamedTuple):
    """A server, and its port of metrics."""

    penstock: PenstockThread
    port: int


@pytest.fixture
def served() -> Iterator[Served]:
    port = free_port()
    with PenstockThread(metrics_port=port, metrics_bind="127.0.0.1") as penstock:
        yield Served(penstock, port)


# --- what answers ----------------------------------------------------------------------------


def test_metrics_are_text_that_prometheus_reads(served: Served) -> None:
    answer = get(served.port, "/metrics")
    assert (answer.status, answer.content_type) == (200, CONTENT_TYPE)
    found = samples(answer.text)
    assert value(found, "redis_up") == 1
    assert value(found, "redis_connected_clients") == 0
    assert value(found, "penstock_metrics_left_out", kind="streams") == 0


def test_health_and_readiness_are_a_line_each(served: Served) -> None:
    plain = "text/plain; charset=utf-8"
    assert get(served.port, "/healthz") == (200, "ok\n", plain)
    assert get(served.port, "/readyz") == (200, "ready\n", plain)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/metrics", 200),
        ("HEAD", "/readyz", 200),
        ("POST", "/metrics", 405),
        ("GET", "/x", 404),
        ("GET", "/metrics/x", 404),
    ],
)
def test_other_methods_and_paths(served: Served, method: str, path: str, status: int) -> None:
    assert get(served.port, path, method).status == status


@pytest.mark.parametrize(
    ("page", "told"), [("yes", "The page is at {}"), ("no", "Metrics are at {}metrics")]
)
def test_the_log_says_where_a_browser_or_prometheus_finds_it(page: str, told: str) -> None:
    port = free_port()
    options = ["--port", "0", "--metrics-port", str(port), "--web-page", page]
    with PenstockProcess(*options, "--metrics-bind", "::1 127.0.0.1") as penstock:
        line = told.format(f"http://[::1]:{port}/")
        assert [each for each in penstock.lines if each.endswith(f" * {line}")]


def test_a_request_that_is_no_http_is_refused_and_told_in_the_log_alone() -> None:
    port = free_port()
    options = ["--port", "0", "--metrics-port", str(port), "--loglevel", "verbose"]
    with PenstockProcess(*options) as penstock:
        answer = penstock.ask(b"PING\r\n\r\n", ("127.0.0.1", port))
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        penstock.stop()
    assert [line.split(" - ")[1] for line in penstock.lines if " - HTTP" in line] == [
        "HTTP: Invalid HTTP request received."
    ]
    assert penstock.errors == ""


def test_a_failure_while_answering_is_one_line_in_the_log() -> None:
    written = io.StringIO()
    handler = _LogHandler(Log(written))
    try:
        raise ValueError("no such thing")
    except ValueError:
        failure: Any = sys.exc_info()
    handler.emit(logging.LogRecord("", logging.ERROR, "", 0, "It failed\nhere", None, failure))
    handler.emit(logging.LogRecord("", logging.ERROR, "", 0, "", None, None))
    first, second = written.getvalue().splitlines()
    assert first.endswith(" # HTTP: It failed: ValueError('no such thing')")
    assert second.endswith(" # HTTP: ")


def test_wake_ups_syncs_and_the_lag_of_the_loop_are_timed() -> None:
    port = free_port()
    settings = {"appendonly": True, "appendfsync": "always"}
    with PenstockThread(metrics_port=port, metrics_bind="127.0.0.1", **settings) as penstock:
        with (
            Client(penstock.address) as reader,
            Client(penstock.address) as writer,
        ):
            reader.send("XREAD BLOCK 0 STREAMS s 0")
            wait_until(lambda: penstock.call(lambda: penstock.server.services.blocking.waiters))
            writer.send("XADD s 1-1 f v")
            assert reader.line() == b"*1\r\n"
        # A client is told before the thread of the disk has ended its job, or after.
        penstock.call(penstock.server.services.persistence.make_safe)
        found = samples(get(port, "/metrics").text)
        assert value(found, "penstock_wake_seconds_count") == 1
        syncs = value(found, "penstock_fsync_seconds_count")
        assert syncs is not None
        assert syncs >= 1
        assert value(found, "penstock_aof_unsynced_seconds") == 0
        lag = "penstock_loop_lag_seconds_count"
        wait_until(lambda: value(samples(get(port, "/metrics").text), lag))


def test_no_port_is_listened_on_unless_it_is_asked_for() -> None:
    with PenstockThread() as penstock:
        assert penstock.server.services.reactions.wakes is None


# --- under which names -----------------------------------------------------------------------


def asked(port: int, head: bytes) -> bytes:
    """What is answered to a request with such a head."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(head + b"\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.mark.parametrize(
    "path", ["/metrics", "/healthz", "/readyz", "/", "/login", "/static/page.js", "/nothing"]
)
def test_no_path_is_answered_under_a_name_that_may_be_a_strangers(
    served: Served, path: str
) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: Streams.example.com:9443".encode()
    refused = asked(served.port, request)
    assert refused.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert refused.endswith(
        b"ask under an address, a name without a dot, or a name that web-hosts lists: any other"
        b" may have been made to lead here\n"
    )
    with Client(served.penstock.address) as client:
        client.ask("CONFIG", "SET", "requirepass", "sesame")
        assert asked(served.port, request).endswith(refused.partition(b"\r\n\r\n")[2])
        client.ask("CONFIG", "SET", "web-hosts", "streams.EXAMPLE.com")
        assert not asked(served.port, request).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "head",
    [
        b"GET /metrics HTTP/1.0",
        b"GET /metrics HTTP/1.1\r\nHost:",
        b"GET /metrics HTTP/1.1\r\nHost: evil.example\\@localhost",
        b"GET http://localhost/metrics HTTP/1.1\r\nHost: evil.example",
    ],
)
def test_no_name_and_what_is_none_are_refused(served: Served, head: bytes) -> None:
    assert asked(served.port, head).startswith(b"HTTP/1.1 403 Forbidden\r\n")


@pytest.mark.parametrize("path", ["/healthz", "/login", "/nothing"])
@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
    ],
)
def test_a_request_of_two_lengths_is_refused_and_nothing_behind_it_is_answered(
    served: Served, path: str, lengths: bytes
) -> None:
    request = b"POST %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n0\r\n\r\n" % (
        path.encode(),
        lengths,
    )
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(request + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b"".join(iter(lambda: client.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"connection: close" in head.lower()
    assert body == b"a request may have Content-Length or Transfer-Encoding, not both\n"


# --- how many there may be -------------------------------------------------------------------

HALF: Final = b"GET /healthz HTTP/1.1\r\nHost:"


def halves(served: Served, stack: contextlib.ExitStack, count: int) -> list[socket.socket]:
    """Clients that each have sent half a request, in this order."""
    address, server = ("127.0.0.1", served.port), served.penstock.server
    clients = [stack.enter_context(socket.create_connection(address)) for _ in range(count)]
    for client in clients:
        client.sendall(HALF)
    wait_until(lambda: served.penstock.call(_accepted, server) == count)
    return clients


def _accepted(server: Server) -> int:
    """How many connections the server has."""
    assert server._web is not None
    return len(server._web._http.server_state.connections)


def is_closed(client: socket.socket) -> bool:
    """Returns once the server has closed the connection."""
    try:
        return client.recv(100) == b""
    except ConnectionResetError:
        return True


def test_half_requests_shut_nobody_out(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        first, second, third, *_ = halves(served, stack, connections.MAX_CONNECTIONS)
        assert get(served.port, "/healthz").status == 200
        assert is_closed(first)
        assert get(served.port, "/metrics").status == 200
        third.sendall(b" localhost\r\n\r\n")
        assert third.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
        second.sendall(b" localhost\r\n\r\n")


def test_a_client_that_is_being_answered_keeps_its_place(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    penstock = served.penstock
    assert penstock.server._web is not None
    scraping = penstock.server._web._scraping
    penstock.run(scraping.acquire())
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: penstock.call(lambda: len(scraping._waiters or ())))
        with socket.create_connection(("127.0.0.1", served.port)) as another:
            assert is_closed(another)
        penstock.call(scraping.release)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_one_that_does_not_read_its_answer_does_not(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scrape(*_: object) -> list[bytes]:
        return [bytes(1_000_000)] * 50

    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    monkeypatch.setattr(http_module, "scrape", scrape)
    server = served.penstock.server
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        wait_until(lambda: served.penstock.call(lambda: _only(server).flow.write_paused))
        assert get(served.port, "/healthz").status == 200


def test_nor_does_it_take_a_place_from_other_scrapes_or_stay(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scrape(*_: object) -> list[bytes]:
        return [bytes(1_000_000)] * 50

    monkeypatch.setattr(connections, "READ_S", 0.05)
    web = served.penstock.server._web
    assert web is not None
    web._scrapes.most = 1
    with monkeypatch.context() as patch, contextlib.ExitStack() as stack:
        patch.setattr(http_module, "scrape", scrape)
        for _ in range(2):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(12) == b"HTTP/1.1 200"
        wait_until(lambda: served.penstock.call(_accepted, served.penstock.server) == 0)
    assert get(served.port, "/metrics").status == 200


@pytest.mark.parametrize("path", ["/metrics", "/"])
def test_places_are_kept_for_what_is_answered_at_once(served: Served, path: str) -> None:
    web = served.penstock.server._web
    assert web is not None
    web._scrapes.most = web._screens.most = 1
    lock = web._scraping if path == "/metrics" else web._page._turn
    served.penstock.run(lock.acquire())
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        wait_until(lambda: served.penstock.call(lambda: len(lock._waiters or ())))
        assert get(served.port, path) == (
            503,
            "too many requests are being answered\n",
            "text/plain; charset=utf-8",
        )
        for other in ("/healthz", "/readyz"):
            assert get(served.port, other).status == 200
        served.penstock.call(lock.release)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")
    assert get(served.port, path).status == 200


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("beginning", [b"", HALF])
def test_whoever_makes_no_request_is_sent_away(
    beginning: bytes, before: bool, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not before:
        monkeypatch.setattr(connections, "REQUEST_S", 0.05)
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        if before:
            client.sendall(HALF)
            wait_until(lambda: served.penstock.call(_accepted, served.penstock.server) == 1)
            monkeypatch.setattr(connections, "REQUEST_S", 0.05)
            client.sendall(b" localhost\r\n\r\n")
            answer = b""
            while not answer.endswith(b"ok\n"):
                answer += client.recv(1000)
        with contextlib.suppress(ConnectionError):  # On a busy machine the server may be sooner.
            client.sendall(beginning)
        assert is_closed(client)


def _only(server: Server) -> connections.HttpConnection:
    """The connection that the server has."""
    assert server._web is not None
    [connection] = server._web._http.server_state.connections
    assert isinstance(connection, connections.HttpConnection)
    return connection


def test_a_connection_is_kept_for_another_request(served: Served) -> None:
    kept = http.client.HTTPConnection("127.0.0.1", served.port)
    server, call = served.penstock.server, served.penstock.call
    patience = []
    with contextlib.closing(kept):
        for path in ("/metrics", "/healthz", "/metrics"):
            kept.request("GET", path)
            response = kept.getresponse()
            assert response.status == 200
            assert len(response.read()) == int(response.headers["content-length"])
            patience.append(call(lambda: _only(server)._patience))
        call(lambda: _only(server)._give_up())
        assert kept.sock.recv(1) == b""
    assert [timer.cancelled() for timer in patience] == [True, True, True]


# --- readiness -------------------------------------------------------------------------------


def test_a_server_that_loads_its_data_is_healthy_and_not_ready(served: Served) -> None:
    state = served.penstock.server.state
    served.penstock.call(state.enter, Phase.LOADING)
    assert get(served.port, "/healthz").status == 200
    answer = get(served.port, "/readyz")
    assert (answer.status, answer.text) == (503, "not ready: the data is being loaded\n")
    found = samples(get(served.port, "/metrics").text)
    assert value(found, "redis_loading_dump_file") == 1
    assert value(found, "penstock_metrics_left_out", kind="streams") is None
    served.penstock.call(state.enter, Phase.SERVING)
    assert get(served.port, "/readyz").status == 200


async def test_it_answers_from_before_the_data_is_loaded_until_the_start_has_failed(
    tmp_path: Path,
) -> None:
    port = free_port()
    server = Server(Config(port=0, bind="127.0.0.1", metrics_port=port, dir=tmp_path))
    loading, failing = asyncio.Event(), asyncio.Event()

    async def load() -> None:
        loading.set()
        await failing.wait()
        raise PersistenceError("the file is torn")

    server.services.persistence.load = load  # type: ignore[method-assign]
    starting = asyncio.create_task(server.start())
    await loading.wait()
    answer = await asyncio.to_thread(get, port, "/readyz")
    assert (answer.status, answer.text) == (503, "not ready: the data is being loaded\n")
    assert (await asyncio.to_thread(get, port, "/healthz")).status == 200
    failing.set()
    with pytest.raises(PersistenceError, match="the file is torn"):
        await starting
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


class _Recovery:
    """The loading of files, half done."""

    def progress(self) -> dict[str, object]:
        return {"loading_loaded_perc": "50.00"}


def test_the_reason_why_it_is_not_ready_is_told() -> None:
    services = Direct().server.services
    state, persistence = services.state, services.persistence

    def reason(failure: str | None = None) -> str | None:
        return obstacle(state, persistence, failure)

    assert reason() is None
    state.set_disk_error("No space left on device")
    assert reason() == "the append-only file cannot be written: No space left on device"
    state.set_busy("BUSY Redis is busy")
    assert reason() == "a script takes long"
    state.enter(Phase.STARTING)
    assert reason() == "the sockets are being opened"
    state.enter(Phase.LOADING)
    persistence.recovery = _Recovery()  # type: ignore[assignment]
    assert reason() == "the data is being loaded, 50.00 %"
    assert reason("the file is torn") == "the start has failed: the file is torn"


# --- the beginning and the end ---------------------------------------------------------------


def test_a_port_that_is_taken_ends_the_start_with_a_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_penstock("--port", "0", "--metrics-port", str(port))
    assert ended.returncode == 1
    assert ended.stderr == (
        f"penstock: cannot serve metrics on 127.0.0.1:{port}: Address already in use\n"
    )


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("192.0.2.1", "cannot serve metrics on 192.0.2.1:PORT: Cannot assign requested address"),
        ("-192.0.2.1", "none of the addresses of metrics-bind exists on this host"),
        (".", "cannot serve metrics on .:PORT: this is no name of a host"),
        ("", "none of the addresses of metrics-bind exists on this host"),
    ],
)
def test_an_address_that_the_host_lacks_ends_it_too(address: str, message: str) -> None:
    port = free_port()
    with pytest.raises(ListenError) as caught:
        PenstockThread(metrics_port=port, metrics_bind=address).start()
    assert str(caught.value) == message.replace("PORT", str(port))


def test_a_name_that_is_not_known_is_refused_in_the_words_of_the_resolver() -> None:
    assert why(socket.gaierror(-2, "Name or service not known")) == "Name or service not known"
    assert why(OSError("odd")) == "odd"


def test_the_first_address_is_given_back_when_the_second_cannot_be_had() -> None:
    port = free_port()
    with pytest.raises(Exception, match=r"192\.0\.2\.1"):
        PenstockThread(metrics_port=port, metrics_bind="127.0.0.1 192.0.2.1").start()
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_an_optional_address_that_the_host_lacks_is_left_out() -> None:
    port = free_port()
    with PenstockThread(metrics_port=port, metrics_bind="127.0.0.1 -192.0.2.1"):
        assert get(port, "/healthz").status == 200


def test_without_its_packages_the_server_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.startswith("server.web.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(sys, "argv", ["penstock", "--port", "0", "--metrics-port", "1"])
    assert cli.main() == 1
    check_extra(capsys.readouterr().err, "penstock: metrics-port", "web", "uvicorn")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_somebody_is_connected(how: signal.Signals) -> None:
    port = free_port()
    with PenstockProcess("--port", "0", "--metrics-port", str(port)) as penstock:
        kept = http.client.HTTPConnection("127.0.0.1", port)
        kept.request("GET", "/healthz")
        assert kept.getresponse().read() == b"ok\n"
        assert penstock.stop(how) == 0
        kept.close()
    assert penstock.errors == ""
    assert [line.split(" * ")[-1] for line in penstock.lines[-3:]] == [
        f"Received {how.name}",
        "Shutting down",
        "Bye",
    ]
