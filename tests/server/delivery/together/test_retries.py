"""ack-wait and backoff: pending entries that are delivered again by an ordinary read."""

from __future__ import annotations

from tests.server.delivery.support import GROUP, KEY, Kitchen, woken_with
from tests.support.direct import START_MS, Direct, DirectClient


def test_an_entry_that_nobody_acknowledges_is_delivered_to_whoever_reads() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    assert kitchen.read("ann") == [1]
    kitchen.direct.advance(999)
    assert kitchen.read("bob") == []
    kitchen.direct.advance(1)
    assert kitchen.read("bob") == [1]
    assert kitchen.pending() == [(1, "bob", 2)]


def test_the_reply_is_that_of_any_read() -> None:
    for resp3 in (False, True):
        kitchen = Kitchen("ack-wait", 10)
        kitchen.add(1)
        client = kitchen.direct.client(resp3)
        words = ("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, ">")
        first = client.send(*words)
        kitchen.direct.advance(10)
        assert client.send(*words) == first


def test_what_is_due_comes_before_what_is_new() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add_all(range(1, 4))
    assert kitchen.read("ann", "COUNT", 2) == [1, 2]
    kitchen.direct.advance(1000)
    kitchen.add(4)
    assert kitchen.read("bob", "COUNT", 3) == [1, 2, 3]
    assert kitchen.read("bob") == [4]


def test_an_acknowledged_entry_never_comes_again() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add_all(range(1, 4))
    kitchen.read()
    kitchen.ack(1, 3)
    kitchen.direct.advance(5000)
    assert kitchen.read("bob") == [2]
    kitchen.ack(2)
    kitchen.direct.advance(5000)
    assert kitchen.read("bob") == []


def test_a_waiting_reader_is_woken_when_an_entry_falls_due() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    waiting_before = kitchen.read("ann") == [1] and kitchen.wait("bob")
    assert waiting_before
    kitchen.direct.advance(999)
    assert woken_with(waiting_before) is None
    kitchen.direct.advance(1)
    assert woken_with(waiting_before) == [1]


def test_a_reader_that_waited_already_when_it_was_delivered_is_woken_as_well() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    first, second = kitchen.wait("ann"), kitchen.wait("bob")
    kitchen.add(1)
    assert (woken_with(first), woken_with(second)) == ([1], None)
    kitchen.direct.advance(1000)
    assert woken_with(second) == [1]


def test_backoff_says_how_long_after_each_delivery() -> None:
    kitchen = Kitchen("backoff", "100,1000")
    kitchen.add(1)
    kitchen.read()
    assert waits(kitchen, 4, 50) == [100, 1000, 1000, 1000]


def waits(kitchen: Kitchen, times: int, step_ms: int) -> list[int]:
    """Reads an entry again as soon as it is due; how long that was each time, in whole steps."""
    found: list[int] = []
    for _ in range(times):
        waited = 0
        while not kitchen.read():
            kitchen.direct.advance(step_ms)
            waited += step_ms
        found.append(waited)
    return found


def test_an_exponential_backoff_doubles_up_to_the_longest() -> None:
    kitchen = Kitchen("backoff", "exponential:100:1s")
    kitchen.add(1)
    kitchen.read()
    assert waits(kitchen, 6, 50) == [100, 200, 400, 800, 1000, 1000]


def test_jitter_takes_off_a_part_that_follows_from_the_seed() -> None:
    found: list[list[int]] = []
    for seed in (1, 2, 1):
        kitchen = Kitchen()
        kitchen.direct.server.services.policies.seed = seed
        kitchen.set("backoff", "exponential:50:200:20%")
        kitchen.add(1)
        kitchen.read()
        found.append(waits(kitchen, 4, 1))
    assert found[0] == found[2] != found[1]
    for delays in found:
        for delay, whole in zip(delays, (50, 100, 200, 200), strict=True):
            assert whole * 0.8 <= delay <= whole


def test_entries_that_were_delivered_together_come_again_at_times_of_their_own() -> None:
    kitchen = Kitchen()
    kitchen.direct.server.services.policies.seed = 1
    kitchen.set("backoff", "exponential:10s:10s:50%")
    kitchen.add_all(range(1, 101))
    assert len(kitchen.read()) == 100
    kitchen.direct.advance(4999)
    assert kitchen.read() == []
    again: list[int] = []
    sizes: list[int] = []
    for _ in range(50):
        kitchen.direct.advance(101)
        found = kitchen.read("bob")
        again += found
        sizes.append(len(found))
    assert sorted(again) == list(range(1, 101))
    assert max(sizes) < 20


def test_an_entry_that_is_given_back_waits_as_backoff_says() -> None:
    kitchen = Kitchen("backoff", "100,1000")
    kitchen.add(1)
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "1-1")
    kitchen.direct.advance(99)
    assert kitchen.read("bob") == []
    assert kitchen.ask("XAUTOCLAIM", KEY, GROUP, "bob", 0, 0) == [b"0-0", [], []]
    assert kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1", "FORCE") == []
    waiting = kitchen.wait("bob")
    kitchen.direct.advance(1)
    assert woken_with(waiting) == [1]
    assert kitchen.pending() == [(1, "bob", 2)]


