"""Mode ``offsets``: finds out what is new, plans what to read of it, and moves the group along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.limits import Limits, Patience, Turns, byte_shares
from pyspark_redis_streams.losses import Losses
from pyspark_redis_streams.mirror import Mirror
from pyspark_redis_streams.offsets import Position, Positions
from pyspark_redis_streams.partitions import Partition, Range, divide, gather
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.sounding import Sounder
from pyspark_redis_streams.starting_offsets import earliest, starts
from pyspark_redis_streams.stream_info import Catalog, Stream, StreamInfo, name_of
from pyspark_redis_streams.walking import Lookahead, walk


class Follower:
    """What the driver does for a query of mode ``offsets``; ``clock`` counts seconds."""

    def __init__(
        self, servers: Servers, settings: ReadSettings, clock: Callable[[], float]
    ) -> None:
        self._servers = servers
        self._settings = settings
        self.catalog = Catalog(servers, settings, clock)
        self._initial: dict[Stream, Position] | None = None
        self._targets: dict[Stream, StreamInfo] | None = None
        self._latest: dict[Stream, StreamInfo] = {}
        self._mirror = Mirror(servers, settings)
        self._losses = Losses(servers, settings)
        self.sounder = Sounder(servers, settings)
        self._lookahead = Lookahead(settings)
        self._turns = Turns()
        self._patience = Patience(settings.max_trigger_delay, clock)

    def initial(self) -> Positions:
        """Where the query begins. It is decided once: Spark asks several times."""
        if self._initial is None:
            infos = self.catalog.infos(self.catalog.streams())
            found = starts(self._servers, self._settings, infos)
            self._initial = {s: Position.at(*start, infos[s]) for s, start in found.items()}
        return self._initial

    def stop_at_what_is_there(self) -> None:
        """From now on nothing counts that is added later."""
        self._targets = self.catalog.infos(self.catalog.streams())

    def latest(self, start: Positions, limits: Limits) -> Positions | None:
        """The batch that follows: everything new, or as much of it as the limits allow.

        None if there is nothing new, or too little to begin with. Raises DataLossError if
        entries have gone that lie ahead.
        """
        read = {stream: position.id for stream, position in start.items()}
        self._latest = self.catalog.infos({*self.catalog.streams(), *start}, read)
        begins = {
            stream: self._checked(stream, start.get(stream), info)
            for stream, info in self._latest.items()
            if self.catalog.is_named(stream)
            or not self._losses.is_over(stream, start.get(stream), info)
        }
        # A stream that is over leaves with the next batch, and makes none by itself.
        moved = any(begins.get(s, position) is not position for s, position in start.items())
        begins = {s: position.counted_in(self._latest[s]) for s, position in begins.items()}
        ends = {stream: self._end(stream, position) for stream, position in begins.items()}
        lags = {stream: _lag(begins[stream], end) for stream, end in ends.items()}
        least = limits.least if self._targets is None else None
        waiting = self._patience.asks_for_more(sum(lags.values()), least)
        if not moved and (waiting or not any(lags.values())):
            return None
        self._patience.end()
        return self._batch(begins, ends, limits)

    def _batch(
        self,
        begins: Mapping[Stream, Position],
        ends: Mapping[Stream, tuple[int, int]],
        limits: Limits,
    ) -> Positions:
        lags = {stream: _lag(begins[stream], end) for stream, end in ends.items()}
        shares = self._turns.rows(limits.rows, lags)
        sizes = {stream: info.size for stream, info in self._latest.items()}
        byte_parts = byte_shares(limits.bytes, shares, sizes)
        return {
            stream: self._advance(
                *(stream, position, ends[stream], shares[stream]),
                None if byte_parts is None else byte_parts[stream],
            )
            for stream, position in begins.items()
        }

    def _checked(self, stream: Stream, position: Position | None, info: StreamInfo) -> Position:
        if position is None:
            return Position.at(*earliest(info), info)
        return self._losses.checked(stream, position, info)

    def _end(self, stream: Stream, position: Position) -> tuple[int, int]:
        """The last entry to be read now and its number."""
        if self._targets is None:
            info: StreamInfo | None = self._latest[stream]
        else:
            info = self._targets.get(stream)
        if info is None or info.last <= position.id:
            return position.id, position.n
        return info.last, info.added

    def _advance(
        self,
        stream: Stream,
        position: Position,
        end: tuple[int, int],
        part: int,
        part_bytes: int | None,
    ) -> Position:
        info = self._latest[stream]
        if part == 0:
            return position.to(position.id, position.n, info)
        if part < _lag(position, end) or part_bytes is not None:
            trail = self._lookahead.trail(stream, (position.id, position.n))
            bounds = (position.id, end[0], part, part_bytes)
            found = walk(self._servers, self._settings, stream, *bounds, trail)
            if found.id < end[0] and found.number:
                number = position.n + found.number
                self._lookahead.begin(stream, (found.id, number), end[0], found.number)
                return position.to(found.id, number, info)
        return position.to(*end, info)

    def partitions(self, end: Positions) -> list[Partition]:
        """The tasks of a batch."""
        ranges = [
            Range(
                *(stream, each.start, each.id, each.n0, each.n - each.n0),
                *(each.n, each.head, each.deleted),
            )
            for stream, each in sorted(end.items())
            if not each.is_empty
        ]
        divided = divide(ranges, self._settings.min_partitions, self.sounder.cuts)
        return gather(divided, self._settings.max_partitions)

    def acknowledge(self, positions: Positions, before: bool = False) -> None:
        """Moves the group, if there is one, to where everything before has been processed.

        ``before`` says that the checkpoint knows it as moved. Raises RedisStreamsError if the
        group is not this query's.
        """
        self._mirror.move(positions, before)

    def close(self) -> None:
        """Ends what is under way."""
        self._lookahead.close()

    def report(self) -> dict[str, Any] | None:
        """The ends of the streams as they were seen last, in the form of an offset.

        Before the first look, as for a batch that is repeated, they are looked for.
        """
        if not self._latest:
            self._latest = self.catalog.infos(self.catalog.streams())
        return ends_to_json(self._latest, self._settings) if self._latest else None


def _lag(position: Position, end: tuple[int, int]) -> int:
    """How many entries there are up to an end; at least one if the ID is higher."""
    return max(end[1] - position.n, 1) if end[0] > position.id else 0


def ends_to_json(infos: Mapping[Stream, StreamInfo], settings: ReadSettings) -> dict[str, Any]:
    """The last ID and the number of entries of each stream, by server and name."""
    servers: dict[str, dict[str, Any]] = {}
    for stream, info in sorted(infos.items()):
        entry = {"id": format_id(info.last), "n": info.added}
        servers.setdefault(settings.servers.label(stream.server), {})[name_of(stream.key)] = entry
    return {"servers": servers}
