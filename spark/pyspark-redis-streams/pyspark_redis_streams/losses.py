"""Tells of entries that are gone or come again, by an error or a warning."""

from __future__ import annotations

import logging

from pyspark_redis_streams.errors import DataLossError
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.streams import NOTHING, Stream, StreamInfo


def loss_message(
    stream: Stream, lost: int, after: int, info: StreamInfo, exact: bool = True
) -> str:
    """Return what to tell about entries that were removed before they were read."""
    return f"stream '{stream.shown}': {_removed(lost, after, info, exact)}"


def _removed(lost: int, after: int, info: StreamInfo, exact: bool) -> str:
    below = "the end" if info.first is None else format_id(info.first)
    return (
        f"{'' if exact else 'up to '}{entries(lost)} after {format_id(after)} and before {below} "
        "removed before being read"
    )


def entries(count: int) -> str:
    """Return a number of entries in words."""
    return "1 entry" if count == 1 else f"{count} entries"


def gone_message(stream: Stream, after: int, read: int, info: StreamInfo) -> str:
    """Return what to tell about a stream that is not the one that was read, or not all of it."""
    was = f"it was read up to {format_id(after)}, entry {read},"
    if info == NOTHING:
        return f"stream '{stream.shown}' was deleted: {was} and is not there now"
    if info.ends_before(after, read) or not info.has_none_of(after, read):
        message = (
            f"stream '{stream.shown}' lost its end, or was deleted and created again: {was} and "
            f"now ends at {format_id(info.last)}, entry {info.added}"
        )
    else:
        what = f"stream '{stream.shown}' was deleted and created again"
        message = f"{what}: {was} of which none is left"
    if info.removed and info.last > after and not info.has_up_to(after):
        message += f"; {_removed(info.removed, after, info, exact=False)}"
    return message


def more_message(stream: Stream, after: int, read: int, more: int, passed: int) -> str:
    """Return what to tell about a stream in which there is more to read than was added."""
    return (
        f"stream '{stream.shown}' lost its end, or was deleted and created again: it was read up "
        f"to {format_id(after)}, entry {read}, and {entries(more)} more than were added since lie "
        f"above; up to {entries(passed)} at or below are passed over"
    )


def no_group_message(stream: Stream, group: str | None) -> str:
    """Return what to tell about a stream without its group."""
    return (
        f"stream '{stream.shown}': group '{group}' was destroyed, or the stream was deleted and "
        "created again"
    )


def stands_message(stream: Stream, group: str | None, stands: int, left: int) -> str:
    """Return what to tell about a group that is not where the query left it."""
    way = "before" if stands < left else "beyond"
    return (
        f"stream '{stream.shown}': group '{group}' stands at {format_id(stands)}, {way} "
        f"{format_id(left)}, where this query left it"
    )


HINT = (
    "; with the option onDataLoss=continue the query goes on with what is there, "
    "and keeping more entries than the query lags behind prevents this"
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
    """Tell of a batch that has lost entries, which are read by their IDs if that is allowed.

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


def report_dropped(settings: ReadSettings, stream: Stream, count: int, consumer: str) -> None:
    """Raises DataLossError, or warns, of pending entries whose consumer is not there any more."""
    report_loss(
        settings,
        f"stream '{stream.shown}': {entries(count)} of consumer '{consumer}' of group "
        f"'{settings.group}' were dropped before being read: the consumer was removed (XGROUP "
        "DELCONSUMER), or the group was made again",
    )


def report_claimed(stream: Stream, missing: int, count: int, consumer: str) -> None:
    """Warn of pending entries that are another consumer's now."""
    LOG.warning(
        "stream '%s': %s of %s entries of consumer '%s' are no longer pending: another consumer "
        "has claimed or acknowledged them",
        *(stream.shown, missing, count, consumer),
    )
