"""The options of the data source: every name, alias, default and allowed value.

Names are those of Spark's Kafka source where it has one; spark-redis's are aliases. Spark hands
options over as strings and ignores the case of their names, and so does this module.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pyspark_redis_streams import values
from pyspark_redis_streams.errors import OptionError

T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One option; ``default`` and ``allowed`` are texts for people as well.

    ``setting`` is the attribute of the settings that gets the value as it is; options without one
    are read together with others (:mod:`pyspark_redis_streams.settings`).
    """

    name: str
    default: str | None
    parse: Callable[[str], Any]
    allowed: str
    aliases: tuple[str, ...] = ()
    meaning: str = ""
    setting: str | None = None


SERVER: Final = (
    Option(
        "url",
        "redis://127.0.0.1:6379/0",
        values.urls,
        values.URL_FORMS,
        meaning="The server, the servers (comma between them) or the cluster.",
    ),
    Option(
        "retries",
        "5",
        values.whole(0),
        "a whole number from 0",
        meaning="How often a command is tried again when the server can't be reached; the pauses "
        "grow from 0.1 to 2 seconds.",
    ),
)
READ: Final = (
    Option(
        "subscribe",
        None,
        values.names,
        'stream names separated by commas, or a JSON list as ["a,b", "c"]',
        ("stream.keys", "path"),
        "The streams to read. A stream need not be there yet.",
    ),
    Option(
        "subscribePattern",
        None,
        values.names,
        "glob patterns of keys, as orders:*, separated by commas, or a JSON list",
        meaning="Every stream whose key matches, also those that are created later: these are "
        "read from their first entry.",
    ),
    Option(
        "startingOffsets",
        "latest; in a batch earliest",
        values.starting,
        'earliest, latest, group, or JSON as {"stream": "earliest" or "latest" or an ID that is '
        "the last one not to be read}",
        ("stream.offsets",),
        "Where to begin when there is no checkpoint. `group` is the position of `groupId`.",
    ),
    Option(
        "endingOffsets",
        "latest",
        values.ending,
        'latest, or JSON as {"stream": the last ID to be read}',
        meaning="Where a batch ends.",
    ),
    Option(
        "startingTimestamp",
        None,
        values.timestamp,
        "Unix milliseconds, or an ISO 8601 time with its offset from UTC",
        meaning="Begin with the first entry that is not older, instead of `startingOffsets`.",
    ),
    Option(
        "startingOffsetsByTimestamp",
        None,
        values.timestamps,
        'JSON as {"stream": Unix milliseconds, or an ISO 8601 time with its offset from UTC}',
        meaning="Begin these streams with the first entry that is not older; the others as "
        "`startingOffsets` says.",
    ),
    Option(
        "endingOffsetsByTimestamp",
        None,
        values.timestamps,
        'JSON as {"stream": Unix milliseconds, or an ISO 8601 time with its offset from UTC}',
        meaning="End a batch in these streams before the first entry that is not older; in the "
        "others as `endingOffsets` says.",
    ),
    Option(
        "endingTimestamp",
        None,
        values.timestamp,
        "Unix milliseconds, or an ISO 8601 time with its offset from UTC",
        meaning="End a batch before the first entry that is not older, instead of `endingOffsets`.",
    ),
    Option(
        "maxOffsetsPerTrigger",
        None,
        values.whole(1),
        "a whole number from 1",
        meaning="The most entries of a micro-batch, shared among the streams by their lag; each "
        "that has any gets one at least.",
        setting="max_per_trigger",
    ),
    Option(
        "maxBytesPerTrigger",
        None,
        values.size(1),
        "bytes, as 1000000, 64k, 100m or 1g",
        meaning="The most bytes of names and values in a micro-batch, shared in the same way; an "
        "entry of each stream is taken however large it is.",
        setting="max_bytes_per_trigger",
    ),
    Option(
        "minOffsetsPerTrigger",
        None,
        values.whole(1),
        "a whole number from 1, up to 'maxOffsetsPerTrigger'",
        meaning="A micro-batch waits for that many entries, but not longer than `maxTriggerDelay`.",
        setting="min_per_trigger",
    ),
    Option(
        "maxTriggerDelay",
        "15m",
        values.duration,
        "a time with its unit, as 500ms, 10s or 15m, with 'minOffsetsPerTrigger'",
        meaning="How long after the batch before a micro-batch waits for `minOffsetsPerTrigger`.",
        setting="max_trigger_delay",
    ),
    Option(
        "minPartitions",
        "number of streams",
        values.whole(1),
        "a whole number from 1",
        ("stream.parallelism",),
        "Long streams are cut until there are that many tasks.",
        setting="min_partitions",
    ),
    Option(
        "maxPartitions",
        None,
        values.whole(1),
        "a whole number from 1",
        meaning="Streams are put together until there are no more tasks than that.",
        setting="max_partitions",
    ),
    Option(
        "onDataLoss",
        "fail",
        values.choice("fail", "continue"),
        "fail, continue",
        meaning="What to do when entries were removed before they were read: fail, or go on with "
        "what is there and say in a warning how many they were.",
    ),
    Option(
        "failOnDataLoss",
        None,
        values.boolean,
        "true, false",
        meaning="`onDataLoss` by another name: `false` is `continue`.",
    ),
    Option(
        "mode",
        "offsets",
        values.choice("offsets", "group"),
        "offsets, group",
        meaning="Who keeps the position: the checkpoint, or a consumer group that is shared with "
        "other consumers.",
        setting="mode",
    ),
    Option(
        "groupId",
        None,
        values.text,
        "the name of a consumer group",
        ("stream.group.name",),
        "Mode `offsets`: a group that is moved along, to make the lag visible; without it nothing "
        "is written. Mode `group`: the group to read with, required.",
        setting="group",
    ),
    Option(
        "groupIsMirror",
        "false",
        values.boolean,
        "true, false",
        meaning="Mode `offsets`: the group is this query's to move, even if it has consumers, or "
        "stands where this query has not left it.",
        setting="group_is_mirror",
    ),
    Option(
        "consumerName",
        None,
        values.text,
        "a name that no other query of this group has, the same at every restart",
        ("stream.consumer.prefix",),
        "Mode `group`, required: batch 7 is the consumer `name-7`.",
        setting="consumer",
    ),
    Option(
        "claimMinIdleMs",
        "60000",
        values.whole(0),
        "milliseconds, a whole number from 0",
        meaning="Mode `group`: entries that another consumer has left pending for that long are "
        "taken over.",
        setting="claim_min_idle_ms",
    ),
    Option(
        "maxDeliveries",
        None,
        values.whole(1),
        "a whole number from 1",
        meaning="Mode `group`: entries delivered more often go to `deadLetterStream` instead of "
        "into the batch.",
        setting="max_deliveries",
    ),
    Option(
        "deadLetterStream",
        None,
        values.text,
        "the name of a stream",
        meaning="Mode `group`: where such entries go; required with `maxDeliveries`.",
        setting="dead_letters",
    ),
    Option(
        "fetchCount",
        "1000",
        values.whole(1),
        "a whole number from 1",
        ("stream.read.batch.size",),
        "Entries that are asked for at once.",
        setting="fetch_count",
    ),
    Option(
        "fetchBytes",
        "16m",
        values.size(1, 1 << 30),
        "bytes up to 1g, as 1000000, 64k or 16m",
        meaning="About how many bytes are asked for at once, and given to Spark at once: large "
        "entries are fewer than `fetchCount`.",
        setting="fetch_bytes",
    ),
    Option(
        "fieldsFormat",
        "map",
        values.choice("map", "array"),
        "map, array",
        meaning="`map`: a field that an entry holds twice has its last value. `array`: all fields "
        "in their order, names as bytes.",
        setting="fields_format",
    ),
    Option(
        "idColumns",
        "false",
        values.boolean,
        "true, false",
        meaning="Adds the columns `ms` and `seq`, the two numbers of the ID, by which rows sort.",
        setting="id_columns",
    ),
    Option(
        "pollIntervalMs",
        "100",
        values.whole(0),
        "milliseconds, a whole number from 0",
        ("stream.read.block",),
        "How often an idle query asks for new entries.",
        setting="poll_interval_ms",
    ),
    Option(
        "patternIntervalMs",
        "5000",
        values.whole(0),
        "milliseconds, a whole number from 0",
        meaning="How often a query looks for new streams of `subscribePattern`.",
        setting="pattern_interval_ms",
    ),
)
WRITE: Final = (
    Option(
        "stream",
        None,
        values.text,
        "the name of a stream",
        ("path",),
        "Where all rows go; without it the column `stream` says so for each.",
        setting="stream",
    ),
    Option(
        "maxlen",
        None,
        values.whole(0),
        "a whole number from 0",
        meaning="Each write trims the stream to that many entries.",
        setting="maxlen",
    ),
    Option(
        "minid",
        None,
        values.stream_id,
        "an ID as 1700000000000-0",
        meaning="Each write removes entries with lower IDs.",
        setting="minid",
    ),
    Option(
        "approximate",
        "true",
        values.boolean,
        "true, false",
        meaning="Whether trimming may leave a few entries more, which is much cheaper.",
        setting="approximate",
    ),
    Option(
        "idempotence",
        "auto",
        values.choice("auto", "required", "off"),
        "auto, required, off",
        meaning="Whether a repeated batch adds nothing twice, by idempotent IDs or by a marker "
        "beside the stream: if the server can, or else fail, or never.",
        setting="idempotence",
    ),
    Option(
        "idempotenceColumns",
        None,
        values.names,
        "columns separated by commas, or a JSON list",
        meaning="Columns that tell a row from every other of the query, as the stream and ID of "
        "the entry it was made of. It is known by them when it comes again, and they are not "
        "written.",
        setting="idempotence_columns",
    ),
    Option(
        "idempotenceSeconds",
        "86400",
        values.whole(1, 86400),
        "a whole number from 1 to 86400",
        meaning="For how long a stream remembers idempotent IDs at least, and a marker stays: the "
        "longest outage after which a batch can be repeated.",
        setting="idempotence_seconds",
    ),
    Option(
        "writeCount",
        "1000",
        values.whole(1),
        "a whole number from 1",
        meaning="Entries that are sent at once.",
        setting="count",
    ),
)
OPTIONS: Final = SERVER + READ + WRITE

