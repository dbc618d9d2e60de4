"""What a read or a write is to do: its options, checked together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from pyspark_redis_streams import values
from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.ids import MAX_ID, before_millisecond
from pyspark_redis_streams.options import ADDRESS, READ, WRITE, Given, Option, named
from pyspark_redis_streams.urls import ServerUrl
from pyspark_redis_streams.values import Starting


@dataclass(frozen=True)
class ServerSettings:
    """How to reach the servers. What is secret does not show in its text."""

    urls: tuple[ServerUrl, ...]
    retries: int
    client: Mapping[str, str] = field(repr=False)
    """Keyword arguments of redis-py's client, from the options ``redis.*``, still as text."""

    def label(self, server: int) -> str:
        """The name of a server in offsets: empty if it is the only one.

        So a query goes on from its checkpoint when the only URL is changed.
        """
        return self.urls[server].label if len(self.urls) > 1 else ""


@dataclass(frozen=True)
class ReadSettings:
    """What to read; see the options of the same names."""

    servers: ServerSettings
    subscribe: tuple[str, ...]
    patterns: tuple[str, ...]
    starting: Starting
    ending: Mapping[str, int]
    not_after: int
    max_per_trigger: int | None
    max_bytes_per_trigger: int | None
    min_per_trigger: int | None
    max_trigger_delay: float
    min_partitions: int | None
    max_partitions: int | None
    fail_on_loss: bool
    mode: str
    group: str | None
    group_is_mirror: bool
    consumer: str | None
    claim_min_idle_ms: int
    max_deliveries: int | None
    dead_letters: str | None
    fetch_count: int
    fetch_bytes: int
    fields_format: str
    id_columns: bool
    poll_interval_ms: int
    pattern_interval_ms: int


@dataclass(frozen=True)
class WriteSettings:
    """How to write; see the options of the same names."""

    servers: ServerSettings
    stream: str | None
    maxlen: int | None
    minid: int | None
    approximate: bool
    idempotence: str
    idempotence_columns: tuple[str, ...] | None
    idempotence_seconds: int
    count: int


def read_settings(options: Mapping[str, str], streaming: bool) -> ReadSettings:
    """The settings of a read; raises OptionError."""
    given = Given(options)

    def get(name: str) -> Any:
        return given.get(named(name))

    _need_streams(given)
    _need_names(given)
    _need_fitting_mode(given, streaming)
    _need_fitting_limits(given)
    ending_ms = get("endingTimestamp")
    return ReadSettings(
        servers=_server_settings(given),
        subscribe=get("subscribe") or (),
        patterns=get("subscribePattern") or (),
        starting=_starting(given, streaming),
        ending=_ending(given),
        not_after=MAX_ID if ending_ms is None else before_millisecond(ending_ms),
        fail_on_loss=_fails_on_loss(given),
        **_plain_settings(given, READ),
    )


def write_settings(options: Mapping[str, str]) -> WriteSettings:
    """The settings of a write; raises OptionError."""
    given = Given(options)

    def get(name: str) -> Any:
        return given.get(named(name))

    if get("maxlen") is not None and get("minid") is not None:
        raise OptionError("minid", given.text(named("minid")), "not together with 'maxlen'")
    if get("idempotenceColumns") is not None and get("idempotence") == "off":
        text = given.text(named("idempotenceColumns"))
        raise OptionError("idempotenceColumns", text, "not with 'idempotence' off")
    servers = _server_settings(given)
    if len(servers.urls) > 1:
        raise OptionError("url", "a list", "one server or one cluster, to write to")
    return WriteSettings(servers=servers, **_plain_settings(given, WRITE))


def _plain_settings(given: Given, options: tuple[Option, ...]) -> dict[str, Any]:
    """The settings that are the value of one option."""
    return {option.setting: given.get(option) for option in options if option.setting}


def _starting(given: Given, streaming: bool) -> Starting:
    option = named("startingOffsets")
    since: int | None = given.get(named("startingTimestamp"))
    if since is not None:
        if given.text(named("startingOffsetsByTimestamp")) is not None:
            raise _apart("startingOffsetsByTimestamp", given, "'startingTimestamp'")
        if given.text(option) is not None:
            raise OptionError(option.name, given.text(option), "not with 'startingTimestamp'")
        return Starting("timestamp", {"": before_millisecond(since)})
    starting: Starting | None = given.get(option)
    if starting is None:
        starting = Starting("latest" if streaming else "earliest")
    starting = replace(starting, times=_times(given, "startingOffsetsByTimestamp"))
    if starting.times and starting.streams:
        raise _apart("startingOffsetsByTimestamp", given, "a JSON of 'startingOffsets'")
    if starting.otherwise == "group" and given.get(named("groupId")) is None:
        raise OptionError("groupId", None, "a group, as 'startingOffsets' is 'group'")
    if not streaming and starting.otherwise == "latest":
        raise OptionError(option.name, "latest", "earliest, group or JSON in a batch")
    return starting


