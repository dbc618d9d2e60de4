"""rate-limit: how many entries a group is given in a time."""

from __future__ import annotations

from tests.server.delivery.support import GROUP, KEY, Kitchen, numbers_in, woken_with
from tests.support.direct import parsed


def test_no_more_are_delivered_than_the_time_has_brought() -> None:
    kitchen = Kitchen("rate-limit", "3/30ms")
    kitchen.add_all(range(1, 10))
    assert kitchen.read("ann", "COUNT", 2) == [1, 2]
    assert kitchen.read("bob") == [3]
    assert kitchen.read("bob") == []
    kitchen.direct.advance(9)
    assert kitchen.read() == []
    kitchen.direct.advance(1)
    assert kitchen.read() == [4]
    kitchen.direct.advance(1000)
    assert kitchen.read() == [5, 6, 7]
    assert kitchen.pending()[-1] == (7, "ann", 1)


def test_the_value_is_told_in_milliseconds_and_off_is_nothing() -> None:
    kitchen = Kitchen("rate-limit", "100/1s")
    words = ("PENSTOCK", "POLICY", "GET", KEY, "GROUP", GROUP)
    assert kitchen.ask(*words) == [b"rate-limit", b"100/1000"]
    kitchen.set("rate-limit", "")
    kitchen.add_all(range(1, 200))
    assert len(kitchen.read("ann", "COUNT", 200)) == 199


def test_readers_that_wait_are_woken_one_after_the_other_when_it_is_time() -> None:
    kitchen = Kitchen("rate-limit", "1/10ms")
    kitchen.add_all(range(1, 4))
    assert kitchen.read() == [1]
    first, second = kitchen.wait("ann"), kitchen.wait("bob")
    kitchen.direct.advance(9)
    assert (woken_with(first), woken_with(second)) == (None, None)
    kitchen.direct.advance(1)
    assert (woken_with(first), woken_with(second)) == ([2], None)
    kitchen.direct.advance(10)
    assert woken_with(second) == [3]


def test_an_entry_that_comes_while_nothing_may_go_waits_with_the_reader() -> None:
    kitchen = Kitchen("rate-limit", "1/10ms")
    kitchen.add(1)
    assert kitchen.read() == [1]
    waiting = kitchen.wait()
    kitchen.add(2)
    assert woken_with(waiting) is None
    kitchen.direct.advance(10)
    assert woken_with(waiting) == [2]


def test_what_is_delivered_again_counts_and_what_is_read_with_noack() -> None:
    kitchen = Kitchen("rate-limit", "2/1s", "ack-wait", 100)
    kitchen.add_all(range(1, 4))
    assert kitchen.read() == [1, 2]
    kitchen.direct.advance(500)
    assert kitchen.read("bob") == [1]
    assert kitchen.read("bob") == []
    assert kitchen.ack(1) == 1
    kitchen.direct.advance(500)
    assert kitchen.read("bob") == [2]
    assert kitchen.read("bob") == []
    noack = Kitchen("rate-limit", "2/1s", "only", "n=1")
    for number in range(1, 4):
        noack.add(number, "n", 1)
    assert noack.read("ann", "NOACK") == [1, 2]
    assert noack.read("ann", "NOACK") == []
    plain = Kitchen("rate-limit", "2/1s")
    plain.add_all(range(1, 4))
    assert plain.read("ann", "COUNT", 1) == [1]
    assert plain.read("ann", "NOACK") == [2]
    assert plain.read("ann", "NOACK") == []


def test_claim_of_a_read_is_bound_and_other_claims_are_not() -> None:
    kitchen = Kitchen("rate-limit", "3/1s")
    kitchen.add_all(range(1, 4))
    assert kitchen.read("ann", "COUNT", 2) == [1, 2]
    words = ("XREADGROUP", "GROUP", GROUP, "bob", "CLAIM", 0, "STREAMS", KEY, ">")
    assert numbers_in(kitchen.ask(*words)) == [1]
    assert kitchen.ask(*words) is None
    assert len(kitchen.ask("XAUTOCLAIM", KEY, GROUP, "carl", 0, 0)[1]) == 2


def test_several_reads_of_one_transaction_share_what_there_is() -> None:
    kitchen = Kitchen("rate-limit", "3/1s")
    kitchen.add_all(range(1, 9))
    kitchen.ask("MULTI")
    for _ in range(3):
        kitchen.ask("XREADGROUP", "GROUP", GROUP, "ann", "COUNT", 2, "STREAMS", KEY, ">")
    found = [numbers_in(reply) for reply in kitchen.ask("EXEC")]
    assert found == [[1, 2], [3], []]


def test_what_waits_for_it_is_counted_while_nothing_may_go() -> None:
    kitchen = Kitchen("rate-limit", "1/1s")
    kitchen.add_all(range(1, 6))
    client = kitchen.direct.client(resp3=True)

    def waiting() -> int:
        found = parsed(client.send("PENSTOCK", "STATS", KEY, GROUP) or b"")
        count: int = found[b"kept-back"][b"rate"]
        return count

    assert waiting() == 0
    kitchen.read()
    assert waiting() == 4
    kitchen.direct.advance(1000)
    assert waiting() == 0
