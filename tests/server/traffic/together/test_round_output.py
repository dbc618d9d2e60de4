"""What connections have to send in one round of the loop: when it is kept, and that order stays."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from server.traffic.output import DIRECT, FEW, LARGEST, MAX_KEEPERS, PATIENCE_NS, RoundOutput
from server.traffic.turns import Turns
from tests.support.direct import Direct
from tests.support.held_output import hold_output
from tests.support.servers import PenstockThread
from tests.support.wire import Wire


class Recorder:
    """A connection that notes when it was told to send."""

    def __init__(self, name: int, sent: list[int]) -> None:
        self._name = name
        self._sent = sent

    def send_kept(self) -> None:
        self._sent.append(self._name)


def in_a_loop(scenario: Callable[[RoundOutput, Turns, list[int]], None]) -> list[int]:
    """Runs a scenario in one round of a loop; what was sent when the next one has begun."""
    sent: list[int] = []

    async def run() -> None:
        turns = Turns()
        output = RoundOutput(turns)
        output.direct = 0
        scenario(output, turns, sent)
        await asyncio.sleep(0)

    asyncio.run(run())
    return sent


def test_output_is_sent_at_the_end_of_the_round_in_its_order() -> None:
    def scenario(output: RoundOutput, turns: Turns, sent: list[int]) -> None:
        for name in range(5):
            output.add(Recorder(name, sent))
        assert sent == []

    assert in_a_loop(scenario) == [0, 1, 2, 3, 4]


def test_so_many_connections_do_not_wait_for_the_end_of_the_round() -> None:
    def scenario(output: RoundOutput, turns: Turns, sent: list[int]) -> None:
        for name in range(MAX_KEEPERS + 1):
            output.add(Recorder(name, sent))
        assert sent == list(range(MAX_KEEPERS))

    assert in_a_loop(scenario) == list(range(MAX_KEEPERS + 1))


def test_output_does_not_wait_for_more_than_a_millisecond_of_other_requests() -> None:
    def scenario(output: RoundOutput, turns: Turns, sent: list[int]) -> None:
        output.add(Recorder(0, sent))
        turns.nanoseconds += PATIENCE_NS
        output.add(Recorder(1, sent))
        assert sent == []
        turns.nanoseconds += 1
        output.add(Recorder(2, sent))
        assert sent == [0, 1, 2]
        output.add(Recorder(3, sent))
        assert sent == [0, 1, 2]

    assert in_a_loop(scenario) == [0, 1, 2, 3]


def test_messages_wait_for_the_end_of_the_round_however_many_get_them() -> None:
    def scenario(output: RoundOutput, turns: Turns, sent: list[int]) -> None:
        for name in range(3 * MAX_KEEPERS):
            output.add(Recorder(name, sent), is_message=True)
        turns.nanoseconds += 2 * PATIENCE_NS
        for name in range(3 * MAX_KEEPERS, 4 * MAX_KEEPERS):
            output.add(Recorder(name, sent))
        assert sent == list(range(3 * MAX_KEEPERS, 4 * MAX_KEEPERS)), (
            "replies do not wait for messages"
        )

    assert in_a_loop(scenario)[MAX_KEEPERS:] == list(range(3 * MAX_KEEPERS))


async def rounds(*sizes: int) -> RoundOutput:
    """Output of so many connections in one round after the other."""
    output = RoundOutput(Turns())
    output.direct = 0
    for size in sizes:
        for name in range(size):
            output.add(Recorder(name, []))
        await asyncio.sleep(0)
    return output


def test_rounds_go_on_like_this_until_few_connections_have_anything_to_send() -> None:
    assert asyncio.run(rounds(FEW, MAX_KEEPERS, FEW)).direct == 0
    assert asyncio.run(rounds(MAX_KEEPERS, FEW - 1)).direct == DIRECT


class Clients:
    """Two clients of a server, whose output is kept until the round ends."""

    def __init__(self) -> None:
        self.direct = Direct(appendonly="no")
        self.a, self.b = Wire(self.direct), Wire(self.direct)
        self.listeners: list[Wire] = []
        self.direct.server.listening.connections.output.direct = 0

    def read(self, client: Wire, *requests: str) -> None:
        client.read(b"".join(request.encode() + b"\r\n" for request in requests))


def conversation(steps: Callable[[Clients], None]) -> Clients:
    """Takes the steps in one round, and returns the clients when it has ended."""

    async def run() -> Clients:
        clients = Clients()
        steps(clients)
        await asyncio.sleep(0)
        return clients

    return asyncio.run(run())


def test_two_reads_of_a_round_are_answered_in_one_write_at_its_end() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.a, "PING")
        clients.read(clients.a, "PING one")
        assert clients.a.take() == b""

    assert conversation(steps).a.take() == b"+PONG\r\n$3\r\none\r\n"


def test_the_events_of_a_round_reach_each_of_many_listeners_in_one_write() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.b, "CONFIG SET notify-keyspace-events E$")
        clients.listeners += [Wire(clients.direct) for _ in range(MAX_KEEPERS + 1)]
        for listener in clients.listeners:
            clients.read(listener, "SUBSCRIBE __keyevent@0__:set")
        clients.direct.server.listening.connections.output._end_round()
        assert all(listener.take() for listener in clients.listeners)
        clients.direct.server.listening.connections.output.direct = 0
        for number in range(20):
            clients.read(clients.b, f"SET key {number}")
        assert [listener.take() for listener in clients.listeners] == [b""] * (MAX_KEEPERS + 1)

    message = b"*3\r\n$7\r\nmessage\r\n$18\r\n__keyevent@0__:set\r\n$3\r\nkey\r\n"
    got = [listener.take() for listener in conversation(steps).listeners]
    assert got == [20 * message] * (MAX_KEEPERS + 1)


def test_what_was_kept_leaves_before_the_connection_ends() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.a, "PING")
        clients.read(clients.a, "QUIT")
        assert clients.a.take() == b"+PONG\r\n+OK\r\n"
        assert clients.a.closed

    assert conversation(steps).a.take() == b""


def test_what_was_kept_leaves_before_another_client_ends_the_connection() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.a, "CLIENT ID")
        clients.read(clients.b, "CLIENT KILL TYPE normal SKIPME yes")
        assert clients.a.take() == b":1\r\n"
        assert clients.a.closed

    clients = conversation(steps)
    assert clients.a.take() == b""
    assert clients.b.take() == b":1\r\n"


def test_what_was_kept_leaves_before_output_that_is_too_large_to_be_kept() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.a, "PING")
        clients.read(clients.a, "ECHO " + "x" * LARGEST)
        assert clients.a.take() == b"+PONG\r\n$4096\r\n" + b"x" * LARGEST + b"\r\n"

    assert conversation(steps).a.take() == b""


def test_what_was_kept_leaves_before_what_was_held_back_for_the_file() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.a, "PING")
        commit = hold_output(clients.direct)
        clients.read(clients.a, "PING two")
        commit.settle()
        assert clients.a.take() == b"+PONG\r\n$3\r\ntwo\r\n"

    assert conversation(steps).a.take() == b""


def test_what_was_kept_counts_as_output_that_waits() -> None:
    def steps(clients: Clients) -> None:
        clients.read(clients.a, "PING")
        clients.read(clients.b, "CLIENT LIST ID 1")

    reply = conversation(steps).b.take()
    assert b" oll=1 omem=7 " in reply


def test_many_clients_with_one_request_each_get_the_replies_that_are_theirs() -> None:
    with PenstockThread(appendonly="no") as server:
        sockets = [socket.create_connection((server.host, server.port)) for _ in range(50)]
        for turn in range(20):
            for number, client in enumerate(sockets):
                client.sendall(b"ECHO %d-%d\r\n" % (turn, number))
            for number, client in enumerate(sockets):
                text = b"%d-%d" % (turn, number)
                expected = b"$%d\r\n%b\r\n" % (len(text), text)
                assert client.recv(len(expected), socket.MSG_WAITALL) == expected
        for client in sockets:
            client.close()
