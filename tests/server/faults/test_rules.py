"""Which commands a fault strikes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.commands import load
from server.core.table import Table, find
from server.faults.rules import (
    READY_NAMES,
    Action,
    Conditions,
    FaultList,
    Request,
    names_group,
    slot_of,
)
from tests.support.direct import Direct

load()
TABLE: Table = Direct().server.state.table
DROP = Action("DROP")


def faults(*given: tuple[Conditions, Action]) -> FaultList:
    """A list of these faults."""
    made = FaultList()
    for conditions, action in given:
        made.add([], conditions, action)
    return made


def strike(rules: FaultList, line: str, client: str = "") -> Action | None:
    """What happens to a command of a client with this name."""
    args = [word.encode() for word in line.split()]
    command = find(TABLE, args)
    assert command is not None
    found = rules.strike(command, args, client.encode())
    return None if found is None else found.action


def struck(rules: FaultList, *lines: str, client: str = "") -> list[bool]:
    return [strike(rules, line, client) is not None for line in lines]


def test_a_fault_strikes_its_command_in_any_case_and_no_other() -> None:
    rules = faults((Conditions("xadd"), DROP))
    assert struck(rules, "XADD k * f v", "xAdd k * f v", "XLEN k") == [True, True, False]


def test_a_fault_on_a_subcommand_leaves_the_others_alone() -> None:
    rules = faults((Conditions("xgroup|create"), DROP))
    assert struck(rules, "XGROUP CREATE k g 0", "xgroup create k g 0") == [True, True]
    assert struck(rules, "XGROUP DESTROY k g", "XINFO GROUPS k") == [False, False]


def test_a_fault_on_a_container_strikes_all_its_subcommands() -> None:
    rules = faults((Conditions("xgroup"), DROP))
    assert struck(rules, "XGROUP CREATE k g 0", "XGROUP DESTROY k g") == [True, True]
    assert struck(rules, "XINFO GROUPS k") == [False]


def test_a_fault_on_any_command_spares_debug_and_what_clients_say_when_they_connect() -> None:
    rules = faults((Conditions(None), DROP))
    assert struck(rules, "XADD k * f v", "PING", "MULTI", "EXEC", "INFO") == [True] * 5
    spared = ("DEBUG SLEEP 0", "HELLO 3", "AUTH x", "SELECT 1", "QUIT", "RESET", "COMMAND DOCS")
    assert struck(rules, *spared) == [False] * len(spared)
    assert struck(rules, "CLIENT SETNAME x", "CLIENT SETINFO LIB-NAME x") == [False, False]


def test_what_any_command_spares_is_struck_by_its_name() -> None:
    rules = faults((Conditions("hello"), DROP), (Conditions("client|setname"), DROP))
    assert struck(rules, "HELLO 3", "CLIENT SETNAME x", "CLIENT ID") == [True, True, False]


def test_one_of_the_keys_must_fit_the_pattern() -> None:
    rules = faults((Conditions(None, key=b"order:*"), DROP))
    assert struck(rules, "XADD order:1 * f v", "XADD x * f v", "PING") == [True, False, False]
    assert struck(rules, "XREAD STREAMS a order:2 0 0", "XREAD STREAMS a b 0 0") == [True, False]
    assert struck(rules, "DEL a order:1", "EVAL s 2 a order:1") == [True, True]


def test_the_key_of_a_strike_is_the_first_that_fits() -> None:
    rules = faults((Conditions(None, key=b"b*"), DROP), (Conditions(None), DROP))
    for line, key in (("DEL a b1 b2", b"b1"), ("DEL x y", b"x"), ("PING", b"")):
        args = [word.encode() for word in line.split()]
        command = find(TABLE, args)
        assert command is not None
        found = rules.strike(command, args, b"")
        assert found is not None
        assert found.key == key


def test_the_name_of_the_connection_must_fit_the_pattern() -> None:
    rules = faults((Conditions("ping", client=b"worker-?"), DROP))
    assert strike(rules, "PING", "worker-1") == DROP
    assert strike(rules, "PING", "worker-12") is None
    assert strike(rules, "PING", "") is None


def test_a_pattern_of_one_star_is_any_name_but_none() -> None:
    rules = faults((Conditions("ping", client=b"*"), DROP))
    assert strike(rules, "PING", "x") == DROP
    assert strike(rules, "PING", "") is None


def test_the_first_matching_commands_pass_and_only_those_count() -> None:
    rules = faults((Conditions("xlen", after=2), DROP))
    assert struck(rules, "XLEN k", "PING", "XLEN k", "XLEN k", "XLEN k") == [
        False,
        False,
        False,
        True,
        True,
    ]
    (fault,) = rules.faults
    assert (fault.matched, fault.struck) == (4, 2)


def test_a_fault_is_gone_after_so_many_strikes() -> None:
    rules = faults((Conditions("ping", after=1, times=2), DROP))
    assert struck(rules, *["PING"] * 5) == [False, True, True, False, False]
    assert rules.faults == []
    assert not rules.any


def test_the_first_fault_that_strikes_hides_those_behind_it() -> None:
    first, second = Action("ERROR", "ERR first"), Action("ERROR", "ERR second")
    rules = faults((Conditions("ping", times=1), first), (Conditions("ping"), second))
    assert strike(rules, "PING") == first
    assert [fault.matched for fault in rules.faults] == [0]
    assert strike(rules, "PING") == second


def test_a_fault_that_lets_a_command_pass_leaves_it_to_the_next() -> None:
    rules = faults((Conditions("ping", after=1), DROP), (Conditions("ping"), Action("CLOSE")))
    assert strike(rules, "PING") == Action("CLOSE")
    assert strike(rules, "PING") == DROP
    assert [(fault.matched, fault.struck) for fault in rules.faults] == [(2, 1), (1, 1)]


def drawn(probability: float, seed: int, count: int = 200) -> list[bool]:
    rules = faults((Conditions("ping", probability=probability, seed=seed), DROP))
    return struck(rules, *["PING"] * count)


@given(st.floats(0.01, 1), st.integers(0, 2**63 - 1))
def test_the_same_seed_strikes_the_same_commands(probability: float, seed: int) -> None:
    assert drawn(probability, seed, 50) == drawn(probability, seed, 50)


def test_a_probability_is_how_many_of_the_commands_are_struck() -> None:
    assert drawn(1.0, 7) == [True] * 200
    assert 30 < sum(drawn(0.25, 7)) < 70
    assert drawn(0.25, 7) != drawn(0.25, 8)


def test_commands_that_do_not_match_take_no_random_number() -> None:
    with_others = faults((Conditions("ping", after=3, probability=0.5, seed=5), DROP))
    outcome = struck(with_others, *["PING", "XLEN k"] * 20)
    assert outcome[1::2] == [False] * 20
    assert outcome[::2] == [False] * 3 + drawn(0.5, 5, 17)


def test_faults_are_removed_by_number_or_all_at_once() -> None:
    rules = faults(*[(Conditions("ping"), DROP)] * 3)
    assert rules.clear(2) == 1
    assert rules.clear(2) == 0
    assert [fault.id for fault in rules.faults] == [1, 3]
    assert rules.clear(None) == 2
    assert rules.clear(None) == 0
    assert rules.add([b"x"], Conditions("ping"), DROP) == 4, "no number is given twice"


# --- errors that Redis gives by itself -------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant", "spared"),
    [
        ("READONLY", ["XADD k * f v", "DEL k"], ["XRANGE k - +", "PING", "EXEC"]),
        ("OOM", ["XADD k * f v", "SET k v"], ["DEL k", "XRANGE k - +"]),
        ("LOADING", ["GET k", "PING"], ["INFO", "MULTI", "HELLO 3"]),
        ("MASTERDOWN", ["GET k"], ["INFO", "MULTI", "PUBLISH c m"]),
        ("BUSY", ["GET k", "PING"], ["MULTI", "WATCH k", "AUTH x"]),
        (
            "NOGROUP",
            ["XREADGROUP GROUP g c STREAMS k >", "XACK k g 1-1", "XGROUP DELCONSUMER k g c"],
            ["XADD k * f v", "XGROUP CREATE k g 0", "XREAD STREAMS k 0"],
        ),
        ("MOVED", ["GET k", "XADD k * f v"], ["PING", "INFO"]),
    ],
)
def test_on_any_command_a_ready_error_strikes_what_redis_answers_with_it(
    name: str, meant: list[str], spared: list[str]
) -> None:
    rules = faults((Conditions(None), Action("READY", name)))
    assert struck(rules, *meant) == [True] * len(meant)
    assert struck(rules, *spared) == [False] * len(spared)


def test_a_command_that_is_named_gets_a_ready_error_whatever_it_is() -> None:
    rules = faults((Conditions("xrange"), Action("READY", "READONLY")))
    assert struck(rules, "XRANGE k - +") == [True]


def test_of_a_container_only_commands_with_a_group_can_lack_it() -> None:
    rules = faults((Conditions("xgroup"), Action("READY", "NOGROUP")))
    assert struck(rules, "XGROUP CREATE k g 0", "XGROUP SETID k g 0") == [False, True]


@pytest.mark.parametrize(
    ("name", "line", "text"),
    [
        ("LOADING", "GET k", "LOADING Redis is loading the dataset in memory"),
        ("READONLY", "SET k v", "READONLY You can't write against a read only replica."),
        ("OOM", "SET k v", "OOM command not allowed when used memory > 'maxmemory'."),
        (
            "BUSY",
            "GET k",
            "BUSY Redis is busy running a script."
            " You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
        ),
        (
            "MASTERDOWN",
            "GET k",
            "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        ),
        ("MOVED", "GET k", "MOVED 7629 127.0.0.1:6379"),
        ("NOGROUP", "XACK k g 1-1", "NOGROUP No such key 'k' or consumer group 'g'"),
        (
            "NOGROUP",
            "XGROUP SETID k g 0",
            "NOGROUP No such consumer group 'g' for key name 'k'",
        ),
        (
            "NOGROUP",
            "xreadgroup count 1 group g c streams k >",
            "NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option",
        ),
        (
            "NOGROUP",
            "XREADGROUP COUNT 1 STREAMS k k k >",
            "NOGROUP No such key 'k' or consumer group '' in XREADGROUP with GROUP option",
        ),
    ],
)
def test_the_texts_are_those_of_redis(name: str, line: str, text: str) -> None:
    args = [word.encode() for word in line.split()]
    command = find(TABLE, args)
    assert command is not None
    assert READY_NAMES[name].text(Request(command, args, b"k", "127.0.0.1:6379")) == text


def test_every_command_that_names_a_group_has_it_where_it_is_looked_for() -> None:
    named = {entry.fullname for entry in set(TABLE.values()) if names_group(entry)}
    assert named == {
        "xack",
        "xackdel",
        "xautoclaim",
        "xclaim",
        "xnack",
        "xpending",
        "xreadgroup",
    }


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        (b"foo", 12182),
        (b"123456789", 12739),
        (b"{user1000}.following", 3443),
        (b"{user1000}.followers", 3443),
        (b"foo{}{bar}", 8363),
        (b"foo{{bar}}zap", 4015),
        (b"foo{bar}{zap}", 5061),
        (b"foo{bar", 15278),
    ],
)
def test_the_slot_is_that_of_a_cluster(key: bytes, slot: int) -> None:
    assert slot_of(key) == slot
