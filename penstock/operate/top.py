"""``penstock top``: the consumer groups of a server as they are now, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Group as Lines
from rich.live import Live
from rich.text import Text

from penstock.client.connection import ServerConnection
from penstock.operate.common import connected, parser, run
from penstock.operate.groups import GroupReport, Rates, blocks, gather, verdict
from penstock.terminal import console

EVERY_S: Final = 2.0

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
    """Looks at the groups of a server, and knows how they were when it looked before."""

    def __init__(
        self, server: ServerConnection, pattern: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._server, self._pattern, self._clock = server, pattern, clock
        self._before, self._at = Seen(), clock()

    def look(self, width: int, height: int) -> Lines:
        """Return what is to be shown, in a terminal of this size."""
        groups, now = gather(self._server, self._pattern), self._clock()
        found = rates(self._before, groups, max(now - self._at, 1e-3))
        self._before, self._at = {(each.stream, each.group): each for each in groups}, now
        lines = [Text(f"{self._server.name}: {verdict(groups)}  (Ctrl-C to quit)", style="bold")]
        for at, block in enumerate(blocks(groups, width, found) if groups else ()):
            if len(lines) + len(block) >= height and at > 1:
                lines.append(Text(f"and {len(groups) - at + 1:,} more", style="dim"))
                break
            lines.extend(block)
        return Lines(*lines)


def main(args: Sequence[str]) -> int:
    """Runs the tool with the arguments behind its name; returns the exit status."""
    known = parser("top", "The consumer groups of a server, those in trouble first, live.")
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
    return run("top", lambda: _watch(options.url, options.pattern, options.every, options.times))


def _watch(url: str, pattern: str, every: float, times: int) -> int:
    screen = console()
    with connected(url) as server, Live(console=screen, screen=screen.is_terminal) as live:
        watch, looks = Watch(server, pattern), 0
        while True:
            live.update(watch.look(screen.width, screen.height), refresh=True)
            looks += 1
            if looks == times:
                break
            time.sleep(every)
    if not screen.is_terminal:
        screen.print()
    return 0
