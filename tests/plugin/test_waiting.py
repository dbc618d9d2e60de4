"""Waiting for groups and readers, and whether entries were delivered once."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pytest

from penstock.testing import Penstock, PenstockError, WaitTimeout


def fill(handle: Penstock, *ids: str) -> None:
    handle.clock.freeze(1_000)
    handle.client.xgroup_create("orders", "kitchen", id="0", mkstream=True)
    for entry in ids:
        handle.client.xadd("orders", {"item": "tea"}, id=entry)


def read(handle: Penstock, count: int | None = None, name: str = "alice") -> None:
    handle.client.xreadgroup("kitchen", name, {"orders": ">"}, count=count)


def told(wait: Callable[[], None]) -> str:
    """What a wait that cannot succeed says, behind what it waited for."""
    with pytest.raises(WaitTimeout) as caught:
        wait()
    waited = re.match(r"waited for 0 seconds until [^:]*: ", str(caught.value))
    assert waited is not None
    return str(caught.value)[waited.end() :]


# --- groups ----------------------------------------------------------------------------------


def test_a_group_that_a_worker_acknowledges_is_waited_for(handle: Penstock) -> None:
    fill(handle, "1-1", "1-2")

    def work() -> None:
        client = handle.new_client(decode_responses=True)
        for _ in range(2):
            client.xreadgroup("kitchen", "alice", {"orders": ">"}, count=1)
            entries = client.xpending_range("orders", "kitchen", "-", "+", 10)
            client.xack("orders", "kitchen", *(entry["message_id"] for entry in entries))

    worker = threading.Thread(target=work)
    worker.start()
    handle.wait_until_acknowledged("orders", "kitchen")
    assert handle.client.xinfo_groups("orders")[0]["entries-read"] == 2
    handle.wait_until_idle()
    worker.join()


def test_what_is_pending_and_what_is_not_delivered_is_told(handle: Penstock) -> None:
    fill(handle, "1-1", "1-2", "1-3", "1-4")
    assert told(lambda: wait(handle)) == "4 entries are not delivered"
    read(handle, 1)
    handle.clock.advance(500)
    handle.client.xclaim("orders", "kitchen", "bob", 0, ["1-1"])
    read(handle, 1)
    handle.clock.advance(5)
    assert told(lambda: wait(handle)) == (
        "2 entries are pending: 1-1 (bob, delivered 2 times, 5 ms ago),"
        " 1-2 (alice, delivered once, 5 ms ago), and 2 entries are not delivered; "
        "readers when the clock was last advanced: 0 there: none; other clients: "
        f"client {handle.client.client_id()} (last command: xreadgroup)"
    )


def wait(handle: Penstock) -> None:
    handle.wait_until_acknowledged("orders", "kitchen", timeout=0)


def test_no_more_than_a_few_entries_are_told(handle: Penstock) -> None:
    fill(handle, *(f"1-{number}" for number in range(1, 8)))
    read(handle)
    text = told(lambda: wait(handle))
    assert text.startswith("7 entries are pending: 1-1 (")
    assert text.endswith("1-5 (alice, delivered once, 0 ms ago) and 2 more")


def test_a_stream_or_a_group_that_is_not_there_is_told(handle: Penstock) -> None:
    assert told(lambda: wait(handle)) == "there is no stream 'orders'"
    handle.client.xadd("orders", {"item": "tea"})
    assert told(lambda: wait(handle)) == "'orders' has no such group; its groups: none"
    handle.client.xgroup_create("orders", "bar")
    assert told(lambda: wait(handle)) == "'orders' has no such group; its groups: 'bar'"


def test_a_key_of_another_type_is_not_waited_for(handle: Penstock) -> None:
    handle.client.set("orders", "tea")
    with pytest.raises(PenstockError, match=r"^XINFO GROUPS orders: WRONGTYPE") as caught:
        wait(handle)
    assert not isinstance(caught.value, WaitTimeout)


def test_a_lag_that_the_server_does_not_know_is_found_out(handle: Penstock) -> None:
    fill(handle, "1-1", "1-2", "1-3")
    handle.client.xdel("orders", "1-2")
    assert handle.client.xinfo_groups("orders")[0]["lag"] is None
    assert told(lambda: wait(handle)) == "some entries not delivered"
    read(handle)
    handle.client.xack("orders", "kitchen", "1-1", "1-3")
    wait(handle)


def test_another_database_is_looked_at_and_left_again(handle: Penstock) -> None:
    third = handle.new_client(db=3, decode_responses=True)
    third.xgroup_create("orders", "kitchen", id="0", mkstream=True)
    third.xadd("orders", {"item": "tea"}, id="1-1")
    text = told(lambda: handle.wait_until_acknowledged("orders", "kitchen", db=3, timeout=0))
    assert text == "1 entry is not delivered"
    assert handle.ask("EXISTS", "orders") == 0
    assert handle.ask("EXISTS", "orders", db=3) == 1
    assert handle.ask("EXISTS", "orders", db=0) == 0
    with pytest.raises(PenstockError, match=r"^SELECT 99: ERR DB index is out of range$"):
        handle.ask("EXISTS", "orders", db=99)


def test_a_server_is_idle_when_every_group_is_done(handle: Penstock) -> None:
    handle.wait_until_idle(timeout=0)
    for db in (0, 2):
        client = handle.new_client(db=db)
        client.set("text", "tea")
        client.xadd("alone", {"item": "tea"})
        client.xgroup_create("orders", "kitchen", id="0", mkstream=True)
    handle.wait_until_idle(timeout=0)
    client.xadd("orders", {"item": "tea"}, id="1-1")
    assert told(lambda: handle.wait_until_idle(timeout=0)) == (
        "'kitchen' of 'orders' in database 2: 1 entry is not delivered"
    )


def test_no_more_than_a_few_groups_are_told(handle: Penstock) -> None:
    for number in range(6):
        handle.client.xadd("orders", {"item": "tea"})
        handle.client.xgroup_create("orders", f"g{number}", id="0")
    text = told(lambda: handle.wait_until_idle(timeout=0))
    assert text.count("in database 0") == 5
    assert text.endswith("; ...")


# --- readers ---------------------------------------------------------------------------------


def test_readers_are_counted_and_others_are_named(handle: Penstock) -> None:
    handle.wait_for_readers(0)
    readers = [handle.new_client(client_name=f"reader-{number}") for number in range(2)]
    threads = [
        threading.Thread(target=lambda reader=reader: reader.xread({"orders": "$"}, block=60_000))
        for reader in readers
    ]
    for thread in threads:
        thread.start()
    handle.wait_for_readers(2)
    handle.client.client_setname("writer")
    assert told(lambda: handle.wait_for_readers(3, timeout=0)).endswith(
        "; other clients: writer (last command: client|setname)"
    )
    text = told(lambda: handle.wait_for_readers(1, timeout=0))
    assert re.match(r"2 there: reader-[01], reader-[01]; other clients: writer", text)
    handle.clock.advance(minutes=1)
    for thread in threads:
        thread.join()
    assert told(lambda: handle.wait_for_readers(1, timeout=0)).startswith("0 there: none; ")


def test_a_wait_says_who_was_not_there_when_the_clock_was_advanced(handle: Penstock) -> None:
    fill(handle, "1-1")
    read(handle)
    worker = handle.new_client(client_name="worker")
    worker.ping()
    assert told(lambda: handle.wait_for_readers(1, timeout=0)).count("worker") == 1
    handle.clock.advance(minutes=1)
    text = told(lambda: handle.wait_until_acknowledged("orders", "kitchen", timeout=0))
    assert "1-1 (alice, delivered once, 60 s ago); " in text
    assert "; readers when the clock was last advanced: 0 there: none; other clients: " in text
    assert "worker (last command: ping)" in text
    handle.clock.reset()
    assert "advanced" not in told(lambda: handle.wait_for_readers(1, timeout=0))


def test_a_wait_that_has_ended_says_for_how_long_it_has_waited(handle: Penstock) -> None:
    with pytest.raises(WaitTimeout, match=r"^waited for 0\.01 seconds until 1 reader waits: 0 th"):
        handle.wait_for_readers(1, timeout=0.01)
    with pytest.raises(TimeoutError, match=r"^waited for 0 seconds until 2 readers wait: 0 there"):
        handle.wait_for_readers(2, timeout=0)


# --- delivered once --------------------------------------------------------------------------


def twice(handle: Penstock) -> str:
    with pytest.raises(AssertionError) as caught:
        handle.assert_delivered_once("orders", "kitchen")
    start = "not delivered once to the group 'kitchen' of 'orders': "
    assert str(caught.value).startswith(start)
    return str(caught.value)[len(start) :]


def test_entries_that_were_delivered_once_pass_acknowledged_or_not(handle: Penstock) -> None:
    fill(handle, "1-1", "1-2")
    read(handle)
    handle.assert_delivered_once("orders", "kitchen")
    handle.client.xack("orders", "kitchen", "1-1")
    handle.assert_delivered_once("orders", "kitchen")


def test_a_claimed_entry_was_delivered_twice(handle: Penstock) -> None:
    fill(handle, "1-1", "1-2")
    read(handle)
    handle.client.xautoclaim("orders", "kitchen", "bob", 0, count=1)
    assert twice(handle) == "1 redelivered, 1 claimed, 1-1 delivered 2 times, now to bob"
    handle.client.xack("orders", "kitchen", "1-1", "1-2")
    assert twice(handle) == "1 redelivered, 1 claimed"


def test_what_is_read_again_was_delivered_twice(handle: Penstock) -> None:
    fill(handle, "1-1")
    read(handle)
    handle.client.xreadgroup("kitchen", "alice", {"orders": "0"})
    assert twice(handle) == "1 redelivered, 1-1 delivered 2 times, now to alice"


def test_a_group_that_was_set_back_has_got_more_than_there_was(handle: Penstock) -> None:
    fill(handle, "1-1")
    read(handle)
    handle.client.xack("orders", "kitchen", "1-1")
    handle.client.xgroup_setid("orders", "kitchen", "0")
    read(handle)
    assert twice(handle).startswith("2 delivered, but only 1 added")


def test_what_was_not_delivered_is_told(handle: Penstock) -> None:
    fill(handle, "1-1", "1-2")
    assert twice(handle) == "nothing was delivered"
    read(handle, 1)
    assert twice(handle) == "1 not delivered"


def test_a_group_that_is_not_there_is_an_error_and_no_failure(handle: Penstock) -> None:
    with pytest.raises(PenstockError, match=r"^there is no stream 'orders'$"):
        handle.assert_delivered_once("orders", "kitchen")
    handle.client.xgroup_create("orders", "waiters", mkstream=True)
    with pytest.raises(PenstockError, match=r"^'orders' has no such group; .*: 'waiters'$"):
        handle.assert_delivered_once("orders", "kitchen")
