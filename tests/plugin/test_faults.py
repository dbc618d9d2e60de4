"""Faults as tests ask for them in Python."""

from __future__ import annotations

import threading
from typing import get_args

import pytest
from redis import Redis
from redis.exceptions import BusyLoadingError, ConnectionError, ResponseError

from penstock import testing
from penstock.testing import Penstock, PenstockError, WaitTimeout
from penstock.testing.conditions import Action
from server.faults import rules


def test_a_command_fails_as_often_as_it_shall(handle: Penstock) -> None:
    fault = handle.faults.add("XADD", "ERROR", "ERR no ink", times=2)
    for struck in (1, 2):
        with pytest.raises(ResponseError, match=r"^no ink$"):
            handle.client.xadd("orders", {"item": "tea"})
        assert fault.struck == struck
    handle.client.xadd("orders", {"item": "tea"})
    assert handle.faults.list() == []


def test_a_write_whose_reply_is_lost_has_happened(handle: Penstock) -> None:
    client = handle.new_client(retry=None)
    with handle.faults.add("XADD", "NOREPLY") as fault, pytest.raises(ConnectionError):
        client.xadd("orders", {"item": "tea"})
    assert fault.struck == 1
    assert client.xlen("orders") == 1
    client.xadd("orders", {"item": "tea"})
    fault.clear()
    assert fault.struck == 1


def test_conditions_reach_the_server(handle: Penstock) -> None:
    fault = handle.faults.add(
        "XADD",
        "LOADING",
        key="ord*",
        client="work*",
        user="def*",
        after=1,
        times=3,
        probability=1.0,
        seed=7,
    )
    [listed] = handle.faults.list()
    text = "XADD KEY ord* CLIENT work* USER def* AFTER 1 TIMES 3 PROBABILITY 1.0 SEED 7 LOADING"
    assert listed == {"id": fault.number, "words": text.split(), "matched": 0, "struck": 0}
    worker = handle.new_client(client_name="worker", retry=None)
    handle.client.xadd("orders", {"item": "tea"})
    worker.xadd("orders", {"item": "tea"})
    worker.xadd("others", {"item": "tea"})
    with pytest.raises(BusyLoadingError):
        worker.xadd("orders", {"item": "tea"})
    assert handle.client.xlen("orders") == 2


def test_a_worker_is_held_at_each_of_its_commands(handle: Penstock) -> None:
    faults = handle.faults
    worker = handle.new_client(client_name="worker", retry=None)
    worker.ping()
    faults.hold(client="worker")

    def work() -> None:
        worker.incr("total")
        worker.incr("total")

    thread = threading.Thread(target=work)
    thread.start()
    for total in (None, "1"):
        [resting] = faults.rest("work*", users=["nobody"])[:1]
        assert (resting["name"], resting["state"]) == ("worker", "held")
        assert handle.client.get("total") == total
        assert faults.release(resting["clients"][0]["client"])
    thread.join()
    assert faults.held() == []


def test_what_happens_to_a_held_command_is_said_at_its_release(handle: Penstock) -> None:
    worker = handle.new_client(retry=None, client_name="worker")
    worker.ping()
    handle.faults.hold("INCRBY")
    failed: list[Exception] = []

    def work() -> None:
        for _ in range(3):
            try:
                worker.incr("total")
            except (ResponseError, ConnectionError) as error:
                failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for action in ("CLOSE", "NOREPLY", "ERROR no ink"):
        [resting] = handle.faults.rest("worker", until=["held"])
        handle.faults.release(resting["clients"][0]["client"], action)
    thread.join()
    assert [type(error) for error in failed] == [ConnectionError, ConnectionError, ResponseError]
    assert str(failed[2]) == "no ink"
    assert handle.client.get("total") == "1", "only NOREPLY executes it"
    assert not handle.faults.release(1_000_000)


def test_who_does_not_come_to_rest_is_told(handle: Penstock) -> None:
    handle.new_client(client_name="worker").ping()
    text = r"^waited for 0.01 seconds until held or parked: nobody is gone, worker is idle$"
    with pytest.raises(WaitTimeout, match=text):
        handle.faults.rest("nobody", "worker", until=["held", "parked"], timeout=0.01)
    with pytest.raises(PenstockError, match=r"of absent, gone, busy, held, parked, idle, and"):
        handle.faults.rest("worker", until=["asleep"])  # type: ignore[list-item]


