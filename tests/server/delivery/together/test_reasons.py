"""Policy ``reasons``, PENSTOCK NACK and PENSTOCK HISTORY: why deliveries failed."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.inline import split_words
from storage.engine.effects import DeliveriesEnded
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen, woken_with
from tests.support.direct import START_MS, Argument, parsed

ANY_BYTES = bytes(range(256))


def nack(kitchen: Kitchen, mode: str, *words: Argument) -> Any:
    """Gives the entry ``1-1`` back."""
    return kitchen.ask("PENSTOCK", "NACK", KEY, GROUP, mode, *words, "IDS", 1, "1-1")


def history(kitchen: Kitchen, number: int = 1, key: str = KEY) -> list[tuple[Any, ...]]:
    """The lines of an entry: milliseconds since the test began, consumer, how it ended, reason."""
    lines = kitchen.ask("PENSTOCK", "HISTORY", key, GROUP, f"{number}-1")
    assert all(line[::2] == [b"time", b"consumer", b"ended", b"reason"] for line in lines)
    return [(line[1] - START_MS, *(each.decode() for each in line[3::2])) for line in lines]


FIELDS = ("stream", "id", "group", "consumer", "deliveries", "time")


def names(letter: dict[str, str]) -> list[str]:
    """The fields of a letter, without what those have in common that were added."""
    return [name.removeprefix("dead-letter-") for name in letter]


def reading(*policies: Argument) -> Kitchen:
    """A group that keeps reasons, of which ann has the entry ``1-1``."""
    kitchen = Kitchen("reasons", "yes", *policies)
    kitchen.add(1)
    assert kitchen.read("ann") == [1]
    return kitchen


# --- how deliveries end ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["FAIL", "SILENT", "FATAL"])
def test_what_is_given_back_has_the_reason(mode: str) -> None:
    kitchen = reading()
    kitchen.direct.advance(5)
    assert nack(kitchen, mode, "REASON", "no tea") == 1
    assert history(kitchen) == [(5, "ann", mode.lower(), "no tea")]


def test_xnack_gives_none() -> None:
    kitchen = reading()
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "1-1")
    assert history(kitchen) == [(0, "ann", "fail", "")]


def test_what_nobody_had_ends_no_delivery_but_may_have_a_reason() -> None:
    kitchen = reading()
    nack(kitchen, "FAIL")
    nack(kitchen, "FAIL")
    nack(kitchen, "FAIL", "REASON", "twice")
    assert history(kitchen) == [(0, "ann", "fail", ""), (0, "", "fail", "twice")]
    kitchen.add(2)
    words = ("REASON", "forced", "IDS", 1, "2-1", "FORCE")
    assert kitchen.ask("PENSTOCK", "NACK", KEY, GROUP, "FAIL", *words) == 1
    assert history(kitchen, 2) == [(0, "", "fail", "forced")]


def test_what_is_delivered_again_has_timed_out() -> None:
    kitchen = reading("ack-wait", 100)
    kitchen.direct.advance(100)
    assert kitchen.read("bob") == [1]
    kitchen.direct.advance(100)
    assert kitchen.read("bob", "NOACK") == [1]
    assert history(kitchen) == [(100, "ann", "timeout", ""), (200, "bob", "timeout", "")]


@pytest.mark.parametrize(
    "words",
    [
        ("XCLAIM", KEY, GROUP, "bob", 0, "1-1"),
        ("XCLAIM", KEY, GROUP, "bob", 0, "1-1", "JUSTID"),
        ("XAUTOCLAIM", KEY, GROUP, "bob", 0, "0"),
        ("XREADGROUP", "GROUP", GROUP, "bob", "CLAIM", 0, "STREAMS", KEY, ">"),
    ],
)
def test_what_is_claimed(words: tuple[Argument, ...]) -> None:
    kitchen = reading()
    kitchen.ask(*words)
    assert history(kitchen) == [(0, "ann", "claimed", "")]
    assert [owner for _, owner, _ in kitchen.pending()] == ["bob"]


def test_what_is_not_claimed_goes_on() -> None:
    kitchen = reading()
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 1000, "1-1")
    assert history(kitchen) == []


def test_a_consumer_that_reads_its_entries_once_more() -> None:
    kitchen = reading()
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, "0")
    assert history(kitchen) == [(0, "ann", "read-again", "")]


def test_a_consumer_that_was_removed() -> None:
    kitchen = reading("consumer-ttl", 50)
    kitchen.direct.advance(50)
    assert history(kitchen) == [(50, "ann", "consumer-ttl", "")]


def test_the_last_ten_are_kept() -> None:
    kitchen = reading()
    for number in range(12):
        nack(kitchen, "FAIL", "REASON", number)
        assert kitchen.read("ann") == [1]
    assert [line[3] for line in history(kitchen)] == [str(each) for each in range(2, 12)]


# --- how long it is kept ---------------------------------------------------------------------


def test_it_outlives_a_restart() -> None:
    kitchen = reading()
    nack(kitchen, "FAIL", "REASON", ANY_BYTES)
    before = kitchen.ask("PENSTOCK", "HISTORY", KEY, GROUP, "1-1")
    kitchen.direct.server.services.persistence.reload()
    assert kitchen.ask("PENSTOCK", "HISTORY", KEY, GROUP, "1-1") == before
    assert before[0][7] == ANY_BYTES


@pytest.mark.parametrize(
    "words",
    [
        ("XACK", KEY, GROUP, "1-1"),
        ("XACKDEL", KEY, GROUP, "IDS", 1, "1-1"),
        ("XDEL", KEY, "1-1"),
        ("XDELEX", KEY, "IDS", 1, "1-1"),
        ("XTRIM", KEY, "MAXLEN", 1),
        ("XTRIM", KEY, "MINID", "2-1"),
        ("XTRIM", KEY, "MAXLEN", 0),
        ("XADD", KEY, "MAXLEN", 1, "3-1", "n", 3),
        ("XGROUP", "DELCONSUMER", KEY, GROUP, "ann"),
        ("XGROUP", "DESTROY", KEY, GROUP),
        ("DEL", KEY),
        ("FLUSHALL",),
    ],
)
def test_it_ends_with_the_acknowledgement_and_with_the_entry(words: tuple[Argument, ...]) -> None:
    kitchen = reading()
    nack(kitchen, "FAIL", "REASON", "no tea")
    kitchen.add(2)
    kitchen.read("ann")
    assert kitchen.ask(*words) is not None
    for _ in range(2):
        reply = kitchen.ask("PENSTOCK", "HISTORY", KEY, GROUP, "1-1")
        no_group = "NOGROUP No such key 'orders' or consumer group 'kitchen'"
        assert str(reply) == no_group or reply == []
        kitchen.direct.server.services.persistence.reload()


def test_a_pending_entry_without_its_entry_gets_no_more_lines() -> None:
    kitchen = reading()
    kitchen.ask("XDEL", KEY, "1-1")
    nack(kitchen, "FAIL", "REASON", "no tea")
    assert kitchen.pending() == [(1, "", 1)]
    assert history(kitchen) == []


def test_it_goes_with_the_stream_but_not_into_a_dump() -> None:
    kitchen = reading()
    nack(kitchen, "FAIL", "REASON", "no tea")
    lines = history(kitchen)
    kitchen.ask("COPY", KEY, "copy")
    payload = kitchen.client.send("DUMP", KEY) or b""
    kitchen.ask("RESTORE", "restored", 0, parsed(payload))
    kitchen.ask("RENAME", KEY, "renamed")
    assert history(kitchen, key="copy") == history(kitchen, key="renamed") == lines
    assert history(kitchen, key="restored") == []


def test_it_counts_in_the_memory_of_the_key() -> None:
    kitchen = reading()
    before = kitchen.ask("MEMORY", "USAGE", KEY)
    nack(kitchen, "FAIL", "REASON", "x" * 200)
    assert kitchen.ask("MEMORY", "USAGE", KEY) >= before + 200
    kitchen.ack(1)
    known = kitchen.agenda.memory_usage()
    assert kitchen.ask("MEMORY", "USAGE", KEY) - known < before


# --- off -------------------------------------------------------------------------------------


@pytest.mark.parametrize("policies", [(), ("ack-wait", 5000), ("reasons", "no")])
def test_nothing_is_kept_where_nobody_asked_for_it(policies: tuple[Argument, ...]) -> None:
    kitchen = Kitchen(*policies)
    told: list[Any] = []
    keyspace = kitchen.direct.server.state.keyspace
    kitchen.direct.server.services.reactions.record = lambda effects, session: told.extend(effects)
    kitchen.add(1)
    kitchen.read("ann")
    assert nack(kitchen, "FAIL", "REASON", "no tea") == 1
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    assert told
    assert not [each for each in told if isinstance(each, DeliveriesEnded)]
    assert history(kitchen) == []
    stream = keyspace.databases[0].stream(KEY.encode())
    assert stream is not None
    assert stream.groups[GROUP.encode()].pending.extras.histories.size == 0


def test_what_was_kept_stays_when_it_is_turned_off() -> None:
    kitchen = reading()
    nack(kitchen, "FAIL", "REASON", "no tea")
    kitchen.set("reasons", "no", "dead-letter", DEAD)
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    assert history(kitchen) == [(0, "ann", "fail", "no tea")]
    nack(kitchen, "FATAL", "REASON", "broken")
    assert names(kitchen.letters()[0]) == [*FIELDS, "reason", "n"]


# --- the words of the command ----------------------------------------------------------------


NACK = ("PENSTOCK", "NACK", KEY, GROUP)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("LOUD", "IDS", 1, "1-1"), "ERR mode must be SILENT, FAIL, or FATAL"),
        (("FAIL", "REASON", "a", "DELAY", 1), "ERR syntax error, expected IDS keyword"),
        (
            ("FAIL", "REASON", "x" * 257, "IDS", 1, "1-1"),
            "ERR REASON must be a text of 256 bytes at most",
        ),
        (
            ("FAIL", "DELAY", -1, "IDS", 1, "1-1"),
            "ERR DELAY must be from 0 to 9007199254740992 milliseconds",
        ),
        (
            ("FAIL", "DELAY", "1s", "IDS", 1, "1-1"),
            "ERR DELAY must be from 0 to 9007199254740992 milliseconds",
        ),
        (
            ("FATAL", "DELAY", 1, "IDS", 1, "1-1"),
            "ERR DELAY means nothing with FATAL: the entry is not delivered again",
        ),
        (("FAIL", "IDS", 1, "1-1", "REASON"), "ERR Unrecognized PENSTOCK NACK option 'REASON'"),
        (("FAIL", "IDS", 1, "1-1", "BAR"), "ERR Unrecognized PENSTOCK NACK option 'BAR'"),
    ],
)
def test_what_cannot_be_changes_nothing(words: tuple[Argument, ...], error: str) -> None:
    kitchen = reading()
    assert str(kitchen.ask(*NACK, *words)) == error
    assert kitchen.pending() == [(1, "ann", 1)]
    assert history(kitchen) == []


def test_xnack_has_no_more_words_than_that_of_redis() -> None:
    kitchen = reading()
    for word in ("REASON", "DELAY"):
        reply = kitchen.ask("XNACK", KEY, GROUP, "FAIL", word, 1, "IDS", 1, "1-1")
        assert str(reply) == f"ERR Unrecognized XNACK option '{word}'"


def test_a_reason_may_be_256_bytes_of_any_sort() -> None:
    kitchen = reading()
    assert nack(kitchen, "FAIL", "REASON", ANY_BYTES) == 1


def test_a_delay_needs_policies() -> None:
    kitchen = Kitchen()
    kitchen.add(1)
    kitchen.read()
    assert str(nack(kitchen, "FAIL", "DELAY", 5)) == (
        "ERR DELAY means nothing in a group without policies: entries that were given back wait"
        " there for a claim"
    )
    assert nack(kitchen, "FAIL", "REASON", "no tea") == 1
    assert kitchen.pending() == [(1, "", 1)]


@pytest.mark.parametrize(
    ("words", "reply"),
    [
        (("none", GROUP, "1-1"), "NOGROUP No such key 'none' or consumer group 'kitchen'"),
        ((KEY, "bar", "1-1"), "NOGROUP No such key 'orders' or consumer group 'bar'"),
        ((KEY, GROUP, "x"), "ERR Invalid stream ID specified as stream command argument"),
        ((KEY, GROUP, "9-9"), "[]"),
    ],
)
def test_a_history_that_is_not_there(words: tuple[str, ...], reply: str) -> None:
    assert str(reading().ask("PENSTOCK", "HISTORY", *words)) == reply


def test_the_shapes_of_a_history_in_both_protocols() -> None:
    kitchen = reading()
    nack(kitchen, "FAIL", "REASON", "no tea")
    body = (
        b"$4\r\ntime\r\n:%d\r\n$8\r\nconsumer\r\n$3\r\nann\r\n$5\r\nended\r\n$4\r\nfail\r\n"
        b"$6\r\nreason\r\n$6\r\nno tea\r\n" % START_MS
    )
    words = ("PENSTOCK", "HISTORY", KEY, GROUP, "1-1")
    assert kitchen.client.send(*words) == b"*1\r\n*8\r\n" + body
    assert kitchen.direct.client(resp3=True).send(*words) == b"*1\r\n%4\r\n" + body


# --- DELAY -----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [("reasons", "yes"), ("backoff", 5000)])
def test_a_delay_is_that_of_one_delivery(policy: tuple[Argument, ...]) -> None:
    kitchen = Kitchen(*policy)
    kitchen.add(1)
    kitchen.read()
    assert nack(kitchen, "FAIL", "DELAY", 300) == 1
    waiting = kitchen.wait("bob")
    kitchen.direct.advance(299)
    assert kitchen.ask("XCLAIM", KEY, GROUP, "carl", 0, "1-1") == []
    assert waiting.reply_when_woken is None
    kitchen.direct.advance(1)
    assert woken_with(waiting) == [1]


def test_a_delay_outlives_a_restart() -> None:
    kitchen = reading()
    assert nack(kitchen, "FAIL", "DELAY", 300) == 1
    kitchen.direct.server.services.persistence.reload()
    kitchen.direct.advance(299)
    assert kitchen.read("bob") == []
    kitchen.direct.advance(1)
    assert kitchen.read("bob") == [1]


def test_a_delay_of_nothing_takes_the_place_of_backoff() -> None:
    kitchen = Kitchen("backoff", 5000)
    kitchen.add(1)
    kitchen.read()
    assert nack(kitchen, "FAIL", "DELAY", 0) == 1
    assert kitchen.read("bob") == [1]


# --- dead letters ----------------------------------------------------------------------------


def test_a_letter_of_what_failed_too_often_says_why() -> None:
    kitchen = reading("ack-wait", 100, "max-deliveries", 3, "dead-letter", DEAD)
    nack(kitchen, "FAIL", "REASON", "no tea")
    assert kitchen.read("bob") == [1]
    kitchen.direct.advance(100)
    assert kitchen.read("c d") == [1]
    kitchen.direct.advance(100)
    [letter] = kitchen.letters()
    assert names(letter) == [*FIELDS, "error", "history", "reason", "n"]
    assert letter["dead-letter-reason"] == "max-deliveries"
    assert letter["dead-letter-error"] == "no tea"
    assert letter["dead-letter-history"] == (
        f'{START_MS} ann fail "no tea"\n'
        f'{START_MS + 100} bob timeout ""\n'
        f'{START_MS + 200} "c d" timeout ""'
    )
    assert history(kitchen) == []


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (("XCLAIM", KEY, GROUP, "bob", 0, "1-1"), "claimed"),
        (("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, "0"), "read-again"),
    ],
)
def test_a_letter_says_how_the_last_delivery_ended(words: tuple[Argument, ...], how: str) -> None:
    kitchen = reading("max-deliveries", 1, "dead-letter", DEAD)
    kitchen.ask(*words)
    [letter] = kitchen.letters()
    assert letter["dead-letter-history"] == f'{START_MS} ann {how} ""'
    assert letter["dead-letter-error"] == ""


def test_a_fatal_reason_is_the_error_and_any_bytes_can_be_read_back() -> None:
    kitchen = reading("dead-letter", DEAD)
    nack(kitchen, "SILENT", "REASON", "first")
    nack(kitchen, "FATAL", "REASON", ANY_BYTES)
    [[_, fields]] = kitchen.ask("XRANGE", DEAD, "-", "+")
    letter = dict(zip(fields[::2], fields[1::2], strict=True))
    assert letter[b"dead-letter-reason"] == b"fatal"
    assert letter[b"dead-letter-error"] == ANY_BYTES
    first, second = letter[b"dead-letter-history"].split(b"\n")
    assert split_words(first) == [b"%d" % START_MS, b"ann", b"silent", b"first"]
    assert split_words(second) == [b"%d" % START_MS, b"", b"fatal", ANY_BYTES]


def test_a_letter_has_ten_lines_at_most() -> None:
    kitchen = reading("dead-letter", DEAD)
    for number in range(12):
        nack(kitchen, "FAIL", "REASON", number)
        kitchen.read("ann")
    nack(kitchen, "FATAL", "REASON", "last")
    [letter] = kitchen.letters()
    lines = letter["dead-letter-history"].split("\n")
    assert [line.split()[-1] for line in lines] == [*map(str, range(3, 12)), "last"]


def test_a_letter_goes_back_as_what_it_was_and_may_become_one_again() -> None:
    kitchen = reading("dead-letter", DEAD)
    nack(kitchen, "FATAL", "REASON", "broken")
    assert kitchen.ask("PENSTOCK", "REDRIVE", DEAD) == 1
    assert kitchen.pending() == [(1, "", 0)]
    assert history(kitchen) == []
    kitchen.ask("XGROUP", "CREATE", DEAD, GROUP, 0)
    kitchen.read("ann")
    nack(kitchen, "FATAL", "REASON", "still broken")
    kitchen.ask("PENSTOCK", "POLICY", "SET", DEAD, "GROUP", GROUP, "dead-letter", "dead:2")
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", DEAD, ">")
    [[entry_id, _]] = kitchen.ask("XRANGE", DEAD, "-", "+")
    kitchen.ask("PENSTOCK", "NACK", DEAD, GROUP, "FATAL", "REASON", "no", "IDS", 1, entry_id)
    [letter] = kitchen.letters("dead:2")
    assert names(letter) == [*FIELDS, "reason", "first-stream", "first-id", "first-group", "n"]


def test_a_letter_without_reasons_is_as_it_was() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add(1)
    kitchen.read()
    nack(kitchen, "FATAL", "REASON", "broken")
    [letter] = kitchen.letters()
    assert names(letter) == [*FIELDS, "reason", "n"]


# --- rights ----------------------------------------------------------------------------------


def test_a_history_takes_the_right_to_read_and_giving_back_that_to_write() -> None:
    kitchen = reading()
    for name, key in (("reader", "%R~orders"), ("writer", "%W~orders")):
        kitchen.ask("ACL", "SETUSER", name, "on", "nopass", key, "+@all")
    reader, writer = kitchen.direct.client(), kitchen.direct.client()
    kitchen.ask("AUTH", "reader", "any", client=reader)
    kitchen.ask("AUTH", "writer", "any", client=writer)
    read, give = ("PENSTOCK", "HISTORY", KEY, GROUP, "1-1"), (*NACK, "FAIL", "IDS", 1, "1-1")
    denied = "NOPERM No permissions to access a key"
    assert str(kitchen.ask(*give, client=reader)) == denied
    assert str(kitchen.ask(*read, client=writer)) == denied
    assert kitchen.ask(*give, client=writer) == 1
    assert len(kitchen.ask(*read, client=reader)) == 1
