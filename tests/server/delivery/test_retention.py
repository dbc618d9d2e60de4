"""retention, retention-bytes, retention-unread, delete acked, consumer-ttl, auto-group."""

from __future__ import annotations

from tests.server.delivery.support import GROUP, KEY, Kitchen, numbers_in, woken_with
from tests.support.direct import START_MS, Direct


def ids_in(kitchen: Kitchen) -> list[int]:
    """How long before the start of the test each entry of the stream is from, in milliseconds."""
    entries = kitchen.ask("XRANGE", KEY, "-", "+")
    return [START_MS - int(entry_id.split(b"-")[0]) for entry_id, _ in entries]


def aged(*ages: int) -> Kitchen:
    kitchen = Kitchen()
    for age in ages:
        kitchen.ask("XADD", KEY, f"{START_MS - age}-1", "n", age)
    return kitchen


# --- retention -------------------------------------------------------------------------------


def test_entries_go_when_they_are_too_old() -> None:
    kitchen = aged(900, 500, 100)
    kitchen.set_stream("retention", 1000)
    kitchen.direct.advance(99)
    assert ids_in(kitchen) == [900, 500, 100]
    kitchen.direct.advance(1)
    assert ids_in(kitchen) == [500, 100]
    kitchen.direct.advance(10_000)
    assert ids_in(kitchen) == []


def test_entries_that_are_added_later_go_as_well() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("retention", 1000)
    kitchen.ask("XADD", KEY, "*", "n", 1)
    kitchen.direct.advance(999)
    assert kitchen.length() == 1
    kitchen.direct.advance(1)
    assert kitchen.length() == 0
    info = kitchen.ask("XINFO", "STREAM", KEY)
    assert info[info.index(b"entries-added") + 1] == 1


def test_with_retention_unread_keep_entries_stay_until_they_are_read_and_acknowledged() -> None:
    kitchen = aged(3000, 2500, 2000)
    kitchen.set_stream("retention", 1000, "retention-unread", "keep")
    kitchen.direct.advance(10)
    assert ids_in(kitchen) == [3000, 2500, 2000]
    assert len(kitchen.read("ann", "COUNT", 2)) == 2
    kitchen.ask("XACK", KEY, GROUP, f"{START_MS - 2500}-1")
    kitchen.direct.advance(10)
    assert ids_in(kitchen) == [3000, 2000]


def test_entries_go_when_they_are_too_many_bytes() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("retention-bytes", "20kb")
    for number in range(1, 1001):
        kitchen.add(number, "text", "x" * 100)
    kitchen.direct.advance(1000)
    info = kitchen.ask("XINFO", "STREAM", KEY)
    length = kitchen.length()
    assert 150 < length < 200
    assert info[info.index(b"first-entry") + 1][0] == f"{1001 - length}-1".encode()


def test_one_large_entry_is_kept_by_no_limit() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("retention-bytes", 100)
    kitchen.add(1, "text", "x" * 10_000)
    kitchen.direct.advance(1000)
    assert kitchen.length() == 0


def test_entries_that_are_too_many_bytes_go_when_they_have_been_read() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("retention-bytes", "1kb", "retention-unread", "keep")
    for number in range(1, 101):
        kitchen.add(number, "text", "x" * 100)
    kitchen.direct.advance(5000)
    assert kitchen.length() == 100
    kitchen.read()
    assert kitchen.ack(*range(1, 101)) == 100
    kitchen.direct.advance(1000)
    assert 0 < kitchen.length() < 12


def test_what_is_kept_for_a_group_is_looked_at_less_and_less_often() -> None:
    kitchen = aged(3000)
    kitchen.set_stream("retention", 1000, "retention-unread", "keep")
    stream, agenda = kitchen.of_stream
    waits: list[int] = []
    for _ in range(9):
        kitchen.direct.advance(max(agenda.next_due(stream) - kitchen.direct.now_ms, 0))
        waits.append(agenda.next_due(stream) - kitchen.direct.now_ms)
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]
    kitchen.read()
    kitchen.ask("XACK", KEY, GROUP, f"{START_MS - 3000}-1")
    kitchen.direct.advance(10)
    assert ids_in(kitchen) == []
    kitchen.ask("XADD", KEY, f"{kitchen.direct.now_ms - 1500}-1", "n", 1)
    kitchen.direct.advance(1)
    assert agenda.next_due(stream) - kitchen.direct.now_ms == 10