def test_workers_have_ports_that_the_next_test_does_not(handle: Penstock) -> None:
    port = handle.faults.open_port("ann")
    worker = Redis(port=port)
    worker.ping()
    [resting] = handle.faults.rest("ann", until=["idle"])
    assert [client["name"] for client in resting["clients"]] == ["ann"]
    assert handle.faults.close_port("ann")
    assert not handle.faults.close_port("ann")
    handle.faults.open_port("ann")
    handle.server.reset()
    assert handle.ask("DEBUG", "PORT", "LIST") == []
    worker.close()


def test_all_faults_end_at_once_and_before_each_test(handle: Penstock) -> None:
    for end in (handle.faults.clear, handle.server.reset):
        handle.faults.add("XADD", "CLOSE")
        handle.faults.add("*", "DELAY", 1)
        end()
        assert handle.faults.list() == []


def test_what_the_server_refuses_is_told(handle: Penstock) -> None:
    with pytest.raises(PenstockError, match=r"^DEBUG FAULT ADD XADD EXPLODE: ERR "):
        handle.faults.add("XADD", "EXPLODE")


def test_every_action_has_a_name_that_type_checkers_know() -> None:
    kinds = {rules.ERROR, rules.DELAY, rules.CLOSE, rules.RESET, rules.CUT, rules.DROP}
    kinds |= {rules.NO_REPLY, rules.HOLD}
    assert set(get_args(Action)) == {*kinds, *rules.READY_NAMES}


def test_what_can_be_used_is_completed_in_a_console() -> None:
    assert set(dir(testing)) == set(testing.__all__) == set(testing._MODULES)


def test_a_failover_wakes_readers_and_refuses_writes(handle: Penstock) -> None:
    found: list[str] = []

    def read() -> None:
        try:
            handle.new_client(retry=None).xread({"orders": "$"}, block=0)
        except ResponseError as error:
            found.append(str(error))

    thread = threading.Thread(target=read)
    thread.start()
    handle.wait_for_readers(1)
    handle.faults.failover(60_000)
    thread.join()
    assert found[0].startswith("UNBLOCKED force unblock from blocking operation")
    with pytest.raises(ResponseError, match="You can't write against a read only replica"):
        handle.new_client(retry=None).set("k", "v")
    handle.faults.clear()
    assert handle.client.set("k", "v")


def test_a_frozen_server_answers_nobody_until_it_is_over(handle: Penstock) -> None:
    client = handle.client
    assert client.ping()
    handle.faults.freeze(50)
    assert client.ping()


def fill_up(handle: Penstock) -> None:
    """The disk of a file that was turned on is full; a write has noticed that."""
    handle.client.config_set("appendonly", "yes")
    handle.sync()
    handle.faults.disk("full")
    with pytest.raises((ConnectionError, ResponseError)):
        handle.new_client(retry=None).xadd("orders", {"item": "tea"})
    with pytest.raises(ResponseError, match=r"^MISCONF Errors writing to the AOF file: No space"):
        handle.client.xadd("orders", {"item": "tea"})


@pytest.mark.parametrize("is_on", [True, False])
def test_a_full_disk_refuses_writes_until_the_test_ends(handle: Penstock, is_on: bool) -> None:
    fill_up(handle)
    if is_on:  # It is as if it had been on from the start.
        handle.server._settings["appendonly"] = "yes"
    handle.server.reset()
    assert handle.client.dbsize() == 0
    assert handle.client.config_get("appendonly") == {"appendonly": "yes" if is_on else "no"}
    handle.server._settings["appendonly"] = "no"


def test_the_disk_may_be_well_again_before(handle: Penstock) -> None:
    handle.faults.disk("slow", 1)
    handle.faults.disk("ok")
    handle.client.config_set("appendonly", "yes")
    handle.client.xadd("orders", {"item": "tea"})


def test_a_reset_puts_settings_back_that_refuse_it(handle: Penstock) -> None:
    handle.client.config_set("min-replicas-to-write", 1)
    with pytest.raises(PenstockError, match="NOREPLICAS"):
        handle.flush()
    handle.server.reset()
    handle.flush()
