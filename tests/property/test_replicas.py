"""What random commands leave in a primary, real servers that replicate it hold as well."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.durability.talking import Talker
from tests.property.stream_commands import Words
from tests.replication.contents import contents_of, difference
from tests.replication.nodes import SERVERS, Node, program_of, replica
from tests.replication.pool import EVERY_COMMAND
from tests.support.examples import scaled
from tests.support.servers import PenstockThread
from tests.support.wire import wait_until

pytestmark = pytest.mark.reference

WAIT_MS = 60_000


def _lasts(command: Words) -> bool:
    """Whether nothing expires because of the command while the test runs."""
    return command[0] != "PEXPIRE" or command[-1] != "400"


COMMANDS = st.lists(EVERY_COMMAND.filter(_lasts), min_size=20, max_size=60)


@pytest.fixture(scope="module")
def primary() -> Iterator[PenstockThread]:
    """A server in this process."""
    with PenstockThread(repl_ping_replica_period=1) as thread:
        yield thread


@pytest.fixture(scope="module")
def replicas(
    primary: PenstockThread, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Node]]:
    """Each real server that there is, following the primary."""
    folder: Path = tmp_path_factory.mktemp("replicas")
    names = [name for name in SERVERS if program_of(name) is not None]
    if not names:
        pytest.skip("there is no real server")
    nodes = [replica(name, folder / name, primary.port) for name in names]
    try:
        for node in nodes:
            asyncio.run(node.start())
        for node in nodes:
            wait_until(lambda node=node: node.info("replication")["master_link_status"] == "up")  # type: ignore[misc]
        yield nodes
    finally:
        for node in nodes:
            node.kill()


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(COMMANDS)
def test_replicas_hold_what_their_primary_holds(
    primary: PenstockThread, replicas: list[Node], commands: list[Words]
) -> None:
    with Talker(primary.port) as talker:
        talker.ask("FLUSHALL")
        for command in commands:
            talker.ask(*command)
        assert talker.ask("WAIT", len(replicas), WAIT_MS) == len(replicas)
    mine = contents_of(primary.port)
    for node in replicas:
        assert difference(mine, contents_of(node.port), node.name) == ""
