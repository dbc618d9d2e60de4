"""The streams of a query: which there are, and what XINFO reports about each."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

from redis.exceptions import ResponseError

from pyspark_redis_streams.errors import OptionError, ServerError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.values import Separated


def place_of(group: Group) -> tuple[int, int | None]:
    """Where a group stands, from XINFO GROUPS: the last ID and how many entries it gave out."""
    return parse_id(group[b"last-delivered-id"]), group[b"entries-read"]


LOG = logging.getLogger("pyspark_redis_streams")


class Stream(NamedTuple):
    """A key on one of the servers."""

    server: int
    key: bytes

    @property
    def shown(self) -> str:
        """Return the name for the column ``stream`` and for messages."""
        return shown(self.key)


def shown(key: bytes) -> str:
    """Return a key, or other bytes, as people read it: what is no UTF-8 as \\xff."""
    return key.decode("utf-8", "backslashreplace")


def key_of(name: str) -> bytes:
    """Return the key of a stream's name as options and offsets hold it."""
    return name.encode("utf-8", "surrogateescape")


def name_of(key: bytes) -> str:
    """The name of a key for offsets: whatever the bytes are, :func:`key_of` gives them back."""
    return key.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class StreamInfo:
    """The counters of a stream at one moment, IDs as integers; ``first`` is None if it is empty.

    ``deleted`` is the highest ID that was deleted by its name (XDEL); trimming does not move it.
    ``size`` is about how many bytes an entry has: the mean of the first and the last.
    """

    added: int
    length: int
    last: int
    first: int | None
    deleted: int = 0
    size: int = 0

    @property
    def removed(self) -> int:
        """How many entries were added once and are gone."""
        return self.added - self.length

    def head_after(self, id: int) -> int:
        """The first entry if it is above an ID, or else 0."""
        return self.first if self.first is not None and self.first > id else 0

    def lost(self, after: int, read: int, head: int = 0, deleted: int | None = None) -> int:
        """How many entries a reader has missed that has read up to ``after``, the first ``read``.

        Exact as long as entries are removed at the head only. While an entry at or below
        ``after`` is still there, or ``head``, which was once known to be the first above it, the
        head has not reached the reader and nothing counts as lost. If ``deleted`` was once the
        highest ID deleted by its name, and is no more, one entry was not trimmed.
        """
        if self.has_up_to(max(after, head)):
            return 0
        by_name = deleted is not None and self.deleted > deleted
        return max(self.removed - read - by_name, 0)

    def is_older_than(self, after: int, read: int) -> bool:
        """Whether this can't be the stream, or not all of it, that was read up to there."""
        return self.ends_before(after, read) or self.has_none_of(after, read)

    def ends_before(self, after: int, read: int) -> bool:
        """Whether there never were as many entries in it, or none with an ID as high."""
        return self.last < after or self.added < read

    def has_none_of(self, after: int, read: int) -> bool:
        """Whether none of what was read is in it, nor has been: it would count as removed."""
        return not self.has_up_to(after) and self.removed < read

    def has_up_to(self, id: int) -> bool:
        """Whether there is an entry at or below an ID."""
        return self.first is not None and self.first <= id


NOTHING = StreamInfo(added=0, length=0, last=0, first=None)
"""The counters of a stream that has not been created yet."""


Group = Mapping[bytes, Any]
"""The group of a query in a stream, as XINFO GROUPS shows it."""


def _xinfo_stream(stream: Stream) -> tuple[Any, ...]:
    return "XINFO STREAM", stream.key


def pairs(reply: list[Any]) -> dict[bytes, Any]:
    """Return a reply of names and values in turn as a dict."""
    return dict(zip(reply[::2], reply[1::2], strict=True))


LARGE: Final = 64 * 1024
"""Bytes of an entry from which on it matters that XINFO STREAM sends the first and the last."""

LARGE_INTERVAL_S: Final = 10
"""How old the counters of such a stream may be while nothing is added to it."""


def info_of(stream: Stream, reply: Any) -> StreamInfo:
    """Return the counters in a reply of XINFO STREAM, or in its error; raises ServerError."""
    if isinstance(reply, ResponseError):
        if "no such key" in str(reply):
            return NOTHING
        raise ServerError(f"key '{stream.shown}' can't be read as a stream: {reply}")
    found = pairs(reply)
    if b"entries-added" not in found:
        raise ServerError("the server is older than Redis 7.0, which counts added entries first")
    first = found[b"first-entry"]
    return StreamInfo(
        added=int(found[b"entries-added"]),
        length=int(found[b"length"]),
        last=parse_id(found[b"last-generated-id"]),
        first=parse_id(first[0]) if first else None,
        deleted=parse_id(found.get(b"max-deleted-entry-id", b"0-0")),
        size=bytes_of([each for each in (first, found[b"last-entry"]) if each]) // 2,
    )


