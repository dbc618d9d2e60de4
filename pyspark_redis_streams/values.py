"""Parses the texts of options; every function raises ValueError for an invalid text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pyspark_redis_streams.ids import parse_id
from pyspark_redis_streams.urls import ALLOWED, ServerUrl, parse_urls

URL_FORMS: Final = ALLOWED
_SIZE: Final = re.compile(r"(\d+) ?([kmg])?b?")
_DURATION: Final = re.compile(r"(\d+) ?(ms|s|m|h|d)(?:ec(?:ond)?s?|in(?:ute)?s?|ours?|ays?)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}

urls: Callable[[str], tuple[ServerUrl, ...]] = parse_urls


@dataclass(frozen=True)
class Starting:
    """Where streams begin: ``otherwise`` is earliest, latest or group, ``streams`` are exceptions.

    A value of ``streams`` is one of these words or an ID, the last one not to be read; one of
    ``times`` is an ID that is older than the time to begin at.
    """

    otherwise: str
    streams: Mapping[str, str | int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)


def whole(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """A parser of whole numbers within bounds."""

    def parse(text: str) -> int:
        number = int(text)
        if number < lowest or (highest is not None and number > highest):
            raise ValueError(text)
        return number

    return parse


def choice(*words: str) -> Callable[[str], str]:
    """A parser of one of some words, in any case."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return parse


def boolean(text: str) -> bool:
    """True or false, in any case."""
    return choice("true", "false")(text) == "true"


def size(lowest: int, highest: int | None = None) -> Callable[[str], int]:
    """A parser of bytes within bounds, as 1000, 64k, 16m or 1gb."""

    def parse(text: str) -> int:
        found = _SIZE.fullmatch(text.strip().lower())
        if found is None:
            raise ValueError(text)
        number = int(found[1]) << 10 * " kmg".index(found[2] or " ")
        return whole(lowest, highest)(str(number))

    return parse


def duration(text: str) -> float:
    """Seconds of a time with its unit, as 500ms, 10s, 15m or 1 hour."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return int(found[1]) * _SECONDS[found[2]]


def text(value: str) -> str:
    """Any text that is not empty."""
    if not value:
        raise ValueError(value)
    return value


def names(value: str) -> tuple[str, ...]:
    """Names separated by commas, or a JSON list of them; each once, in their order."""
    if value.lstrip().startswith('["'):
        found = json.loads(value)
        if not all(isinstance(name, str) for name in found):
            raise ValueError(value)
    else:
        found = [name.strip() for name in value.split(",")]
    if not all(found):
        raise ValueError(value)
    return tuple(dict.fromkeys(found))


def stream_id(value: str) -> int:
    """A stream ID as an integer."""
    return parse_id(value)


def timestamp(value: str) -> int:
    """Unix milliseconds of a number, or of an ISO 8601 time that says its offset."""
    if value.isascii() and value.isdigit():
        return parse_id(value) >> 64
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None or moment.timestamp() < 0:
        raise ValueError(value)
    return round(moment.timestamp() * 1000)


def timestamps(value: str) -> Mapping[str, int]:
    """Unix milliseconds of each stream, from JSON with numbers or ISO 8601 times."""
    given: Any = json.loads(value)
    if not isinstance(given, dict) or not given:
        raise ValueError(value)
    if not all(isinstance(time, str | int) and time is not True for time in given.values()):
        raise ValueError(value)
    return {name: timestamp(str(time)) for name, time in given.items()}


def starting(value: str) -> Starting:
    """Where to begin: one word for all streams, or JSON with an entry a stream."""
    if value.lower() in ("earliest", "latest", "group"):
        return Starting(value.lower())
    given = _positions(value)
    return Starting("earliest", {name: _begin(offset) for name, offset in given.items()})


def _begin(offset: str) -> str | int:
    return offset if offset in ("earliest", "latest") else parse_id(offset)


def ending(value: str) -> Mapping[str, int]:
    """Where to end: a mapping of streams to IDs, empty for the latest of each."""
    if value.lower() == "latest":
        return {}
    return {name: parse_id(offset) for name, offset in _positions(value).items()}


def _positions(value: str) -> dict[str, str]:
    given: Any = json.loads(value)
    if isinstance(given, dict) and isinstance(given.get("offsets"), dict):
        # spark-redis writes {"offsets": {"stream": {"groupName": ..., "offset": ...}}}.
        given = {name: entry["offset"] for name, entry in _entries(given["offsets"])}
    if not isinstance(given, dict) or not all(isinstance(o, str) for o in given.values()):
        raise ValueError(value)
    return given


def _entries(offsets: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    if not all(isinstance(entry, dict) and "offset" in entry for entry in offsets.values()):
        raise ValueError(offsets)
    return list(offsets.items())
