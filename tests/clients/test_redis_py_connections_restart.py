"""redis-py's retries: the server is killed under a waiting consumer, and started again."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from tests.clients.conftest import BOTH_CLIENTS, Connect
from tests.clients.observing import until_parked
from tests.support.process import PenstockProcess

BACKOFF = ConstantBackoff(0.05)
RETRIES = 400
PATIENCE_MS = 20_000

FIRST: tuple[str, dict[Any, Any]] = ("1-0", {"item": "pen"})
SECOND: tuple[str, dict[Any, Any]] = ("2-0", {"item": "ink"})


def start(folder: Path, port: int = 0) -> PenstockProcess:
    """A server that remembers what it did in that folder."""
    return PenstockProcess("--port", str(port), "--appendonly", "yes", "--dir", str(folder))


def prepare(client: Any) -> None:
    """An entry that ann has not acknowledged."""
    client.xgroup_create("orders", "packers", id="0", mkstream=True)
    client.xadd("orders", FIRST[1], id=FIRST[0])
    assert client.xreadgroup("packers", "ann", {"orders": ">"}) == {"orders": [FIRST]}


def serve(client: Any) -> None:
    """Gives the one who waits what she waits for."""
    until_parked(client, 1)
    client.xadd("orders", SECOND[1], id=SECOND[0])


def check(client: Any) -> None:
    """Nothing is lost: both entries are ann's."""
    rows = client.xpending_range("orders", "packers", "-", "+", 10)
    assert [(row["message_id"], row["consumer"], row["times_delivered"]) for row in rows] == [
        ("1-0", "ann", 1),
        ("2-0", "ann", 1),
    ]


@BOTH_CLIENTS
def test_a_waiting_consumer_lives_through_a_crash_of_the_server(
    tmp_path: Path, open_client: Connect, pool: ThreadPoolExecutor, kind: str
) -> None:
    retry = Retry(BACKOFF, RETRIES) if kind == "blocking" else AsyncRetry(BACKOFF, RETRIES)
    with start(tmp_path) as server:
        host, port = server.address
        client = open_client(host=host, port=port, retry=retry)
        prepare(client)
        waiting = pool.submit(
            client.xreadgroup, "packers", "ann", {"orders": ">"}, block=PATIENCE_MS
        )
        until_parked(client, 1)
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    with start(tmp_path, port):
        serve(client)
        assert waiting.result() == {"orders": [SECOND]}
        check(client)
