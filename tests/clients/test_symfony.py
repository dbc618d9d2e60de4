"""Symfony Messenger, on a stream and the sorted set of what is delayed: a worker that is killed,
and one beside it. The same story goes for a real Redis."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from redis import Redis

from tests.clients.frameworks import TIMEOUT_S, kill
from tests.clients.observing import until
from tests.clients.test_debian import FOLDER, need
from tests.conformance.reference import RealServer, find_server
from tests.support.servers import PenstockThread

pytestmark = pytest.mark.slow

PACKAGES: Final = (
    *("php-cli", "php-redis"),
    *("php-symfony-redis-messenger", "php-symfony-event-dispatcher"),
)
"""Debian's, which bring what else they need."""

DELAY_MS: Final = 1000

ONCE: Final = ["pen", "ink", "paper", "later"]
"""The items that are packed when they are first tried to be."""


@pytest.fixture(params=["penstock", pytest.param("redis", marks=pytest.mark.reference)])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with ExitStack() as stack:
        if request.param == "penstock":
            yield stack.enter_context(PenstockThread()).port
        else:
            yield stack.enter_context(RealServer(find_server())).port


@pytest.fixture
def client(port: int) -> Iterator[Any]:
    with Redis(port=port, decode_responses=True) as client:
        yield client


def test_a_message_of_a_killed_worker_is_handled_by_the_other(port: int, client: Any) -> None:
    for package in PACKAGES:
        need(package)
    command = ["php", str(FOLDER / "symfony.php"), str(port)]

    def start(*words: str) -> subprocess.Popen[bytes]:
        worker = subprocess.Popen([*command, "work", *words], start_new_session=True)
        stack.callback(kill, worker)
        return worker

    def send(delay_ms: int, *items: str) -> None:
        subprocess.run([*command, "send", str(delay_ms), *items], timeout=TIMEOUT_S, check=True)

    def said(*lines: str) -> Callable[[], bool]:
        return lambda: set(lines) <= set(client.lrange("said", 0, -1))

    with ExitStack() as stack:
        ann = start("ann", "ink")
        send(0, "pen", "ink")
        until(said("ann packs pen", "ann takes ink"))
        [pending] = client.xpending_range("orders", "packers", "-", "+", 10)
        assert (pending["consumer"], pending["times_delivered"]) == ("ann", 1)

        begin = time.time() * 1000
        send(DELAY_MS, "later")
        [(_, due)] = client.zrange("orders__queue", 0, -1, withscores=True)
        assert begin + DELAY_MS - 1 <= due <= time.time() * 1000 + DELAY_MS

        start("bob")
        send(0, "paper", "torn", "broken")
        until(said("bob packs paper"))
        kill(ann)
        until(said("bob packs later"))
        assert time.time() * 1000 >= due
        until(said("bob packs torn", "bob rejects broken", "bob packs ink"))
        until(lambda: client.xinfo_groups("orders")[0]["pending"] == 0)

    lines = Counter(line.partition(" ")[2] for line in client.lrange("said", 0, -1))
    assert lines == {
        **{f"packs {item}": 1 for item in (*ONCE, "torn")},
        **{f"takes {item}": 2 if item == "ink" else 1 for item in ONCE},
        "takes torn": 2,
        "takes broken": 3,
        "rejects broken": 1,
    }
    # What was tried again was sent again; all is deleted when it is acknowledged or rejected.
    [group] = client.xinfo_groups("orders")
    assert (group["entries-read"], group["lag"], group["consumers"]) == (9, 0, 2)
    assert (client.xlen("orders"), client.zcard("orders__queue")) == (0, 0)
