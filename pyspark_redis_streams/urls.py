"""URLs of servers and clusters, and names for them without credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from pyspark_redis_streams.errors import OptionError

ALLOWED: Final = (
    "redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path, "
    "redis+cluster:// or rediss+cluster:// with one or more host:port for a cluster; "
    "valkey:// and valkeys:// mean the same; several URLs are separated by commas"
)

_SCHEME = re.compile(r"(?P<scheme>rediss?|valkeys?|unix)(?P<cluster>\+cluster)?://")
_HOST_PORT = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(?::(\d+))?")
_NEXT_URL = re.compile(r",\s*(?=[a-z]+(?:\+cluster)?://)")


@dataclass(frozen=True)
class ServerUrl:
    """A server, or a cluster with the nodes to ask first."""

    nodes: tuple[tuple[str, int], ...]
    database: int = 0
    tls: bool = False
    cluster: bool = False
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
        return f"cluster {nodes}" if self.cluster else f"{nodes}/{self.database}"


def parse_urls(text: str) -> tuple[ServerUrl, ...]:
    """The servers of the option ``url``; raises OptionError, which never shows the text."""
    try:
        urls = tuple(parse_url(part) for part in _NEXT_URL.split(text.strip()))
    except ValueError as error:
        raise OptionError("url", error, ALLOWED) from None
    if len({url.label for url in urls}) < len(urls):
        raise OptionError("url", "two URLs of the same server", ALLOWED)
    return urls


def parse_url(text: str) -> ServerUrl:
    """The server or cluster of one URL; raises ValueError, which never shows the text."""
    found = _SCHEME.match(text)
    if found is None:
        raise ValueError("not of the right form")
    try:
        return _from_parts(text, found["scheme"], found["cluster"] is not None)
    except ValueError:
        # The error of the standard library may quote the password.
        raise ValueError("one with a bad port, database or host") from None


def _from_parts(text: str, scheme: str, cluster: bool) -> ServerUrl:
    parts = urlsplit(text)
    user, _, hosts = parts.netloc.rpartition("@")
    username, _, password = user.partition(":")
    query = dict(parse_qsl(parts.query))
    local = scheme == "unix"
    database = query.pop("db", None) or ("" if local else parts.path.strip("/")) or "0"
    if cluster and database != "0":
        raise ValueError("a cluster has database 0 only")
    return ServerUrl(
        nodes=() if local else tuple(_node(host) for host in hosts.split(",")),
        database=_whole(database),
        tls=scheme in ("rediss", "valkeys"),
        cluster=cluster,
        path=unquote(parts.path) if local else None,
        username=unquote(username) or None,
        password=unquote(password) or None,
        settings=tuple(query.items()),
    )


def _node(text: str) -> tuple[str, int]:
    found = _HOST_PORT.fullmatch(text.strip())
    if found is None:
        raise ValueError("not host:port")
    host, port = found.groups()
    host.encode("idna")  # or else connecting raises what nobody expects
    return host.strip("[]") or "127.0.0.1", 6379 if port is None else _whole(port)


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > 65535:
        raise ValueError("not a port or database")
    return int(text)