_SPARK = {"checkpointlocation", "queryname", "path", "outputmode"}
"""What Spark itself puts among the options."""

ADDRESS: Final = ("host", "port", "auth", "user", "dbNum", "ssl")
"""The parts of an address in spark-redis's words, which stand in the place of ``url``."""

_KNOWN = _SPARK | {name.lower() for name in ADDRESS} | {"timeout"}
"""What may be given beside the options of the table."""

_NAMES = {name.lower(): o for o in reversed(OPTIONS) for name in (o.name, *o.aliases)}


class Given:
    """The options that a user gave, under their own names or aliases.

    Raises OptionError for one that does not exist, naming the likeliest meant.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.raw = {name.lower(): value for name, value in options.items()}
        for name in self.raw:
            if name not in _NAMES and name not in _KNOWN and name[:6] != "redis.":
                raise OptionError(name, "not an option", _suggestion(name))

    def get(self, option: Option) -> Any:
        """The parsed value, or that of the default; None if there is neither.

        Raises OptionError for a value that is not allowed, and for an alias beside its option.
        """
        text = self.text(option)
        if text is None:
            return None if option.default is None else self._default(option)
        return self._parsed(option, text)

    def check_values(self) -> None:
        """Raises OptionError for the first value that its option does not allow."""
        for name, text in self.raw.items():
            if name in _NAMES:
                self._parsed(_NAMES[name], text)

    @staticmethod
    def _parsed(option: Option, text: str) -> Any:
        try:
            return option.parse(text)
        except ValueError as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(option.name, text, option.allowed) from None

    def text(self, option: Option) -> str | None:
        """The value as it was given, None if it was not."""
        names = [n for n in (option.name, *option.aliases) if n.lower() in self.raw]
        if len(names) > 1:
            raise OptionError(names[1], self.raw[names[1].lower()], f"only one of {names}")
        return self.raw[names[0].lower()] if names else None

    @staticmethod
    def _default(option: Option) -> Any:
        try:
            return option.parse(option.default or "")
        except ValueError:
            # A default in words depends on what is read: the caller knows.
            return None


def named(name: str, options: tuple[Option, ...] = OPTIONS) -> Option:
    """The option of that name."""
    return next(option for option in options if option.name == name)


def _suggestion(name: str) -> str:
    known = {key: option.name for key, option in _NAMES.items()}
    close = difflib.get_close_matches(name, known, 1, 0.6)
    if close:
        return f"did you mean '{known[close[0]]}'?"
    return ", ".join(sorted({option.name for option in OPTIONS})) + ", redis.*"
