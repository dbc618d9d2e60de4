"""A primary with real replicas, under random load and faults, compared again and again.

``python -m tests.replication.histories --seconds 600 --seed 7`` runs for ten minutes with a Redis
7.0, a Redis 8.0 and a Valkey 9.1 from the folder that ``PENSTOCK_REFERENCE_SERVERS`` names, and
prints what was counted. It ends with status 1, and keeps the folder with the logs, if a replica
differs from its primary.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from tests.durability.talking import Talker
from tests.replication.contents import contents_of, difference
from tests.replication.links import Link
from tests.replication.load import Load
from tests.replication.nodes import POLL_S, SERVERS, Node, primary, replica
from tests.replication.pool import draw_commands
from tests.replication.promotion import Promotion
from tests.support import logs
from tests.support.process import TIMEOUT_S

BACKLOG: Final = 512 * 1024
OPTIONS: Final = (
    *("--repl-backlog-size", str(BACKLOG), "--repl-ping-replica-period", "1"),
    *("--client-output-buffer-limit", "replica 4mb 2mb 5", "--auto-aof-rewrite-min-size", "2mb"),
)
POOL: Final = 6000
"""How many random commands there are to choose from."""
SOON_MS: Final = 3000
"""No key expires while servers are compared: those that would are waited for."""
FAULTS_AT_MOST: Final = 4
"""How many faults there are between two comparisons."""


class Follower:
    """A replica with the link that it has to its primary."""

    def __init__(self, node: Node, link: Link) -> None:
        self.node = node
        self.link = link

    def position(self) -> int:
        """How much of the stream it has; -1 while it does not follow."""
        info = self.node.info("replication")
        up = info.get("master_link_status") == "up"
        return int(info["slave_repl_offset"]) if up else -1


class History:
    """What happens to one primary and its replicas, all of it drawn from ``number``."""

    def __init__(self, folder: Path, number: int, names: Sequence[str], pool: int = POOL) -> None:
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(number)
        self._number = number
        self._pool = draw_commands(number, pool)
        self._primary = primary(folder / "penstock", *OPTIONS)
        self._followers: list[Follower] = []
        for index, name in enumerate(names):
            link = Link(self._primary.port)
            node = replica(name, folder / f"{index}-{name}", link.port)
            self._followers.append(Follower(node, link))
        self._noted: Counter[str] = Counter()
        self._load: Load
        self._log = folder / "history"

    async def run(self, seconds: float) -> None:
        """Lives for so long, and a promotion longer; raises :class:`AssertionError` if anything is
        not as it must be."""
        try:
            await self._begin()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                await self._live()
                await self._compare()
            await self._load.stop()
            await self._promote()
        finally:
            await self._end()
        log = self._primary.log.read_text()
        assert "Traceback" not in log, log[log.index("Traceback") :]

    async def _begin(self) -> None:
        await self._primary.start()
        for follower in self._followers:
            await follower.link.open()
            await follower.node.start()
        self._load = Load(self._primary.port, self._number, self._pool, self.counts)

    async def _end(self) -> None:
        for node in (self._primary, *(each.node for each in self._followers)):
            node.kill()
        for follower in self._followers:
            await follower.link.close()

    def _say(self, text: str) -> None:
        """Notes what happens, for whoever looks for the cause of a difference."""
        with self._log.open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    # --- faults ---------------------------------------------------------------------------

    async def _live(self) -> None:
        """Load for some seconds, with some faults."""
        self._load.go_on()
        faults: list[tuple[str, Callable[[], Awaitable[None]], int]] = [
            ("the primary killed", self._kill_primary, 1),
            ("a replica killed", self._kill_replica, 2),
            ("a replica shut down and started", self._restart_replica, 2),
            ("a link broken for a moment", self._break_shortly, 4),
            ("a link broken for long", self._break_for_long, 2),
            ("a replica stopped for a while", self._stop_replica, 2),
            ("BGREWRITEAOF", lambda: self._write_all("BGREWRITEAOF"), 1),
            ("BGSAVE", lambda: self._write_all("BGSAVE"), 1),
        ]
        for _ in range(self._chance.randint(1, FAULTS_AT_MOST)):
            await asyncio.sleep(self._chance.uniform(0.1, 1))
            name, fault, _ = self._chance.choices(faults, [weight for *_, weight in faults])[0]
            self._say(name)
            await fault()
            self.counts[name] += 1
        await asyncio.sleep(self._chance.uniform(0.1, 1))

    def _some(self) -> Follower:
        return self._chance.choice(self._followers)

    async def _kill_primary(self) -> None:
        self._note_syncs()
        self._primary.kill()
        self._noted.clear()
        await self._primary.start()

    async def _kill_replica(self) -> None:
        node = self._some().node
        node.kill()
        await asyncio.sleep(self._chance.uniform(0, 0.5))
        await node.start()

    async def _restart_replica(self) -> None:
        node = self._some().node
        node.shut_down()
        await node.start()

    async def _break_shortly(self) -> None:
        """A replica comes back soon: it must be let go on where it was."""
        follower = self._some()
        if not await self._follows(follower):
            return
        before, begin = self._primary.info("stats"), self._end_of_stream()
        follower.link.cut()
        while follower.position() >= 0:
            await asyncio.sleep(POLL_S)
        follower.link.mend()
        if not await self._follows(follower):
            return
        after = self._primary.info("stats")
        if self._end_of_stream() - begin < BACKLOG // 2:
            self.counts["... after which the replica went on where it was"] += 1
            resumed = int(after["sync_partial_ok"]) - int(before["sync_partial_ok"])
            assert resumed > 0, f"{follower.node.name} had to synchronise anew"

    async def _break_for_long(self) -> None:
        """A replica comes back when what it lacks has been dropped."""
        follower = self._some()
        begin = self._end_of_stream()
        follower.link.cut()
        deadline = time.monotonic() + TIMEOUT_S
        while self._end_of_stream() - begin < 2 * BACKLOG and time.monotonic() < deadline:
            await asyncio.sleep(10 * POLL_S)
        follower.link.mend()

    async def _stop_replica(self) -> None:
        node = self._some().node
        node.send_signal(signal.SIGSTOP)
        await asyncio.sleep(self._chance.uniform(0.5, 4))
        node.send_signal(signal.SIGCONT)

    async def _write_all(self, command: str) -> None:
        """The primary writes all that it has, in the background."""
        with Talker(self._primary.port) as talker:
            talker.ask(command)

    # --- comparing ------------------------------------------------------------------------

    async def _compare(self) -> None:
        """Load pauses, and all replicas have to show what their primary shows."""
        self._say("the load is to pause")
        await self._load.pause()
        self._say("it pauses")
        await self._nothing_expires()
        for follower in self._followers:
            assert await self._caught_up(follower), (
                f"{follower.node.name} does not catch up: it is at {follower.position()},"
                f" and the stream ends at {self._end_of_stream()}"
            )
        self._say("servers are compared")
        mine = contents_of(self._primary.port)
        for follower in self._followers:
            theirs = contents_of(follower.node.port)
            assert not (differs := difference(mine, theirs, follower.node.name)), differs
            self.counts["comparisons of a replica with its primary"] += 1
            self.counts["views compared"] += len(mine)
        self._note_syncs()

    async def _nothing_expires(self) -> None:
        """Returns when no key is left that will soon be gone."""
        with Talker(self._primary.port) as talker:
            while _expires_soon(talker):
                await asyncio.sleep(10 * POLL_S)

    def _end_of_stream(self) -> int:
        return int(self._primary.info("replication")["master_repl_offset"])

    async def _follows(self, follower: Follower) -> bool:
        """Waits until a replica follows; false if it does not in all the time that there is."""
        deadline = time.monotonic() + TIMEOUT_S
        while follower.position() < 0 and time.monotonic() < deadline:
            await asyncio.sleep(5 * POLL_S)
        return time.monotonic() < deadline

    async def _caught_up(self, follower: Follower) -> bool:
        """Waits until a replica has all of the stream."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            if follower.position() == self._end_of_stream():
                return True
            await asyncio.sleep(POLL_S)
        return False

    def _note_syncs(self) -> None:
        """Adds what the primary has counted since the last time."""
        stats = self._primary.info("stats")
        titles = {"sync_full": "full synchronisations", "sync_partial_ok": "partial ones"}
        for name, title in titles.items():
            self.counts[title] += int(stats[name]) - self._noted[name]
            self._noted[name] = int(stats[name])

    # --- the end --------------------------------------------------------------------------

    async def _promote(self) -> None:
        """The primary is killed for ever; the replica that has most of its stream takes over."""
        promotion = Promotion(self.counts)
        enough = asyncio.Event()
        working = asyncio.ensure_future(promotion.work(self._primary.port, enough))
        waiting = asyncio.ensure_future(enough.wait())
        await asyncio.wait({working, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not enough.is_set():
            await working  # Which says why.
        if len(self._followers) > 1:
            self._some().link.cut()  # One of them has less than the others.
            await asyncio.sleep(0.5)
        self._primary.kill()
        await working
        promoted = max(self._followers, key=lambda each: _received(each.node)).node
        with Talker(promoted.port) as talker:
            assert talker.ask("REPLICAOF", "NO", "ONE") == "OK"
        promotion.check(promoted)
        self.counts["promotions"] += 1


def _received(node: Node) -> int:
    return int(node.info("replication")["slave_repl_offset"])


def _expires_soon(talker: Talker) -> bool:
    """Whether a key of any database will be gone in :data:`SOON_MS`."""
    for database in range(3):
        talker.ask("SELECT", database)
        for key in talker.ask("KEYS", "*"):
            if -1 < talker.ask("PTTL", key) < SOON_MS:
                return True
    return False


def table(counts: Counter[str]) -> str:
    """The counts as a table of Markdown."""
    rows = [f"| {name} | {count:,} |" for name, count in sorted(counts.items())]
    return "\n".join(["| what | how often |", "|---|---:|", *rows])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.replication.histories")
    parser.add_argument("--seconds", type=float, default=600, help="how long, without the end")
    parser.add_argument("--seed", type=int, default=1, help="what all that is random is drawn from")
    parser.add_argument("--server", choices=SERVERS, action="append", help="only these replicas")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp())
    history = History(folder, options.seed, options.server or list(SERVERS))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        asyncio.run(history.run(options.seconds))
        assert not (errors := logs.take()), errors
    except AssertionError as error:
        print(table(history.counts))
        print(f"{error}\nThe logs are in {folder}.", file=sys.stderr)
        return 1
    print(table(history.counts))
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
