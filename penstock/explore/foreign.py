"""Explorations on a Redis or Valkey that somebody has.

A proxy holds the commands of workers (:mod:`.proxy`), the database is emptied and prepared for each
try, and time moves by commands: keys lose so much of their time to live, pending entries become so
much more idle, and waits of blocking commands end. What the server's clock shows does not move.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.client.connection import TIMEOUTS_S
from penstock.client.errors import client_error
from penstock.client.urls import parse
from penstock.explore.bench import Bench, Check, called
from penstock.explore.explorer import Explorer
from penstock.explore.proxy import HoldingProxy
from penstock.terminal import plural
from penstock.testing.conditions import ServerClock
from penstock.testing.control import PenstockError
from penstock.testing.waiting import all_keys, groups_of

ONE_SERVER: Final = (
    "workers are explored on one server without TLS: redis://[user:password@]host[:port][/database]"
)

MOST_PENDING: Final = 1_000_000
"""How many pending entries of a group become more idle when time passes."""


class ForeignServer:
    """A database of a server that was not made for tests; ``flush`` allows to delete what is in it.

    Raises :class:`ValueError` and :class:`ClientError` for a URL of something else.
    """

    def __init__(self, url: str, flush: bool = False) -> None:
        if not url.startswith("redis://") or "?" in url:
            raise ValueError(ONE_SERVER)
        address = parse(url)
        self.url = url
        self.flush = flush
        self.place = address.nodes[0]
        self.name = f"database {address.db or 0} of {address.place}"
        self.clock = ServerClock(self.ask)
        self._client: Any = Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="surrogateescape",
            protocol=2,
            retry=Retry(NoBackoff(), 0),
            **TIMEOUTS_S,
        )
        self._client.response_callbacks.clear()  # Replies are wanted as they come.

    def __enter__(self) -> ForeignServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, *words: str | int) -> Any:
        """Return the reply to a command in this database, as :meth:`Tools.ask` does."""
        try:
            return self._client.execute_command(*words)
        except RedisError as error:
            raise PenstockError(str(client_error(self.name, error))) from error

    @property
    def explore(self) -> Explorer:
        """Tries every crash of a worker, and every order of several, if they are processes."""
        return Explorer(self, ProxiedBench)


class ProxiedBench(Bench):
    """A database of such a server, and a proxy before it. No write can be lost (:meth:`lose`)."""

    def __init__(self, server: ForeignServer, prepare: Check | None) -> None:
        super().__init__(server, prepare)
        self._server = server
        self._proxy = HoldingProxy(server.place, server.ask, lambda: self.now_ms, self._uncounted)
        self._not_counted = 0
        self.ask = self._asked

    def _asked(self, *words: str | int) -> Any:
        return self._proxy.answer(*words[1:]) if words[0] == "DEBUG" else self._server.ask(*words)

    def __enter__(self) -> ProxiedBench:
        mode = re.search(r"(?:redis|server)_mode:(\w+)", self.ask("INFO", "server"))
        if mode is not None and mode[1] != "standalone":
            raise PenstockError(f"{ONE_SERVER}; this one is a {mode[1]}")
        self.ask("CLIENT", "LIST", "ID", self.ask("CLIENT", "ID"))  # Or else it is refused here.
        keys = self.ask("DBSIZE")
        if keys and not self._server.flush:
            there = f"{self._server.name} has {plural(keys, 'key')}, which would be deleted"
            raise PenstockError(f"{there}: name an empty database, or allow that by --flush")
        return self

    def __exit__(self, *_: object) -> None:
        self._proxy.close()
        self.client.close()
        self.ask("FLUSHDB")

    # --- data and time --------------------------------------------------------------------

    def reset(self) -> None:
        """Makes the data anew; scripts that the server knows stay."""
        self.elapsed_ms = self._not_counted = 0
        self.ask("FLUSHDB")
        if self._prepare is not None:
            called(self._prepare, self.client)

    def advance(self, ms: int) -> None:
        """Lets time pass for keys that expire, pending entries and commands that wait."""
        self.elapsed_ms += ms
        with self._uncounted():
            for key in set(all_keys(self.ask)):
                if (left := self.ask("PTTL", key)) > 0:
                    self.ask("PEXPIRE", key, max(0, left - ms))
            for stream in set(all_keys(self.ask, "TYPE", "stream")):
                for group in groups_of(self.ask, stream):
                    self._make_idle(stream, group, ms)
        self.ask("DEBUG", "CLOCK", "ADVANCE", ms)

    def _make_idle(self, stream: str, group: str, ms: int) -> None:
        pending = self.ask("XPENDING", stream, group, "-", "+", MOST_PENDING)
        for entry, consumer, idle, _ in pending:
            options = ("IDLE", idle + ms, "JUSTID")
            self.ask("XCLAIM", stream, group, consumer, 0, entry, *options)

    @property
    def now_ms(self) -> int:
        """Return what the waits of commands end by."""
        return self.elapsed_ms

    def changes(self) -> int:
        """Return a number that grows with each change of data but those of time."""
        return super().changes() - self._not_counted

    @contextmanager
    def _uncounted(self) -> Iterator[None]:
        before = super().changes()
        yield
        self._not_counted += super().changes() - before