# --- delete acked ----------------------------------------------------------------------------


def test_an_entry_goes_when_the_last_group_acknowledges_it() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("delete", "acked")
    kitchen.ask("XGROUP", "CREATE", KEY, "other", 0)
    kitchen.add_all(range(1, 4))
    kitchen.read()
    assert kitchen.ack(1, 2) == 2
    assert kitchen.length() == 3
    kitchen.ask("XREADGROUP", "GROUP", "other", "c", "STREAMS", KEY, ">")
    assert kitchen.ask("XACK", KEY, "other", "2-1", "3-1") == 2
    assert [entry[0] for entry in kitchen.ask("XRANGE", KEY, "-", "+")] == [b"1-1", b"3-1"]
    assert kitchen.ask("XACKDEL", KEY, "other", "ACKED", "IDS", 1, "1-1") == [1]
    assert kitchen.ack(3) == 1
    assert kitchen.length() == 0


def test_with_a_grace_it_goes_later() -> None:
    kitchen = aged(1000, 100)
    kitchen.set_stream("delete", "acked", "delete-grace", 500)
    kitchen.read()
    kitchen.ask("XACK", KEY, GROUP, f"{START_MS - 1000}-1", f"{START_MS - 100}-1")
    assert ids_in(kitchen) == [100]
    kitchen.direct.advance(399)
    assert ids_in(kitchen) == [100]
    kitchen.direct.advance(1)
    assert ids_in(kitchen) == []


def test_a_group_that_comes_meanwhile_gets_it() -> None:
    kitchen = aged(100)
    kitchen.set_stream("delete", "acked", "delete-grace", 500)
    kitchen.read()
    kitchen.ask("XACK", KEY, GROUP, f"{START_MS - 100}-1")
    kitchen.ask("XGROUP", "CREATE", KEY, "late", 0)
    kitchen.direct.advance(10_000)
    assert ids_in(kitchen) == [100]


def test_what_was_acknowledged_before_a_restart_goes_after_it() -> None:
    kitchen = aged(100)
    kitchen.set_stream("delete", "acked", "delete-grace", 500)
    kitchen.read()
    kitchen.ask("XACK", KEY, GROUP, f"{START_MS - 100}-1")
    kitchen.direct.server.services.persistence.reload()
    kitchen.direct.advance(400)
    assert ids_in(kitchen) == []


def test_a_dead_letter_counts_as_acknowledged() -> None:
    kitchen = Kitchen("dead-letter", "dead")
    kitchen.set_stream("delete", "acked")
    kitchen.add(1)
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 1, "1-1")
    assert kitchen.length() == 0
    assert kitchen.ask("PENSTOCK", "REDRIVE", "dead") == 1
    assert len(kitchen.read("bob")) == 1


# --- consumer-ttl ----------------------------------------------------------------------------


def consumers(kitchen: Kitchen) -> list[str]:
    rows = kitchen.ask("XINFO", "CONSUMERS", KEY, GROUP)
    return sorted(row[1].decode() for row in rows)


def test_a_consumer_that_is_not_seen_hands_its_entries_back_and_goes() -> None:
    kitchen = Kitchen("consumer-ttl", 1000)
    kitchen.add_all(range(1, 3))
    kitchen.read("ann")
    kitchen.direct.advance(600)
    assert kitchen.read("bob") == []
    kitchen.direct.advance(399)
    assert consumers(kitchen) == ["ann", "bob"]
    kitchen.direct.advance(1)
    assert consumers(kitchen) == ["bob"]
    assert kitchen.pending() == [(1, "", 0), (2, "", 0)]
    assert kitchen.read("bob") == [1, 2]
    assert kitchen.pending() == [(1, "bob", 1), (2, "bob", 1)]


