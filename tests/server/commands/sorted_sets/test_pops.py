"""Pops: what is written of them, what follows, and what many members take.

Who waits and who is served is compared with a real server in
tests/conformance/scripts/sorted-set-blocking.txt.
"""

from __future__ import annotations

import pytest

from tests.server.commands.sorted_sets.filling import fill, member
from tests.support.direct import Direct, DirectClient
from tests.support.lines import sent
from tests.support.listening import Listener
from tests.support.recording import Recording


def waiting(direct: Direct, line: str) -> DirectClient:
    """A client whose command waits."""
    client = direct.client()
    assert client.send(*line.split()) is None
    return client


def test_many_members_are_popped_from_either_end(client: DirectClient) -> None:
    fill(client, "z", 0, 1500)
    low = client.ask("ZPOPMIN", "z", 700)
    assert low[::2] == [member(n).encode() for n in range(700)]
    high = client.ask("ZPOPMAX", "z", 700)
    assert high[::2] == [member(n).encode() for n in range(1499, 799, -1)]
    assert client.ask("ZCARD", "z") == 100
    _, rest = client.ask("ZMPOP", 2, "none", "z", "MAX", "COUNT", 10**9)
    assert [name for name, _ in rest] == [member(n).encode() for n in range(799, 699, -1)]
    assert client.ask("EXISTS", "z") == 0


def test_what_is_written_is_the_plain_command(direct: Direct) -> None:
    recording = Recording(direct)
    waiting(direct, "BZPOPMIN none a 0")
    waiting(direct, "BZMPOP 0 2 none b MAX COUNT 5")
    recording.send("ZADD", "a", "1", "x", "2", "y")
    recording.send("ZADD", "b", "1", "x", "2", "y")
    recording.send("ZMPOP", "1", "a", "MIN")
    written = recording.contents().split(b"\r\n")
    words = b" ".join(word for word in written if word[:1] not in (b"*", b"$"))
    assert b"ZADD a 1 x 2 y ZPOPMIN a EXEC" in words
    assert b"ZADD b 1 x 2 y ZPOPMAX b 2 EXEC" in words
    assert words.endswith(b"ZPOPMIN a 1 ")


def test_events_of_those_served_come_after_the_one_that_served_them(direct: Direct) -> None:
    waiting(direct, "BZPOPMAX z 0")
    listener = Listener(direct)
    sent(direct.client(), "ZADD z 1 a")
    assert listener.heard() == ["new z", "zadd z", "zpopmax z", "del z"]


def test_a_pop_of_none_changes_nothing(direct: Direct, client: DirectClient) -> None:
    sent(client, "ZADD z 1 a")
    listener = Listener(direct)
    assert client.ask("ZPOPMIN", "z", 0) == []
    assert listener.heard() == []


@pytest.mark.parametrize("line", ["BZPOPMIN z 0.5", "BZPOPMAX y z 0.5", "BZMPOP 0.5 1 z MIN"])
def test_a_wait_ends_with_nothing_when_its_time_is_over(direct: Direct, line: str) -> None:
    reader = waiting(direct, line)
    direct.advance(499)
    assert reader.reply_when_woken is None
    direct.advance(1)
    assert reader.reply_when_woken == b"*-1\r\n"
    sent(direct.client(), "ZADD z 1 a")
    assert direct.client().send("ZCARD", "z") == b":1\r\n"


def test_a_thousand_who_wait_are_served_in_their_order(direct: Direct) -> None:
    readers = [waiting(direct, "BZPOPMIN z 0") for _ in range(1000)]
    fill(direct.client(), "z", 0, 1000)
    assert [reader.reply_when_woken for reader in readers] == [
        b"*3\r\n$1\r\nz\r\n$%d\r\n%b\r\n$%d\r\n%d\r\n" % (len(name), name, len(name) - 1, number)
        for number, name in enumerate(member(n).encode() for n in range(1000))
    ]
    assert direct.client().send("EXISTS", "z") == b":0\r\n"
