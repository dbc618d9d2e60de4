"""Faults strike functions at every command, and what they break is found."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from penstock.explore.results import CrashOutcome, ExplorationResult
from penstock.testing import Penstock, exploring
from tests.penstock.explore.workers import (
    acknowledged,
    by_a_script,
    counted_once,
    counting_first,
    fill,
    in_a_transaction,
    only_new,
    read,
    without_end,
)


def found(session: exploring.ExploringSession) -> list[str]:
    """The scenarios of the last exploration that ended wrong."""
    return [outcome.id for outcome in session.found[-1].outcomes if outcome.wrong]


def report(penstock: Penstock, *args: Any, **options: Any) -> str:
    """The text of an exploration that fails."""
    with pytest.raises(AssertionError) as error:
        penstock.explore.crashes(*args, prepare=fill, **options)
    return str(error.value)


def test_a_worker_that_counts_before_it_acknowledges_counts_twice(penstock: Penstock) -> None:
    text = report(penstock, counting_first, invariant=counted_once)
    assert text.splitlines()[:6] == [
        "6 of 22 scenarios end wrong. The first: crash-after@2",
        "  total 20, should be 15",
        "  the first life of the worker:",
        "        0 XREADGROUP GROUP kitchen alice COUNT 1 STREAMS orders 0",
        "        1 XREADGROUP GROUP kitchen alice COUNT 1 STREAMS orders >",
        "  >     2 INCRBY total 5      crash-after: executed, its reply lost",
    ]
    assert text.splitlines()[-2:] == [
        "  others: crash-before@3,6,9 crash-after@5,8",
        "  this one alone: pytest ... --explore crash-after@2",
    ]


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("crash", []),
        ("stall", ["stall@3", "stall@8", "stall@13"]),
        ("connection", ["connection-after@6", "connection-after@11", "connection-after@16"]),
    ],
)
def test_a_transaction_survives_crashes_and_counts_twice_otherwise(
    penstock: Penstock, session: exploring.ExploringSession, kind: str, wrong: list[str]
) -> None:
    worker, recover = in_a_transaction(), in_a_transaction("bob")
    options: dict[str, Any] = {"prepare": fill, "invariant": counted_once, "recover": recover}
    if not wrong:
        assert penstock.explore.crashes(worker, kinds=kind, **options).complete
        return
    with pytest.raises(AssertionError, match="total 20, should be 15"):
        penstock.explore.crashes(worker, kinds=kind, **options)
    assert found(session) == wrong


@pytest.mark.parametrize("kind", ["crash", "connection", "stall"])
def test_a_script_that_asks_whether_it_acknowledged_is_right(penstock: Penstock, kind: str) -> None:
    result = penstock.explore.crashes(
        by_a_script(),
        recover=by_a_script("bob"),
        prepare=fill,
        invariant=counted_once,
        done=acknowledged,
        kinds=kind,
    )
    assert (result.complete, result.diverged) == (True, [])
    assert result.explored == result.of


def test_what_nobody_ever_does_is_told(penstock: Penstock) -> None:
    text = report(penstock, only_new, invariant=lambda client: None, done=acknowledged)
    assert "  after 6 lives it is not done, and never will be" in text.splitlines()


def test_a_failover_undoes_what_was_acknowledged(
    penstock: Penstock, session: exploring.ExploringSession
) -> None:
    def produce(client: Any) -> None:
        client.incr("made")
        client.incr("made")
        client.get("made")

    def made(client: Any) -> str:
        return "" if client.get("made") == "2" else f"made {client.get('made')}"

    for kind, left in (("failover", "1"), ("power-cut", "None")):
        session.only = f"{kind}@2"
        with pytest.raises(AssertionError, match=f"made {left}"):
            penstock.explore.crashes(
                produce, recover=lambda client: client.ping(), invariant=made, kinds=kind
            )
        assert found(session) == [f"{kind}@2"]


def test_a_worker_without_end_is_at_rest_once_all_is_done(penstock: Penstock) -> None:
    result = penstock.explore.crashes(
        without_end, prepare=fill, invariant=counted_once, done=acknowledged
    )
    assert result.complete
    assert result.explored > 10


def test_the_read_that_a_worker_is_at_rest_in_is_no_command_to_crash_at(penstock: Penstock) -> None:
    def waiting(client: Any) -> None:
        while True:
            for order, fields in read(client, "alice", ">", block=0):
                client.set(f"done:{fields['item']}", "1")
                client.xack("orders", "kitchen", order)

    def acknowledge(client: Any) -> None:
        client.xack("orders", "kitchen", *[order for order, _ in client.xrange("orders")])

    result = penstock.explore.crashes(waiting, prepare=fill, recover=acknowledge)
    assert [outcome.id for outcome in result.outcomes][-2:] == ["crash-before@8", "crash-after@8"]
    assert (result.commands, result.diverged) == (9, [])


def test_sleeps_pass_by_the_clock_of_the_server(penstock: Penstock) -> None:
    def polling(client: Any) -> None:
        while True:
            for order, fields in read(client, "alice", ">"):
                client.set(f"done:{fields['item']}", client.time()[0])
                client.xack("orders", "kitchen", order)
            time.sleep(3_000)

    def all_read(client: Any) -> None:
        times = [int(client.get(f"done:{item}")) for item in ("tea", "ink", "pen")]
        assert [later - earlier for earlier, later in pairwise(times)] == [3_000, 3_000]

    result = penstock.explore.crashes(
        polling, prepare=fill, invariant=all_read, done=acknowledged, kinds="connection-before"
    )
    assert result.complete


def test_two_faults_find_what_one_does_not(penstock: Penstock) -> None:
    def careful_once(client: Any) -> None:
        lives = client.incr("lives")
        client.set("ok", "no" if lives > 2 else "yes")

    def ok(client: Any) -> str:
        return "" if client.get("ok") == "yes" else "the third life"

    assert penstock.explore.crashes(careful_once, invariant=ok).complete
    text = report(penstock, careful_once, invariant=ok, depth=2)
    assert text.splitlines()[0] == (
        "9 of 20 scenarios end wrong. The first: crash-after@0+crash-after@0"
    )


def test_one_scenario_is_run_alone(penstock: Penstock, session: exploring.ExploringSession) -> None:
    session.only = "crash-after@5"
    text = report(penstock, counting_first, invariant=counted_once)
    assert text.splitlines()[0] == "1 of 1 scenario ends wrong. The first: crash-after@5"


def test_shards_try_everything_between_them(
    penstock: Penstock, session: exploring.ExploringSession
) -> None:
    names: list[str] = []
    for shard in ("1/3", "2/3", "3/3"):
        session.shard = shard
        result = penstock.explore.crashes(only_new, prepare=fill)
        assert result.complete
        names += [outcome.id for outcome in result.outcomes]
    session.shard = "1/1"
    whole = penstock.explore.crashes(only_new, prepare=fill)
    assert sorted(names) == sorted(outcome.id for outcome in whole.outcomes)


def test_a_bound_takes_the_same_scenarios_for_the_same_seed(penstock: Penstock) -> None:
    def tried(seed: int) -> list[str]:
        result = penstock.explore.crashes(only_new, prepare=fill, most=5, seed=seed)
        assert result.summary == f"5 of {result.of} scenarios, most=5"
        assert not result.complete
        return [outcome.id for outcome in result.outcomes]

    assert tried(1) == tried(1) != tried(2)


def test_a_worker_that_does_not_repeat_itself_is_told_of(penstock: Penstock) -> None:
    runs: list[int] = []

    def changing(client: Any) -> None:
        runs.append(1)
        client.set("a", len(runs))

    result = penstock.explore.crashes(changing)
    assert result.diverged[0] == (
        "two runs without any fault differ: command 0 was SET a 1, now SET a 2"
    )
    assert len(result.diverged) == 3


def test_what_is_wrong_without_a_fault_is_told_first(penstock: Penstock) -> None:
    text = report(penstock, lambda client: client.get("total"), invariant=counted_once)
    assert text.splitlines() == [
        "without any fault it ends wrong:",
        "  total None, should be 15",
        "  the worker:",
        "        0 GET total",
    ]


def test_a_worker_that_fails_each_time_is_wrong(penstock: Penstock) -> None:
    def failing(client: Any) -> None:
        raise RuntimeError("no")

    text = report(penstock, failing)
    assert text.splitlines()[1] == "  the last of 5 lives ended with RuntimeError: no"


def test_a_crash_ends_a_worker_that_catches_everything(penstock: Penstock) -> None:
    def stubborn(client: Any) -> None:
        try:
            client.set("a", 1)
        finally:
            client.set("cleaned", 1)

    def reached(client: Any) -> None:
        assert client.get("cleaned") is None or client.get("a") == "1"

    assert penstock.explore.crashes(stubborn, invariant=reached).complete


def test_connections_of_a_life_end_with_it(penstock: Penstock) -> None:
    """A transaction that a crash leaves open is none of the next life."""

    def opening(client: Any) -> None:
        pipe = client.pipeline()
        pipe.watch("a")
        pipe.multi()
        pipe.set("a", 1).execute()
        client.select(3)
        client.get("b")

    def in_the_first_database(client: Any) -> None:
        assert client.get("a") == "1"
        assert client.info("keyspace").keys() == {"db0"}

    assert penstock.explore.crashes(opening, invariant=in_the_first_database).complete


def test_the_server_is_left_with_its_clock_and_without_snapshots(penstock: Penstock) -> None:
    penstock.clock.freeze(1_000)
    penstock.explore.crashes(lambda client: client.set("a", 1))
    assert penstock.clock.now_ms == 1_000
    assert penstock.ask("DEBUG", "SNAPSHOT", "LIST") == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kinds": "fire"}, "'fire' is no kind of fault; allowed: crash, connection, "),
        ({"most": 0}, "most is None, or a number above 0, and not 0"),
        ({"seconds": -1}, "seconds is None, or a number above 0, and not -1"),
        ({"depth": 9}, "depth is a number from 1 to 3, and not 9"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    penstock: Penstock, options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        penstock.explore.crashes(only_new, prepare=fill, **options)


def test_what_is_no_function_is_refused(penstock: Penstock) -> None:
    with pytest.raises(TypeError, match="invariant is a function of a client, and not 15"):
        penstock.explore.crashes(only_new, invariant=15)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError,
        match="worker is a function of a client, a coroutine function of a URL, or a process",
    ):
        penstock.explore.crashes("node worker.mjs")  # type: ignore[arg-type]


def test_a_scenario_alone_that_strikes_nothing_is_no_success(
    penstock: Penstock, session: exploring.ExploringSession
) -> None:
    session.only = "crash-after@9"
    text = "^crash-after@9 strikes nothing: the worker sends 1 command$"
    with pytest.raises(AssertionError, match=text):
        penstock.explore.crashes(lambda client: client.set("a", 1))


def test_a_report_has_the_commands_of_all_lives(
    penstock: Penstock, session: exploring.ExploringSession
) -> None:
    session.only = "crash-after@0"
    result = penstock.explore.crashes(lambda client: client.set("a", 1))
    assert isinstance(result, ExplorationResult)
    [outcome] = result.outcomes
    assert isinstance(outcome, CrashOutcome)
    assert list(outcome.lanes) == [("life 1", "SET a 1"), ("life 2", "SET a 1")]


def test_a_worker_that_sends_without_end_is_refused(penstock: Penstock) -> None:
    def spinning(client: Any) -> None:
        while not client.get("a"):
            pass

    text = report(penstock, spinning)
    assert text == "the worker has sent 10000 commands: does it end?"
