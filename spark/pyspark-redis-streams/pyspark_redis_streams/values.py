"""Parses the texts of options, URLs of servers among them.

Whatever parses raises ValueError for an invalid text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.ids import parse_id

_SIZE: Final = re.compile(r"(\d+) ?([kmg])?b?")
_DURATION: Final = re.compile(r"(\d+) ?(ms|s|m|h|d)(?:ec(?:ond)?s?|in(?:ute)?s?|ours?|ays?)?")
_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class Starting:
    """Where streams begin: ``otherwise`` is earliest, latest or group, ``streams`` are exceptions.

    A value of ``streams`` is one of these words or an ID, the last one not to be read; one of
    ``times`` is an ID that is older than the time to begin at.
    """

    otherwise: str
    streams: Mapping[str, str | int] = field(default_factory=dict)
    times: Mapping[str, int] = field(default_factory=dict)


class Kind(NamedTuple):
    """Says how the text of an option is parsed, and what is allowed, in words."""

    parse: Callable[[str], Any]
    allowed: str


def whole(lowest: int, highest: int | None = None, unit: str = "") -> Kind:
    """Return the kind of whole numbers within bounds."""

    def parse(text: str) -> int:
        number = int(text)
        if number < lowest or (highest is not None and number > highest):
            raise ValueError(text)
        return number

    bounds = f"from {lowest}" if highest is None else f"from {lowest} to {highest}"
    return Kind(parse, f"{unit}{unit and ', '}a whole number {bounds}")


def choice(*words: str) -> Kind:
    """Return the kind of one of some words, in any case."""

    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return Kind(parse, ", ".join(words))


BOOLEAN: Final = Kind(lambda text: choice("true", "false").parse(text) == "true", "true, false")


def size(allowed: str, highest: int | None = None) -> Kind:
    """Return the kind of bytes from 1, as 1000, 64k, 16m or 1gb."""

    def parse(text: str) -> int:
        found = _SIZE.fullmatch(text.strip().lower())
        if found is None:
            raise ValueError(text)
        number = int(found[1]) << 10 * " kmg".index(found[2] or " ")
        return int(whole(1, highest).parse(str(number)))

    return Kind(parse, allowed)


def text(allowed: str) -> Kind:
    """Return the kind of any text that is not empty."""

    def parse(value: str) -> str:
        if not value:
            raise ValueError(value)
        return value

    return Kind(parse, allowed)


def duration(text: str) -> float:
    """Return the seconds of a time with its unit, as 500ms, 10s, 15m or 1 hour."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(text)
    return int(found[1]) * _SECONDS[found[2]]


class Separated(tuple[str, ...]):
    """Names that commas separate in a ``text``, which may have been meant as one name."""

    text: str


def names(value: str) -> tuple[str, ...]:
    """Return names separated by commas, or in a JSON list; each once, in their order."""
    is_list = value.lstrip().startswith('["')
    if is_list:
        found = json.loads(value)
        if not all(isinstance(name, str) for name in found):
            raise ValueError(value)
    else:
        found = [name.strip() for name in value.split(",")]
    if not all(found):
        raise ValueError(value)
    if is_list or len(found) == 1:
        return tuple(dict.fromkeys(found))
    separated = Separated(dict.fromkeys(found))
    separated.text = value.strip()
    return separated


def timestamp(value: str) -> int:
    """Return Unix milliseconds of a number, or of an ISO 8601 time that says its offset."""
    if value.isascii() and value.isdigit():
        return parse_id(value) >> 64
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None or moment.timestamp() < 0:
        raise ValueError(value)
    return round(moment.timestamp() * 1000)


def timestamps(value: str) -> Mapping[str, int]:
    """Return Unix milliseconds of each stream, from JSON with numbers or ISO 8601 times."""
    given: Any = json.loads(value)
    if not isinstance(given, dict) or not given:
        raise ValueError(value)
    if not all(isinstance(time, str | int) and time is not True for time in given.values()):
        raise ValueError(value)
    return {name: timestamp(str(time)) for name, time in given.items()}


_TIME: Final = "Unix milliseconds, or an ISO 8601 time with its offset from UTC"

MOMENT: Final = Kind(timestamp, _TIME)
MOMENT_BY_STREAM: Final = Kind(timestamps, f'JSON as {{"stream": {_TIME}}}')