def test_without_backoff_it_is_delivered_at_once() -> None:
    kitchen = Kitchen("max-pending", 100)
    kitchen.add(1)
    kitchen.read()
    waiting = kitchen.wait("bob")
    kitchen.ask("XNACK", KEY, GROUP, "FAIL", "IDS", 1, "1-1")
    assert woken_with(waiting) == [1]


def test_a_claim_begins_the_wait_anew() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    kitchen.read()
    kitchen.direct.advance(900)
    kitchen.ask("XCLAIM", KEY, GROUP, "bob", 0, "1-1")
    kitchen.direct.advance(900)
    assert kitchen.read("carl") == []
    kitchen.direct.advance(100)
    assert kitchen.read("carl") == [1]


def test_reading_ones_own_entries_again_begins_it_anew() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    kitchen.read()
    kitchen.direct.advance(900)
    kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, 0)
    kitchen.direct.advance(900)
    assert kitchen.read("carl") == []
    kitchen.direct.advance(100)
    assert kitchen.read("carl") == [1]


def test_an_entry_that_the_stream_has_lost_is_acknowledged_when_it_is_due() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add_all(range(1, 3))
    kitchen.read()
    kitchen.ask("XDEL", KEY, "1-1")
    kitchen.direct.advance(1000)
    assert kitchen.read("bob") == [2]
    assert kitchen.pending() == [(2, "bob", 2)]


def test_claim_shows_how_it_was_pending() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    kitchen.read()
    kitchen.direct.advance(1500)
    reply = kitchen.ask("XREADGROUP", "GROUP", GROUP, "bob", "CLAIM", 5000, "STREAMS", KEY, ">")
    assert reply == [[b"orders", [[b"1-1", [b"n", b"1"], 1500, 1]]]]


def test_maxcount_and_maxsize_hold_for_what_is_due() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add_all(range(1, 6))
    kitchen.read()
    kitchen.direct.advance(1000)
    assert kitchen.read("bob", "MAXCOUNT", 2) == [1, 2]
    assert kitchen.read("bob", "MAXSIZE", 1) == [3]
    assert kitchen.read("bob") == [4, 5]


def test_entries_delivered_shortly_after_each_other_are_due_each_at_its_time() -> None:
    kitchen = Kitchen("ack-wait", 6400)
    for number in range(1, 6):
        kitchen.add(number)
        assert kitchen.read() == [number]
        kitchen.direct.advance(20)
    kitchen.direct.advance(6300)
    assert kitchen.read("bob") == [1]
    kitchen.direct.advance(40)
    assert kitchen.read("bob") == [2, 3]
    kitchen.direct.advance(1000)
    assert kitchen.read("bob") == [4, 5]


def test_an_ordinary_group_gives_nothing_back_by_itself(
    direct: Direct, client: DirectClient
) -> None:
    client.send("XGROUP", "CREATE", "s", "g", 0, "MKSTREAM")
    client.send("XADD", "s", "1-1", "f", "v")
    words = ("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    assert client.ask(*words) == [[b"s", [[b"1-1", [b"f", b"v"]]]]]
    client.send("XNACK", "s", "g", "FAIL", "IDS", 1, "1-1")
    direct.advance(10**9)
    assert client.send(*words) == b"*-1\r\n"


def test_when_the_policy_goes_so_does_what_it_did() -> None:
    kitchen = Kitchen("ack-wait", 1000)
    kitchen.add(1)
    kitchen.read()
    assert kitchen.ask("PENSTOCK", "POLICY", "DEL", KEY, "GROUP", GROUP, "ack-wait") == 1
    kitchen.direct.advance(5000)
    assert kitchen.read("bob") == []
    kitchen.set("ack-wait", 10)
    assert kitchen.read("bob") == [1]


def test_a_policy_that_comes_later_counts_from_the_delivery() -> None:
    kitchen = Kitchen()
    kitchen.add(1)
    kitchen.read()
    kitchen.direct.advance(400)
    kitchen.set("ack-wait", 1000)
    kitchen.direct.advance(1)
    waiting = kitchen.wait("bob")
    kitchen.direct.advance(598)
    assert woken_with(waiting) is None
    kitchen.direct.advance(1)
    assert woken_with(waiting) == [1]


def test_an_entry_that_comes_again_between_new_ones_waits_as_long_as_it_should() -> None:
    kitchen = Kitchen("backoff", "500,50", "delay-field", "at")
    kitchen.add(1, "at", START_MS + 10)
    kitchen.add(2)
    kitchen.add(3, "at", START_MS + 10)
    assert kitchen.read("ann") == [2]
    kitchen.direct.advance(500)
    assert kitchen.read("ann") == [1, 2, 3]
    kitchen.direct.advance(50)
    assert kitchen.read("bob") == [2]
    kitchen.direct.advance(450)
    assert kitchen.read("bob") == [1, 2, 3]
