"""Streams to copy, and what they look like from inside."""

from __future__ import annotations

from typing import Any, Final

import hiredis
from hypothesis import strategies as st
from redis.connection import ConnectionPool
from redis.exceptions import RedisError

from tests.property.stream_commands import Words, optional, several, words

Argument = bytes | str | int

UNCARRIED: Final = {
    *(b"radix-tree-keys", b"radix-tree-nodes", b"seen-time", b"active-time", b"lag"),
    *(b"pids-tracked", b"iids-tracked", b"iids-added", b"iids-duplicates"),
}
"""Fields of XINFO STREAM FULL that no command can set, or that follow from the others."""

NEWER: Final = {b"idmp-duration", b"idmp-maxsize", b"nacked-count"}
"""Fields that only some servers have."""


class Client:
    """Sends commands and gives the raw replies of RESP2; a text is split into words."""

    def __init__(self, port: int, **options: Any) -> None:
        self.port = port
        self._connection = ConnectionPool(port=port, protocol=2, **options).make_connection()
        self._connection.connect()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.disconnect()

    def send(self, text: str) -> Any:
        """The reply to a command without blanks in its arguments."""
        return self.call(*text.split())

    def call(self, *command: Argument) -> Any:
        """The reply to a command."""
        return self.call_all([command])[0]

    def call_all(self, commands: list[tuple[Argument, ...]]) -> list[Any]:
        """The replies to commands that are sent together."""
        packed = [hiredis.pack_command(command) for command in commands]  # type: ignore[arg-type]
        self._connection.send_packed_command(packed)
        return [self._connection.read_response(disable_decoding=True) for _ in commands]

    def script(self, lines: str) -> None:
        """Sends a command a line; every one has to succeed."""
        self.call_all([tuple(line) for line in _lines(lines)])

    def attempt(self, commands: list[Words]) -> None:
        """Sends commands of which some may be refused."""
        for command in commands:
            try:
                self.call(*command)
            except RedisError:
                continue


def _lines(text: str) -> list[Words]:
    """The words of each line that is not empty."""
    return [line.split() for line in text.splitlines() if line.strip()]


# --- looking ---------------------------------------------------------------------------------


def inside(client: Client, key: str, without: set[bytes] = NEWER) -> dict[bytes, Any]:
    """All of a stream that a copy should have, its time of expiry included."""
    stream = _named(client.call("XINFO", "STREAM", key, "FULL", "COUNT", 0))
    stream[b"groups"] = [_group(reply, without) for reply in stream[b"groups"]]
    stream[b"expiry"] = client.call("PEXPIRETIME", key)
    return _without(stream, without)


def everything(client: Client, without: set[bytes] = NEWER) -> dict[bytes, Any]:
    """All keys of a database: streams as :func:`inside` shows them, and the types of others."""
    kinds = {key: client.call("TYPE", key) for key in client.call("KEYS", "*")}
    return {
        key: inside(client, key.decode(), without) if kind == b"stream" else kind
        for key, kind in kinds.items()
    }


def _group(reply: list[Any], without: set[bytes]) -> dict[bytes, Any]:
    group = _named(reply)
    consumers = map(_named, group[b"consumers"])
    group[b"consumers"] = [_without(consumer, without) for consumer in consumers]
    return _without(group, without)


def _named(reply: list[Any]) -> dict[bytes, Any]:
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _without(fields: dict[bytes, Any], without: set[bytes]) -> dict[bytes, Any]:
    unwanted = UNCARRIED | without
    return {name: value for name, value in fields.items() if name not in unwanted}


# --- streams made by hand --------------------------------------------------------------------

