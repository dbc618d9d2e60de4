"""Explorations on a server that cannot hold commands, through a proxy: they find what explorations
on Penstock find, with the same commands. That server is a Penstock without DEBUG, or a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from redis import Redis

from penstock.client.errors import AddressError
from penstock.explore.foreign import ForeignServer
from penstock.explore.traces import Call
from penstock.testing import Penstock, PenstockError, exploring
from penstock.testing.exploring import Program
from tests.conformance.reference import RealServer
from tests.penstock.explore.processes import (
    MENDED,
    ONCE,
    POLLING,
    QUEUED,
    REPAIRING,
    WAITING,
)
from tests.penstock.explore.test_held_lives import counted_once, empty, fill
from tests.penstock.explore.test_held_turns import (
    LOOK_THEN_TAKE,
    PRODUCING,
    READING,
    TAKE_IF_UNCHANGED,
)
from tests.penstock.explore.workers import not_oversold, one_in_stock
from tests.replication.nodes import SERVERS as REAL
from tests.replication.nodes import program_of
from tests.support.servers import PenstockThread

Written = Callable[[str], Program]

SERVERS = ["penstock", *(pytest.param(name, marks=pytest.mark.reference) for name in REAL)]

CLAIMING = """
while True:
    claimed = ask("XAUTOCLAIM", "s", "g", "a", "60000", "0")[1]
    read = claimed or ask("XREADGROUP", "GROUP", "g", "a", "BLOCK", "5000", "STREAMS", "s", ">")
    for entry in claimed or (read[0][1] if read else []):
        ask("SET", "total", "5")
        ask("XACK", "s", "g", entry[0])
"""
"""Takes over what nobody has done for a minute."""

LOCKING = """
if ask("SET", "lock", "mine", "NX", "PX", "30000"):
    if ask("GET", "done") is None:
        ask("INCRBY", "total", "5")
        ask("SET", "done", "1")
    ask("DEL", "lock")
"""

SCRIPTED = """
ask("EVAL", "redis.call('INCRBY', KEYS[1], 5) return redis.call('SET', KEYS[2], 1)", "2", "a", "b")
ask("EVAL", "return redis.call('MSETNX', KEYS[1], 5, KEYS[2], 1)", "2", "total", "done")
"""

LEARNING = """
import hashlib

script = "return redis.call('MSETNX', KEYS[1], 5, KEYS[2], 1)"
sha = hashlib.sha1(script.encode()).hexdigest()
if ask("EVALSHA", sha, "2", "total", "done").startswith("NOSCRIPT"):
    ask("EVAL", script, "2", "total", "done")
"""

POPPING = """
while ask("BLPOP", "jobs", "2.5"):
    ask("INCRBY", "total", "5")
ask("SET", "over", "1")
"""

TRYING_AGAIN = """
def total():
    return ask("GET", "total")

try:
    total() or ask("INCRBY", "total", "5")
except SystemExit:
    connection = socket.create_connection((url.hostname, url.port))
    replies = connection.makefile("rb")
    total() or ask("INCRBY", "total", "5")
