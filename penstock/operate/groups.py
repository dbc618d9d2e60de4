"""``penstock groups``: the consumer groups of a server, those in trouble first, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from penstock.client import Connection
from penstock.operate.common import connected, parser, run, streams, text
from penstock.terminal import console, plural
from penstock.testing.waiting import duration

LONG_MS: Final = 5 * 60_000
"""How long an entry may be pending, or wait to be delivered, until its group is in trouble."""

MANY: Final = 5
"""How often an entry may be delivered until its group is in trouble."""

LOOKED_AT: Final = 100
"""How many pending entries of a group are looked at, the first by ID."""

_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group; ages in milliseconds, ``None`` where there is no such entry or no answer.

    ``oldest`` is how long an entry has been with its consumer, ``deliveries`` how often one was
    delivered, each the most of the first pending entries; ``waits`` is how old the first entry is
    that was not delivered."""

    stream: str
    group: str
    lag: int | None
    pending: int
    consumers: int
    oldest: int | None
    deliveries: int
    waits: int | None
    added: int
    read: int | None

    @property
    def troubles(self) -> list[str]:
        """Return what is wrong, in sentences; empty if nothing is."""
        found = []
        if self.oldest is not None and self.oldest >= LONG_MS:
            found.append(f"stuck: an entry has been pending for {duration(self.oldest)}")
        if self.deliveries >= MANY:
            found.append(f"failing: an entry was delivered {self.deliveries} times")
        if self.waits is not None and self.waits >= LONG_MS:
            found.append(f"behind: an entry has waited for {duration(self.waits)}")
        return found


def gather(server: Connection, pattern: str = "*") -> list[Group]:
    """The groups of all streams that fit a pattern, those in trouble first, then by lag."""
    keys = streams(server, pattern)
    seconds, microseconds = server.call("TIME")
    now = int(seconds) * 1000 + int(microseconds) // 1000
    found = [
        group
        for at in range(0, len(keys), _AT_ONCE)
        for group in _groups_of(server, keys[at : at + _AT_ONCE], now)
    ]
    return sorted(found, key=lambda each: (not each.troubles, -(each.lag or 0), each.stream))


def _groups_of(server: Connection, keys: Sequence[bytes], now: int) -> Iterator[Group]:
    asked = [("XINFO", what, key) for key in keys for what in ("GROUPS", "STREAM")]
    replies = server.try_all(asked)
    rows = [
        (key, _named(row), _named(stream))
        for key, groups, stream in zip(keys, replies[::2], replies[1::2], strict=True)
        # A stream that has gone meanwhile is an error.
        if isinstance(groups, list) and isinstance(stream, list)
        for row in groups
    ]
    details = server.try_all(
        [
            command
            for key, row, _ in rows
            for command in (
                ("XPENDING", key, row["name"], "-", "+", LOOKED_AT),
                ("XRANGE", key, b"(" + row["last-delivered-id"], "+", "COUNT", 1),
            )
        ]
    )
    for at, (key, row, stream) in enumerate(rows):
        pending, first = details[2 * at], details[2 * at + 1]
        yield _group(key, row, stream, _listed(pending), _listed(first), now)


def _group(
    key: bytes,
    row: dict[str, Any],
    stream: dict[str, Any],
    pending: list[Any],
    first: list[Any],
    now: int,
) -> Group:
    held = [entry for entry in pending if entry[1]]
    return Group(
        text(key),
        text(row["name"]),
        row.get("lag"),
        row["pending"],
        row["consumers"],
        max([entry[2] for entry in held], default=None),
        max([entry[3] for entry in pending], default=0),
        max(0, now - int(first[0][0].partition(b"-")[0])) if first else None,
        stream.get("entries-added", 0),
        row.get("entries-read"),
    )


def _named(pairs: Any) -> dict[str, Any]:
    """A reply of names and values as a dictionary; empty for an error."""
    if not isinstance(pairs, list):
        return {}
    return {name.decode(): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _listed(reply: Any) -> list[Any]:
    return reply if isinstance(reply, list) else []


# --- what is shown ----------------------------------------------------------------------------


def table(groups: Sequence[Group], rates: dict[tuple[str, str], tuple[str, str]] | None) -> Table:
    """The groups as a table; with ``rates``, entries added and delivered a second by stream and
    group, in columns of their own."""
    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=False)
    for name in ("stream", "group"):
        found.add_column(name, overflow="fold")
    for name in ("lag", "pending", "oldest", "deliveries", "consumers"):
        found.add_column(name, justify="right", no_wrap=True)
    if rates is not None:
        for name in ("added/s", "delivered/s"):
            found.add_column(name, justify="right", no_wrap=True)
    found.add_column("state", overflow="fold")
    for group in groups:
        extra = [] if rates is None else rates.get((group.stream, group.group), ("", ""))
        found.add_row(*_cells(group), *extra, _state(group))
    return found


def _cells(group: Group) -> list[Text]:
    lag = "?" if group.lag is None else f"{group.lag:,}"
    oldest = "-" if group.oldest is None else duration(group.oldest)
    counts = (lag, f"{group.pending:,}", oldest, f"{group.deliveries:,}", f"{group.consumers:,}")
    return [Text(cell) for cell in (group.stream, group.group, *counts)]


def _state(group: Group) -> Text:
    if not group.troubles:
        return Text("fine", style="green")
    return Text("; ".join(group.troubles), style="bold red")


def verdict(groups: Sequence[Group]) -> str:
    """Return what a reader wants to know first, in a sentence."""
    troubled = sum(1 for group in groups if group.troubles)
    if not groups:
        return "There are no consumer groups."
    if not troubled:
        return f"{plural(len(groups), 'group')}, none of them in trouble."
    return f"{troubled:,} of {plural(len(groups), 'group')} in trouble."


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns 1 if a group is in trouble."""
    known = parser(
        "groups",
        "The consumer groups of a server, those in trouble first, and why.",
        "The exit status is 1 if a group is in trouble, so that a script can ask.",
    )
    known.add_argument("pattern", nargs="?", default="*", help="a glob pattern of streams (*)")
    known.add_argument("--json", action="store_true", help="a line of JSON for each group")
    options = known.parse_args(args)
    return run("groups", lambda: _show(options.url, options.pattern, options.json))


def _show(url: str, pattern: str, lines: bool) -> int:
    with connected(url) as server:
        groups = gather(server, pattern)
    if lines:
        for group in groups:
            print(json.dumps(asdict(group) | {"troubles": group.troubles}, ensure_ascii=False))
    else:
        screen = console()
        screen.print(verdict(groups))
        if groups:
            screen.print(table(groups, None))
    return 1 if any(group.troubles for group in groups) else 0
