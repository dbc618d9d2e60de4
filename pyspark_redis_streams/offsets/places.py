"""Mode ``offsets``: where to begin in a stream, and where to go on when something has gone."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.losses import entries, gone_message, loss_message, report_loss
from pyspark_redis_streams.offsets.positions import Position
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.fetching import number_at
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import (
    NOTHING,
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
