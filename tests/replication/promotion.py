"""The end of a history: the primary is killed, and one of its replicas takes over.

What WAIT has confirmed must be there: no entry is lost, and no acknowledgement is forgotten.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from tests.durability.talking import AsyncTalker, Talker
from tests.replication.nodes import Node

STREAM, GROUP = "orders", "kitchen"
WRITERS: Final = 3
CONSUMERS: Final = 3
_LEFT: Final = 5
"""One of so many entries is left pending, for others to claim."""
_TIMEOUT_MS: Final = 5000


class Promotion:
    """Writers and consumers who have WAIT confirm what they do, before the primary is killed."""

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._added: set[int] = set()
        """The numbers of entries that are confirmed."""
        self._acknowledged: set[int] = set()
        """The numbers of entries whose acknowledgement is confirmed."""
        self._asked: set[int] = set()
        """The numbers of entries that were acknowledged, as far as the consumer knows."""
        self._next = 0

    async def work(self, port: int, enough: asyncio.Event) -> None:
        """Works until the server ends; sets ``enough`` when much has been confirmed."""
        with Talker(port) as first:
            first.ask("FLUSHALL")
            assert first.ask("XGROUP", "CREATE", STREAM, GROUP, "0", "MKSTREAM") == "OK"
        talkers = [AsyncTalker(port) for _ in range(WRITERS + CONSUMERS)]
        works = [self._write(talker, enough) for talker in talkers[:WRITERS]]
        works += [
            self._consume(talker, f"consumer-{number}")
            for number, talker in enumerate(talkers[WRITERS:])
        ]
        results = await asyncio.gather(*works, return_exceptions=True)
        for talker in talkers:
            talker.close()
        for result in results:
            assert isinstance(result, ConnectionError), result

    async def _write(self, talker: AsyncTalker, enough: asyncio.Event) -> None:
        while True:
            number = self._next
            self._next += 1
            await talker.ask("XADD", STREAM, "*", "number", number)
            if await self._confirmed(talker):
                self._added.add(number)
            if len(self._added) > 300 and len(self._acknowledged) > 50:
                enough.set()

    async def _consume(self, talker: AsyncTalker, name: str) -> None:
        taken = ("COUNT", 5, "BLOCK", 100, "STREAMS", STREAM, ">")
        while True:
            reply = await talker.ask("XREADGROUP", "GROUP", GROUP, name, *taken)
            for entry_id, fields in reply[0][1] if reply else []:
                number = int(fields[1])
                if number % _LEFT == 0:
                    continue
                self._asked.add(number)
                await talker.ask("XACK", STREAM, GROUP, entry_id)
                if await self._confirmed(talker):
                    self._acknowledged.add(number)

    async def _confirmed(self, talker: AsyncTalker) -> bool:
        return int(await talker.ask("WAIT", 1, _TIMEOUT_MS)) >= 1

    # --- afterwards -----------------------------------------------------------------------

    def check(self, promoted: Node) -> None:
        """Consumers go on at the server that has taken over; raises :class:`AssertionError`."""
        with Talker(promoted.port) as talker:
            there = {int(fields[1]) for _, fields in talker.ask("XRANGE", STREAM, "-", "+")}
            lost = self._added - there
            assert not lost, f"entries that WAIT has confirmed are lost: {sorted(lost)}"
            delivered = finish(talker)
            again = delivered & self._acknowledged
            assert not again, f"acknowledged entries are delivered again: {sorted(again)}"
            forgotten = there - delivered - self._asked
            assert not forgotten, f"entries that nobody has acknowledged: {sorted(forgotten)}"
            assert talker.ask("XPENDING", STREAM, GROUP)[0] == 0
        self._counts["entries confirmed by WAIT before the promotion"] += len(self._added)
        self._counts["acknowledgements confirmed by WAIT"] += len(self._acknowledged)
        self._counts["entries delivered after the promotion"] += len(delivered)


def finish(talker: Talker, group: str = GROUP) -> set[int]:
    """Claims and reads all that is left, and acknowledges it; returns the numbers."""
    numbers: set[int] = set()
    while True:
        claimed = talker.ask("XAUTOCLAIM", STREAM, group, "heir", 0, "0", "COUNT", 100)[1]
        reply = talker.ask(
            "XREADGROUP", "GROUP", group, "heir", "COUNT", 100, "STREAMS", STREAM, ">"
        )
        entries = [*claimed, *(reply[0][1] if reply else [])]
        if not entries:
            return numbers
        entry_ids = [entry_id for entry_id, _ in entries]
        assert talker.ask("XACK", STREAM, group, *entry_ids) == len(entries)
        numbers |= {int(fields[1]) for _, fields in entries}
