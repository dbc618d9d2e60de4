"""Settings from what a user gives: options under any of their names, parsed and checked together.

Spark hands options over as strings and ignores the case of their names, and so does this module.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.options import (
    OPTIONS,
    READ,
    Option,
    ReadSettings,
    ServerSettings,
    WriteSettings,
    options_of,
)
from pyspark_redis_streams.values import BOOLEAN, parse_urls, whole

_SPARK = {"checkpointlocation", "queryname", "path", "outputmode"}
"""What Spark itself puts among the options."""

ADDRESS: Final = ("host", "port", "auth", "user", "dbNum", "ssl")
"""The parts of an address in spark-redis's words, which stand in the place of ``url``."""

_SSL: Final = Option("ssl", BOOLEAN)
_TIMEOUT: Final = Option("timeout", whole(1, unit="milliseconds"))

_KNOWN = _SPARK | {name.lower() for name in ADDRESS} | {_TIMEOUT.name}
"""What may be given beside the options of the tables."""

_NAMES = {name.lower(): o for o in reversed(OPTIONS) for name in (o.name, *o.aliases)}


class ParsedOptions:
    """The options that a user gave, under their own names or aliases.

    Raises OptionError for one that does not exist, naming the likeliest meant.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.raw = {name.lower(): value for name, value in options.items()}
        for name in self.raw:
            if name not in _NAMES and name not in _KNOWN and name[:6] != "redis.":
                raise OptionError(name, "not an option", _suggestion(name))

    def check_values(self) -> None:
        """Raises OptionError for the first value that its option does not allow."""
        for name, text in self.raw.items():
            if name in _NAMES:
                _NAMES[name].parsed(text)

    def values(self, settings: type) -> dict[str, Any]:
        """Return the values of the attributes of settings that are options.

        Raises OptionError for a value that is not allowed, and for an alias beside its option.
        """
        return {attribute: self._value(each) for attribute, each in options_of(settings).items()}

    def _value(self, option: Option) -> Any:
        text = self._text(option)
        text = option.default if text is None else text
        return option.missing if text is None else option.parsed(text)

    def _text(self, option: Option) -> str | None:
        """Return the value as it was given, None if it was not."""
        names = [n for n in (option.name, *option.aliases) if n.lower() in self.raw]
        if len(names) > 1:
            raise OptionError(names[1], self.raw[names[1].lower()], f"only one of {names}")
        return self.raw[names[0].lower()] if names else None

    def text(self, name: str) -> str | None:
        """Return the value of the option of that name as it was given, None if it was not."""
        return self._text(_NAMES[name.lower()])

    def refuse(self, name: str, allowed: str) -> None:
        """Raises OptionError if the option of that name was given."""
        if (text := self.text(name)) is not None:
            raise OptionError(name, text, allowed)


def _suggestion(name: str) -> str:
    known = {key: option.name for key, option in _NAMES.items()}
    close = difflib.get_close_matches(name, known, 1, 0.6)
    if close:
        return f"did you mean '{known[close[0]]}'?"
    return ", ".join(sorted({option.name for option in OPTIONS})) + ", redis.*"


# --- settings ----------------------------------------------------------------------------------


def read_settings(options: Mapping[str, str], streaming: bool) -> ReadSettings:
    """Return the settings of a read; raises OptionError."""
    given = ParsedOptions(options)
    settings = ReadSettings(_server_settings(given), streaming, **given.values(ReadSettings))
    _check_streams(settings, given)
    _check_mode(settings, given)
    _check_limits(settings, given)
    _check_places(settings, given)
    if settings.fail_on_loss is not (settings.on_data_loss == "fail"):
        loss = given.text("onDataLoss")
        if loss is not None:
            allowed = str(not settings.fail_on_loss).lower()
            given.refuse("failOnDataLoss", f"{allowed}, or nothing, as 'onDataLoss' is '{loss}'")
    return settings


def write_settings(options: Mapping[str, str]) -> WriteSettings:
    """Return the settings of a write; raises OptionError."""
    given = ParsedOptions(options)
    settings = WriteSettings(_server_settings(given), **given.values(WriteSettings))
    if settings.maxlen is not None:
        given.refuse("minid", "not together with 'maxlen'")
    if settings.idempotence == "off":
        given.refuse("idempotenceColumns", "not with 'idempotence' off")
    if len(settings.servers.urls) > 1:
        raise OptionError("url", "a list", "one server or one cluster, to write to")
    return settings


def _check_streams(settings: ReadSettings, given: ParsedOptions) -> None:
    """Whether there are streams, and no others have a place of their own."""
    if settings.patterns:
        return
    if not settings.subscribe:
        allowed = _NAMES["subscribe"].kind.allowed
        raise OptionError("subscribe", None, f"{allowed}; or 'subscribePattern'")
    starting = settings.starting_offsets
    mentioned: dict[str, Mapping[str, Any]] = {
        "startingOffsets": starting.streams if starting else {},
        "endingOffsets": settings.ending_offsets,
        "startingOffsetsByTimestamp": settings.starting_timestamps,
        "endingOffsetsByTimestamp": settings.ending_timestamps,
    }
    for name, streams in mentioned.items():
        if not streams.keys() <= {*settings.subscribe}:
            given.refuse(name, "streams of 'subscribe'")


def _check_mode(settings: ReadSettings, given: ParsedOptions) -> None:
    group_mode = settings.mode == "group"
    if group_mode and not settings.streaming:
        raise OptionError("mode", "group", "offsets, in a batch")
    for name, value in (("groupId", settings.group), ("consumerName", settings.consumer)):
        if group_mode and value is None:
            allowed = _NAMES[name.lower()].kind.allowed
            raise OptionError(name, None, f"{allowed}; mode 'group' needs it")
    if group_mode or settings.group is None:
        given.refuse("groupIsMirror", "only with 'groupId', and in mode 'offsets'")
    for each in READ:
        if each.only == "group" and not group_mode:
            given.refuse(each.name, "only with mode 'group'")
        if each.only == "batch" and settings.streaming:
            given.refuse(each.name, "only in a batch")
    both = {"maxDeliveries": settings.max_deliveries, "deadLetterStream": settings.dead_letters}
    lacking = [name for name, value in both.items() if value is None]
    if len(lacking) == 1:
        raise OptionError(lacking[0], None, "both of them, or none")


def _check_limits(settings: ReadSettings, given: ParsedOptions) -> None:
    least, most = settings.min_per_trigger, settings.max_per_trigger
    if least is None or (most is not None and least > most):
        for name in ("minOffsetsPerTrigger", "maxTriggerDelay"):
            given.refuse(name, _NAMES[name.lower()].kind.allowed)


def _check_places(settings: ReadSettings, given: ParsedOptions) -> None:
    starting = settings.starting
    if settings.starting_timestamp is not None:
        given.refuse("startingOffsetsByTimestamp", "not with 'startingTimestamp'")
        given.refuse("startingOffsets", "not with 'startingTimestamp'")
    elif starting.times and starting.streams:
        given.refuse("startingOffsetsByTimestamp", "not with a JSON of 'startingOffsets'")
    if starting.otherwise == "group" and settings.group is None:
        raise OptionError("groupId", None, "a group, as 'startingOffsets' is 'group'")
    if starting.otherwise == "latest" and not settings.streaming:
        raise OptionError("startingOffsets", "latest", "earliest, group or JSON in a batch")
    if settings.ending_offsets.keys() & settings.ending_timestamps.keys():
        given.refuse("endingOffsetsByTimestamp", "not with an ID of the same stream")


def _server_settings(given: ParsedOptions) -> ServerSettings:
    client = {name[6:]: value for name, value in given.raw.items() if name.startswith("redis.")}
    parts = [name.lower() for name in ADDRESS]
    address = {name: given.raw[name] for name in parts if name in given.raw}
    if address and "url" in given.raw:
        raise OptionError(next(iter(address)), "given", "not together with 'url'")
    if "timeout" in given.raw:
        client["socket_timeout"] = str(_TIMEOUT.parsed(given.raw["timeout"]) / 1000)
    settings = ServerSettings(**given.values(ServerSettings), client=client)
    return replace(settings, urls=parse_urls(_url(address))) if address else settings


def _url(address: Mapping[str, str]) -> str:
    """Return the URL of what spark-redis gives in parts."""
    scheme = "rediss" if _SSL.parsed(address.get("ssl", "false")) else "redis"
    user, auth = address.get("user"), address.get("auth")
    login = "" if auth is None else f"{quote(user or '', safe='')}:{quote(auth, safe='')}@"
    place = f"{address.get('host', '127.0.0.1')}:{address.get('port', '6379')}"
    return f"{scheme}://{login}{place}/{address.get('dbnum', '0')}"