def starting(value: str) -> Starting:
    """Return where to begin: one word for all streams, or JSON with an entry a stream."""
    if value.lower() in ("earliest", "latest", "group"):
        return Starting(value.lower())
    given = _positions(value)
    return Starting("earliest", {name: _begin(offset) for name, offset in given.items()})


def _begin(offset: str) -> str | int:
    return offset if offset in ("earliest", "latest") else parse_id(offset)


def ending(value: str) -> Mapping[str, int]:
    """Return where to end: a mapping of streams to IDs, empty for the latest of each."""
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


URL_FORMS: Final = (
    "redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path, "
    "redis+cluster:// or rediss+cluster:// with one or more host:port for a cluster, "
    "redis+sentinel:// or rediss+sentinel:// with those of sentinels and /name[/database]; "
    "valkey:// and valkeys:// mean the same; several URLs are separated by commas"
)

_SCHEME = re.compile(r"(?P<scheme>rediss?|valkeys?|unix)(?:\+(?P<by>cluster|sentinel))?://")
_HOST_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(?::(\d+))?")
_NEXT_URL = re.compile(r",\s*(?=[a-z]+(?:\+(?:cluster|sentinel))?://)")
_PORT, _SENTINEL_PORT = 6379, 26379


@dataclass(frozen=True)
class ServerUrl:
    """A server; a cluster with the nodes to ask first; or a primary with the sentinels that know,
    under the name of ``service``, where it is."""

    nodes: tuple[tuple[str, int], ...]
    database: int = 0
    tls: bool = False
    cluster: bool = False
    service: str | None = None
    path: str | None = None
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def label(self) -> str:
        """The address without credentials, as messages and offsets name it."""
        if self.path is not None:
            return f"{self.path}/{self.database}"
        nodes = ",".join(f"{host}:{port}" for host, port in self.nodes)
        if self.service is not None:
            return f"sentinel {nodes}/{self.service}/{self.database}"
        return f"cluster {nodes}" if self.cluster else f"{nodes}/{self.database}"


def parse_urls(text: str) -> tuple[ServerUrl, ...]:
    """The servers of the option ``url``; raises OptionError, which never shows the text."""
    try:
        urls = tuple(parse_url(part) for part in _NEXT_URL.split(text.strip()))
    except ValueError as error:
        raise OptionError("url", error, URL_FORMS) from None
    if len({url.label for url in urls}) < len(urls):
        raise OptionError("url", "two URLs of the same server", URL_FORMS)
    return urls


def parse_url(text: str) -> ServerUrl:
    """The server or cluster of one URL; raises ValueError, which never shows the text."""
    found = _SCHEME.match(text)
    if found is None:
        raise ValueError("not of the right form")
    try:
        return _from_parts(text, found["scheme"], found["by"])
    except ValueError:
        # The error of the standard library may quote the password.
        raise ValueError("one with a bad port, database or host") from None


def _from_parts(text: str, scheme: str, by: str | None) -> ServerUrl:
    parts = urlsplit(text)
    user, _, hosts = parts.netloc.rpartition("@")
    username, _, password = user.partition(":")
    query = dict(parse_qsl(parts.query))
    local = scheme == "unix"
    if local and by is not None:
        raise ValueError("a socket leads to one server")
    service, path = None, "" if local else parts.path.strip("/")
    if by == "sentinel":
        service, _, path = path.partition("/")
        if not service:
            raise ValueError("without the name that sentinels know")
    database = query.pop("db", None) or path or "0"
    if by == "cluster" and database != "0":
        raise ValueError("a cluster has database 0 only")
    port = _PORT if service is None else _SENTINEL_PORT
    return ServerUrl(
        nodes=() if local else tuple(_node(host, port) for host in hosts.split(",")),
        database=_whole(database),
        tls=scheme in ("rediss", "valkeys"),
        cluster=by == "cluster",
        service=None if service is None else unquote(service),
        path=unquote(parts.path) if local else None,
        username=unquote(username) or None,
        password=unquote(password) or None,
        settings=tuple(query.items()),
    )


def _node(text: str, usual: int) -> tuple[str, int]:
    found = _HOST_PORT.fullmatch(text.strip())
    if found is None:
        raise ValueError("not host:port")
    host, port = found.groups()
    host.encode("idna")  # or else connecting raises what nobody expects
    return host.strip("[]") or "127.0.0.1", usual if port is None else _whole(port)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise ValueError("not a port or database")
    return int(text)
