"""``penstock groups``: the consumer groups of a server, those in trouble first, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from penstock.client.connection import ServerConnection
from penstock.operate.common import connected, is_penstock, parser, run, streams
from penstock.terminal import console, json_line, json_value, plural, shown
from server.delivery.health import (
    BEHIND,
    FAILING,
    LONG_MS,
    STUCK,
    UNATTENDED,
    HealthFacts,
    age_of,
)
from server.runtime.quantities import duration

LOOKED_AT: Final = 100
"""How many pending entries of a group are looked at, the first by ID."""

_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A consumer group; ages in milliseconds, ``None`` where there is no such entry or no answer.

    ``oldest`` is how long an entry has been with its consumer, ``deliveries`` how often one was
    delivered, each the most of the first pending entries; ``waits`` is how old the first entry is
    that was not delivered, ``silent`` how long no consumer has asked, if none is there. Penstock
    tells how many entries ``died``, which became dead letters lately, and whether the group is
    ``paused``."""

    stream: bytes
    group: bytes
    lag: int | None
    pending: int
    consumers: int
    oldest: int | None
    deliveries: int
    waits: int | None
    silent: int | None
    died: int
    paused: bool
    added: int
    read: int | None

    def facts(self) -> HealthFacts:
        """Return what the group is judged by. Where the server cannot tell the lag, there is one if
        an entry waits."""
        return HealthFacts(
            self.oldest,
            self.deliveries,
            self.died,
            self.pending,
            int(self.waits is not None) if self.lag is None else self.lag,
            self.waits,
            self.consumers,
            self.silent,
            paused=self.paused,
        )

    @property
    def troubles(self) -> list[str]:
        """Return what is wrong, in sentences, the worst first; empty if nothing is."""
        return [f"{name}: {_SENTENCES[name](self)}" for name in self.facts().troubles()]


def _failing(group: GroupReport) -> str:
    if group.died:
        became = "became a dead letter" if group.died == 1 else "became dead letters"
        return f"{plural(group.died, 'entry')} {became} in the last 10 min"
    return f"an entry was delivered {group.deliveries} times"


def _unattended(group: GroupReport) -> str:
    if group.silent is None:
        return "it has no consumers"
    return f"no consumer has asked for entries for {duration(group.silent)}"


_SENTENCES: Final[dict[str, Callable[[GroupReport], str]]] = {
    STUCK: lambda group: f"an entry has been pending for {duration(group.oldest or 0)}",
    FAILING: _failing,
    UNATTENDED: _unattended,
    BEHIND: lambda group: f"an entry has waited for {duration(group.waits or 0)}",
}


def gather(server: ServerConnection, pattern: str = "*") -> list[GroupReport]:
    """The groups of all streams that fit a pattern, those in trouble first, as on the page."""
    keys = streams(server, pattern)
    seconds, microseconds = server.call("TIME")
    now = int(seconds) * 1000 + int(microseconds) // 1000
    found = [
        group
        for at in range(0, len(keys), _AT_ONCE)
        for group in _groups_of(server, keys[at : at + _AT_ONCE], now)
    ]
    return sorted(found, key=lambda each: (each.facts().order(), each.stream, each.group))


def _groups_of(server: ServerConnection, keys: Sequence[bytes], now: int) -> Iterator[GroupReport]:
    asked = [("XINFO", what, key) for key in keys for what in ("GROUPS", "STREAM")]
    replies = server.try_all(asked)
    rows = [
        (key, named(row), named(stream))
        for key, groups, stream in zip(keys, replies[::2], replies[1::2], strict=True)
        # A stream that has gone meanwhile is an error.
        if isinstance(groups, list) and isinstance(stream, list)
        for row in groups
    ]
    stats = _stats(server, [key for key, _, _ in rows])
    details = server.try_all(
        [
            command
            for key, row, _ in rows
            for command in (
                ("XPENDING", key, row["name"], "-", "+", LOOKED_AT),
                ("XRANGE", key, b"(" + row["last-delivered-id"], "+", "COUNT", 1),
                ("XINFO", "CONSUMERS", key, row["name"]),
            )
        ]
    )
    for at, (key, row, stream) in enumerate(rows):
        pending, first, consumers = map(_listed, details[3 * at : 3 * at + 3])
        told = stats.get(key, {}).get(row["name"], {})
        silent = _silent([named(each) for each in consumers], told.get("attended"))
        yield _group(key, row, stream, told, _Asked(pending, first, silent), now)


def _stats(
    server: ServerConnection, keys: Sequence[bytes]
) -> dict[bytes, dict[bytes, dict[str, Any]]]:
    """What Penstock counts of the groups of streams; nothing of other servers."""
    if not is_penstock(server):
        return {}
    some = list(dict.fromkeys(keys))
    replies = server.try_all([("PENSTOCK", "STATS", key) for key in some])
    return {
        key: dict(zip(reply[::2], map(named, reply[1::2]), strict=True))
        for key, reply in zip(some, map(_listed, replies), strict=True)
    }


