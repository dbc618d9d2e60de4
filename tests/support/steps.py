"""Commands in steps, one step a turn."""

from __future__ import annotations

from itertools import count

from tests.support.direct import Direct, DirectClient


def work_in_single_steps(direct: Direct) -> None:
    """Lets every turn of work be over after one step."""
    direct.server.services.stepped.nanoseconds = count(0, 10**9).__next__


def reply_in_the_end(direct: Direct, client: DirectClient) -> bytes:
    """The reply that a parked client gets when its command is done."""
    while (reply := client.reply_when_woken) is None:
        direct.server.services.stepped.turn()
    return reply


def sent_at_once(client: DirectClient, line: str) -> bytes:
    """The reply to a command that is done without giving way, as in every transaction."""
    client.send("MULTI")
    client.send(*line.split())
    reply = client.send("EXEC")
    assert reply is not None
    return reply.removeprefix(b"*1\r\n")
