"""``penstock tail``: the entries of a stream as they are added."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from penstock.client.connection import ServerConnection
from penstock.operate.common import as_json, connected, paired, parser, run
from penstock.terminal import shown

BLOCK_MS: Final = 1000
"""How long one read waits, so that Ctrl-C ends it soon."""

ENTRIES_A_READ: Final = 1000
"""How many entries one read takes."""

SHOWN: Final = 200
"""How many characters of a value a terminal shows."""


def entries(
    server: ServerConnection, stream: str, after: str | bytes
) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yields entries above an ID, or ``$`` for those that come from now on, for ever."""
    if after == "$":
        newest = server.call("XREVRANGE", stream, "+", "-", "COUNT", 1)
        after = newest[0][0] if newest else b"0-0"
    while True:
        reply: Any = server.call(
            "XREAD", "COUNT", ENTRIES_A_READ, "BLOCK", BLOCK_MS, "STREAMS", stream, after
        )
        for entry_id, fields in reply[0][1] if reply else ():
            yield entry_id, fields
            after = entry_id


def fits(fields: Sequence[bytes], wanted: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether an entry has every one of these fields with its value."""
    pairs = paired(fields)
    return all(each in pairs for each in wanted)


def line(entry_id: bytes, fields: Sequence[bytes], most: int | None = None) -> str:
    """An entry in a line: its ID, then its fields, values in so many characters at most."""
    pairs = [f"{shown(name)}={_cut(shown(value), most)}" for name, value in paired(fields)]
    return "  ".join([shown(entry_id), *pairs])


def _cut(value: str, most: int | None) -> str:
    if most is None or len(value) <= most:
        return value
    return f"{value[:most]}… ({len(value) - most:,} more)"


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    known = parser("tail", "The entries of a stream as they are added, until Ctrl-C.")
    known.add_argument("stream")
    known.add_argument(
        "--from",
        dest="after",
        default="$",
        metavar="ID",
        help="start after this ID: 0 shows all entries, $ only new ones ($)",
    )
    known.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="only entries with this value of this field; may be repeated",
    )
    known.add_argument("--json", action="store_true", help="one line of JSON per entry")
    known.add_argument("--count", type=int, default=0, metavar="N", help="quit after N entries")
    options = known.parse_args(args)
    wanted = []
    for word in options.filter:
        name, equals, value = word.partition("=")
        if not equals:
            known.error(f"--filter is FIELD=VALUE, and not {word}")
        wanted.append((name.encode(), value.encode()))
    return run("tail", lambda: _tail(options, wanted))


def what_is_waited_for(server: ServerConnection, stream: str, after: str) -> str:
    """Return what a terminal is told while nothing comes."""
    kind = "new entries" if after == "$" else f"entries above {after}"
    there = "" if server.call("EXISTS", stream) else ", which is not there yet,"
    return f"Waiting for {kind} of {stream}{there} on {server.name} (Ctrl-C to quit)"


def _tail(options: Any, wanted: Sequence[tuple[bytes, bytes]]) -> int:
    left, most = options.count, SHOWN if sys.stdout.isatty() else None
    with connected(options.url) as server:
        if sys.stderr.isatty():
            print(what_is_waited_for(server, options.stream, options.after), file=sys.stderr)
        for entry_id, fields in entries(server, options.stream, options.after):
            if not fits(fields, wanted):
                continue
            told = as_json(entry_id, fields) if options.json else line(entry_id, fields, most)
            print(told, flush=True)
            left -= 1
            if not left:
                return 0
    return 0