def test_who_waits_counts_as_seen_and_gets_what_was_handed_back() -> None:
    kitchen = Kitchen("consumer-ttl", 1000)
    kitchen.add(1)
    kitchen.read("ann")
    waiting = kitchen.wait("bob")
    kitchen.direct.advance(1000)
    assert consumers(kitchen) == ["bob"]
    assert woken_with(waiting) == [1]
    assert kitchen.ack(1) == 1
    kitchen.wait("carl")
    for _ in range(5):
        kitchen.direct.advance(700)
    assert consumers(kitchen) == ["carl"]


def test_who_has_waited_until_just_now_counts_as_seen() -> None:
    kitchen = Kitchen("consumer-ttl", 1000)
    kitchen.add(1)
    kitchen.read("ann")
    waiting = kitchen.wait("ann", 1400)
    for _ in range(14):
        kitchen.direct.advance(100)
    assert waiting.reply_when_woken == b"*-1\r\n"
    kitchen.direct.advance(999)
    assert consumers(kitchen) == ["ann"]
    kitchen.direct.advance(1)
    assert consumers(kitchen) == []


def test_all_consumers_may_go() -> None:
    kitchen = Kitchen("consumer-ttl", 1000)
    kitchen.read("ann")
    kitchen.direct.advance(1000)
    assert consumers(kitchen) == []
    kitchen.read("bob")
    kitchen.direct.advance(999)
    assert consumers(kitchen) == ["bob"]
    kitchen.direct.advance(1)
    assert consumers(kitchen) == []


# --- auto-group ------------------------------------------------------------------------------


def test_a_read_makes_the_stream_and_the_group() -> None:
    direct = Direct(stream_policy="jobs:* workers auto-group 0")
    client = direct.client()
    words = ("XREADGROUP", "GROUP", "workers", "ann", "STREAMS", "jobs:1", ">")
    assert client.send(*words) == b"*-1\r\n"
    client.send("XADD", "jobs:1", "1-1", "f", "v")
    assert numbers_in(client.ask(*words)) == [1]
    assert client.send("XREADGROUP", "GROUP", "x", "ann", "STREAMS", "jobs:1", ">") == (
        b"-NOGROUP No such key 'jobs:1' or consumer group 'x' in XREADGROUP with GROUP option\r\n"
    )


def test_the_group_begins_at_the_first_entry_or_behind_the_last() -> None:
    for start, expected in (("0", [1]), ("$", [])):
        direct = Direct(stream_policy=f"jobs *rs auto-group {start}")
        client = direct.client()
        client.send("XADD", "jobs", "1-1", "f", "v")
        words = ("XREADGROUP", "GROUP", "workers", "ann", "STREAMS", "jobs", ">")
        assert numbers_in(client.ask(*words)) == expected


def test_an_entry_makes_the_groups_that_are_named() -> None:
    direct = Direct(stream_policy="jobs workers auto-group $")
    client = direct.client()
    client.send("XADD", "jobs", "1-1", "f", "v")
    client.send("XGROUP", "CREATE", "jobs", "other", 0)
    words = ("XREADGROUP", "GROUP", "workers", "ann", "STREAMS", "jobs", ">")
    assert numbers_in(client.ask(*words)) == [1]
    client.send("XGROUP", "DESTROY", "jobs", "workers")
    client.send("XADD", "jobs", "2-1", "f", "v")
    client.send("XADD", "jobs", "3-1", "f", "v")
    assert numbers_in(client.ask(*words)) == [2, 3]


def test_a_stream_may_have_it_of_its_own() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("auto-group", 0)
    kitchen.add(1)
    words = ("XREADGROUP", "GROUP", "new", "ann", "STREAMS", KEY, ">")
    assert numbers_in(kitchen.ask(*words)) == [1]
    kitchen.set_stream("auto-group", "no")
    assert str(kitchen.ask("XREADGROUP", "GROUP", "newer", *words[3:])).startswith("NOGROUP")


def test_a_reader_that_waits_goes_on_in_a_group_that_is_made_anew() -> None:
    kitchen = Kitchen()
    kitchen.set_stream("auto-group", 0)
    waiting = kitchen.wait()
    kitchen.ask("XGROUP", "DESTROY", KEY, GROUP)
    assert woken_with(waiting) is None
    kitchen.add(1)
    assert woken_with(waiting) == [1]
