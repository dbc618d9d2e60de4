"""redis-cli as ann and bob: each command a process, and one that is killed while it waits."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.clients.story import ITEMS, PATIENCE_MS, SUMMARY, Observer
from tests.clients.test_redis_cli import TIMEOUT_S, Cli, version
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.skipif(version() < (7,), reason="redis-cli 7 or later is not installed")


@pytest.fixture
def cli(penstock: PenstockThread) -> Cli:
    return Cli(penstock)


def read(printed: str, protocol: int) -> dict[str, Any]:
    """The streams of a reply that was printed as JSON."""
    reply = json.loads(printed)
    return dict(reply) if protocol == 2 else reply


def items(*ids: str) -> list[Any]:
    """Entries of the story as redis-cli prints them."""
    return [[entry_id, ["item", ITEMS[entry_id]["item"]]] for entry_id in ids]


def test_a_killed_consumer_is_replaced(cli: Cli, observer: Observer, protocol: int) -> None:
    # --json asks for RESP3; -2 after it goes back.
    options = ["--json"] if protocol == 3 else ["--json", "-2"]
    take = ["XREADGROUP", "GROUP", "packers", "ann", "COUNT", "2", "BLOCK", str(PATIENCE_MS)]
    take += ["STREAMS", "orders", ">"]
    assert cli("XGROUP", "CREATE", "orders", "packers", "0", "MKSTREAM") == "OK\n"
    waiting = cli.start(*options, *take)
    observer.until_waiting()
    assert cli("XADD", "orders", "1-0", "item", "pen") == "1-0\n"
    printed, complaints = waiting.communicate(timeout=TIMEOUT_S)
    assert (read(printed, protocol), complaints) == ({"orders": items("1-0")}, "")
    assert cli("XACK", "orders", "packers", "1-0") == "1\n"

    cli("XADD", "orders", "2-0", "item", "ink")
    cli("XADD", "orders", "3-0", "item", "paper")
    # She takes both and waits for a third one.
    with cli.start("-r", "2", *options, *take) as dying:
        observer.until_pending(2)
        observer.until_waiting()
        dying.send_signal(signal.SIGKILL)
    observer.until_waiting(0)

    claimed = json.loads(cli(*options, "XAUTOCLAIM", "orders", "packers", "bob", "0", "0"))
    assert claimed == ["0-0", items("2-0", "3-0"), []]
    assert cli("XACK", "orders", "packers", "2-0") == "1\n"
    assert cli("XPENDING", "orders", "packers") == "1\n3-0\n3-0\nbob\n1\n"
    assert observer.summary() == SUMMARY
