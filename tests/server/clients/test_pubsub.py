"""SUBSCRIBE, PUBLISH and what goes with them. Redis 8.0.6 gave the same bytes."""

from __future__ import annotations

import pytest

from server.clients import pubsub
from storage.keyspace.glob import Matcher, matcher
from tests.support.direct import Direct, DirectClient, LooseWire


def message(*words: str | None, count: int | None = None, sign: str = "*") -> bytes:
    """An array (or push) of bulk strings, with an integer at its end if ``count`` is given."""
    parts = [f"${len(word)}\r\n{word}\r\n" if word is not None else "$-1\r\n" for word in words]
    if count is not None:
        parts.append(f":{count}\r\n")
    return f"{sign}{len(parts)}\r\n{''.join(parts)}".encode()


def push(*words: str | None, count: int | None = None) -> bytes:
    return message(*words, count=count, sign=">").replace(b"$-1", b"_")


# --- subscribing -----------------------------------------------------------------------------


def test_leaving_everything_confirms_each_or_nothing_at_all(client: DirectClient) -> None:
    client.send("SUBSCRIBE", "a", "b")
    client.send("PSUBSCRIBE", "p", "q")
    assert client.send("PUNSUBSCRIBE") == (
        message("punsubscribe", "p", count=3) + message("punsubscribe", "q", count=2)
    )
    assert client.send("UNSUBSCRIBE") == (
        message("unsubscribe", "a", count=1) + message("unsubscribe", "b", count=0)
    )
    assert client.send("UNSUBSCRIBE") == message("unsubscribe", None, count=0)
    assert client.send("PUNSUBSCRIBE") == message("punsubscribe", None, count=0)


def test_a_resp2_subscriber_may_not_run_other_commands(client: DirectClient) -> None:
    client.send("SUBSCRIBE", "a")
    rest = (
        b": only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET"
        b" are allowed in this context\r\n"
    )
    assert client.send("PUBLISH", "a", "m") == b"-ERR Can't execute 'publish'" + rest
    assert client.send("PUBSUB", "NUMPAT") == b"-ERR Can't execute 'pubsub|numpat'" + rest
    assert client.send("EXEC") == (
        b"-EXECABORT Transaction discarded because of: Can't execute 'exec'" + rest
    )
    client.send("UNSUBSCRIBE", "a")
    assert client.send("PUBLISH", "a", "m") == b":0\r\n"


def test_a_client_that_goes_leaves_no_subscription(direct: Direct, client: DirectClient) -> None:
    client.send("SUBSCRIBE", "a", "b")
    client.send("PSUBSCRIBE", "a*")
    client.disconnect()
    assert not direct.server.services.pubsub.channels
    assert not direct.server.services.pubsub.patterns
    assert direct.client().send("PUBLISH", "a", "m") == b":0\r\n"


# --- publishing ------------------------------------------------------------------------------


def test_a_message_reaches_channel_and_pattern_in_the_protocol_of_each_listener(
    direct: Direct, client: DirectClient
) -> None:
    old, new = direct.client(), direct.client(resp3=True)
    old.send("SUBSCRIBE", "news")
    new.send("SUBSCRIBE", "news")
    new.send("PSUBSCRIBE", "n?ws", "other*")
    assert client.send("PUBLISH", "news", "m") == b":3\r\n"
    assert old.take_pushed() == message("message", "news", "m")
    assert new.take_pushed() == (
        push("message", "news", "m") + push("pmessage", "n?ws", "news", "m")
    )


def test_messages_are_encoded_once_a_protocol(direct: Direct, client: DirectClient) -> None:
    listeners = [direct.client() for _ in range(3)]
    for listener in listeners:
        listener.send("SUBSCRIBE", "a")
    client.send("PUBLISH", "a", "m")
    first, second, third = (listener.pushed[0] for listener in listeners)
    assert first is second is third


def test_a_listener_that_leaves_while_a_message_is_delivered_takes_no_other_along(
    direct: Direct, client: DirectClient
) -> None:
    leaver, stayer = direct.client(), direct.client()
    for listener in (leaver, stayer):
        listener.send("SUBSCRIBE", "a")
    leaver.session.link.wire = LooseWire(send=lambda data: leaver.disconnect())
    assert client.send("PUBLISH", "a", "m") == b":2\r\n"
    assert stayer.take_pushed() == message("message", "a", "m")
    assert client.send("PUBLISH", "a", "m") == b":1\r\n"


# --- in a transaction ------------------------------------------------------------------------


def test_confirmations_stand_in_the_reply_of_exec(direct: Direct) -> None:
    client = direct.client(resp3=True)
    client.send("MULTI")
    assert client.send("SUBSCRIBE", "a", "b") == b"+QUEUED\r\n"
    client.send("PUBLISH", "a", "m")
    client.send("UNSUBSCRIBE", "a")
    assert client.send("EXEC") == (
        b"*3\r\n"
        + push("subscribe", "a", count=1)
        + push("subscribe", "b", count=2)
        + b":1\r\n"
        + push("unsubscribe", "a", count=1)
    )
    assert client.take_pushed() == push("message", "a", "m")


# --- PUBSUB ----------------------------------------------------------------------------------


def test_a_pattern_is_taken_apart_once_however_many_there_are(
    direct: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bytes] = []

    def count(pattern: bytes) -> Matcher:
        taken.append(pattern)
        return matcher(pattern)

    monkeypatch.setattr(pubsub, "matcher", count)
    listener, publisher = direct.client(), direct.client()
    patterns = [f"news.{number}.?*" for number in range(1100)]
    listener.send("PSUBSCRIBE", *patterns)
    assert [
        publisher.send("PUBLISH", f"news.{number}.x", "m") for number in (7, 7, 1099, 2000)
    ] == [
        b":1\r\n",
        b":1\r\n",
        b":1\r\n",
        b":0\r\n",
    ]
    assert taken == [pattern.encode() for pattern in patterns]
