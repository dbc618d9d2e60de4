"""Mode ``group``: what to do when streams and groups are not as the checkpoint left them."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from redis.exceptions import ResponseError

from pyspark_redis_streams.errors import DataLossError, RedisStreamsError
from pyspark_redis_streams.group.pending import Consumers, consumers_of
from pyspark_redis_streams.group.positions import GroupOffset, GroupPosition
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.losses import (
    entries,
    gone_message,
    loss_message,
    no_group_message,
    report_again,
    report_claimed,
    report_dropped,
    report_loss,
    stands_message,
)
from pyspark_redis_streams.offsets.planner import Losses, Start, earliest
from pyspark_redis_streams.offsets.positions import Position
from pyspark_redis_streams.options import ReadSettings
from pyspark_redis_streams.read.fetching import number_at, walk
from pyspark_redis_streams.read.ranges import Range
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.streams import (
    NOTHING,
    Group,
    Stream,
    StreamInfo,
    info_now,
    place_of,
    stands_at,
)

LOG = logging.getLogger("pyspark_redis_streams")

GO_ON: Final = "Go on from there with {}, or with onDataLoss=continue"

READ_THEM: Final = "Read them after {}, or go on without them with onDataLoss=continue"


class GroupLosses:
    """Compares what the checkpoint says with streams and groups as they are now.

    Where they differ, the places of the checkpoint count. ``has_told`` says that the offsets that
    are to come differ from those of before because something was lost.
    """

    def __init__(self, servers: Servers, settings: ReadSettings) -> None:
        self._servers = servers
        self._settings = settings
        self._losses = Losses(servers, settings)
        self._group = settings.group or ""
        self._gone: dict[Stream, int] = {}
        self.has_told = False

    def _report(self, message: str, then: str = "") -> None:
        report_loss(self._settings, message, then)
        self.has_told = True

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
        if not known.place.is_of(info):
            # Where this is no error it is told when the group is there, with what becomes of it.
            if self._settings.fail_on_loss:
                self._report(gone_message(stream, known.id, known.n or 0, info))
        elif known.end is None:
            self._destroyed(stream, known)
        return known.id, self._number(stream, known.id, info)

    def _destroyed(self, stream: Stream, known: GroupPosition) -> None:
        number = "" if known.n is None else f", entry {known.n}"
        message = no_group_message(stream, self._group)
        message += f"; the query stood at {format_id(known.id)}{number}"
        self._need_command("CREATE", stream, known, message)
        LOG.warning("%s, and the group is made again there", message)

    def _need_command(
        self, command: str, stream: Stream, known: GroupPosition, message: str, how: str = GO_ON
    ) -> None:
        """Raises DataLossError with the command that makes the loss good, if it is not allowed."""
        if self._settings.fail_on_loss:
            read = "" if known.n is None else f" ENTRIESREAD {known.n}"
            place = f"{stream.shown} {self._group} {format_id(known.id)}{read}"
            raise DataLossError(f"{message}. {how.format(f'XGROUP {command} {place}')}")

    def gone(self, stream: Stream, known: GroupPosition, is_named: bool) -> GroupPosition:
        """Return what is known of a stream that is not there any more; raises DataLossError.

        One that is only found by pattern is told once, and leaves with the next batch.
        """
        if is_named:
            return self._found_again(stream, NOTHING, known)
        if self._gone.get(stream) != known.id:
            message = gone_message(stream, known.id, known.n or 0, NOTHING)
            report_loss(self._settings, message)
            self._gone[stream] = known.id
        return known

    def checked(
        self,
        stream: Stream,
        info: StreamInfo,
        group: Group,
        known: GroupPosition | None,
        following: int,
    ) -> GroupPosition:
        """Where the batch ``following`` begins, once the group stands where it is to stand.

        ``known`` is where the query left it. Raises DataLossError.
        """
        stands = place_of(group)[0]
        if known is not None:
            now = self._found_again(stream, info, known)
            if stands < now.id or (stands == now.id and now is not known):
                now = self._put_back(stream, info, stands, now, is_told=now is not known)
                group = {**group, b"last-delivered-id": format_id(now.id), b"entries-read": now.n}
            elif stands > now.id and self._passed(stream, info, group, now, following):
                after = min(stands, info.last)
                begin = now.moved(Position.at(after, self._number(stream, after, info), info))
                return replace(begin, counted=place_of(group)[1] is not None)
            known = now
        begin = GroupPosition.of(info, group, known)
        lost = begin.lost(info, known)
        if lost:
            exact = begin.n is not None
            self._report(loss_message(stream, lost, begin.id, info, exact))
            if exact:
                begin = replace(begin, n=info.removed, n0=info.removed)
        return begin

    def _number(self, stream: Stream, id: int, info: StreamInfo) -> int:
        return number_at(self._servers, self._settings, stream, id, info)

    def _found_again(self, stream: Stream, info: StreamInfo, known: GroupPosition) -> GroupPosition:
        """Return the same place in the stream as it is now; ``known`` itself if nothing is new."""
        place = known.place
        now = self._losses.found_again(stream, place, info)
        if now is place:
            return known
        self.has_told = True
        return known.moved(now)

    def _put_back(
        self, stream: Stream, info: StreamInfo, stands: int, known: GroupPosition, is_told: bool
    ) -> GroupPosition:
        """Moves the group on to where the query left it; raises DataLossError."""
        number = self._number(stream, known.id, info)
        # Fewer than there were: the stream is older, too.
        known = replace(known, n=known.n and min(known.n, number))
        if not is_told and (between := self._between(stream, stands, known.id)):
            message = (
                f"{stands_message(stream, self._group, stands, known.id)}: {entries(between)} "
                "between would be delivered again"
            )
            self._need_command("SETID", stream, known, message)
            self._report(message, ", and the group is put back to where it was")
        self.put(stream, known.id, number, "SETID")
        return known

    def _passed(
        self, stream: Stream, info: StreamInfo, group: Group, known: GroupPosition, following: int
    ) -> int:
        """How many entries between where the query left the group and where it stands were lost.

        Other consumers may have been given them, unless the query has never seen any; but these
        move the group without making the server forget its number.
        """
        stands, read = place_of(group)
        was_set = read is None and known.counted and info.deleted < known.id
        if known.shared and not was_set:
            return 0
        now = consumers_of(self._servers, self._settings, [stream]).get(stream)
        consumers = now or Consumers({}, others=False)
        if consumers.others and not was_set:
            return 0
        passed = self._between(stream, known.id, stands) - consumers.batches.get(following, 0)
        if not consumers.batches.get(following) and known.n is not None:
            passed += known.lost(info, known)
        if passed <= 0:
            return 0
        most = "up to " if known.shared or consumers.others else ""
        message = (
            f"{stands_message(stream, self._group, stands, known.id)}: {most}{entries(passed)} "
            "between were delivered to nobody"
        )
        self._need_command("SETID", stream, known, message, READ_THEM)
        self._report(message)
        return passed

    def _between(self, stream: Stream, after: int, to: int) -> int:
        """How many entries there are above an ID and up to another one."""
        info = info_now(self._servers, stream)
        if info.first is not None and after < info.first and to >= info.last:
            return info.length
        return walk(self._servers, self._settings, stream, after, to, info.length).number

    def put(self, stream: Stream, after: int, number: int, command: str = "CREATE") -> None:
        """Has the group stand after an ID, up to which there are so many entries.

        ``command`` is CREATE where there is no group, or else SETID.
        """
        place = (stream.key, self._settings.group, format_id(after), "ENTRIESREAD", number)
        try:
            self._servers.call(stream.server, f"XGROUP {command}", *place)
        except ResponseError as error:
            # Another consumer may have been faster.
            if not str(error).startswith("BUSYGROUP"):
                raise

    def check_batch(
        self, stream: Stream, position: GroupPosition, batch: int, found: Consumers | None
    ) -> list[Range]:
        """Finds out whether all that a batch had of a stream is still pending for it.

        ``found`` are the consumers of the group, None without a group. What the group has not been
        given, as it is now, is returned to be read by its IDs. Raises DataLossError.
        """
        own = None if found is None else found.batches.get(batch)
        if not position.count or (own is not None and own >= position.count):
            return []
        consumer = f"{self._settings.consumer}-{batch}"
        stands = stands_at(self._servers, stream, self._group)
        if stands is None or stands < position.id:
            after = position.start if own is None else max(position.start, stands or 0)
            missing = position.count - (own or 0)
            report_again(self._settings, stream, stands, position.id, missing, consumer, after)
            return [self._by_ids(stream, position, after)]
        if own is None:
            report_dropped(self._settings, stream, position.count, consumer)
        elif self._settings.max_deliveries is None:
            report_claimed(stream, position.count - own, position.count, consumer)
        return []

    def _by_ids(self, stream: Stream, position: GroupPosition, after: int) -> Range:
        """Return the range of a batch that lies after an ID."""
        info = info_now(self._servers, stream)
        floor = info.removed
        if position.n0 is not None and not info.is_older_than(position.start, position.n0):
            floor = position.n0
        return Range(stream, after, position.id, floor)
