"""Errors, with messages for the author of the file or the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


class PipelineError(Exception):
    """The one kind of error that this package raises on purpose."""


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


_OWN: Final = re.compile(
    r"(?:pyspark_redis_streams\.errors|penstock\.pipeline(?:\.parse)?\.errors)\.\w+: (.+)"
)
_PYTHON: Final = re.compile(r"^(\w[\w.]*(?:Error|Exception)): (.+)", re.MULTILINE)
_SPARK: Final = re.compile(r"\[[A-Z_.0-9]+\] .+")
_WRAPPERS: Final = re.compile(r"\[(?:STREAM_FAILED|FOREACH_BATCH_USER_FUNCTION_ERROR)\]")
_JAVA: Final = re.compile(r"(?:^Caused by|^): ([\w.$]+): (.+)", re.MULTILINE)
JARS: Final = "name its jar in 'spark.jars' or 'spark.jars.packages' of [spark.conf]"
"""What to do about a class of Java that is missing."""


def reason(error: BaseException) -> str:
    """The line of an error of Spark that says what happened, without its traces.

    Spark wraps what a source or a task raises in the traces of two languages.
    """
    text = str(error)
    own = _OWN.findall(text)
    if own:
        return str(own[-1])
    spark = [line for line in _SPARK.findall(text) if not _WRAPPERS.match(line)]
    if spark:
        return str(spark[0]).rstrip(";")
    java = _JAVA.findall(text)
    if java:
        return _said_by_java(*java[-1])
    python = [": ".join(found) for found in _PYTHON.findall(text)]
    return python[-1] if python else text.strip().splitlines()[0] if text.strip() else repr(error)


def _said_by_java(kind: str, text: str) -> str:
    if kind.endswith(("ClassNotFoundException", "NoClassDefFoundError")):
        return f"the Java class '{text.replace('/', '.')}' is missing: {JARS}"
    if "No suitable driver" in text:
        return f"no driver for this URL is among Spark's jars: {JARS}"
    return text
