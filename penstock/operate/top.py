"""``penstock top``: the consumer groups of a server as they are now, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from rich.console import Group as Lines
from rich.live import Live
from rich.text import Text

from penstock.client.connection import ServerConnection
from penstock.operate import keyboard, top_pages
from penstock.operate.common import asks, connected, paired, parser, run
from penstock.operate.groups import GroupReport, Rates, blocks, gather, named, verdict
from penstock.operate.top_pages import (
    EntryPage,
    GroupPage,
    GroupsPage,
    ListedEntry,
    RowCursor,
    TopPage,
)
from penstock.terminal import console

EVERY_S: Final = 2.0

PENDING: Final = 100
"""How many pending entries of a group are listed, the first by ID."""

Seen = dict[tuple[bytes, bytes], GroupReport]


def rates(before: Seen, now: Sequence[GroupReport], seconds: float) -> Rates:
    """Entries added and delivered a second since the groups were looked at before; empty texts
    where that is not known."""
    found = Rates()
    for group in now:
        key = group.stream, group.group
        if last := before.get(key):
            found[key] = (
                _rate(last.added, group.added, seconds),
                _rate(last.read, group.read, seconds),
            )
    return found


def _rate(before: int | None, now: int | None, seconds: float) -> str:
    if before is None or now is None:
        return ""
    return f"{max(now - before, 0) / seconds:,.0f}"


class Watch:
    """Looks at the groups of a server, and knows how they were when it looked before. The last of
    its pages is shown."""

    def __init__(
        self, server: ServerConnection, pattern: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server, self._pattern, self._clock = server, pattern, clock
        self._before, self._at = Seen(), clock()
        self._rates = Rates()
        self._groups: list[GroupReport] = []
        self._list = GroupsPage(server.name)
        self.pages: list[TopPage] = [self._list]

    def look(self) -> None:
        """Asks the server anew: for all groups, and for the one that is open."""
        self._groups, now = gather(self._server, self._pattern), self._clock()
        self._rates = rates(self._before, self._groups, max(now - self._at, 1e-3))
        self._before = {(each.stream, each.group): each for each in self._groups}
        self._at = now
        self._list.put(self._groups, self._rates)
        known = {(each.stream, each.group): each for each in self._groups}
        for at, page in enumerate(self.pages):
            if isinstance(page, GroupPage):
                group = known.get((page.group.stream, page.group.group), page.group)
                self.pages[at] = self._group_page(group, page.cursor)

    def press(self, key: str) -> bool:
        """Does what a key is for; returns whether to go on."""
        page = self.pages[-1]
        if isinstance(page, GroupsPage) and page.is_typing:
            page.press(key)
        elif key == "q":
            return False
        elif key == top_pages.ENTER:
            self._open(page)
        elif key == top_pages.BACK and len(self.pages) > 1:
            self.pages.pop()
        else:
            page.press(key)
        return True

    def _open(self, page: TopPage) -> None:
        if isinstance(page, GroupsPage) and page.chosen is not None:
            self.pages.append(self._group_page(page.chosen))
        elif isinstance(page, GroupPage) and page.chosen is not None:
            self.pages.append(self._entry_page(page.group.stream, page.chosen.entry_id))

    def _group_page(self, group: GroupReport, cursor: RowCursor | None = None) -> GroupPage:
        names = group.stream, group.group
        consumers = asks(self._server, "XINFO", "CONSUMERS", *names) or []
        pending = asks(self._server, "XPENDING", *names, "-", "+", PENDING) or []
        entries = [ListedEntry(*each) for each in pending]
        return GroupPage(group, [named(each) for each in consumers], entries, cursor)

    def _entry_page(self, stream: bytes, entry_id: bytes) -> EntryPage:
        found: list[Any] = asks(self._server, "XRANGE", stream, entry_id, entry_id) or []
        return EntryPage(entry_id, paired(found[0][1]) if found else None)

    def lines(self, width: int, height: int) -> Lines:
        """Return what is to be shown, in a terminal of this size."""
        return Lines(*self.pages[-1].lines(width, height))

    def plain(self, width: int) -> Lines:
        """Return what is printed where there is no terminal: all groups, with what is wrong."""
        found = [Text(f"{self._server.name}: {verdict(self._groups)}", style="bold")]
        for block in blocks(self._groups, width, self._rates) if self._groups else ():
            found.extend(block)
        return Lines(*found)


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    known = parser(
        "top", "The consumer groups of a server, those in trouble first, live.", top_pages.KEYS
    )
    known.add_argument("pattern", nargs="?", default="*", help="glob pattern of the streams (*)")
    known.add_argument(
        "--every",
        type=float,
        default=EVERY_S,
        metavar="SECONDS",
        help="seconds between looks (%(default)g)",
    )
    known.add_argument("--times", type=int, default=0, metavar="N", help="quit after N looks")
    options = known.parse_args(args)
    if options.every <= 0:
        known.error("--every is a number of seconds above 0")
    return run("top", lambda: _top(options.url, options.pattern, options.every, options.times))


def _top(url: str, pattern: str, every: float, times: int) -> int:
    """Shows pages in a terminal until that has gone, or prints."""
    if not console().is_terminal:
        return _print(url, pattern, every, times)
    try:
        return _watch(url, pattern, every, times)
    except EOFError:
        return 0


def _watch(url: str, pattern: str, every: float, times: int) -> int:
    screen = console()
    with (
        connected(url) as server,
        keyboard.opened() as pressed,
        Live(console=screen, screen=True, auto_refresh=False) as live,
    ):
        watch, looks = Watch(server, pattern), 0
        while True:
            watch.look()
            looks += 1
            live.update(watch.lines(screen.width, screen.height), refresh=True)
            until = time.monotonic() + every
            while looks != times and (left := until - time.monotonic()) > 0:
                key = pressed.read(left)
                if key is None:
                    break
                if not watch.press(key):
                    return 0
                live.update(watch.lines(screen.width, screen.height), refresh=True)
            if looks == times:
                return 0


def _print(url: str, pattern: str, every: float, times: int) -> int:
    screen = console()
    with connected(url) as server:
        watch, looks = Watch(server, pattern), 0
        while True:
            watch.look()
            screen.print(watch.plain(screen.width))
            looks += 1
            if looks == times:
                return 0
            time.sleep(every)
