"""Options of the data source in the file: their own names or with underscores, values as TOML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from penstock_pipeline.toml_file import Table
from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.settings import read_settings
from pyspark_redis_streams.values import ServerUrl

ADDRESS: Final = ("url", "host", "port", "auth", "user", "dbNum", "ssl")
"""Options that name the server."""

Check = Callable[[Mapping[str, str]], Any]
"""Reads the settings out of options; raises OptionError."""


def data_source_options(table: Table, used: str) -> dict[str, str]:
    """The remaining keys of a table as options for ``used`` (read or write).

    Unknown keys and values of the wrong type are reported as problems.
    """
    names = _names(used)
    options: dict[str, str] = {}
    for key, value in table.rest().items():
        if key == "redis" and isinstance(value, dict):
            redis = Table(value, (*table.path, key), table.findings)
            for own, each in redis.rest().items():
                _put(options, f"redis.{own}", _text(redis, own, each))
            continue
        name = key if key.lower().startswith("redis.") else names.get(_plain(key))
        if name is None:
            table.wrong(key, f"unknown; {_suggestion(key, names)}")
        elif name in options:
            table.wrong(key, f"is given twice, as '{name}' is the same")
        else:
            _put(options, name, _text(table, key, value))
    return options


def _put(options: dict[str, str], name: str, text: str | None) -> None:
    """Sets an option, unless its value is a problem that has been reported: more would be false."""
    if text is not None:
        options[name] = text


def check(table: Table, keys: Mapping[str, Any], options: Mapping[str, str], read: Check) -> None:
    """Lets the data source check the options; a problem is reported with the key concerned."""
    from pyspark_redis_streams.errors import OptionError
    from pyspark_redis_streams.servers import check_client

    try:
        check_client(read(options).servers)
    except OptionError as error:
        wanted = _plain(error.option)
        key = next((key for key in keys if _plain(key) == wanted), "")
        if not key and wanted.startswith("redis."):
            key = "redis"
        table.wrong(key, str(error))


def _names(used: str) -> dict[str, str]:
    from pyspark_redis_streams import options

    known = options.SERVER + (options.READ if used == "read" else options.WRITE)
    names = {_plain(name): o.name for o in known for name in (o.name, *o.aliases)}
    return names | {_plain(name): name for name in (*ADDRESS, "timeout")}


def server_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options that concern the server and the client."""
    names = (*ADDRESS, "retries", "timeout")
    return {n: v for n, v in options.items() if n in names or n.lower().startswith("redis.")}


def address(options: Mapping[str, str]) -> str:
    """The servers that options name, without credentials."""
    from pyspark_redis_streams.settings import write_settings
    from pyspark_redis_streams.values import parse_urls

    if "url" in options:
        return ", ".join(url.label for url in parse_urls(options["url"]))
    parts = ("host", "port", "dbNum", "ssl")
    return write_settings({n: options[n] for n in parts if n in options}).servers.urls[0].label


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def _suggestion(key: str, names: Mapping[str, str]) -> str:
    import difflib

    close = difflib.get_close_matches(_plain(key), names, 1, 0.6)
    if close:
        return f"did you mean '{snake(names[close[0]])}'?"
    return f"allowed: {', '.join(sorted({snake(name) for name in names.values()}))}"


def snake(name: str) -> str:
    """The name of an option as the docs of the file write it: ``max_deliveries``."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _text(table: Table, key: str, value: Any) -> str | None:
    """The option's text: lists and tables become JSON, which the data source takes.

    None, and a problem, for what can't be one.
    """
    if isinstance(value, str):
        return table.expanded(key, value)
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, list) and value and all(isinstance(name, str) for name in value):
        return json.dumps([table.expanded(key, name) or "" for name in value])
    if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
        return json.dumps({name: table.expanded(key, each) for name, each in value.items()})
    table.wrong(key, "has a value of a kind that no option takes")
    return None


# --- Servers that two sets of options name -------------------------------------------------------


LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1", "0.0.0.0", ""))
"""Names of this machine."""

_WHERE: Final = frozenset(("url", "host", "port", "dbnum", "ssl"))


def share_server(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether a server of the one is a server of the other as well.

    Names are not resolved: two names of one machine count as two servers, except for this one.
    Options that are wrong name no server; they are reported elsewhere.
    """
    return bool(_places(one) & _places(other))


def _places(options: Mapping[str, str]) -> set[tuple[object, ...]]:
    named = {name: value for name, value in options.items() if name.lower() in _WHERE}
    try:
        urls = read_settings({**named, "subscribe": "any"}, streaming=False).servers.urls
    except OptionError:
        return set()
    return {place for url in urls for place in _of(url)}


def _of(url: ServerUrl) -> set[tuple[object, ...]]:
    if url.path is not None:
        return {(url.path, url.database)}
    return {(_host(host), port, url.service, url.database) for host, port in url.nodes}


def _host(name: str) -> str:
    plain = name.lower().rstrip(".")
    return "localhost" if plain in LOCAL or plain.startswith("127.") else plain
