"""Who is answered when: sockets listen before the data is there, and nobody is served from that.

What a client does while a server starts is done here at each step of the start, by functions that
are called in the place of the server's own.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from server.net.listener import Listener
from server.persistence.manager import Persistence, PersistenceError
from server.persistence.recovery import Recovery
from server.state.server_state import Phase
from tests.server.persistence.rig import Rig, RigClient
from tests.support.ports import free_port
from tests.support.process import PenstockProcess
from tests.support.wire import AsyncClient, Client

LOADING = "LOADING Redis is loading the dataset in memory"

Step = Callable[[], Awaitable[None]]


def at_each_step(monkeypatch: pytest.MonkeyPatch, step: Step) -> None:
    """Lets something happen after each address is bound, before loading, and amid it."""

    def followed(kind: type, name: str, *, before: bool) -> None:
        original = getattr(kind, name)

        async def with_step(self: object, *args: object) -> None:
            if before:
                await step()
            await original(self, *args)
            if not before:
                await step()

        monkeypatch.setattr(kind, name, with_step)

    followed(Listener, "_listen", before=False)
    followed(Persistence, "load", before=True)
    followed(Recovery, "run", before=True)


class Producer:
    """Adds one entry after the other, and repeats each until it is answered with its ID."""

    def __init__(self) -> None:
        self.number = 1
        self.answered: list[str] = []
        self.rig: Rig

    async def try_once(self) -> None:
        """Tries to add the next entry, on a new connection."""
        client = RigClient(self.rig.server.port)
        entry_id = f"{self.number}-1"
        reply = await client.ask("XADD", "s", entry_id, "f", "v")
        client.close()
        if reply == entry_id.encode():
            self.answered.append(entry_id)
            self.number += 1
        else:
            assert reply == LOADING


async def test_no_start_takes_a_write_before_the_data_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer()
    at_each_step(monkeypatch, producer.try_once)
    for start in range(30):
        producer.rig = rig = Rig(tmp_path, bind="127.0.0.1 127.0.0.2", appendfsync="no")
        await rig.server.start()
        assert len(producer.answered) == start
        await producer.try_once()
        await rig.server.stop()
    monkeypatch.undo()
    rig = Rig(tmp_path)
    await rig.start()
    held = [entry_id.decode() for entry_id, _ in await rig.ask("XRANGE", "s", "-", "+")]
    assert held == producer.answered == [f"{number}-1" for number in range(1, 31)]
    await rig.stop()


async def test_what_may_be_asked_before_the_data_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    told: list[Any] = []

    async def ask() -> None:
        client = rig.client()
        told.append((await rig_info(client))["loading"])
        for words in ("GET k", "DEBUG RELOAD", "SAVE", "CONFIG GET appendonly", "LASTSAVE"):
            reply = await client.ask(*words.split())
            told.append(type(reply) if words == "LASTSAVE" else reply)

    at_each_step(monkeypatch, ask)
    await rig.start()
    before = ["1", LOADING, LOADING, LOADING, [b"appendonly", b"yes"], int]
    assert told == before * 2
    told.clear()
    assert (await rig.info())["loading"] == "0"
    await rig.stop()


async def rig_info(client: RigClient) -> dict[str, str]:
    """The persistence section of INFO."""
    text = (await client.ask("INFO", "persistence")).decode()
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


async def test_a_server_that_is_told_to_end_while_it_binds_saves_nothing_in_place_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    assert await rig.ask("SET", "k", "v") == b"OK"
    await rig.stop()

    async def end() -> None:
        other.client().send("SHUTDOWN SAVE")
        await other.until(other.server.stopping.is_set)

    other = Rig(tmp_path)
    with monkeypatch.context() as patch:
        at_each_step(patch, end)
        await other.server.start()
    assert other.server.state.phase is not Phase.SERVING
    await other.stop()
    again = Rig(tmp_path)
    await again.start()
    assert await again.ask("GET", "k") == b"v"
    await again.stop()


@pytest.mark.parametrize("error", [PersistenceError("damaged"), KeyError("a mistake")])
async def test_nobody_is_answered_after_loading_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    rig = Rig(tmp_path)
    clients: list[RigClient] = []

    async def fail(self: Persistence) -> None:
        clients.append(rig.client())
        assert await clients[0].ask("GET", "k") == LOADING
        clients[0].send("CONFIG GET port")
        clients.append(rig.client())  # Has connected, but was not accepted.
        clients[1].send("CONFIG GET port")
        raise error

    monkeypatch.setattr(Persistence, "load", fail)
    with pytest.raises(type(error)):
        await rig.server.start()
    assert rig.server.state.phase is Phase.STOPPED
    assert [await client.reply() for client in clients] == ["closed", "closed"]
    assert not rig.server.listening.connections.open
    await rig.stop()


async def test_who_is_accepted_after_the_end_is_not_answered(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await rig.start()
    rig.server.state.enter(Phase.STOPPED)
    late = rig.client()
    late.send("CONFIG GET port")
    assert await late.reply() == "closed"
    await rig.stop()


async def test_a_unix_socket_has_its_permissions_before_anybody_can_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "socket"
    refused: list[bool] = []
    change = os.chmod

    def connecting(target: str, mode: int) -> None:
        with socket.socket(socket.AF_UNIX) as early:
            refused.append(early.connect_ex(str(path)) != 0)
        change(target, mode)

    monkeypatch.setattr(os, "chmod", connecting)
    rig = Rig(tmp_path, port=str(free_port()), unixsocket=str(path), unixsocketperm="700")
    await rig.start()
    assert refused == [True]
    assert path.stat().st_mode & 0o777 == 0o700
    await rig.stop()
    assert not path.exists()


async def test_the_socket_that_a_killed_server_has_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as former:
        former.bind(str(path))
    rig = Rig(tmp_path, port=str(free_port()), unixsocket=str(path))
    await rig.start()
    with AsyncClient(str(path)) as client:
        assert await client.ask("PING") == b"PONG"
    await rig.stop()


# --- a real process --------------------------------------------------------------------------


def produce(port: int, answered: list[str], ended: threading.Event) -> None:
    """Adds entries until it is told to end, whatever becomes of the server meanwhile."""
    while not ended.is_set():
        with contextlib.suppress(OSError), Client(port, "latin-1") as client:
            while not ended.is_set():
                entry_id = f"{len(answered) + 1}-1"
                reply = client.ask("XADD", "s", entry_id, "f", "v")
                if str(reply) == entry_id or "equal or smaller" in str(reply):
                    answered.append(entry_id)


def test_a_producer_that_never_gives_up_loses_nothing_over_many_starts(tmp_path: Path) -> None:
    port = free_port()
    options = ("--bind", "127.0.0.1 127.0.0.2", "--port", str(port), "--dir", str(tmp_path))
    answered: list[str] = []
    ended = threading.Event()
    thread = threading.Thread(target=produce, args=(port, answered, ended))
    thread.start()
    try:
        for _ in range(5):
            with PenstockProcess(*options, "--appendonly", "yes") as penstock:
                before = len(answered)
                while len(answered) == before:
                    assert thread.is_alive()
                    thread.join(0.005)  # The producer has the processor meanwhile.
                assert penstock.stop() == 0
    finally:
        ended.set()
        thread.join()
    with PenstockProcess(*options, "--appendonly", "yes") as penstock:
        length = int(penstock.ask(b"XLEN s\r\n")[1:])
        assert len(answered) <= length <= len(answered) + 1
