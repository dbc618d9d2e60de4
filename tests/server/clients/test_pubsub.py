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


def test_each_channel_is_confirmed_with_the_number_of_subscriptions(client: DirectClient) -> None:
    assert client.send("SUBSCRIBE", "a", "b", "a") == (
        message("subscribe", "a", count=1)
        + message("subscribe", "b", count=2)
        + message("subscribe", "a", count=2)
    )
    assert client.send("PSUBSCRIBE", "x*") == message("psubscribe", "x*", count=3)
    assert client.send("UNSUBSCRIBE", "b", "zz") == (
        message("unsubscribe", "b", count=2) + message("unsubscribe", "zz", count=2)
    )
    assert client.send("PUNSUBSCRIBE", "zz") == message("punsubscribe", "zz", count=2)


def test_confirmations_are_pushes_in_resp3(direct: Direct) -> None:
    client = direct.client(resp3=True)
    assert client.send("SUBSCRIBE", "a") == push("subscribe", "a", count=1)
    assert client.send("PSUBSCRIBE", "p") == push("psubscribe", "p", count=2)
    assert client.send("PUNSUBSCRIBE") == push("punsubscribe", "p", count=1)
    assert client.send("UNSUBSCRIBE") == push("unsubscribe", "a", count=0)
    assert client.send("UNSUBSCRIBE") == push("unsubscribe", None, count=0)


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


def test_a_resp3_subscriber_may_run_every_command(direct: Direct) -> None:
    client = direct.client(resp3=True)
    client.send("SUBSCRIBE", "a")
    assert client.send("PUBLISH", "b", "m") == b":0\r\n"
    assert client.send("PING") == b"+PONG\r\n"


def test_ping_of_a_resp2_subscriber_is_answered_like_a_message(client: DirectClient) -> None:
    client.send("PSUBSCRIBE", "a")
    assert client.send("PING") == message("pong", "")
    assert client.send("PING", "hello") == message("pong", "hello")


def test_reset_ends_subscriptions(direct: Direct, client: DirectClient) -> None:
    client.send("SUBSCRIBE", "a")
    client.send("PSUBSCRIBE", "*")
    assert client.send("RESET") == b"+RESET\r\n"
    assert client.send("PUBLISH", "a", "m") == b":0\r\n"
    assert client.send("PING") == b"+PONG\r\n"


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


def test_a_message_to_nobody_counts_zero(client: DirectClient) -> None:
    assert client.send("PUBLISH", "a", "m") == b":0\r\n"


def test_channels_and_messages_may_hold_any_byte(direct: Direct, client: DirectClient) -> None:
    listener = direct.client()
    listener.send("SUBSCRIBE", b"", b"\r\n\xff")
    client.send("PUBLISH", b"\r\n\xff", b"\0")
    client.send("PUBLISH", b"", b"")
    assert listener.take_pushed() == (
        b"*3\r\n$7\r\nmessage\r\n$3\r\n\r\n\xff\r\n$1\r\n\0\r\n"
        b"*3\r\n$7\r\nmessage\r\n$0\r\n\r\n$0\r\n\r\n"
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


def test_pubsub_tells_who_listens_to_what(direct: Direct, client: DirectClient) -> None:
    one, two = direct.client(), direct.client()
    one.send("SUBSCRIBE", "a1", "b")
    two.send("SUBSCRIBE", "a1")
    one.send("PSUBSCRIBE", "p*", "q")
    two.send("PSUBSCRIBE", "p*")
    assert client.send("PUBSUB", "CHANNELS") == b"*2\r\n$2\r\na1\r\n$1\r\nb\r\n"
    assert client.send("PUBSUB", "CHANNELS", "a*") == b"*1\r\n$2\r\na1\r\n"
    assert client.send("PUBSUB", "NUMSUB") == b"*0\r\n"
    assert client.send("PUBSUB", "NUMSUB", "a1", "x") == (
        b"*4\r\n$2\r\na1\r\n:2\r\n$1\r\nx\r\n:0\r\n"
    )
    assert client.send("PUBSUB", "NUMPAT") == b":2\r\n"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ("SUBSCRIBE", "wrong number of arguments for 'subscribe' command"),
        ("PUBLISH a", "wrong number of arguments for 'publish' command"),
        ("PUBSUB", "wrong number of arguments for 'pubsub' command"),
        ("PUBSUB NUMPAT x", "wrong number of arguments for 'pubsub|numpat' command"),
        ("PUBSUB FOO", "unknown subcommand 'FOO'. Try PUBSUB HELP."),
        (
            "PUBSUB CHANNELS a b",
            "unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.",
        ),
    ],
)
def test_pubsub_commands_refuse_other_shapes(
    client: DirectClient, request_: str, text: str
) -> None:
    assert client.send(*request_.split()) == f"-ERR {text}\r\n".encode()


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
