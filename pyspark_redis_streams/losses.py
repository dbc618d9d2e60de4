"""Mode ``offsets``: where to go on in a stream of which something has gone."""

from __future__ import annotations

import logging

from pyspark_redis_streams.errors import DataLossError
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.offsets import Position
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.starting_offsets import number_at
from pyspark_redis_streams.stream_info import (
    HINT,
    NOTHING,
    Stream,
    StreamInfo,
    entries,
    gone_message,
    loss_message,
    no_group_message,
    stands_message,
)

LOG = logging.getLogger("pyspark_redis_streams")


def report_loss(settings: ReadSettings, message: str, then: str = "") -> None:
    """Raises DataLossError, or warns if the query is to continue, with what it does ``then``."""
    if settings.fail_on_loss:
        raise DataLossError(message + HINT)
    LOG.warning("%s%s", message, then)


def report_again(
    settings: ReadSettings,
    stream: Stream,
    stands: int | None,
    end: int,
    missing: int,
    consumer: str,
    after: int,
) -> None:
    """The same of a batch that has lost entries, which are read by their IDs if that is allowed.

    ``stands`` is where the group does, None if it has gone, and ``end`` where the batch ends.
    """
    if stands is None:
        message = no_group_message(stream, settings.group)
    else:
        message = stands_message(stream, settings.group, stands, end)
    message += (
        f"; {entries(missing)} of batch {consumer.rpartition('-')[2]} are delivered again after "
        f"{format_id(after)}"
    )
    if settings.fail_on_loss:
        raise DataLossError(f"{message} if you start with onDataLoss=continue")
    LOG.warning("%s", message)


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
        """The same place in the stream as it is now: another one if the stream is another one.

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
        """The same for one that has lost its end before, and may have grown beyond it."""
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
