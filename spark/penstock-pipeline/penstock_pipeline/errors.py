"""Errors: what this package raises, what Spark makes of it, and what is worth another attempt.

A failure that stays ends a run at once: a wrong password is wrong four times as well. An error of
which nothing is known counts as worth a retry. This module works without Spark.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from penstock_pipeline.extras import extra_missing


class PipelineError(Exception):
    """The one kind of error that this package raises on purpose."""


class NotStarted(PipelineError):
    """A query that Spark did not start; ``cause`` is its error."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NotWritable(PipelineError):
    """Rows that a sink can't take, which another attempt would not change."""


@dataclass(frozen=True, order=True)
class Problem:
    """Something wrong in a file: the line (from 1; 0 if there is none), the key, and what."""

    line: int
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.key}: {self.text}" if self.key else self.text


class InvalidFile(PipelineError):
    """A pipeline file with problems; the message has a line for each."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(f"{file}:{p.line or 1}: {p}" for p in self.problems))


RAISED: Final = "USER_RAISED_EXCEPTION"
"""What Spark calls the error of SQL that raises one itself."""

_OWN: Final = re.compile(r"(?:pyspark_redis_streams\.errors|penstock_pipeline\.errors)\.\w+: (.+)")
_PYTHON: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception)): (.+)", re.MULTILINE)
_SPARK: Final = re.compile(r"\[[A-Z_.0-9]+\] .+")
_RAISED: Final = re.compile(rf"^\[{RAISED}\] (.*?)(?: SQLSTATE: \w+)?$")
_WRAPPERS: Final = re.compile(r"\[(?:STREAM_FAILED|FOREACH_BATCH_USER_FUNCTION_ERROR)\]")
_JAVA: Final = re.compile(r"(?:^Caused by|^): ([\w.$]+): (.+)", re.MULTILINE)
JARS: Final = "name its jar in 'spark.jars' or 'spark.jars.packages' of [spark.conf]"
"""What to do about a class of Java that is missing."""

LATE_WORKER: Final = "Python worker failed to connect back"
"""What Spark says of a Python process that has not answered within ten seconds of its start."""

_LATE: Final = (
    "a Python process that Spark has started did not answer within ten seconds, which is all that "
    "Spark gives it: the machine has too much to do"
)


def reason(error: BaseException) -> str:
    """The line of an error of Spark that says what happened, without its traces.

    Spark wraps what a source or a task raises in the traces of two languages.
    """
    text = str(error)
    own = _OWN.findall(text)
    if own:
        return str(own[-1])
    if LATE_WORKER in text:
        return _LATE
    spark = [line for line in _SPARK.findall(text) if not _WRAPPERS.match(line)]
    if spark:
        return _RAISED.sub(r"\1", str(spark[0]).rstrip(";"))
    java = _JAVA.findall(text)
    if java:
        return _said_by_java(*java[-1])
    python = [": ".join(found) for found in _PYTHON.findall(text)]
    return python[-1] if python else text.strip().splitlines()[0] if text.strip() else repr(error)


def is_late_worker(error: BaseException) -> bool:
    """Whether a Python process did not answer in time after its start."""
    return LATE_WORKER in str(error)


def _said_by_java(kind: str, text: str) -> str:
    if kind.endswith(("ClassNotFoundException", "NoClassDefFoundError")):
        return f"the Java class '{text.replace('/', '.')}' is missing: {JARS}"
    return text


class Undecodable(ValueError):
    """A value that makes its entry a dead letter; the message goes on behind the field's name."""


class Unavailable(PipelineError):
    """Something that decoding needs is not there now; the batch fails and is tried again."""


def need(module: str) -> Any:
    """A module of a package; raises Unavailable with the extra to install if it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Unavailable(extra_missing("the format", module)) from None


# --- Failures of a run ---------------------------------------------------------------------------


_OWN_CLASS: Final = re.compile(r"(?:pyspark_redis_streams|penstock_pipeline)\.errors\.(\w+)")
_CONDITION: Final = re.compile(r"\[([A-Z][A-Z_0-9]+(?:\.[A-Z_0-9]+)*)\]")
_WRAPPING: Final = {"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR"}
_JAVA_CLASS: Final = re.compile(r"(?:^Caused by|^): ([\w.$]+(?:Exception|Error))\b", re.MULTILINE)
_PYTHON_CLASS: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception))\b", re.MULTILINE)

HOPELESS: Final = (
    *("OptionError", "SchemaError", "NotWritable", "CheckpointError"),
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
            r"the Java class",
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
    """A failed attempt of a query; ``query`` is None for what concerns the run as a whole.

    ``attempt`` is 0 for a failure that does not count, as it is the machine's.
    """

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
        if self.retry and not self.attempt:
            return f"{text}; it is tried again in {self.pause_s:g} s, and does not count"
        if self.retry:
            return f"{text}; attempt {self.attempt} of {self.attempts} follows"
        return text


def error_class(error: BaseException) -> str:
    """The name of the innermost error in what Spark raises: its class, or Spark's condition."""
    text = str(error)
    if own := _OWN_CLASS.findall(text):
        return str(own[-1])
    if spark := [name for name in _CONDITION.findall(text) if name not in _WRAPPING]:
        return str(spark[0])
    if java := _JAVA_CLASS.findall(text):
        return str(java[-1]).rpartition(".")[2]
    if python := _PYTHON_CLASS.findall(text):
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
    if error_class(error) == RAISED or _DATA.search(said):
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
    """Describe an error after so many failed attempts in a row, without its traces."""
    again = attempt <= attempts and worth_retry(error, poison_counts)
    numbers = (attempt, attempts, error_class(error))
    return Failure(time, query, *numbers, again, pause_s if again else 0.0, reason(error))
