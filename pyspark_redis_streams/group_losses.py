"""Mode ``group``: what to do when the group, a consumer or a whole stream has gone."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from pyspark_redis_streams.errors import DataLossError, RedisStreamsError
from pyspark_redis_streams.group_offsets import GroupOffset, GroupPosition, place_of
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.losses import report_loss
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.starting_offsets import Start, earliest, number_at
from pyspark_redis_streams.stream_info import (
    Stream,
    StreamInfo,
    dropped_message,
    entries,
    gone_message,
    info_of,
    loss_message,
    no_group_message,
)

LOG = logging.getLogger("pyspark_redis_streams")


class GroupLosses:
    """Compares what the checkpoint says with streams and groups as they are now.

    ``make`` creates the group in a stream after an ID, with the number of entries up to there.
    """

    def __init__(
        self, servers: Servers, settings: ReadSettings, make: Callable[[Stream, int, int], None]
    ) -> None:
        self._servers = servers
        self._settings = settings
        self._make = make
        self._group = settings.group or ""
        self._told: dict[Stream, Any] = {}

    def place_of_missing(self, stream: Stream, info: StreamInfo, done: GroupOffset) -> Start:
        """Where to create the group in a stream that has none: at its first entry if it is new.

        Raises DataLossError, and RedisStreamsError if nobody knows where the group stood.
        """
        if done.positions is None:
            raise RedisStreamsError(
                f"stream '{stream.shown}' has no group '{self._group}', and the checkpoint, of an "
                "older version, does not say where it stood: create it yourself with XGROUP CREATE "
                f"{stream.shown} {self._group} and the last ID not to be read"
            )
        known = done.positions.get(stream)
        if known is None:
            return earliest(info)
        self._destroyed(stream, known)
        return known.id, number_at(self._servers, self._settings, stream, known.id, info)

    def _destroyed(self, stream: Stream, known: GroupPosition) -> None:
        place = format_id(known.id)
        number = "" if known.n is None else f", entry {known.n}"
        message = no_group_message(stream, self._group)
        message += f"; the query stood at {place}{number}"
        if self._settings.fail_on_loss:
            read = "" if known.n is None else f" ENTRIESREAD {known.n}"
            raise DataLossError(
                f"{message}. Go on from there with XGROUP CREATE {stream.shown} {self._group} "
                f"{place}{read}, or with onDataLoss=continue"
            )
        LOG.warning("%s, and the group is made again there", message)

    def check_gone(self, stream: Stream, known: GroupPosition) -> None:
        """Tells once of a stream that is not there any more; raises DataLossError."""
        if self._told.get(stream) != ("gone", known.id):
            message = gone_message(stream, known.id, known.n or 0, StreamInfo(0, 0, 0, None))
            report_loss(self._settings, message)
            self._told[stream] = ("gone", known.id)

    def check(
        self, stream: Stream, info: StreamInfo, group: dict[bytes, Any], known: GroupPosition | None
    ) -> None:
        """Compares what the group has given out with what was removed; raises DataLossError."""
        after, read = place_of(group)
        if known is not None and after < known.id:
            self._tell_moved_back(stream, after, known.id)
        exact = True
        if read is not None:
            lost = _lost(info, after, read, known)
        else:
            after, lost, exact = _lost_uncounted(info, after, known)
        # What was lost stays lost until the next entry is delivered: it is told once.
        if lost and self._told.get(stream) != ("lost", after, lost):
            report_loss(self._settings, loss_message(stream, lost, after, info, exact))
            self._told[stream] = ("lost", after, lost)

    def _tell_moved_back(self, stream: Stream, after: int, before: int) -> None:
        if self._told.get(stream) != ("back", after):
            self._told[stream] = ("back", after)
            LOG.warning(
                "stream '%s': group '%s' stands at %s, before %s, where this query left it: what "
                "lies between is delivered again",
                *(stream.shown, self._group, format_id(after), format_id(before)),
            )

    def check_batch(
        self, stream: Stream, position: GroupPosition, batch: int, found: dict[int, int] | None
    ) -> None:
        """Finds out whether all that a batch had of a stream is still pending for it.

        ``found`` is how much is pending for the consumer of each batch, None without a group.
        Raises DataLossError.
        """
        consumer = f"{self._settings.consumer}-{batch}"
        if found is None:
            self._destroyed_under_batch(stream, position, batch)
        elif batch not in found:
            message = dropped_message(stream, position.count, consumer, self._group)
            report_loss(self._settings, message)
        elif found[batch] < position.count and self._settings.max_deliveries is None:
            LOG.warning(
                "stream '%s': %d of %d entries of consumer '%s' are no longer pending: another "
                "consumer has claimed or acknowledged them",
                *(stream.shown, position.count - found[batch], position.count, consumer),
            )

    def _destroyed_under_batch(self, stream: Stream, position: GroupPosition, batch: int) -> None:
        message = (
            f"{no_group_message(stream, self._group)}; {entries(position.count)} of batch {batch} "
            f"are delivered again after {format_id(position.start)}"
        )
        if self._settings.fail_on_loss:
            raise DataLossError(f"{message} if you start with onDataLoss=continue")
        LOG.warning("%s", message)
        self._told[stream] = ("back", position.start)
        self._make(stream, position.start, self._number(stream, position))

    def _number(self, stream: Stream, position: GroupPosition) -> int:
        """How many entries a stream had had added up to where a batch began.

        That is not what it was then where the stream has lost its end since.
        """
        info = info_of(stream, self._servers.call(stream.server, "XINFO STREAM", stream.key))
        return number_at(self._servers, self._settings, stream, position.start, info)


def _lost(info: StreamInfo, after: int, read: int, known: GroupPosition | None) -> int:
    """How many entries above ``after`` were trimmed, which is where ``read`` of them end."""
    if known is None or known.id != after:
        return info.lost(after, read)
    return info.lost(after, read, known.head, known.deleted)


def _lost_uncounted(
    info: StreamInfo, after: int, known: GroupPosition | None
) -> tuple[int, int, bool]:
    """The same where the server does not know how many entries a group has been given.

    Returns the place above which they were, how many, and whether that is exact: what was trimmed
    below the place counts too. A group that others have moved beyond all that is known has lost
    nothing that could be told; what lies above one that was moved back had been read.
    """
    if known is None or not (after <= known.id or after < known.head):
        return after, 0, True
    read = known.removed if known.n is None else known.n
    if read is None:
        return after, 0, True
    place = max(after, known.id)
    is_exact = known.n is not None and place == known.id
    return place, info.lost(place, read, known.head, known.deleted), is_exact
