"""Waiting for an element, with a command that takes fields of hashes, which no server has.

Timeouts were compared with Redis 8.0.6.
"""

from __future__ import annotations

import pytest

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import NULL_ARRAY, Reply
from server.commands.hashes.hashes import remove_fields
from server.commands.keys.waiting import blocking, wait_end
from server.core.outcomes import Steps, Wait
from server.runtime.arguments import INT64_MAX
from storage.types.hash import Hash
from tests.support.direct import Direct, DirectClient
from tests.support.lines import sent

NOW = 1_700_000_000_000
NO_FLOAT = "ERR timeout is not a float or out of range"


@pytest.mark.parametrize(
    ("text", "end"),
    [
        (b"0", None),
        (b"-0", None),
        (b"0.0", None),
        (b"-0.0001", None),
        (b"-1e-5", None),
        (b"1", NOW + 1000),
        (b"0.5", NOW + 500),
        (b"0.0001", NOW + 1),
        (b"1e-5", NOW + 1),
        (b"0x10p-8", NOW + 63),
        (b".25", NOW + 250),
        (b"9221372036854774", NOW + 9221372036854774000),
    ],
)
def test_a_timeout_counts_seconds_and_rounds_up_to_milliseconds(
    text: bytes, end: int | None
) -> None:
    assert wait_end(text, NOW) == end


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"-1", errors.TIMEOUT_NEGATIVE),
        (b"-0.001", errors.TIMEOUT_NEGATIVE),
        (b"-inf", errors.TIMEOUT_NEGATIVE),
        (b"-1e30", errors.TIMEOUT_NEGATIVE),
        (b"inf", errors.TIMEOUT_OUT_OF_RANGE),
        (b"1e400", errors.TIMEOUT_OUT_OF_RANGE),
        (b"9223372036854774", errors.TIMEOUT_OUT_OF_RANGE),
        (b"%d" % INT64_MAX, errors.TIMEOUT_OUT_OF_RANGE),
        (b"nan", NO_FLOAT),
        (b"", NO_FLOAT),
        (b" 1", NO_FLOAT),
        (b"1 ", NO_FLOAT),
        (b"1_0", NO_FLOAT),
        (b"soon", NO_FLOAT),
    ],
)
def test_a_timeout_is_refused(text: bytes, error: str) -> None:
    with pytest.raises(CommandError) as raised:
        wait_end(text, NOW)
    assert raised.value.text == error


def take(client: DirectClient, *keys: bytes, deadline: int | None = None) -> Reply | Wait | Steps:
    """Takes the first field of the first hash there is, or waits."""
    db = client.session.db

    def attempt() -> Reply | Steps:
        for key in keys:
            value = db.collection(key, Hash)
            if value is not None:
                field = next(iter(value.fields))
                remove_fields(client.session, key, value, [field], ())
                return bulk(field)
        return None

    return blocking(client.session, keys, deadline, attempt, Hash)


def taker(direct: Direct, *keys: bytes, deadline: int | None = None) -> DirectClient:
    """A client that waits to take a field."""
    client = direct.client()
    wait = take(client, *keys, deadline=deadline)
    assert isinstance(wait, Wait)
    command = direct.server.state.table[b"hdel"]
    direct.server.services.blocking.park(client.session, command, [b"HDEL", *keys], wait, 0)
    client._parked = client.session.parked
    return client


def test_who_finds_something_does_not_wait(client: DirectClient) -> None:
    sent(client, "HSET h a 1")
    assert take(client, b"none", b"h") == b"$1\r\na\r\n"
    assert client.ask("EXISTS", "h") == 0


def test_each_change_serves_those_who_wait_in_their_order(
    direct: Direct, client: DirectClient
) -> None:
    first, second, third = taker(direct, b"h", b"g"), taker(direct, b"g", b"h"), taker(direct, b"h")
    sent(client, "HSET h a 1 b 2")
    assert first.reply_when_woken == b"$1\r\na\r\n"
    assert second.reply_when_woken == b"$1\r\nb\r\n"
    assert third.parked
    sent(client, "HSET g c 3", "HSET h d 4")
    assert third.reply_when_woken == b"$1\r\nd\r\n"
    assert client.ask("HGETALL", "g") == [b"c", b"3"]


def test_a_value_of_another_class_wakes_nobody(direct: Direct, client: DirectClient) -> None:
    waiting = taker(direct, b"h")
    sent(client, "SET h text")
    assert waiting.parked
    sent(client, "DEL h", "HSET h a 1")
    assert waiting.reply_when_woken == b"$1\r\na\r\n"


def test_a_value_that_is_gone_when_the_transaction_ends_wakes_nobody(
    direct: Direct, client: DirectClient
) -> None:
    waiting = taker(direct, b"h")
    for request in ("MULTI", "HSET h a 1", "DEL h", "EXEC"):
        client.send(*request.split())
    assert waiting.parked


def test_a_wait_ends_in_vain_at_its_time_though_its_key_was_there(
    direct: Direct, client: DirectClient
) -> None:
    before, waiting = taker(direct, b"h"), taker(direct, b"h", deadline=direct.now_ms + 100)
    direct.advance(99)
    sent(client, "HSET h a 1")
    assert before.reply_when_woken == b"$1\r\na\r\n"
    assert waiting.parked
    direct.advance(1)
    assert waiting.reply_when_woken == b"*-1\r\n"


def test_no_wait_stands_for_a_key_twice(client: DirectClient) -> None:
    wait = take(client, b"h", b"g", b"h")
    assert isinstance(wait, Wait)
    assert wait.places == [(0, b"h"), (0, b"g")]
    assert wait.on_timeout == NULL_ARRAY
