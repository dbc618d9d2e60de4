"""Starting positions of each stream when there is no checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redis.exceptions import ResponseError

from pyspark_redis_streams.errors import OptionError, RedisStreamsError
from pyspark_redis_streams.ids import format_id, parse_id
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import ReadSettings
from pyspark_redis_streams.stream_info import Stream, StreamInfo, ask_each, name_of, pairs
from pyspark_redis_streams.walking import walk

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
    found: dict[Stream, Start] = {}
    groups: list[Stream] = []
    for stream, info in infos.items():
        name = name_of(stream.key)
        choice = settings.starting.streams.get(name, settings.starting.otherwise)
        time = settings.starting.times.get(name)
        if choice == "timestamp":
            time = int(settings.starting.streams[""])
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


def number_at(
    servers: Servers, settings: ReadSettings, stream: Stream, after: int, info: StreamInfo
) -> int:
    """How many entries a stream had had added up to an ID."""
    if info.first is None or after >= info.last:
        return info.added
    if after < info.first:
        return info.removed
    return info.added - walk(servers, settings, stream, after, info.last, info.length).number


def _group_starts(
    servers: Servers, settings: ReadSettings, infos: Mapping[Stream, StreamInfo]
) -> dict[Stream, Start]:
    replies = ask_each(servers, infos, lambda stream: ("XINFO GROUPS", stream.key))
    name = (settings.group or "").encode()
    found: dict[Stream, Start] = {}
    for stream, reply in replies.items():
        group = find_group(reply, name)
        if group is None:
            raise RedisStreamsError(
                f"stream '{stream.shown}' has no group '{settings.group}', from whose position "
                "the option startingOffsets=group wants to go on"
            )
        after = min(parse_id(group[b"last-delivered-id"]), infos[stream].last)
        found[stream] = after, number_at(servers, settings, stream, after, infos[stream])
    return found


def find_group(reply: Any, name: bytes) -> dict[bytes, Any] | None:
    """What a reply of XINFO GROUPS, or its error, says about a group."""
    if isinstance(reply, ResponseError):
        return None
    return next((group for group in map(pairs, reply) if group[b"name"] == name), None)