RICH: Final = """
    XADD orders 1-0 item coffee item tea table 4
    XADD orders 1-1 number 007
    XADD orders 2-0 n 2
    XADD orders 3-0 n 3
    XADD orders 4-0 n 4
    XADD orders 5-0 n 5
    XADD orders 6-0 n 6
    XADD orders 7-0 n 7
    XGROUP CREATE orders kitchen 0 ENTRIESREAD 0
    XGROUP CREATE orders bar 0
    XGROUP CREATE orders future 99-0
    XGROUP CREATECONSUMER orders bar idle
    XREADGROUP GROUP kitchen alice COUNT 3 STREAMS orders >
    XREADGROUP GROUP kitchen bob COUNT 3 STREAMS orders >
    XREADGROUP GROUP bar carol COUNT 1 STREAMS orders >
    XCLAIM orders kitchen bob 0 1-0 TIME 1000 RETRYCOUNT 77 JUSTID
    XACK orders kitchen 2-0
    XTRIM orders MAXLEN 6
    XDEL orders 5-0 7-0
    PEXPIREAT orders 99999999999999
    XADD trimmed 1-0 a b
    XADD trimmed 2-0 a b
    XGROUP CREATE trimmed g 0
    XREADGROUP GROUP g c STREAMS trimmed >
    XTRIM trimmed MAXLEN 0
    XSETID trimmed 9-0
    XGROUP CREATE empty g 0 MKSTREAM
    XGROUP DESTROY empty g
    XADD counted 5-0 f v
    XSETID counted 8-0 ENTRIESADDED 55 MAXDELETEDID 3-0
"""
"""Four streams with one or more of everything that there is to be copied."""


# --- streams made by chance ------------------------------------------------------------------

_GROUPS = st.sampled_from(["g", "h"])
_CONSUMERS = st.sampled_from(["ann", "bob", ""])
_IDS = st.integers(1, 12).map("0-{}".format)
_SMALL = st.integers(0, 8).map(str)
_TEXTS = st.sampled_from(["a", "b", "", "007", "longer text " * 9])
_FIELDS = st.lists(_TEXTS, min_size=2, max_size=4).filter(lambda fields: len(fields) % 2 == 0)
_NEW_GROUP = words("XGROUP", "CREATE", "k", _GROUPS, st.one_of(_IDS, st.just("0")), "MKSTREAM")
_READ = words(
    *("XREADGROUP", "GROUP", _GROUPS, _CONSUMERS, "COUNT", _SMALL),
    *(optional("NOACK"), "STREAMS", "k", ">"),
)
_CLAIM = words(
    *("XCLAIM", "k", _GROUPS, _CONSUMERS, "0", several(_IDS)),
    *("TIME", st.integers(0, 10**12).map(str)),
    *("RETRYCOUNT", st.sampled_from(["0", "5", str(2**63 - 1)]), "FORCE", "JUSTID"),
)
_ADD = words("XADD", "k", "0-*", _FIELDS)

_START: Final = """
    XADD k 0-1 f v
    XADD k 0-2 f v
    XADD k 0-3 f v
    XADD k 0-4 f v
    XADD k 0-5 f v
    XADD k 0-6 f v
    XGROUP CREATE k g 0
    XREADGROUP GROUP g ann COUNT 2 STREAMS k >
    XREADGROUP GROUP g bob COUNT 2 STREAMS k >
    XGROUP CREATE k h 0-3
    XREADGROUP GROUP h ann COUNT 2 STREAMS k >
"""
"""What most random commands find something to do with."""

_COMMAND = st.one_of(
    *(_ADD, _ADD, _ADD, _NEW_GROUP, _READ, _READ, _CLAIM),
    words("XACK", "k", _GROUPS, several(_IDS)),
    words("XDEL", "k", several(_IDS)),
    words("XTRIM", "k", "MAXLEN", _SMALL),
    words("XGROUP", st.sampled_from(["CREATECONSUMER", "DELCONSUMER"]), "k", _GROUPS, _CONSUMERS),
    words("XGROUP", "SETID", "k", _GROUPS, _IDS),
    words("XSETID", "k", st.integers(20, 30).map("0-{}".format)),
    words("PEXPIREAT", "k", st.integers(4 * 10**12, 5 * 10**12).map(str)),
)

COMMANDS = st.lists(_COMMAND, min_size=1, max_size=30).map(lambda some: _lines(_START) + some)
"""A stream ``k`` in a state that plain commands can make again on any server."""

LATER_COMMANDS = st.lists(
    st.one_of(
        *(_ADD, _ADD, _READ, _READ),
        words("XACK", "k", _GROUPS, several(_IDS)),
        words("XDEL", "k", several(_IDS)),
        words("XTRIM", "k", "MAXLEN", _SMALL),
    ),
    min_size=1,
    max_size=6,
)
"""What usually happens while a stream is in use."""
