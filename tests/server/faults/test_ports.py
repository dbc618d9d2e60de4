"""Ports that tell clients apart, on real sockets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from server.faults import ports
from tests.server.net.together.test_holds import debug, driver, hold, rest
from tests.support.servers import PenstockThread
from tests.support.wire import Client

__all__ = ["driver"]  # A fixture, which pytest finds here.

OK = b"+OK\r\n"
PONG = b"+PONG\r\n"


@pytest.fixture
def ann(driver: Client) -> Iterator[Client]:
    """A client that has come by the port of this name."""
    with Client(debug(driver, "PORT OPEN ann")) as ann:
        yield ann


def test_a_worker_is_absent_until_somebody_has_come_and_gone_when_all_have_left(
    driver: Client,
) -> None:
    port = debug(driver, "PORT OPEN ann")
    assert rest(driver, "an? UNTIL absent") == {"ann": "absent"}
    driver.send("DEBUG FAULT REST ann UNTIL idle")
    with Client(port):
        assert driver.reply()[1] == 1, "nothing has been sent, and that it came is enough"
    assert rest(driver, "ann") == {"ann": "gone"}
    assert debug(driver, "PORT LIST") == [{"name": "ann", "port": port, "connections": 1}]


def test_faults_and_traces_know_a_client_by_its_port(ann: Client, driver: Client) -> None:
    debug(driver, "TRACE START CLIENT ann")
    assert ann.answer("CLIENT SETNAME other") == OK
    debug(driver, "FAULT ADD GET CLIENT other ERROR no")
    debug(driver, "FAULT ADD GET CLIENT ann ERROR TRYAGAIN")
    assert ann.answer("GET k") == b"-TRYAGAIN\r\n"
    traced = driver.ask("DEBUG", "TRACE", "GET")
    assert [name for _, _, name, _, _ in traced] == ["ann", "ann"]
    assert "name=other " in driver.ask("CLIENT", "LIST"), "its own name stays what it is"


def test_a_client_of_a_port_is_held_like_any_other(ann: Client, driver: Client) -> None:
    debug(driver, "FAULT ADD * CLIENT ann HOLD")
    ann.send("PING")
    assert rest(driver, "ann") == {"ann": "held"}
    [told] = debug(driver, "FAULT HELD")
    assert told["name"] == "ann"
    debug(driver, f"FAULT RELEASE {told['client']}")
    ann.receive(PONG)


@pytest.mark.parametrize("action", ["CLOSE", "NOREPLY"])
def test_a_worker_is_gone_when_its_client_can_know_it(driver: Client, action: str) -> None:
    port = debug(driver, "PORT OPEN ann")
    debug(driver, "FAULT ADD GET CLIENT ann HOLD")
    for _ in range(20):
        with Client(port) as ann:
            ann.send("GET k")
            assert rest(driver, "ann") == {"ann": "held"}
            debug(driver, f"FAULT RELEASE {debug(driver, 'FAULT HELD')[0]['client']} {action}")
            assert rest(driver, "ann") == {"ann": "gone"}
            ann.socket.setblocking(False)
            assert ann.socket.recv(1) == b""


@pytest.mark.parametrize("hold", [True, False])
def test_who_waits_and_leaves_is_gone_at_once(driver: Client, hold: bool) -> None:
    port = debug(driver, "PORT OPEN ann")
    if hold:
        debug(driver, "FAULT ADD BLPOP CLIENT ann HOLD")
    for _ in range(20):
        with Client(port) as ann:
            ann.send("BLPOP k 0")
            state = "held" if hold else "parked"
            assert rest(driver, "ann") == {"ann": state}
        assert rest(driver, f"ann UNTIL {state},gone") == {"ann": "gone"}


def test_a_reply_that_its_client_does_not_read_is_seen_to_be_unsent(
    ann: Client, driver: Client
) -> None:
    driver.ask("SET", "k", "v" * 10_000_000)
    ann.send("GET k")
    [worker] = debug(driver, "FAULT REST ann UNTIL idle")["workers"]
    assert worker["clients"][0]["unsent"] > 0
    ann.line()
    ann.receive(b"v" * 10_000_000 + b"\r\n")
    [worker] = debug(driver, "FAULT REST ann UNTIL idle")["workers"]
    assert worker["clients"][0]["unsent"] == 0


def test_closing_a_port_ends_its_connections_alone(
    penstock: PenstockThread, ann: Client, driver: Client
) -> None:
    with Client(penstock.address) as other, Client(debug(driver, "PORT OPEN bob")) as bob:
        hold(driver, other)
        assert debug(driver, "PORT CLOSE ann") == 1
        assert debug(driver, "PORT CLOSE ann") == 0
        assert ann.closed()
        assert bob.answer("PING") == PONG
        assert bob.answer("DEBUG PORT CLOSE bob") == b":1\r\n", "whoever asks is answered"
    with pytest.raises(ConnectionRefusedError):
        Client(ann.socket.getsockname())
    assert debug(driver, "PORT LIST") == []


def test_a_port_is_that_of_this_host_alone(driver: Client) -> None:
    port = debug(driver, "PORT OPEN ann")
    with pytest.raises(ConnectionRefusedError):
        Client(("127.0.0.2", port))


def test_a_port_may_be_closed_at_once(driver: Client) -> None:
    driver.send("DEBUG PORT OPEN ann", "DEBUG PORT CLOSE ann", "DEBUG PORT OPEN ann")
    _, closed, port = (driver.reply() for _ in range(3))
    assert closed == 1
    with Client(port) as ann:
        assert ann.answer("PING") == PONG


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("OPEN", "ann"), "ERR DEBUG PORT: 'ann' is open already"),
        (("OPEN", ""), "ERR DEBUG PORT: a name has one or more characters, and no blanks,"),
        (("OPEN", "a n"), "ERR DEBUG PORT: a name has one or more characters, and no blanks,"),
        (("OPEN",), "ERR unknown subcommand or wrong number of arguments for 'PORT'."),
        (("LIST", "ann"), "ERR unknown subcommand or wrong number of arguments for 'PORT'."),
        (("SHUT", "ann"), "ERR unknown subcommand or wrong number of arguments for 'PORT'."),
    ],
)
def test_what_is_wrong_is_told(driver: Client, words: tuple[str, ...], text: str) -> None:
    debug(driver, "PORT OPEN ann")
    assert str(driver.ask("DEBUG", "PORT", *words)).startswith(text)
    assert len(debug(driver, "PORT LIST")) == 1


def test_a_host_without_ports_is_told_of(driver: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "HOST", "203.0.113.1")
    text = str(debug(driver, "PORT OPEN ann"))
    assert text.startswith("ERR DEBUG PORT: no port can be opened: [Errno 99] Cannot assign")


def test_rights_are_those_of_any_client(ann: Client, driver: Client) -> None:
    driver.ask("CONFIG", "SET", "requirepass", "secret")
    with Client(ann.socket.getpeername()) as stranger:
        assert stranger.answer("GET k") == b"-NOAUTH Authentication required.\r\n"
