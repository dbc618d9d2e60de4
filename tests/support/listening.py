"""Hearing the keyspace events of a server without sockets."""

from __future__ import annotations

from hiredis import Reader

from tests.support.direct import Direct


class Listener:
    """A client that listens to every keyspace event, misses and new keys included."""

    def __init__(self, direct: Direct) -> None:
        self._client = direct.client()
        self._client.send("CONFIG", "SET", "notify-keyspace-events", "AEnm")
        self._client.send("PSUBSCRIBE", "__keyevent@*")
        self._client.take_pushed()

    def heard(self) -> list[str]:
        """The events since the last call, as ``name key``; ``name key @db`` outside database 0."""
        reader = Reader()
        reader.feed(self._client.take_pushed())
        events = []
        while (message := reader.gets()) is not False:
            _, _, channel, key = (part.decode() for part in message)
            place, _, name = channel.removeprefix("__keyevent@").partition("__:")
            events.append(f"{name} {key}" if place == "0" else f"{name} {key} @{place}")
        return events
