"""The model of a pipeline file after it has been read and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock_pipeline.sinks.base import Sink

FORMATS: Final = ("json", "avro", "protobuf", "csv", "text", "debezium")
MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Registry:
    """Where schemas are registered. ``ca`` is the text of certificates that are trusted."""

    url: str = dataclasses.field(repr=False)
    user: str | None = dataclasses.field(default=None, repr=False)
    password: str | None = dataclasses.field(default=None, repr=False)
    timeout_s: float = 10.0
    ca: str | None = dataclasses.field(default=None, repr=False)


@dataclass(frozen=True)
class Payload:
    """A field whose value is decoded, and how; without a name it is the last one of each entry.

    ``schema`` is the text of an Avro schema; ``descriptors`` are the bytes of a set of descriptors
    of Protobuf. Files are read with the pipeline file, since workers may be on other machines.
    """

    format: str
    field: str
    compression: str | None = None
    max_bytes: int = MAX_BYTES
    header: tuple[str, ...] = ()
    delimiter: str = ","
    quote: str = '"'
    schema: str | None = None
    descriptors: bytes | None = dataclasses.field(default=None, repr=False)
    message: str | None = None
    registry: Registry | None = None

    @property
    def source(self) -> str:
        """Name the field for people."""
        return f"field '{self.field}'" if self.field else "the last field"


ENTRIES: Final = "entries"
"""The first table: the parsed entries of the source."""

DEAD_LETTERS: Final = "dead-letters"
"""The name of the query that writes what does not parse, beside those of the sinks."""


EVERY: Final = "1 second"
"""How often a query looks for new entries unless the file says it."""

FILES_EVERY: Final = "1 minute"
"""The same where each batch makes files: at 20 entries a second a batch a second is dust."""


LETTER: Final = "dead_letter"
DROP: Final = "drop"
WARN: Final = "warn"
FAIL: Final = "fail"


@dataclass(frozen=True)
class Expectation:
    """A condition of SQL that rows should meet, and what becomes of one that does not."""

    condition: str
    otherwise: str


@dataclass(frozen=True)
class Column:
    """A column of the parsed table, and the field or JSON member that it is made of."""

    name: str
    type: str
    origin: str
    required: bool = False
    format: str | None = None
    expect: Expectation | None = None

    @property
    def what(self) -> str:
        """Name the kind of value that is needed, for messages."""
        if self.format is None:
            return self.type.lower()
        return f"{self.type.lower()} as {self.format}"


@dataclass(frozen=True)
class Parse:
    """How an entry becomes a row: of its plain fields, or of the payload in one of them.

    ``unknown`` is the column for what is there and has no column.
    """

    columns: tuple[Column, ...]
    payload: Payload | None = None
    nulls: tuple[str, ...] = ()
    unknown: str | None = None

    @property
    def json(self) -> str | None:
        """The field with JSON, None for other formats."""
        is_json = self.payload is not None and self.payload.format == "json"
        return self.payload.field if self.payload is not None and is_json else None


@dataclass(frozen=True)
class Watermark:
    """A watermark: how late rows may come, by a column of times.

    An entry whose time is more than ``ahead`` after the entry was added is a dead letter: one time
    from the future would move the watermark past all others. That it was added in the future, as
    its ID may say, does not count.
    """

    column: str
    delay: str
    ahead: str | None = None


@dataclass(frozen=True)
class Deduplicate:
    """Drops rows with the same keys that come within the watermark's delay."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class Transform:
    """A table that SQL makes of others; the other settings apply to the table ``origin`` first."""

    name: str
    origin: str
    sql: str
    sql_line: int
    watermark: Watermark | None = None
    deduplicate: Deduplicate | None = None
    expect: Expectation | None = None


@dataclass(frozen=True)
class StaticTable:
    """A table that does not stream: a file, a folder, or a table of the database ``place``.

    ``is_reread`` says that each batch sees it as it is then, and not as it was at the start.
    """

    name: str
    kind: str
    place: str
    is_reread: bool = False
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Retry:
    """How often a query is restarted that failed without having made progress, and when."""

    attempts: int = 3
    pause_s: float = 5.0


@dataclass(frozen=True)
class Pipeline:
    """A whole pipeline file. Options may hold credentials, so its ``repr`` leaves them out."""

    name: str
    file: Path
    source: Mapping[str, str] = field(repr=False)
    parse: Parse | None
    dead_letters: Sink | None
    transforms: tuple[Transform, ...]
    sinks: tuple[Sink, ...]
    checkpoint: str
    every: str | None
    metrics: str | None
    retry: Retry
    master: str | None
    spark: Mapping[str, str] = field(repr=False)
    log_level: str = "OFF"
    tables: tuple[StaticTable, ...] = ()

    @property
    def mode(self) -> str:
        """Who keeps the position: ``offsets`` or ``group``."""
        return self.source.get("mode", "offsets").lower()

    def interval(self, output: Sink | None = None) -> str:
        """How often the query of an output looks for entries; without one, that of all outputs.

        Unless the file says it, sinks of files take a minute, since every batch is a folder of
        files, and others a second. Dead letters keep up with the fastest sink.
        """
        if self.every is not None:
            return self.every
        if output is None:
            return FILES_EVERY if any(sink.writes_files for sink in self.sinks) else EVERY
        if output.name == DEAD_LETTERS:
            return FILES_EVERY if all(sink.writes_files for sink in self.sinks) else EVERY
        return FILES_EVERY if output.writes_files else EVERY

    @property
    def letters(self) -> str | None:
        """Return the stream of dead letters, None if there is none."""
        dead = self.dead_letters
        return dead.place if dead else self.source.get("deadLetterStream")

    @property
    def outputs(self) -> tuple[Sink, ...]:
        """All sinks, including that of the dead letters."""
        return self.sinks if self.dead_letters is None else (*self.sinks, self.dead_letters)
