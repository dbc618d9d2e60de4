"""Short histories, each with replicas of one server (``make replication-histories``: long ones)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.replication.histories import History, table
from tests.replication.nodes import SERVERS, program_of

SECONDS = 6
COMMANDS = 1000


def names_for(server: str) -> list[str]:
    """The replicas of a history; skips the test where their server is not there."""
    if program_of(server) is None:
        pytest.skip(f"no {SERVERS[server]} in the folder of servers")
    return [server, server]


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize("server", SERVERS)
async def test_replicas_hold_what_their_primary_holds_and_one_of_them_takes_over(
    server: str, tmp_path: Path
) -> None:
    history = History(tmp_path, 1, names_for(server), COMMANDS)
    await history.run(SECONDS)
    assert history.counts["comparisons of a replica with its primary"] >= 2
    assert history.counts["promotions"] == 1
    assert "| promotions | 1 |" in table(history.counts)
