"""A real server that takes over from a primary with policies can deliver every entry, those as well
that were kept back there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from tests.durability.talking import Talker
from tests.replication.nodes import SERVERS, program_of, replica
from tests.replication.promotion import STREAM, finish
from tests.support.servers import PenstockThread
from tests.support.wire import wait_until

pytestmark = pytest.mark.reference

FEW: Final = 200
GROUPS: Final = {
    "ordered": ("order-by", "lane"),
    "delayed": ("delay-field", "at"),
    "ranked": ("priority-field", "number"),
    "together": ("order-by", "lane", "delay-field", "at", "priority-field", "number"),
}
WAIT_MS: Final = 60_000


def work(talker: Talker, numbers: range) -> dict[str, set[int]]:
    """Adds entries, and acknowledges some of them in each group; returns which."""
    for number in numbers:
        at = 9_000_000_000_000 if number % 2 else 0
        fields = ("number", number, "lane", number % 3, "at", at)
        talker.ask("XADD", STREAM, "*", *fields)
    return {group: _acknowledge(talker, group) for group in GROUPS}


def _acknowledge(talker: Talker, group: str) -> set[int]:
    words = ("XREADGROUP", "GROUP", group, "worker", "COUNT", 10, "STREAMS", STREAM, ">")
    reply = talker.ask(*words)
    done = reply[0][1][::2] if reply else []
    for entry_id, _ in done:
        assert talker.ask("XACK", STREAM, group, entry_id) == 1
    return {int(fields[1]) for _, fields in done}


def kept_back(talker: Talker, group: str) -> int:
    """How many entries are pending that nobody was given yet."""
    rows = talker.ask("XPENDING", STREAM, group, "-", "+", 2 * FEW)
    return sum(owner == "" and not count for _, owner, _, count in rows)


@pytest.mark.parametrize("name", SERVERS)
def test_what_was_kept_back_is_delivered_by_the_replica_that_takes_over(
    name: str, tmp_path: Path
) -> None:
    if program_of(name) is None:
        pytest.skip(f"{name} is not there")
    with PenstockThread(repl_ping_replica_period=1) as primary, Talker(primary.port) as talker:
        for group, policies in GROUPS.items():
            talker.ask("XGROUP", "CREATE", STREAM, group, 0, "MKSTREAM")
            words = ("PENSTOCK", "POLICY", "SET", STREAM, "GROUP", group, *policies)
            assert talker.ask(*words) == "OK"
        before = work(talker, range(FEW))
        node = replica(name, tmp_path / name, primary.port)
        try:
            asyncio.run(node.start())
            wait_until(lambda: node.info("replication")["master_link_status"] == "up")
            after = work(talker, range(FEW, 2 * FEW))
            assert talker.ask("WAIT", 1, WAIT_MS) == 1
            assert all(kept_back(talker, group) > 10 for group in GROUPS)
            with Talker(node.port) as heir:
                assert heir.ask("REPLICAOF", "NO", "ONE") == "OK"
                for group in GROUPS:
                    done = before[group] | after[group]
                    assert finish(heir, group) == set(range(2 * FEW)) - done
        finally:
            node.kill()
