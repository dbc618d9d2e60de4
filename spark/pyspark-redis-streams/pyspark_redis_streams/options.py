"""The options of the data source, each declared once: name, kind, default, aliases and meaning.

The settings of a read and of a write are classes whose attributes are options: what a user gives is
parsed, checked and suggested by them (:mod:`pyspark_redis_streams.settings`), and the tables of
docs/spark.md are compared with them. Names are those of Spark's Kafka source where it has one;
spark-redis's are aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from pyspark_redis_streams import values
from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.ids import MAX_ID, before_millisecond, parse_id
from pyspark_redis_streams.values import (
    BOOLEAN,
    MOMENT,
    MOMENT_BY_STREAM,
    URL_FORMS,
    Kind,
    ServerUrl,
    Starting,
    choice,
    parse_urls,
    size,
    text,
    whole,
)


@dataclass(frozen=True)
class Option:
    """An option; the ``default`` and what the kind allows are texts for people as well."""

    name: str
    kind: Kind
    meaning: str = ""
    default: str | None = None
    aliases: tuple[str, ...] = ()
    otherwise: str = ""
    """In words, what holds if it is not given and there is no default."""
    missing: Any = None
    """The value if it is not given and there is no default."""
    only: str = ""
    """The use that it is limited to: ``batch``, ``group`` for mode ``group``, or everything."""

    def parsed(self, text: str) -> Any:
        """Return the value of a text; raises OptionError for one that is not allowed."""
        try:
            return self.kind.parse(text)
        except ValueError as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(self.name, text, self.kind.allowed) from None


def option(name: str, kind: Kind, meaning: str, *aliases: str, **more: Any) -> Any:
    """Declare an attribute of settings that gets the value of an option."""
    return field(metadata={"option": Option(name, kind, meaning, aliases=aliases, **more)})


def options_of(settings: type) -> dict[str, Option]:
    """Return the options of settings, by the attributes that get their values."""
    return {f.name: f.metadata["option"] for f in fields(settings) if "option" in f.metadata}


@dataclass(frozen=True)
class ServerSettings:
    """How to reach the servers. What is secret does not show in its text."""

    urls: tuple[ServerUrl, ...] = option(
        "url",
        Kind(parse_urls, URL_FORMS),
        "The server, the servers (comma between them) or the cluster.",
        default="redis://127.0.0.1:6379/0",
    )
    retries: int = option(
        "retries",
        whole(0),
        "How often a command is tried again while the server can't be reached, after 0.1 to 2 s.",
        default="5",
    )
    client: Mapping[str, str] = field(repr=False, default_factory=dict)
    """Keyword arguments of redis-py's client, from the options ``redis.*``, still as text."""

    def label(self, server: int) -> str:
        """Return the name of a server in offsets: empty if it is the only one.

        So a query goes on from its checkpoint when the only URL is changed.
        """
        return self.urls[server].label if len(self.urls) > 1 else ""