class Catalog:
    """The streams that a query reads. ``clock`` counts seconds, for the search by pattern."""

    def __init__(
        self, servers: Servers, settings: ReadSettings, clock: Callable[[], float]
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._clock = clock
        self._found: list[Stream] = []
        self._searched: float | None = None
        self._seen: dict[Stream, tuple[StreamInfo, float]] = {}
        self._has_told = False

    def streams(self) -> list[Stream]:
        """All streams, those that are subscribed to by name first."""
        if self._settings.patterns and self._is_time():
            self._search()
        named = (
            Stream(server, key_of(name))
            for name in self._settings.subscribe
            for server in range(len(self._servers))
        )
        return list(dict.fromkeys([*named, *self._found]))

    def is_named(self, stream: Stream) -> bool:
        """Whether the stream is subscribed to by its name."""
        return name_of(stream.key) in self._settings.subscribe

    def _is_time(self) -> bool:
        interval = self._settings.pattern_interval_ms / 1000
        return self._searched is None or self._clock() - self._searched >= interval

    def _search(self) -> None:
        self._found = sorted(
            {
                Stream(server, key)
                for server in range(len(self._servers))
                for pattern in self._settings.patterns
                for key in self._servers.scan(server, pattern)
            }
        )
        self._searched = self._clock()

    def infos(
        self, streams: Iterable[Stream], read: Mapping[Stream, int] | None = None
    ) -> dict[Stream, StreamInfo]:
        """The counters of streams, asked all at once; :data:`NOTHING` for a missing one.

        ``read`` says up to where each has been read: of one with large entries and nothing new,
        the counters may be those of some seconds ago.
        """
        wanted = list(streams)
        idle = self._idle(wanted, read or {})
        due = [stream for stream in wanted if stream not in idle]
        replies = ask_each(self._servers, due, _xinfo_stream)
        fresh = {stream: info_of(stream, reply) for stream, reply in replies.items()}
        now = self._clock()
        self._seen.update({s: (info, now) for s, info in fresh.items() if info.size > LARGE})
        self._tell_missing(fresh)
        return {stream: fresh.get(stream) or self._seen[stream][0] for stream in wanted}

    def _idle(self, streams: list[Stream], read: Mapping[Stream, int]) -> set[Stream]:
        """Streams with large entries to which nothing was added: XINFO sends two entries."""
        now = self._clock()
        likely = {
            stream: self._seen[stream][0].last
            for stream in streams
            if stream in self._seen
            and now - self._seen[stream][1] < LARGE_INTERVAL_S
            and self._seen[stream][0].last <= read.get(stream, -1)
        }
        replies = ask_each(
            self._servers,
            likely,
            lambda stream: ("XRANGE", stream.key, f"({format_id(likely[stream])}", "+", "COUNT", 1),
        )
        return {stream for stream, reply in replies.items() if reply == []}

    def _tell_missing(self, infos: Mapping[Stream, StreamInfo]) -> None:
        """Warns at the first look of streams that are subscribed to by name and not there; raises
        :class:`OptionError` if there is one whose name was taken for several."""
        if self._has_told:
            return
        self._has_told = True
        missing = {stream for stream, info in infos.items() if info is NOTHING}
        there = {stream.key for stream, info in infos.items() if info is not NOTHING}
        absent = sorted({stream.key for stream in missing if self.is_named(stream)} - there)
        if absent:
            self._refuse_one_name()
        for key in absent:
            LOG.warning(
                "stream '%s' does not exist yet: check its name; it is read as soon as it does",
                Stream(0, key).shown,
            )

    def _refuse_one_name(self) -> None:
        """Raises :class:`OptionError` if commas are part of the name of a stream that is there."""
        named = self._settings.subscribe
        if not isinstance(named, Separated):
            return
        wanted = [Stream(server, key_of(named.text)) for server in range(len(self._servers))]
        replies = ask_each(self._servers, wanted, _xinfo_stream)
        if any(not isinstance(reply, ResponseError) for reply in replies.values()):
            one, several = json.dumps([named.text]), json.dumps(named)
            allowed = f"{one} for the stream of this name, {several} for streams between commas"
            raise OptionError("subscribe", named.text, allowed)


def ask_each(
    servers: Servers, streams: Iterable[Stream], command: Callable[[Stream], tuple[Any, ...]]
) -> dict[Stream, Any]:
    """The reply to a command for each stream, sent to each server in one pipeline."""
    replies: dict[Stream, Any] = dict.fromkeys(streams)
    for server in range(len(servers)):
        of_server = [stream for stream in replies if stream.server == server]
        answers = servers.call_all(server, [command(stream) for stream in of_server])
        replies.update(zip(of_server, answers, strict=True))
    return replies


def bytes_of(chunk: Sequence[Any]) -> int:
    """The bytes of the names and values of entries."""
    fields = [entry[1] for entry in chunk if entry[1] is not None]
    return sum(map(len, chain.from_iterable(fields)))


def info_now(servers: Servers, stream: Stream) -> StreamInfo:
    """Return the counters of one stream; raises ServerError."""
    return info_of(stream, ask_each(servers, [stream], _xinfo_stream)[stream])


def groups_of(
    servers: Servers, streams: Iterable[Stream], name: str | None
) -> dict[Stream, Group | None]:
    """Return what XINFO GROUPS says of a group in each stream that is there.

    None where the stream has no group of that name.
    """
    replies = ask_each(servers, streams, lambda stream: ("XINFO GROUPS", stream.key))
    wanted = (name or "").encode()
    return {
        stream: next((group for group in map(pairs, reply) if group[b"name"] == wanted), None)
        for stream, reply in replies.items()
        if not isinstance(reply, ResponseError)
    }


def stands_at(servers: Servers, stream: Stream, name: str | None) -> int | None:
    """Return the last ID that a group has given out, None if the group is not there."""
    group = groups_of(servers, [stream], name).get(stream)
    return None if group is None else place_of(group)[0]
