"""Policies and dead letters that name a stream give nobody a right to it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen
from tests.support.direct import Direct, parsed

DENIED = "NOPERM No permissions to access a key"


class Narrow(Kitchen):
    """A user with all commands, who may use ``orders`` and ``mine`` alone."""

    def __init__(self, *rules: str, direct: Direct | None = None) -> None:
        super().__init__(direct=direct)
        keys = rules or ("~orders", "~mine")
        assert self.ask("ACL", "SETUSER", "cook", "on", "nopass", *keys, "+@all") == b"OK"
        self.cook = self.direct.client()
        assert self.ask("AUTH", "cook", "any", client=self.cook) == b"OK"

    def say(self, *words: str | int) -> Any:
        return self.ask(*words, client=self.cook)


@pytest.mark.parametrize("words", [(KEY, "GROUP", GROUP), (KEY,)])
def test_dead_letters_go_only_where_who_asks_for_it_may_add(words: tuple[str, ...]) -> None:
    kitchen = Narrow()
    assert str(kitchen.say("PENSTOCK", "POLICY", "SET", *words, "dead-letter", "secret")) == DENIED
    assert kitchen.say("PENSTOCK", "POLICY", "GET", *words) == []
    assert kitchen.say("PENSTOCK", "POLICY", "SET", *words, "dead-letter", "mine") == b"OK"
    assert kitchen.say("PENSTOCK", "POLICY", "SET", *words, "dead-letter", "") == b"OK"
    [entry] = kitchen.ask("ACL", "LOG")
    fields = dict(zip(entry[::2], entry[1::2], strict=True))
    assert (fields[b"reason"], fields[b"object"]) == (b"key", b"secret")


def test_the_right_to_read_a_stream_is_not_enough() -> None:
    kitchen = Narrow("~orders", "%R~secret")
    words = ("PENSTOCK", "POLICY", "SET", KEY, "GROUP", GROUP, "dead-letter", "secret")
    assert str(kitchen.say(*words)) == DENIED


@pytest.mark.parametrize("by_id", [True, False])
def test_a_letter_that_a_user_has_forged_goes_to_no_stream_of_others(by_id: bool) -> None:
    kitchen = Narrow()
    kitchen.ask("XGROUP", "CREATE", "secret", "group", 0, "MKSTREAM")
    added = [
        "stream",
        "secret",
        "id",
        "9-9",
        "group",
        "group",
        "consumer",
        "-",
        "deliveries",
        "1",
        "time",
        "1",
        "reason",
        "fatal",
    ]
    forged = [f"dead-letter-{word}" if at % 2 == 0 else word for at, word in enumerate(added)]
    entry_id = kitchen.say("XADD", "mine", "*", *forged, "n", 1).decode()
    assert str(kitchen.say("PENSTOCK", "REDRIVE", "mine", *([entry_id] if by_id else []))) == DENIED
    assert kitchen.ask("XLEN", "secret") == 0
    assert kitchen.ask("XLEN", "mine") == 1
    assert kitchen.ask("PENSTOCK", "REDRIVE", "mine") == 1
    assert kitchen.ask("XLEN", "secret") == 1


def test_nothing_is_moved_where_a_stream_has_no_more_ids() -> None:
    kitchen = Kitchen("dead-letter", DEAD)
    kitchen.add_all(range(1, 3))
    kitchen.read()
    kitchen.ask("XNACK", KEY, GROUP, "FATAL", "IDS", 2, "1-1", "2-1")
    kitchen.ask("XDEL", KEY, "2-1")
    last = 2**64 - 1
    kitchen.ask("XADD", KEY, f"{last}-{last}", "n", 3)
    assert str(kitchen.ask("PENSTOCK", "REDRIVE", DEAD)) == (
        "ERR The stream has exhausted the last possible ID, unable to add more items"
    )
    assert kitchen.pending() == []
    assert kitchen.ask("XLEN", DEAD) == 2


# --- groups that are made --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "denied"),
    [
        (
            ("~orders", "-xgroup|create"),
            "NOPERM User cook has no permissions to run the 'xgroup|create' command",
        ),
        (("%R~orders", "+xgroup|create"), DENIED),
    ],
)
def test_a_read_makes_no_group_that_its_user_may_not_create(
    rules: tuple[str, ...], denied: str
) -> None:
    kitchen = Narrow(*rules[:1])
    kitchen.ask("ACL", "SETUSER", "cook", *rules[1:])
    kitchen.set_stream("auto-group", 0)
    kitchen.add(1)
    words = ("XREADGROUP", "GROUP", "new", "ann", "STREAMS", KEY, ">")
    assert str(kitchen.say(*words)) == denied
    assert [row[1] for row in kitchen.ask("XINFO", "GROUPS", KEY)] == [GROUP.encode()]
    [entry] = kitchen.ask("ACL", "LOG")
    assert entry[7] in (b"orders", b"xgroup|create")
    assert kitchen.say("XREADGROUP", "GROUP", GROUP, "ann", "STREAMS", KEY, ">") is not None
    assert kitchen.ask(*words) is not None
    assert kitchen.say(*words) is None


def test_a_read_makes_no_stream_that_its_user_may_not_create() -> None:
    kitchen = Narrow("%R~*", direct=Direct(stream_policy="jobs workers auto-group 0"))
    words = ("XREADGROUP", "GROUP", "workers", "ann", "STREAMS", "jobs", ">")
    assert str(kitchen.say(*words)) == DENIED
    assert kitchen.ask("EXISTS", "jobs") == 0
    kitchen.ask("ACL", "SETUSER", "cook", "~jobs")
    assert kitchen.say(*words) is None
    assert kitchen.ask("EXISTS", "jobs") == 1


def test_nor_does_one_that_waits_make_its_group_anew() -> None:
    kitchen = Narrow("%R~orders")
    kitchen.set_stream("auto-group", 0)
    words = ("XREADGROUP", "GROUP", GROUP, "ann", "BLOCK", 0, "STREAMS", KEY, ">")
    assert kitchen.say(*words) is None
    kitchen.ask("XGROUP", "DESTROY", KEY, GROUP)
    assert str(parsed(kitchen.cook.reply_when_woken)) == DENIED
    assert kitchen.ask("XINFO", "GROUPS", KEY) == []


def test_a_script_has_no_more_rights_than_who_runs_it() -> None:
    kitchen = Narrow("%R~orders")
    kitchen.set_stream("auto-group", 0)
    script = "return redis.call('XREADGROUP', 'GROUP', 'new', 'ann', 'STREAMS', KEYS[1], '>')"
    assert "No permissions to access a key" in str(kitchen.say("EVAL", script, 1, KEY))
    assert len(kitchen.ask("XINFO", "GROUPS", KEY)) == 1