@dataclass(frozen=True)
class ReadSettings:
    """Says what to read, in a query that is ``streaming`` or in a batch."""

    servers: ServerSettings
    streaming: bool
    subscribe: tuple[str, ...] = option(
        "subscribe",
        Kind(values.names, 'stream names separated by commas, or a JSON list as ["a,b", "c"]'),
        "The streams to read. A stream need not be there yet.",
        *("stream.keys", "path"),
        missing=(),
    )
    patterns: tuple[str, ...] = option(
        "subscribePattern",
        Kind(
            values.names, "glob patterns of keys, as orders:*, separated by commas, or a JSON list"
        ),
        "Every stream whose key matches; those created later are read from their first entry.",
        missing=(),
    )
    starting_offsets: Starting | None = option(  # noqa: RUF009  (it declares a field)
        "startingOffsets",
        Kind(
            values.starting,
            'earliest, latest, group, or JSON as {"stream": "earliest" or "latest" or an ID that '
            "is the last one not to be read}",
        ),
        "Where to begin when there is no checkpoint. `group` is the position of `groupId`.",
        "stream.offsets",
        otherwise="latest; in a batch earliest",
    )
    ending_offsets: Mapping[str, int] = option(
        "endingOffsets",
        Kind(values.ending, 'latest, or JSON as {"stream": the last ID to be read}'),
        "Where a batch ends.",
        default="latest",
        only="batch",
    )
    starting_timestamp: int | None = option(
        "startingTimestamp",
        MOMENT,
        "Begin with the first entry that is not older, instead of `startingOffsets`.",
    )
    starting_timestamps: Mapping[str, int] = option(
        "startingOffsetsByTimestamp",
        MOMENT_BY_STREAM,
        "The same for single streams; the others as `startingOffsets` says.",
        missing={},
    )
    ending_timestamps: Mapping[str, int] = option(
        "endingOffsetsByTimestamp",
        MOMENT_BY_STREAM,
        "The same for single streams; the others as `endingOffsets` says.",
        missing={},
        only="batch",
    )
    ending_timestamp: int | None = option(
        "endingTimestamp",
        MOMENT,
        "End a batch before the first entry that is not older, instead of `endingOffsets`.",
        only="batch",
    )
    max_per_trigger: int | None = option(
        "maxOffsetsPerTrigger",
        whole(1),
        "The most entries of a micro-batch, shared among streams by their lag, one each at least.",
    )
    max_bytes_per_trigger: int | None = option(
        "maxBytesPerTrigger",
        size("bytes, as 1000000, 64k, 100m or 1g"),
        "The most bytes of names and values in a micro-batch, shared in the same way.",
    )
    min_per_trigger: int | None = option(
        "minOffsetsPerTrigger",
        Kind(whole(1).parse, "a whole number from 1, up to 'maxOffsetsPerTrigger'"),
        "A micro-batch waits for that many entries, at most for `maxTriggerDelay`.",
    )
    max_trigger_delay: float = option(
        "maxTriggerDelay",
        Kind(
            values.duration,
            "a time with its unit, as 500ms, 10s or 15m, with 'minOffsetsPerTrigger'",
        ),
        "How long it waits, counted from the batch before.",
        default="15m",
    )
    min_partitions: int | None = option(
        "minPartitions",
        whole(1),
        "Long streams are split until there are that many tasks.",
        "stream.parallelism",
        otherwise="number of streams",
    )
    max_partitions: int | None = option(
        "maxPartitions",
        whole(1),
        "Streams are combined until there are no more tasks.",
    )
    on_data_loss: str = option(
        "onDataLoss",
        choice("fail", "continue"),
        "When entries were removed unread: `fail`, or `continue` with a warning that counts them.",
        default="fail",
    )
    fail_on_data_loss: bool | None = option(
        "failOnDataLoss",
        BOOLEAN,
        "`onDataLoss` by another name: `false` is `continue`.",
    )
    mode: str = option(
        "mode",
        choice("offsets", "group"),
        "Who keeps the position: the checkpoint, or a consumer `group`.",
        default="offsets",
    )
    group: str | None = option(
        "groupId",
        text("the name of a consumer group"),
        "Mode `offsets`: a group that is moved along, to make the lag visible. Mode `group`, "
        "required: the group to read with.",
        "stream.group.name",
    )
    group_is_mirror: bool = option(
        "groupIsMirror",
        BOOLEAN,
        "Mode `offsets`: the group is this query's to move, even if it has consumers, or stands "
        "elsewhere.",
        default="false",
    )
    consumer: str | None = option(
        "consumerName",
        text("a name that no other query of this group has, the same at every restart"),
        "Mode `group`, required: batch 7 is the consumer `name-7`.",
        "stream.consumer.prefix",
    )
    claim_min_idle_ms: int = option(
        "claimMinIdleMs",
        whole(0, unit="milliseconds"),
        "Mode `group`: entries pending for that long with another consumer are claimed.",
        default="60000",
    )
    max_deliveries: int | None = option(
        "maxDeliveries",
        whole(1),
        "Mode `group`: entries delivered more often go to `deadLetterStream`.",
        only="group",
    )
    dead_letters: str | None = option(
        "deadLetterStream",
        text("the name of a stream"),
        "Required with `maxDeliveries`.",
        only="group",
    )
    fetch_count: int = option(
        "fetchCount",
        whole(1),
        "Entries to ask for at once.",
        "stream.read.batch.size",
        default="1000",
    )
    fetch_bytes: int = option(
        "fetchBytes",
        size("bytes up to 1g, as 1000000, 64k or 16m", 1 << 30),
        "About how many bytes to ask for, and to give to Spark, at once.",
        default="16m",
    )
    fields_format: str = option(
        "fieldsFormat",
        choice("map", "array"),
        "`map` or `array`: see [columns](#columns).",
        default="map",
    )
    id_columns: bool = option(
        "idColumns",
        BOOLEAN,
        "Adds the columns `ms` and `seq`.",
        default="false",
    )
    poll_interval_ms: int = option(
        "pollIntervalMs",
        whole(0, unit="milliseconds"),
        "How often an idle query asks for new entries.",
        "stream.read.block",
        default="100",
    )
    pattern_interval_ms: int = option(
        "patternIntervalMs",
        whole(0, unit="milliseconds"),
        "How often a query looks for new streams of `subscribePattern`.",
        default="5000",
    )

    @property
    def starting(self) -> Starting:
        """Where the streams begin without a checkpoint."""
        if self.starting_timestamp is not None:
            return Starting("timestamp", {"": before_millisecond(self.starting_timestamp)})
        found = self.starting_offsets or Starting("latest" if self.streaming else "earliest")
        return replace(found, times=_ids_before(self.starting_timestamps))

    @property
    def ending(self) -> Mapping[str, int]:
        """The last ID to be read of each stream that does not end where it ends."""
        return {**self.ending_offsets, **_ids_before(self.ending_timestamps)}

    @property
    def not_after(self) -> int:
        """The last ID to be read of any stream."""
        time = self.ending_timestamp
        return MAX_ID if time is None else before_millisecond(time)

    @property
    def fail_on_loss(self) -> bool:
        """Whether the query fails when entries were removed before they were read."""
        asked = self.fail_on_data_loss
        return self.on_data_loss == "fail" if asked is None else asked