def _fails_on_loss(given: Given) -> bool:
    option, alias = named("onDataLoss"), named("failOnDataLoss")
    fails: bool = given.get(option) == "fail"
    asked: bool | None = given.get(alias)
    if asked is None:
        return fails
    if given.text(option) is not None and asked is not fails:
        allowed = f"{str(fails).lower()}, or nothing, as 'onDataLoss' is '{given.text(option)}'"
        raise OptionError(alias.name, given.text(alias), allowed)
    return asked


def _apart(name: str, given: Given, other: str) -> OptionError:
    return OptionError(name, given.text(named(name)), f"not with {other}")


def _times(given: Given, name: str) -> dict[str, int]:
    """The IDs before the times of an option, by stream."""
    times: Mapping[str, int] = given.get(named(name)) or {}
    return {stream: before_millisecond(time) for stream, time in times.items()}


def _ending(given: Given) -> dict[str, int]:
    ids: Mapping[str, int] = given.get(named("endingOffsets"))
    times = _times(given, "endingOffsetsByTimestamp")
    if ids.keys() & times.keys():
        raise _apart("endingOffsetsByTimestamp", given, "an ID of the same stream")
    return {**ids, **times}


def _need_fitting_limits(given: Given) -> None:
    low, high = (given.get(named(f"{end}OffsetsPerTrigger")) for end in ("min", "max"))
    for name in ("minOffsetsPerTrigger", "maxTriggerDelay"):
        text = given.text(named(name))
        if text is not None and (low is None or (high is not None and low > high)):
            raise OptionError(name, text, named(name).allowed)


def _need_streams(given: Given) -> None:
    subscribe = named("subscribe")
    if given.get(subscribe) is None and given.get(named("subscribePattern")) is None:
        raise OptionError("subscribe", None, f"{subscribe.allowed}; or 'subscribePattern'")


def _need_names(given: Given) -> None:
    streams = given.get(named("subscribe")) or ()
    if given.get(named("subscribePattern")) is not None:
        return
    for name in _BY_STREAM:
        value = given.get(named(name))
        mentioned = value.streams if isinstance(value, Starting) else value or {}
        for stream in mentioned:
            if stream not in streams:
                raise OptionError(name, given.text(named(name)), "streams of 'subscribe'")


def _need_fitting_mode(given: Given, streaming: bool) -> None:
    group_mode = given.get(named("mode")) == "group"
    if group_mode and not streaming:
        raise OptionError("mode", "group", "offsets, in a batch")
    for name in ("groupId", "consumerName"):
        if group_mode and given.get(named(name)) is None:
            raise OptionError(name, None, f"{named(name).allowed}; mode 'group' needs it")
    mirror = named("groupIsMirror")
    if given.text(mirror) is not None and (group_mode or given.get(named("groupId")) is None):
        raise OptionError(
            mirror.name, given.text(mirror), "only with 'groupId', and in mode 'offsets'"
        )
    for name in ("maxDeliveries", "deadLetterStream"):
        if given.text(named(name)) is not None and not group_mode:
            raise OptionError(name, given.text(named(name)), "only with mode 'group'")
    both = [given.get(named(name)) is None for name in ("maxDeliveries", "deadLetterStream")]
    if both[0] != both[1]:
        raise OptionError(
            "deadLetterStream" if both[1] else "maxDeliveries", None, "both of them, or none"
        )
    for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
        if streaming and given.text(named(name)) is not None:
            raise OptionError(name, given.text(named(name)), "only in a batch")


_BY_STREAM = (
    *("startingOffsets", "endingOffsets"),
    *("startingOffsetsByTimestamp", "endingOffsetsByTimestamp"),
)
"""Options that may say something about each stream."""


def _server_settings(given: Given) -> ServerSettings:
    client = {name[6:]: value for name, value in given.raw.items() if name.startswith("redis.")}
    parts = [name.lower() for name in ADDRESS]
    address = {name: given.raw[name] for name in parts if name in given.raw}
    if address and "url" in given.raw:
        raise OptionError(next(iter(address)), "given", "not together with 'url'")
    if "timeout" in given.raw:
        client["socket_timeout"] = str(_milliseconds(given.raw["timeout"]) / 1000)
    urls = values.urls(_url(address)) if address else given.get(named("url"))
    return ServerSettings(urls, given.get(named("retries")), client)


def _url(address: Mapping[str, str]) -> str:
    """The URL of what spark-redis gives in parts."""
    scheme = "rediss" if _is_true("ssl", address.get("ssl", "false")) else "redis"
    user, auth = address.get("user"), address.get("auth")
    login = "" if auth is None else f"{quote(user or '', safe='')}:{quote(auth, safe='')}@"
    place = f"{address.get('host', '127.0.0.1')}:{address.get('port', '6379')}"
    return f"{scheme}://{login}{place}/{address.get('dbnum', '0')}"


def _is_true(name: str, value: str) -> bool:
    try:
        return values.boolean(value)
    except ValueError:
        raise OptionError(name, value, "true, false") from None


def _milliseconds(value: str) -> int:
    try:
        return values.whole(1)(value)
    except ValueError:
        raise OptionError("timeout", value, "milliseconds, a whole number from 1") from None
