"""Commands that show everything about a key, by which two servers are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

Words = list[str]


def views_of_key(key: str, groups: Iterable[str]) -> Iterator[Words]:
    """Commands that show all of a key, whatever it holds, and of these groups if it is a stream."""
    yield ["TYPE", key]
    yield ["PEXPIRETIME", key]
    yield ["GET", key]
    yield ["OBJECT", "ENCODING", key]
    yield ["HGETALL", key]
    yield ["HPEXPIRETIME", key, "FIELDS", "5", "f", "g", "h", "i", ""]
    yield ["LRANGE", key, "0", "-1"]
    yield ["ZRANGE", key, "0", "-1", "WITHSCORES"]
    yield ["SCARD", key]
    yield ["SMISMEMBER", key, "0", "1", "2", "-7", "13", "01", "x", "", "y" * 65]
    yield ["XINFO", "STREAM", key]
    yield ["XINFO", "STREAM", key, "FULL", "COUNT", "0"]
    yield ["XINFO", "GROUPS", key]
    for group in groups:
        yield ["XINFO", "CONSUMERS", key, group]


def views_of_database(database: int, keys: Iterable[str], groups: Iterable[str]) -> Iterator[Words]:
    """Commands that show all of these keys of a database, which the first of them selects."""
    yield ["SELECT", str(database)]
    yield ["DBSIZE"]
    for key in keys:
        yield from views_of_key(key, groups)