"""

PIPELINED = """
words = (b"INCRBY total 5", b"MULTI", b"SET done 1", b"GET done", b"EXEC", b"GET total")
requests = [b"".join(b"$%d\\r\\n%b\\r\\n" % (len(w), w) for w in each.split()) for each in words]
connection.sendall(b"".join(b"*%d\\r\\n" % r.count(b"$") + r for r in requests))
found = [answer() for _ in words]
"""


class Tried(NamedTuple):
    """What an exploration has found."""

    report: list[str]
    diverged: list[str]
    outcomes: list[tuple[str, str, list[str]]]


@pytest.fixture(params=SERVERS)
def foreign(request: pytest.FixtureRequest) -> Iterator[ForeignServer]:
    """A database of a server that was not made for tests."""
    if request.param == "penstock":
        started: Any = PenstockThread()
    else:
        path = program_of(request.param)
        started = RealServer(str(path) if path else None)
    with started, ForeignServer(f"redis://127.0.0.1:{started.port}") as server:
        yield server


@pytest.fixture
def tried(session: exploring.ExploringSession) -> Callable[..., Tried]:
    """Explores; returns what was found, without what differs from run to run."""

    def tried(explore: Callable[..., object], *workers: Program, **options: Any) -> Tried:
        report = ""
        try:
            explore(*workers, **options)
        except AssertionError as error:
            report = str(error)
        [found] = session.take()
        outcomes = [
            (
                outcome.id,
                outcome.wrong,
                [f"{who}: {Call(tuple(text.split())).shape}" for who, text in outcome.lanes],
            )
            for outcome in found.outcomes
        ]
        lines = [Call((line,)).shape for line in (report or found.summary).splitlines()]
        return Tried(lines, found.diverged, outcomes)

    return tried


SLOW = ("waiting", "polling", "repairing", "watching")


def cases(named: dict[str, tuple[Any, dict[str, Any]]]) -> list[Any]:
    """What a test is to be tried with; what has many scenarios is slow."""
    return [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] if name in SLOW else [])
        for name, case in named.items()
    ]


GROUP: dict[str, Any] = {"prepare": fill, "done": empty}

JOBS: dict[str, Any] = {"prepare": lambda client: client.rpush("jobs", "tea")}

CRASHES: dict[str, tuple[str, dict[str, Any]]] = {
    "wrong": (ONCE, {}),
    "mended": (MENDED, {}),
    "a transaction": (QUEUED, {"kinds": ["crash", "connection", "stall"]}),
    "waiting": (WAITING, GROUP),
    "polling": (POLLING, {**GROUP, "kinds": "crash-before"}),
    "repairing": (REPAIRING, GROUP),
    "claiming": (CLAIMING, {**GROUP, "kinds": ["crash-before", "stall"]}),
    "a lock": (LOCKING, {"kinds": ["crash-after", "stall"]}),
    "scripts": (SCRIPTED, {}),
    "popping": (POPPING, JOBS),
    "trying again": (TRYING_AGAIN, {"kinds": "connection"}),
    "pipelined": (PIPELINED, {}),
}


@pytest.mark.parametrize(("text", "options"), cases(CRASHES))
def test_crashes_on_it_are_those_on_penstock(
    foreign: ForeignServer,
    penstock: Penstock,
    program: Written,
    tried: Callable[..., Tried],
    text: str,
    options: dict[str, Any],
) -> None:
    worker = program(text)
    expected = tried(penstock.explore.crashes, worker, invariant=counted_once, **options)
    assert expected.outcomes
    assert tried(foreign.explore.crashes, worker, invariant=counted_once, **options) == expected
    assert foreign.ask("DBSIZE") == 0


STOCK: dict[str, Any] = {"prepare": one_in_stock, "invariant": not_oversold}

COOKING: dict[str, Any] = {
    "prepare": lambda client: client.xgroup_create("orders", "kitchen", "0", mkstream=True),
    "invariant": lambda client: client.exists("cup:1-0", "cup:2-0") == 0,
    "preemptions": 0,
}

PATIENT = 'ask("BLPOP", "jobs", "7"); ask("SET", "late", "1")'

ORDERS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "overselling": ([LOOK_THEN_TAKE, LOOK_THEN_TAKE], STOCK),
    "watching": ([TAKE_IF_UNCHANGED, TAKE_IF_UNCHANGED], STOCK),
    "woken": ([READING.format("ann"), PRODUCING], COOKING),
    "patient": ([PATIENT, "ask('GET', 'late')"], {}),
    "given": ([PATIENT, "ask('RPUSH', 'jobs', 'tea')"], {}),
}


@pytest.mark.parametrize(("texts", "options"), cases(ORDERS))
def test_orders_on_it_are_those_on_penstock(
    foreign: ForeignServer,
    penstock: Penstock,
    program: Written,
    tried: Callable[..., Tried],
    texts: list[str],
    options: dict[str, Any],
) -> None:
    workers = {name: program(text) for name, text in zip(("ann", "bob"), texts, strict=True)}
    expected = tried(penstock.explore.orders, **workers, **options)
    assert expected.outcomes
    assert tried(foreign.explore.orders, **workers, **options) == expected
    assert foreign.ask("DBSIZE") == 0


def test_a_script_that_the_server_has_learnt_is_told_once(
    foreign: ForeignServer, program: Written
) -> None:
    result = foreign.explore.crashes(program(LEARNING), invariant=counted_once)
    assert [outcome.id for outcome in result.outcomes] == ["crash-before@0", "crash-after@0"]
    [told] = result.diverged
    assert told.startswith("two runs without any fault differ: command 1 was EVAL return ")


def test_a_database_with_keys_is_left_alone_unless_that_is_allowed(
    foreign: ForeignServer, program: Written
) -> None:
    foreign.ask("SET", "precious", "1")
    with pytest.raises(PenstockError) as refused:
        foreign.explore.crashes(program(MENDED), invariant=counted_once)
    assert str(refused.value) == (
        f"{foreign.name} has 1 key, which would be deleted: "
        "name an empty database, or allow that by --flush"
    )
    assert foreign.ask("GET", "precious") == "1"
    with ForeignServer(foreign.url, flush=True) as flushing:
        result = flushing.explore.crashes(program(MENDED), invariant=counted_once)
    assert (result.explored, foreign.ask("DBSIZE")) == (2, 0)


@pytest.mark.reference
def test_a_node_of_a_cluster_is_refused(real_server: str, program: Written) -> None:
    with (
        RealServer(real_server, "--cluster-enabled", "yes") as node,
        ForeignServer(f"redis://127.0.0.1:{node.port}") as foreign,
        pytest.raises(PenstockError, match=r"on one server without TLS: .*; this one is a cluster"),
    ):
        foreign.explore.crashes(program(MENDED))


def test_other_databases_are_left_alone(foreign: ForeignServer, program: Written) -> None:
    with Redis.from_url(foreign.url, db=4, decode_responses=True) as other:
        other.set("precious", "1")
        foreign.explore.crashes(program(MENDED), invariant=counted_once)
        assert other.get("precious") == "1"
        other.flushdb()


# --- one in this process is enough ------------------------------------------------------------


LOGIN = """
from urllib.parse import unquote
ask("AUTH", url.username, unquote(url.password))
ask("SELECT", url.path[1:])
"""


def test_a_worker_logs_in_as_the_url_says(program: Written) -> None:
    with (
        PenstockThread(requirepass="p@ss") as server,
        ForeignServer(f"redis://default:p%40ss@127.0.0.1:{server.port}/2") as foreign,
    ):
        with pytest.raises(AssertionError, match="The first: crash-after@1"):
            foreign.explore.crashes(program(LOGIN + ONCE), invariant=counted_once)
        with pytest.raises(AssertionError, match="NOAUTH"):
            foreign.explore.crashes(program('sys.exit(ask("GET", "a"))'))


@pytest.mark.parametrize(
    ("login", "told"),
    [
        ("", "database 0 of {place} refuses: NOAUTH "),
        ("default:wrong@", "database 0 of {place} refuses: WRONGPASS "),
    ],
)
def test_a_login_that_is_refused_is_told(program: Written, login: str, told: str) -> None:
    with (
        PenstockThread(requirepass="secret") as server,
        ForeignServer(f"redis://{login}127.0.0.1:{server.port}") as foreign,
        pytest.raises(PenstockError) as refused,
    ):
        foreign.explore.crashes(program(ONCE))
    assert str(refused.value).startswith(told.format(place=f"127.0.0.1:{server.port}"))


@pytest.mark.parametrize(
    "url",
    [
        "rediss://127.0.0.1",
        "redis+cluster://127.0.0.1",
        "unix:///tmp/redis.sock",
        "127.0.0.1:6379",
        "redis://127.0.0.1?db=1",
    ],
)
def test_what_is_not_one_server_without_tls_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="on one server without TLS"):
        ForeignServer(url)


@pytest.mark.parametrize("url", ["redis://h:x", "redis://"])
def test_a_url_of_no_server_is_refused(url: str) -> None:
    with pytest.raises(AddressError, match="the URL is "):
        ForeignServer(url)
