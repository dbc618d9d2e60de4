"""Failures of a pipeline, sorted into those that a retry may mend and those that stay.

What stays ends a run at once: a wrong password is wrong four times as well. An error of which
nothing is known counts as worth a retry. This module works without Spark.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Final

from penstock.pipeline.errors import reason

_OWN: Final = re.compile(r"(?:pyspark_redis_streams|penstock\.pipeline)\.errors\.(\w+)")
_SPARK: Final = re.compile(r"\[([A-Z][A-Z_0-9]+(?:\.[A-Z_0-9]+)*)\]")
_WRAPPERS: Final = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"}
_JAVA: Final = re.compile(r"(?:^Caused by|^): ([\w.$]+(?:Exception|Error))\b", re.MULTILINE)
_PYTHON: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception))\b", re.MULTILINE)

HOPELESS: Final = (
    *("OptionError", "SchemaError", "NotWritable"),
    *("AnalysisException", "ParseException"),
)
"""Errors of the file, and rows that do not fit a table: wherever they stand in the traces, every
attempt ends in them."""

NEVER: Final = frozenset(
    (
        *("DataLossError", "ModuleNotFoundError", "ImportError", "PermissionError"),
        *("ClassNotFoundException", "NoClassDefFoundError", "AccessControlException"),
    )
)
"""Classes of errors that come again with every attempt."""

_NEVER_TEXT: Final = re.compile(
    "|".join(
        (
            # What a server for streams refuses, unless it is one of `_PASSING`.
            r" refuses: ",
            r"\b(?:NOGROUP|WRONGTYPE|NOPERM|NOAUTH|WRONGPASS|NOPROTO)\b",
            r"can't be read as a stream",
            r"older than Redis 7",
            # TLS.
            r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|WRONG_VERSION_NUMBER",
            r"does the server speak TLS",
            # Databases and Java.
            r"No suitable driver|driver class|the Java class|no driver for this URL",
            r"password authentication failed|Access denied for user|authentication failed",
            r"no such table|relation \S+ does not exist|[Tt]able \S+ (?:does not|doesn't) exist",
            r"[Uu]nknown database|database \S+ does not exist",
            r"Permission denied",
        )
    )
)
_PASSING: Final = re.compile(
    r"\b(?:LOADING|BUSY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|READONLY|OOM|MISCONF|NOREPLICAS)\b"
    r"|max number of clients|UNBLOCKED"
)
"""Refusals of a server that it may take back: it loads, it fails over, its memory is full."""

_DATA: Final = re.compile(
    r"DIVIDE_BY_ZERO|CAST_INVALID_INPUT|CAST_OVERFLOW|ARITHMETIC_OVERFLOW|NUMERIC_VALUE_OUT_OF"
    r"|INVALID_ARRAY_INDEX|CANNOT_PARSE_TIMESTAMP"
)
"""What the SQL of a pipeline makes of the values of an entry, whenever it gets them."""


@dataclass(frozen=True)
class Failure:
    """A failed attempt of a query; ``query`` is None for what concerns the run as a whole."""

    time: str
    query: str | None
    attempt: int
    attempts: int
    error: str
    retry: bool
    pause_s: float
    message: str

    def record(self, pipeline: str) -> str:
        """A line of JSON."""
        return json.dumps({"kind": "failure", "pipeline": pipeline, **asdict(self)})

    def line(self) -> str:
        """A line for people."""
        text = f"{self.query}: {self.message}" if self.query else self.message
        if self.retry:
            return f"{text}; attempt {self.attempt} of {self.attempts} follows"
        return text


def error_class(error: BaseException) -> str:
    """The name of the innermost error in what Spark raises: its class, or Spark's condition."""
    text = str(error)
    if own := _OWN.findall(text):
        return str(own[-1])
    if spark := [name for name in _SPARK.findall(text) if name not in _WRAPPERS]:
        return str(spark[0])
    if java := _JAVA.findall(text):
        return str(java[-1]).rpartition(".")[2]
    if python := _PYTHON.findall(text):
        return str(python[-1]).rpartition(".")[2]
    return type(error).__name__


def worth_retry(error: BaseException, poison_counts: bool = False) -> bool:
    """Whether another attempt may succeed.

    ``poison_counts`` says that each attempt counts as a delivery (mode ``group`` with
    ``maxDeliveries``), so that entries that fail become dead letters in the end.
    """
    text = f"{type(error).__name__}: {error}"
    if error_class(error) in NEVER or any(name in text for name in HOPELESS):
        return False
    said = reason(error)
    if _PASSING.search(said):
        return True
    if _DATA.search(said):
        return poison_counts
    return not _NEVER_TEXT.search(said)


def failure_of(
    time: str,
    query: str | None,
    error: BaseException,
    attempt: int,
    attempts: int,
    pause_s: float,
    poison_counts: bool = False,
) -> Failure:
    """What to tell about an error after so many failed attempts in a row; without its traces."""
    again = attempt <= attempts and worth_retry(error, poison_counts)
    return Failure(
        time=time,
        query=query,
        attempt=attempt,
        attempts=attempts,
        error=error_class(error),
        retry=again,
        pause_s=pause_s if again else 0.0,
        message=reason(error),
    )


def now_text() -> str:
    """The present time, as Spark writes it in its reports."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
