"""The commands that the code under test has sent."""

from __future__ import annotations

import pytest

from penstock.testing import Penstock, PenstockError


def test_the_commands_of_a_block_are_there_afterwards(handle: Penstock) -> None:
    worker = handle.new_client(client_name="worker", decode_responses=True, db=3)
    worker.ping()
    handle.clock.freeze(1000)
    with handle.trace() as trace:
        worker.xadd("orders", {"item": "tea"}, maxlen=10)
        worker.xlen("orders")
    worker.xlen("others")
    assert trace.names == ["XADD", "XLEN"]
    assert len(trace) == 2
    [added] = trace.find("xadd")
    assert (added.time_ms, added.client_name, added.db) == (1000, "worker", 3)
    assert added.client_id == worker.client_id()
    assert added.words == ("XADD", "orders", "MAXLEN", "~", "10", "*", "item", "tea")
    assert added.args == added.words[1:]
    assert added.keys == ("orders",)
    assert str(trace) == "XADD orders MAXLEN ~ 10 * item tea\nXLEN orders"


def test_commands_can_be_read_while_the_trace_goes_on(handle: Penstock) -> None:
    trace = handle.trace()
    handle.client.xadd("a", {"f": "v"})
    assert trace.names == ["XADD"]
    handle.client.xlen("a")
    assert [command.name for command in trace] == ["XADD", "XLEN"]
    trace.stop()
    trace.stop()
    handle.client.xlen("a")
    assert trace.names == ["XADD", "XLEN"]


def test_commands_are_found_by_name_key_words_and_client(handle: Penstock) -> None:
    worker = handle.new_client(client_name="worker-1")
    with handle.trace() as trace:
        handle.client.xgroup_create("orders", "kitchen", mkstream=True)
        handle.client.xgroup_destroy("orders", "kitchen")
        worker.xadd("orders", {"item": "tea", "size": "l"})
        worker.ping()
    assert len(trace.find()) == 4
    assert len(trace.find("XGROUP")) == 2
    assert [str(found) for found in trace.find("xgroup|destroy")] == [
        "XGROUP DESTROY orders kitchen"
    ]
    assert trace.find("XGROUP DESTROY") == trace.find("xgroup|destroy")
    assert len(trace.find(key="ord*")) == 3
    assert trace.find(key="others") == []
    assert [found.name for found in trace.find(args=("item", "tea"))] == ["XADD"]
    assert trace.find(args=("tea", "item")) == []
    assert [found.name for found in trace.find(client="worker-*")] == ["XADD", "PING"]


def test_what_libraries_send_for_themselves_is_told_apart(handle: Penstock) -> None:
    with handle.trace() as trace:
        handle.client.ping()
    assert trace.names == ["PING"]
    assert trace.all[0].name in ("HELLO", "CLIENT"), "before redis-py 8 there is no HELLO"
    assert trace.all[-1].name == "PING"


def test_one_client_may_be_traced(handle: Penstock) -> None:
    worker = handle.new_client(client_name="worker")
    worker.ping()
    with handle.trace(client="work*") as trace:
        handle.client.xlen("a")
        worker.xlen("b")
    assert [str(command) for command in trace] == ["XLEN b"]


def test_words_that_are_no_command_have_no_keys(handle: Penstock) -> None:
    with handle.trace() as trace, pytest.raises(Exception, match="unknown command"):
        handle.client.execute_command("NONSENSE", "k")
    assert [command.keys for command in trace] == [()]


def test_a_trace_that_was_too_long_says_so(handle: Penstock) -> None:
    trace = handle.trace()
    with handle.client.pipeline(transaction=False) as pipeline:
        for _ in range(10_010):
            pipeline.xlen("a")
        pipeline.execute()
    with pytest.raises(PenstockError, match=r"^the trace lacks \d+ commands: the server keeps "):
        _ = trace.commands
    trace.stop()
