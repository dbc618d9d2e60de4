"""Mode ``offsets``: finds out what is new, plans what to read of it, and moves the group along.

:func:`starts` tells where to begin in a stream, :class:`Losses` where to go on when something has
gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from redis.exceptions import ResponseError

from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.losses import entries, gone_message, loss_message, report_loss
from pyspark_redis_streams.offsets.positions import Position, Positions, by_server
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.fetching import Lookahead, number_at, walk
from pyspark_redis_streams.read.limits import Limits, MinRowsWait, Turns, byte_shares
from pyspark_redis_streams.read.ranges import Partition, Range, RangeSplitter, divide, gather
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import (
    NOTHING,
    Catalog,
    Group,
    Stream,
    StreamInfo,
    groups_of,
    name_of,
    place_of,
)

LOG = logging.getLogger("pyspark_redis_streams")

Start = tuple[int, int]
"""The last ID not to be read, and how many entries the stream had had added up to there."""


def earliest(info: StreamInfo) -> Start:
    """Before all entries that are there now."""
    return 0, info.removed


def starts(
    servers: Servers, settings: ReadSettings, infos: Mapping[Stream, StreamInfo]
) -> dict[Stream, Start]:
    """Where the options say that each stream begins.

    Raises OptionError for an ID above the stream's last one, and RedisStreamsError for a group
    that is not there.
    """
    starting = settings.starting
    found: dict[Stream, Start] = {}
    groups: list[Stream] = []
    for stream, info in infos.items():
        name = name_of(stream.key)
        choice = starting.streams.get(name, starting.otherwise)
        time = starting.times.get(name)
        if choice == "timestamp":
            time = int(starting.streams[""])
        if time is None and choice == "group":
            groups.append(stream)
        elif time is not None:
            since = min(time, info.last)
            found[stream] = since, number_at(servers, settings, stream, since, info)
        else:
            found[stream] = _chosen(servers, settings, stream, choice, info)
    found.update(_group_starts(servers, settings, {s: infos[s] for s in groups}))
    return found


def _chosen(
    servers: Servers, settings: ReadSettings, stream: Stream, choice: str | int, info: StreamInfo
) -> Start:
    if choice == "earliest":
        return earliest(info)
    if isinstance(choice, str):
        return info.last, info.added
    if choice > info.last:
        raise OptionError(
            "startingOffsets",
            f"{format_id(choice)} for stream '{stream.shown}'",
            f"an ID up to the stream's last one, {format_id(info.last)}",
        )
    return choice, number_at(servers, settings, stream, choice, info)


def _group_starts(
    servers: Servers, settings: ReadSettings, infos: Mapping[Stream, StreamInfo]
) -> dict[Stream, Start]:
    groups = groups_of(servers, infos, settings.group)
    found: dict[Stream, Start] = {}
    for stream, info in infos.items():
        group = groups.get(stream)
        if group is None:
            raise RedisStreamsError(
                f"stream '{stream.shown}' has no group '{settings.group}', from whose position "
                "the option startingOffsets=group wants to go on"
            )
        after = min(place_of(group)[0], info.last)
        found[stream] = after, number_at(servers, settings, stream, after, info)
    return found


class Losses:
    """Compares positions with what the streams are now."""

    def __init__(self, servers: Servers, settings: ReadSettings) -> None:
        self._servers = servers
        self._settings = settings
        self._missed: dict[Stream, int] = {}

    def checked(self, stream: Stream, position: Position, info: StreamInfo) -> Position:
        """The position to go on from: another one only where data was lost and that is allowed.

        Never one before it: what lies at or below it is not read again. Raises DataLossError.
        """
        now = self.found_again(stream, position, info)
        lost = 0 if now is not position or position.end is not None else position.lost(info)
        if lost:
            report_loss(self._settings, loss_message(stream, lost, position.id, info))
            return Position.at(position.id, info.removed, info)
        return now

    def found_again(self, stream: Stream, position: Position, info: StreamInfo) -> Position:
        """Return the place in the stream as it is now: another one if the stream is another one.

        Raises DataLossError.
        """
        if not position.is_of(info):
            message = gone_message(stream, position.id, position.n, info)
            report_loss(self._settings, message, f"; it is read on above {format_id(position.id)}")
            return self._above(stream, position, info)
        return position if position.end is None else self._caught_up(stream, position, info)

    def _above(self, stream: Stream, position: Position, info: StreamInfo) -> Position:
        """The place in a stream that has lost its end from which on nothing has been read."""
        if info.last <= position.id:
            return Position.at(position.id, info.added, info, end=info.last)
        number = number_at(self._servers, self._settings, stream, position.id, info)
        return Position.at(position.id, number, info)

    def _caught_up(self, stream: Stream, position: Position, info: StreamInfo) -> Position:
        """Return the place in a stream that lost its end before, and may have grown beyond it."""
        if info.last <= position.id:
            return position
        found = self._above(stream, position, info)
        if found.n > position.n:
            LOG.warning(
                "stream '%s': %s at or below %s, up to where the stream was read before it lost "
                "its end, are passed over",
                *(stream.shown, entries(found.n - position.n), format_id(position.id)),
            )
        return found

    def is_over(self, stream: Stream, position: Position | None, info: StreamInfo) -> bool:
        """Whether a stream that is only known by pattern has gone, so that the query forgets it.

        It is told once. Raises DataLossError.
        """
        if info != NOTHING:
            self._missed.pop(stream, None)
            return False
        if position is not None and self._missed.get(stream) != position.id:
            message = gone_message(stream, position.id, position.n, info)
            report_loss(self._settings, message, "; the query forgets it")
            self._missed[stream] = position.id
        return True


class GroupPositionWriter:
    """Moves the group along, unless it is one that others use.

    It is this query's own if nobody consumes with it and it stands where the query can have left
    it: where the last batch that is done ends, or, after a crash, where that begins; or below, if
    the query has moved it before, since a server that restarts may have lost the last moves.
    """

    def __init__(self, servers: Servers, settings: ReadSettings) -> None:
        self._servers = servers
        self._settings = settings
        self._moved: dict[Stream, int] = {}

    def move(self, positions: Positions, before: bool) -> None:
        """Has the group, if there is one, show that everything before has been processed.

        ``before`` says that the checkpoint knows the group as moved. Raises RedisStreamsError,
        before anything is moved, if the group is not this query's.
        """
        if self._settings.group is None:
            return
        due = {s: place for s, place in positions.items() if self._moved.get(s) != place.id}
        # A stream that is not there can't lag.
        found = groups_of(self._servers, due, self._settings.group)
        if not self._settings.group_is_mirror:
            for stream, group in found.items():
                if group is not None:
                    self._check(stream, due[stream], group, before or stream in self._moved)
        for stream, group in found.items():
            self._put(stream, due[stream], group is None)
        self._moved.update({stream: position.id for stream, position in due.items()})

    def _check(self, stream: Stream, position: Position, group: Group, before: bool) -> None:
        stands = parse_id(group[b"last-delivered-id"])
        expected = self._moved.get(stream, position.id)
        if group[b"consumers"] or group[b"pending"]:
            what = "has consumers"
            why = "moving it would take entries from them"
        elif stands not in (expected, position.id, position.start) and not (
            before and stands < position.id
        ):
            what = (
                f"stands at {format_id(stands)} and not at {format_id(expected)}, where this "
                "query left it"
            )
            why = "others seem to move it"
        else:
            return
        raise RedisStreamsError(
            f"stream '{stream.shown}': group '{self._settings.group}' {what}, and is not this "
            f"query's: {why}. Give another groupId, or, if the group is this query's to move, "
            "the option groupIsMirror=true"
        )

    def _put(self, stream: Stream, position: Position, missing: bool) -> None:
        place = (stream.key, self._settings.group, format_id(position.id))
        command = "XGROUP CREATE" if missing else "XGROUP SETID"
        try:
            self._servers.call(stream.server, command, *place, "ENTRIESREAD", position.n)
        except ResponseError:
            # The stream or the group has come or gone in this moment: the next batch moves it.
            return


class OffsetsPlanner:
    """Does the driver's part of a query of mode ``offsets``; ``clock`` counts seconds."""

    def __init__(
        self, servers: Servers, settings: ReadSettings, clock: Callable[[], float]
    ) -> None:
        self._servers = servers
        self._settings = settings
        self.catalog = Catalog(servers, settings, clock)
        self._initial: dict[Stream, Position] | None = None
        self._targets: dict[Stream, StreamInfo] | None = None
        self._latest: dict[Stream, StreamInfo] = {}
        self._group_position = GroupPositionWriter(servers, settings)
        self._losses = Losses(servers, settings)
        self._splitter = RangeSplitter(servers, settings)
        self._lookahead = Lookahead(settings)
        self._turns = Turns()
        self._min_rows_wait = MinRowsWait(settings.max_trigger_delay, clock)

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
        """Return the batch that follows: everything new, or as much of it as the limits allow.

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
        waiting = self._min_rows_wait.has_to_wait(sum(lags.values()), least)
        if not moved and (waiting or not any(lags.values())):
            return None
        self._min_rows_wait.end()
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
        """Return the tasks of a batch."""
        ranges = [
            Range(
                *(stream, each.start, each.id, each.n0, each.n - each.n0),
                *(each.n, each.head, each.deleted),
            )
            for stream, each in sorted(end.items())
            if not each.is_empty
        ]
        divided = divide(ranges, self._settings.min_partitions, self._splitter.split_points)
        return gather(divided, self._settings.max_partitions)

    def acknowledge(self, positions: Positions, before: bool = False) -> None:
        """Moves the group, if there is one, to where everything before has been processed.

        ``before`` says that the checkpoint knows it as moved. Raises RedisStreamsError if the
        group is not this query's.
        """
        self._group_position.move(positions, before)

    def close(self) -> None:
        """Ends what is under way."""
        self._lookahead.close()

    def report(self) -> dict[str, Any] | None:
        """Return the ends of the streams as they were seen last, in the form of an offset.

        Before the first look, as for a batch that is repeated, they are looked for.
        """
        if not self._latest:
            self._latest = self.catalog.infos(self.catalog.streams())
        ends = {
            s: {"id": format_id(info.last), "n": info.added} for s, info in self._latest.items()
        }
        return {"servers": by_server(ends, self._settings.servers)} if ends else None


def _lag(position: Position, end: tuple[int, int]) -> int:
    """How many entries there are up to an end; at least one if the ID is higher."""
    return max(end[1] - position.n, 1) if end[0] > position.id else 0
