"""Whether two sets of options name the same server, however they spell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.settings import read_settings
from pyspark_redis_streams.urls import ServerUrl

LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0", ""))
"""Names of this machine."""

_ADDRESS: Final = frozenset(("url", "host", "port", "dbnum", "ssl"))


def share_server(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether a server of the one is a server of the other as well.

    Names are not resolved: two names of one machine count as two servers, except for this one.
    Options that are wrong name no server; they are reported elsewhere.
    """
    return bool(_places(one) & _places(other))


def _places(options: Mapping[str, str]) -> set[tuple[object, ...]]:
    named = {name: value for name, value in options.items() if name.lower() in _ADDRESS}
    try:
        urls = read_settings({**named, "subscribe": "any"}, streaming=False).servers.urls
    except OptionError:
        return set()
    return {place for url in urls for place in _of(url)}


def _of(url: ServerUrl) -> set[tuple[object, ...]]:
    if url.path is not None:
        return {(url.path, url.database)}
    return {(_host(host), port, url.database) for host, port in url.nodes}


def _host(name: str) -> str:
    plain = name.lower().rstrip(".")
    return "localhost" if plain in LOCAL or plain.startswith("127.") else plain
