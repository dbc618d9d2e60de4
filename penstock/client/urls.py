"""URLs of servers and clusters, checked before connecting."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from penstock.client.errors import AddressError
from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.servers import url_arguments
from pyspark_redis_streams.urls import ServerUrl, parse_url

ALLOWED: Final = (
    "redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path?db=0,"
    " redis+cluster:// or rediss+cluster:// with one or more host:port for a cluster;"
    " signs such as '/' and '@' in a password are written %2F and %40"
)


class Address(NamedTuple):
    """A server or a cluster as :func:`parse` found it in a URL."""

    server: ServerUrl
    db: int | None
    """The database that the URL names."""

    @property
    def place(self) -> str:
        """Host and port, the path of a socket, or the nodes of a cluster, to show."""
        if self.server.cluster:
            return self.server.label
        if self.server.path is not None:
            return self.server.path
        host, port = self.server.nodes[0]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str) -> Address:
    """The address that a URL such as ``redis://user:password@host:6379/0`` stands for.

    Raises :class:`AddressError`, which does not show the URL: any part of a malformed one may be
    half a password.
    """
    try:
        server = parse_url(text)
        url_arguments(server)
    except OptionError as error:
        raise AddressError(str(error)) from None
    except ValueError as error:
        raise _bad(str(error)) from None
    if len(server.nodes) > 1 and not server.cluster:
        raise _bad("one of several servers")
    parts = urlsplit(text)
    if not (server.path or parts.hostname):
        raise _bad("one without a host or path")
    is_named = parts.path.strip("/") if server.path is None else "db" in parse_qs(parts.query)
    return Address(server, server.database if is_named else None)


def _bad(what: str) -> AddressError:
    return AddressError(f"the URL is {what}; allowed: {ALLOWED}")
