"""XREADGROUP of several streams, most of which have nothing new."""

from __future__ import annotations

import pytest

from storage.engine.effects import ConsumerCreated, ConsumerSeen, Effect
from tests.support.direct import START_MS, Direct, DirectClient

KEYS = "a", "b", "c"
READ = "XREADGROUP", "GROUP", "g", "me"
NEW = "STREAMS", *KEYS, ">", ">", ">"
NOTHING = b"*-1\r\n"


@pytest.fixture
def direct() -> Direct:
    direct = Direct()
    for key in KEYS:
        direct.client().ask("XGROUP", "CREATE", key, "g", "$", "MKSTREAM")
    return direct


@pytest.fixture
def client(direct: Direct) -> DirectClient:
    return direct.client()


def recorded(direct: Direct) -> list[Effect]:
    """What happens from now on, as it is told to the append-only file."""
    effects: list[Effect] = []
    direct.server.services.reactions.record = lambda told, session: effects.extend(told)
    return effects


def idle_times(client: DirectClient) -> list[int]:
    """For how long the consumer has not asked for anything, in each stream."""
    return [client.ask("XINFO", "CONSUMERS", key, "g")[0][5] for key in KEYS]


def test_a_consumer_is_made_in_every_stream(direct: Direct, client: DirectClient) -> None:
    effects = recorded(direct)
    assert client.send(*READ, *NEW) == NOTHING
    told = [(type(each), each.key) for each in effects]  # type: ignore[union-attr]
    assert told == [
        *[(ConsumerCreated, b"a"), (ConsumerSeen, b"a"), (ConsumerCreated, b"b")],
        *[(ConsumerSeen, b"b"), (ConsumerCreated, b"c"), (ConsumerSeen, b"c")],
    ]


def test_a_read_that_finds_nothing_counts_as_seen_in_every_stream(
    direct: Direct, client: DirectClient
) -> None:
    client.ask(*READ, *NEW)
    direct.advance(5000)
    assert idle_times(client) == [5000, 5000, 5000]
    client.ask(*READ, *NEW)
    assert idle_times(client) == [0, 0, 0]


def test_it_is_told_where_somebody_keeps_it(direct: Direct, client: DirectClient) -> None:
    client.ask(*READ, *NEW)
    effects = recorded(direct)
    client.ask(*READ, *NEW)
    told = [(each.key, each.seen, each.active) for each in effects if type(each) is ConsumerSeen]
    assert told == [(b"a", START_MS, -1), (b"b", START_MS, -1), (b"c", START_MS, -1)]
    assert len(effects) == 3


def test_where_a_later_stream_has_no_group_the_earlier_ones_stay_as_they_were(
    direct: Direct, client: DirectClient
) -> None:
    client.ask(*READ, *NEW)
    client.ask("XADD", "a", "1-0", "f", "v")
    client.ask("XGROUP", "DESTROY", "c", "g")
    direct.advance(5000)
    assert client.send(*READ, *NEW) == (
        b"-NOGROUP No such key 'c' or consumer group 'g' in XREADGROUP with GROUP option\r\n"
    )
    assert client.ask("XINFO", "CONSUMERS", "a", "g")[0][5] == 5000
    assert client.ask("XPENDING", "a", "g") == [0, None, None, None]


def test_only_streams_that_have_something_are_in_the_reply(client: DirectClient) -> None:
    client.ask(*READ, *NEW)
    client.ask("XADD", "c", "1-0", "f", "v")
    client.ask("XADD", "b", "1-0", "f", "v")
    client.ask("XADD", "a", "1-0", "f", "v")
    client.ask("XDEL", "a", "1-0")
    assert client.ask(*READ, *NEW) == [
        [b"b", [[b"1-0", [b"f", b"v"]]]],
        [b"c", [[b"1-0", [b"f", b"v"]]]],
    ]
    assert client.send(*READ, *NEW) == NOTHING


def test_a_stream_that_is_named_twice_is_read_on(client: DirectClient) -> None:
    for entry_id in ("1-0", "2-0"):
        client.ask("XADD", "a", entry_id, "f", "v")
    twice = client.ask(*READ, "COUNT", 1, "STREAMS", "a", "a", ">", ">")
    assert twice == [[b"a", [[b"1-0", [b"f", b"v"]]]], [b"a", [[b"2-0", [b"f", b"v"]]]]]


def test_a_reader_of_many_that_waits_is_given_an_entry_of_any(
    direct: Direct, client: DirectClient
) -> None:
    other = direct.client()
    for key in KEYS:
        assert client.send(*READ, "BLOCK", 0, *NEW) is None
        other.ask("XADD", key, "1-0", "f", "v")
        assert client.reply_when_woken == (
            b"*1\r\n*2\r\n$1\r\n%b\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
            % key.encode()
        )
    assert not direct.server.services.blocking.waiting


def test_the_same_request_waits_in_the_database_that_is_selected(
    direct: Direct, client: DirectClient
) -> None:
    assert client.send(*READ, "BLOCK", 10, *NEW) is None
    direct.advance(10)
    assert client.reply_when_woken == NOTHING
    client.ask("SELECT", 1)
    for key in KEYS:
        client.ask("XGROUP", "CREATE", key, "g", "$", "MKSTREAM")
    assert client.send(*READ, "BLOCK", 0, *NEW) is None
    direct.client().ask("XADD", "b", "1-0", "f", "v")
    assert client.session.parked is not None
    assert set(direct.server.services.blocking.waiting) == {(1, key.encode()) for key in KEYS}


def test_a_policy_that_is_set_while_a_reader_of_many_waits_counts(
    direct: Direct, client: DirectClient
) -> None:
    assert client.send(*READ, "BLOCK", 0, *NEW) is None
    other = direct.client()
    other.ask("PENSTOCK", "POLICY", "SET", "b", "GROUP", "g", "paused", "yes")
    other.ask("XADD", "b", "1-0", "f", "v")
    assert client.session.parked is not None
    other.ask("XADD", "c", "2-0", "f", "v")
    assert client.reply_when_woken == (
        b"*1\r\n*2\r\n$1\r\nc\r\n*1\r\n*2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    )