def _silent(consumers: Sequence[dict[str, Any]], attended: int | None) -> int | None:
    """How long no consumer has asked, if none is there. Where the server does not tell whether the
    client of one is connected, the one that works on an entry for a minute is not taken to be
    gone."""
    idle: int | None = min([each["idle"] for each in consumers], default=None)
    if idle is None or attended or (attended is None and idle < LONG_MS):
        return None
    return idle


class _Asked(NamedTuple):
    """Some pending entries, the first entry that was not delivered, and how long no consumer has
    asked."""

    pending: list[Any]
    first: list[Any]
    silent: int | None


def _group(
    key: bytes,
    row: dict[str, Any],
    stream: dict[str, Any],
    told: dict[str, Any],
    asked: _Asked,
    now: int,
) -> GroupReport:
    held = [entry for entry in asked.pending if entry[1]]
    added = int(asked.first[0][0].partition(b"-")[0]) if asked.first else 0
    return GroupReport(
        key,
        row["name"],
        row.get("lag"),
        row["pending"],
        row["consumers"],
        max([entry[2] for entry in held], default=None),
        max([entry[3] for entry in asked.pending], default=0),
        age_of(added, now),
        asked.silent,
        named(told.get("dead-letters")).get("lately", 0),
        bool(told.get("paused")),
        stream.get("entries-added", 0),
        row.get("entries-read"),
    )


def named(pairs: Any) -> dict[str, Any]:
    """Return a reply of names and values as a dictionary; empty for an error."""
    if not isinstance(pairs, list):
        return {}
    return {name.decode(): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}


def _listed(reply: Any) -> list[Any]:
    return reply if isinstance(reply, list) else []


# --- what is shown ----------------------------------------------------------------------------

Rates = dict[tuple[bytes, bytes], tuple[str, str]]
"""Entries added and delivered per second, by stream and group."""

HEADS: Final = ("lag", "pending", "oldest", "tries", "consumers")
RATES: Final = ("added/s", "read/s")

_GAP: Final = 2


def blocks(
    groups: Sequence[GroupReport], width: int, rates: Rates | None = None
) -> list[list[Text]]:
    """The head of a table, then each group: a line with its numbers and one for each trouble. A
    name that leaves no room for the numbers has a line of its own."""
    named = [f"{shown(group.stream)} / {shown(group.group)}" for group in groups]
    rows = [[*HEADS, *(RATES if rates is not None else ())]]
    for group in groups:
        extra = () if rates is None else rates.get((group.stream, group.group), ("", ""))
        rows.append([*cells_of(group), *extra])
    widths = [max(map(len, column)) + _GAP for column in zip(*rows, strict=True)]
    numbers = ["".join(map(str.rjust, row, widths)) for row in rows]
    names = ["stream / group", *named]
    fitting = [cell_len(name) for name in names if cell_len(name) <= width - sum(widths)]
    room = max(fitting, default=0)
    return [
        [*_lines(name, number, room), *_troubles(group)]
        for name, number, group in zip(names, numbers, (None, *groups), strict=True)
    ]


def _lines(name: str, numbers: str, room: int) -> list[Text]:
    if cell_len(name) <= room:
        return [Text(set_cell_size(name, room) + numbers)]
    return [Text(name, overflow="fold"), Text(" " * room + numbers)]


def _troubles(group: GroupReport | None) -> list[Text]:
    return [Text(f"    {each}", style="bold red") for each in group.troubles] if group else []


def cells_of(group: GroupReport) -> list[str]:
    """Return the numbers of a group, under :data:`HEADS`."""
    lag = "?" if group.lag is None else f"{group.lag:,}"
    oldest = "-" if group.oldest is None else duration(group.oldest)
    return [lag, f"{group.pending:,}", oldest, f"{group.deliveries:,}", f"{group.consumers:,}"]


def verdict(groups: Sequence[GroupReport]) -> str:
    """Return what a reader wants to know first, in a sentence."""
    troubled = sum(1 for group in groups if group.troubles)
    if not groups:
        return "There are no consumer groups."
    if not troubled:
        return f"{plural(len(groups), 'group')}, none of them in trouble."
    verb = "is" if troubled == 1 else "are"
    return f"{troubled:,} of {plural(len(groups), 'group')} {verb} in trouble."


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns 1 if a group is in trouble."""
    known = parser(
        "groups",
        "The consumer groups of a server, those in trouble first, and why.",
        "The exit status is 1 if a group is in trouble.",
    )
    known.add_argument("pattern", nargs="?", default="*", help="glob pattern of the streams (*)")
    known.add_argument("--json", action="store_true", help="one line of JSON per group")
    options = known.parse_args(args)
    return run("groups", lambda: _show(options.url, options.pattern, options.json))


def _show(url: str, pattern: str, lines: bool) -> int:
    with connected(url) as server:
        groups = gather(server, pattern)
    if lines:
        for group in groups:
            names = {"stream": json_value(group.stream), "group": json_value(group.group)}
            print(json_line(asdict(group) | names | {"troubles": group.troubles}))
    else:
        screen = console()
        screen.print(verdict(groups))
        if groups:
            for block in blocks(groups, screen.width):
                screen.print(*block, sep="\n")
    return 1 if any(group.troubles for group in groups) else 0
