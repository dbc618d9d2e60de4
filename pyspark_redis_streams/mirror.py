"""Mode ``offsets``: the group that shows on the server how far a query has come."""

from __future__ import annotations

from typing import Any

from redis.exceptions import ResponseError

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.offsets import Position, Positions
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.starting_offsets import find_group
from pyspark_redis_streams.stream_info import Stream, ask_each


class Mirror:
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
        found = self._groups(due)
        if not self._settings.group_is_mirror:
            for stream, group in found.items():
                if group is not None:
                    self._check(stream, due[stream], group, before or stream in self._moved)
        for stream, group in found.items():
            self._put(stream, due[stream], group is None)
        self._moved.update({stream: position.id for stream, position in due.items()})

    def _groups(self, due: Positions) -> dict[Stream, dict[bytes, Any] | None]:
        """What there is of the group in each stream that is there: what is not can't lag."""
        name = (self._settings.group or "").encode()
        replies = ask_each(self._servers, due, lambda stream: ("XINFO GROUPS", stream.key))
        there = {s: reply for s, reply in replies.items() if not isinstance(reply, ResponseError)}
        return {stream: find_group(reply, name) for stream, reply in there.items()}

    def _check(
        self, stream: Stream, position: Position, group: dict[bytes, Any], before: bool
    ) -> None:
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