def _ids_before(times: Mapping[str, int]) -> dict[str, int]:
    return {stream: before_millisecond(time) for stream, time in times.items()}


@dataclass(frozen=True)
class WriteSettings:
    """How to write."""

    servers: ServerSettings
    stream: str | None = option(
        "stream",
        text("the name of a stream"),
        "Where all rows go; without it the column `stream` says so for each.",
        "path",
    )
    maxlen: int | None = option(
        "maxlen", whole(0), "Each write trims the stream to that many entries."
    )
    minid: int | None = option(
        "minid",
        Kind(parse_id, "an ID as 1700000000000-0"),
        "Each write removes entries with lower IDs.",
    )
    approximate: bool = option(
        "approximate",
        BOOLEAN,
        "Trimming may leave a few entries more, which is much cheaper.",
        default="true",
    )
    idempotence: str = option(
        "idempotence",
        choice("auto", "required", "off"),
        "Whether a repeated batch adds nothing twice: `auto` if the server can, `required` or else "
        "fail, `off` never.",
        default="auto",
    )
    idempotence_columns: tuple[str, ...] | None = option(
        "idempotenceColumns",
        Kind(values.names, "columns separated by commas, or a JSON list"),
        "Columns that identify a row within the query; they are not written.",
    )
    idempotence_seconds: int = option(
        "idempotenceSeconds",
        whole(1, 86400),
        "The longest outage after which a batch can be repeated without adding rows twice.",
        default="86400",
    )
    count: int = option("writeCount", whole(1), "Entries to send at once.", default="1000")


SERVER: Final = tuple(options_of(ServerSettings).values())
READ: Final = tuple(options_of(ReadSettings).values())
WRITE: Final = tuple(options_of(WriteSettings).values())
OPTIONS: Final = SERVER + READ + WRITE
