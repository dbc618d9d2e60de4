"""What the tools share: which server they ask, and how names and entries are shown."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from penstock.client.connection import ServerConnection, readable
from penstock.client.errors import ClientError, CommandRefused
from penstock.client.urls import parse
from penstock.debug import DEFAULT_URL, URL_VARIABLE
from penstock.terminal import Parser, json_line, json_value, shown

DEAD_STREAM: Final = b"dead-letter-stream"
"""The first field of a dead letter."""


def parser(name: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    """A parser of the arguments of a tool, with the option that says which server it asks."""
    found = Parser(
        prog=f"penstock {name}",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_url(found)
    return found


def add_url(known: argparse.ArgumentParser) -> None:
    """Adds the options that say which server is asked, under the letters of redis-cli."""
    which = known.add_mutually_exclusive_group()
    which.add_argument(
        "-u",
        "--url",
        default=os.environ.get(URL_VARIABLE) or DEFAULT_URL,
        help=f"the server; without it the variable {URL_VARIABLE}, or {DEFAULT_URL}",
    )
    which.add_argument("-p", "--port", action=_Port, type=int, help="a port of this machine")


class _Port(argparse.Action):
    """Takes a port as the URL of a server of this machine."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        if not 0 < values < 65536:
            parser.error(f"{option_string} is a number from 1 to 65535")
        namespace.url = f"redis://127.0.0.1:{values}"


@contextmanager
def connected(url: str) -> Iterator[ServerConnection]:
    """A connection to the server of a URL; raises :class:`ClientError`."""
    address = parse(url)
    with ServerConnection("server", address, address.db or 0) as server, readable(server):
        yield server


def asks(server: ServerConnection, *command: bytes | str | int) -> Any:
    """The reply to a command, ``None`` where the server refuses it: not every server, and not every
    user, has each."""
    try:
        return server.call(*command)
    except CommandRefused:
        return None


def is_penstock(server: ServerConnection) -> bool:
    """Whether the server has the commands that only Penstock has."""
    found = asks(server, "COMMAND", "INFO", "PENSTOCK")
    return bool(found and found[0])


def streams(server: ServerConnection, pattern: str = "*") -> list[bytes]:
    """The keys of streams that fit a glob pattern, in order."""
    found, cursor = set[bytes](), b"0"
    while True:
        cursor, keys = server.call(
            "SCAN", cursor, "MATCH", pattern, "COUNT", 1000, "TYPE", "stream"
        )
        found.update(keys)
        if cursor == b"0":
            return sorted(found)


def word(name: bytes) -> str:
    """A name as one types it in redis-cli: in quotes if it has to be."""
    if re.fullmatch(rb"[\w.:/@{}*+-]+", name):
        return name.decode()
    quoted = name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').decode("utf-8", "surrogateescape")
    return f'"{"".join(sign if sign.isprintable() else _bytes_of(sign) for sign in quoted)}"'


def _bytes_of(sign: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogateescape"))


def paired(fields: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """The fields of an entry, each with its value."""
    return list(zip(fields[::2], fields[1::2], strict=True))


def as_json(entry_id: bytes, fields: Sequence[bytes]) -> str:
    """An entry as a line of JSON: its ID, and its fields in their order."""
    pairs = [[json_value(name), json_value(value)] for name, value in paired(fields)]
    return json_line({"id": json_value(entry_id), "fields": pairs})


def run(name: str, tool: Callable[[], int]) -> int:
    """Runs a tool; returns its exit status, 1 with a line where a server fails, 130 at Ctrl-C."""
    try:
        return tool()
    except ClientError as error:
        print(f"penstock {name}: {shown(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
