"""What policies do by themselves with many entries is done in slices: each has to do with no more
entries than are meant for one, in few effects, and others are answered between."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import pairwise

import pytest

from server.delivery import group_ref, retention
from server.delivery.agenda import Agenda
from server.delivery.due_work import LETTER, SLICE
from server.delivery.group_ref import existing_group
from storage.engine import effects as e
from tests.server.delivery.support import DEAD, GROUP, KEY, Kitchen, numbers_in

MANY = 3 * SLICE + 10


class Slices:
    """The effects of each slice until nothing more is due."""

    def __init__(self, kitchen: Kitchen) -> None:
        self._kitchen = kitchen
        self._reactions = kitchen.direct.server.services.reactions
        self.each: list[list[e.Effect]] = []

    def run(self) -> None:
        """Does all that is due."""
        more = True
        while more:
            more = self.run_one()

    def run_one(self) -> bool:
        """Does one slice; whether there may be more to do."""
        seen: list[e.Effect] = []
        self._reactions.record = lambda effects, session: seen.extend(effects)
        more = self._kitchen.direct.run_slice()
        self._reactions.record = None
        self.each.append(seen)
        return more

    @property
    def kinds(self) -> list[Counter[str]]:
        """How many effects of each kind there were in each slice that had any."""
        return [Counter(type(effect).__name__ for effect in seen) for seen in self.each if seen]


def filled(count: int = MANY) -> Kitchen:
    """A stream with many entries, all of them delivered to ann."""
    kitchen = Kitchen()
    kitchen.add_all(range(1, count + 1))
    assert len(kitchen.read("ann", "COUNT", count)) == count
    return kitchen


# --- one stream ------------------------------------------------------------------------------


def test_a_group_has_its_turn_however_much_its_stream_has_to_look_at() -> None:
    kitchen = Kitchen("ack-wait", 100)
    kitchen.set_stream("retention", 10**10, "retention-unread", "keep")
    kitchen.ask("XADD", KEY, "*", "item", "tea")
    assert len(kitchen.read("ann")) == 1
    kitchen.direct.now_ms += 100
    kitchen.direct.run_slice()
    assert not kitchen.direct.run_slice(), "what is due is done"
    assert len(kitchen.read("bob")) == 1


# --- consumer-ttl ----------------------------------------------------------------------------


def test_a_consumer_with_many_entries_gives_them_back_in_slices() -> None:
    kitchen = filled()
    kitchen.set("consumer-ttl", 1000)
    kitchen.direct.now_ms += 1000
    slices = Slices(kitchen)
    slices.run()
    assert slices.kinds == [{"Released": 1}] * 3 + [{"Released": 1, "ConsumerDeleted": 1}]
    released = [effect for seen in slices.each for effect in seen if isinstance(effect, e.Released)]
    assert max(len(effect.ids) for effect in released) == group_ref.RELEASED
    assert kitchen.pending() == [(number, "", 0) for number in range(1, MANY + 1)]
    assert kitchen.ask("XINFO", "CONSUMERS", KEY, GROUP) == []


def test_a_consumer_that_comes_back_meanwhile_keeps_what_it_has_left() -> None:
    kitchen = filled()
    kitchen.set("consumer-ttl", 1000)
    kitchen.direct.now_ms += 1000
    slices = Slices(kitchen)
    assert slices.run_one()
    assert kitchen.ask("XACK", KEY, GROUP, f"{MANY}-1") == 1
    assert kitchen.read("ann", "COUNT", 1) == [1]
    slices.run()
    owned = [number for number, owner, _ in kitchen.pending() if owner == "ann"]
    assert owned == [1, *range(group_ref.RELEASED + 1, MANY)]


def test_what_was_given_back_can_be_delivered_before_the_rest_is() -> None:
    kitchen = filled()
    kitchen.set("consumer-ttl", 1000)
    kitchen.direct.now_ms += 1000
    slices = Slices(kitchen)
    assert slices.run_one()
    assert kitchen.read("bob", "COUNT", 2) == [1, 2]
    slices.run()
    assert kitchen.pending()[:3] == [(1, "bob", 1), (2, "bob", 1), (3, "", 0)]
    assert len(kitchen.read("bob", "COUNT", MANY)) == MANY - 2


def test_many_consumers_go_in_slices() -> None:
    kitchen = Kitchen()
    for number in range(MANY):
        kitchen.ask("XGROUP", "CREATECONSUMER", KEY, GROUP, number)
    kitchen.set("consumer-ttl", 1000)
    kitchen.direct.now_ms += 1000
    slices = Slices(kitchen)
    slices.run()
    assert [kinds["ConsumerDeleted"] for kinds in slices.kinds] == [group_ref.RELEASED] * 3 + [10]


# --- dead letters ----------------------------------------------------------------------------


def test_dead_letters_are_written_in_slices() -> None:
    kitchen = filled()
    kitchen.set("ack-wait", 1000, "max-deliveries", 1, "dead-letter", DEAD)
    kitchen.direct.now_ms += 1000
    slices = Slices(kitchen)
    slices.run()
    assert max(kinds["EntryAdded"] for kinds in slices.kinds) * LETTER <= SLICE
    assert all(kinds["Acknowledged"] == 1 for kinds in slices.kinds)
    assert kitchen.pending() == []
    assert len(kitchen.letters()) == MANY


# --- retention -------------------------------------------------------------------------------


def test_old_entries_go_in_one_effect() -> None:
    kitchen = filled()
    kitchen.set_stream("retention", 1000)
    slices = Slices(kitchen)
    slices.run()
    assert slices.kinds == [{"StreamTrimmed": 1}]
    assert kitchen.length() == 0


def unmeasured(kitchen: Kitchen) -> int:
    """How many entries of the stream have not been measured."""
    return sum(block.unmeasured for block in kitchen.of_stream[0].log.blocks)


def test_entries_are_measured_in_slices_from_the_newest_on() -> None:
    kitchen = filled(3 * retention.MEASURED)
    kitchen.set_stream("retention-bytes", "60kb")
    block = kitchen.of_stream[0].log.blocks[0]
    slices, left = Slices(kitchen), [unmeasured(kitchen)]
    while slices.run_one():
        left.append(unmeasured(kitchen))
    assert [len(effects) for effects in slices.each] == [0, 0, 1]
    assert max(before - after for before, after in pairwise(left)) <= retention.MEASURED + len(
        block
    )
    # What is too much goes at once, most of it without being measured.
    assert slices.kinds == [{"StreamTrimmed": 1}]
    assert 5000 < kitchen.length() < 6000
    assert block.unmeasured == len(block)


def looked_at(kitchen: Kitchen) -> list[int]:
    """How many blocks each slice of a look at the size of a stream has added up."""
    stream, agenda = kitchen.of_stream
    blocks, slices = stream.log.block_count, Slices(kitchen)
    passed = [0]
    while slices.run_one():
        passed.append(blocks - bisect_left(stream.log.block_keys, agenda.fits_from))
    assert slices.kinds == [], "nothing is too much"
    return [after - before for before, after in pairwise([*passed, blocks])]


def test_blocks_are_added_up_in_slices_each_of_which_goes_on_where_the_former_ended() -> None:
    kitchen = Kitchen(stream_node_max_entries=1)
    kitchen.add_all(range(1, 2 * retention.MEASURED + 11))
    kitchen.set_stream("retention-bytes", "1gb")
    measured = retention.MEASURED // 2
    assert looked_at(kitchen) == [measured] * 4 + [10], "an entry and a block count as two"
    kitchen.add(2 * retention.MEASURED + 11)
    kitchen.direct.now_ms += retention.SIZE_STEP_MS
    assert looked_at(kitchen) == [retention.MEASURED - 1, retention.MEASURED, 12]


def test_what_comes_and_goes_while_blocks_are_added_up_does_not_lead_the_sum_astray() -> None:
    kitchen = Kitchen(stream_node_max_entries=1)
    for number in range(1, 1501):
        kitchen.add(number, "text", "x")
    kitchen.set_stream("retention-bytes", "1gb")
    node = kitchen.of_stream[0].log.blocks[0].node_size()
    kitchen.set_stream("retention-bytes", 1200 * node)
    stream, agenda = kitchen.of_stream
    kitchen.direct.run_slice()
    assert agenda.fits_from >> 64 == 501
    kitchen.ask("XDEL", KEY, "1500-1", "501-1", "500-1")
    for number in range(1501, 1511):
        kitchen.add(number, "text", "x")
    kitchen.direct.run_slice()
    assert stream.log.first >> 64 == 300, "as if all had been added up when that began"
    assert agenda.next_due(stream) == kitchen.direct.now_ms + retention.SIZE_STEP_MS
    kitchen.direct.advance(retention.SIZE_STEP_MS)
    assert kitchen.length() == 1200
    assert agenda.next_due(stream) == retention.NEVER


@pytest.mark.parametrize("policy", [("retention", 1000), ("retention-bytes", 1)])
def test_entries_that_are_kept_for_a_group_are_looked_at_in_slices(
    policy: tuple[str, int],
) -> None:
    entries = 2 * retention.LOOKED_AT + 10
    kitchen = filled(entries)
    kitchen.set_stream(*policy, "retention-unread", "keep")
    slices = Slices(kitchen)
    slices.run()
    # The last slice finds nothing.
    assert len(slices.each) == 3 + 1
    assert slices.kinds == []
    for first in (1, 2):
        numbers = range(first, kitchen.length() + first, 2)
        kitchen.ack(*numbers)
    kitchen.direct.now_ms += 1000
    after = Slices(kitchen)
    after.run()
    assert after.kinds == [{"StreamTrimmed": 1}] * 3
    removed = [effect for seen in after.each for effect in seen]
    assert [effect.removed for effect in removed if isinstance(effect, e.StreamTrimmed)] == [
        retention.LOOKED_AT,
        retention.LOOKED_AT,
        10,
    ]


@pytest.mark.parametrize(
    "policy",
    [
        ("retention", 1000, "retention-unread", "keep"),
        ("delete", "acked", "delete-grace", 9_000_000_000_000),
    ],
)
def test_the_more_groups_are_asked_the_fewer_entries_are_looked_at_in_a_slice(
    policy: tuple[str | int, ...],
) -> None:
    groups = 4 * retention.FEW_GROUPS
    kitchen = filled(retention.LOOKED_AT // 4 * 3)
    for number in range(1, groups):
        kitchen.ask("XGROUP", "CREATE", KEY, f"g{number}", "$")
    kitchen.set_stream(*policy)
    slices = Slices(kitchen)
    slices.run()
    assert len(slices.each) == 4 + 1


def test_what_has_gone_counts_though_the_end_of_the_look_removed_nothing() -> None:
    kitchen = filled(2 * retention.LOOKED_AT)
    kitchen.set_stream("retention", 1000, "retention-unread", "keep")
    kitchen.ack(*range(2, 1000))
    slices = Slices(kitchen)
    slices.run()
    assert slices.kinds == [{"EntriesDeleted": 1}]
    assert kitchen.length() == 2 * retention.LOOKED_AT - 998
    assert kitchen.of_stream[1].removed == 0


# --- delete acked ----------------------------------------------------------------------------


def test_entries_in_their_grace_are_found_in_slices_and_go_in_slices() -> None:
    kitchen = filled(2 * retention.LOOKED_AT + 10)
    kitchen.ack(*range(1, kitchen.length() + 1))
    kitchen.set_stream("delete", "acked", "delete-grace", 9_000_000_000_000)
    slices = Slices(kitchen)
    slices.run()
    assert slices.kinds == []
    assert len(slices.each) == 3 + 1
    assert len(kitchen.of_stream[1].in_grace) == kitchen.length()
    kitchen.set_stream("delete-grace", 1000)
    slices = Slices(kitchen)
    slices.run()
    assert kitchen.length() == 0
    assert [kinds["StreamTrimmed"] for kinds in slices.kinds] == [1, 1, 1]


def test_what_is_acknowledged_while_others_are_found_is_noted_once() -> None:
    kitchen = filled(retention.LOOKED_AT + 10)
    kitchen.set_stream("delete", "acked", "delete-grace", 9_000_000_000_000)
    kitchen.direct.run_slice()
    agenda = kitchen.of_stream[1]
    assert agenda.grace_sought_from is not None
    kitchen.ack(1, retention.LOOKED_AT + 1)
    assert [entry_id >> 64 for entry_id in agenda.in_grace] == [1]
    kitchen.direct.run_slice()
    assert [entry_id >> 64 for entry_id in agenda.in_grace] == [1, retention.LOOKED_AT + 1]
    kitchen.ack(2)
    assert sorted(each >> 64 for each in agenda.in_grace) == [1, 2, retention.LOOKED_AT + 1]


# --- many streams ----------------------------------------------------------------------------


def test_streams_that_fall_due_together_share_slices() -> None:
    kitchen = Kitchen(stream_policy="t:* * retention 1000")
    kitchen.direct.run_slice()  # Its group has been looked at.
    streams = SLICE // LETTER
    for number in range(streams + 10):
        kitchen.ask("XADD", f"t:{number}", "1-1", "f", "v")
    slices = Slices(kitchen)
    slices.run()
    assert [kinds["StreamTrimmed"] for kinds in slices.kinds] == [streams, 10]


# --- many groups -----------------------------------------------------------------------------

GROUPS = 5
"""Groups of one stream, each of which has more pending than two slices are meant for."""


def with_many_groups(*policies: str) -> Kitchen:
    """Entries of one order that are pending in several groups."""
    kitchen = Kitchen()
    for number in range(1, MANY + 1):
        kitchen.add(number, "order", "one")
    for number in range(GROUPS):
        kitchen.ask("XGROUP", "CREATE", KEY, f"g{number}", "0")
        words = ("GROUP", f"g{number}", "ann", "COUNT", MANY, "STREAMS", KEY, ">")
        assert len(kitchen.ask("XREADGROUP", *words)[0][1]) == MANY
    if policies:
        kitchen.set_stream(*policies)
        Slices(kitchen).run()
    return kitchen


def agendas(kitchen: Kitchen, key: str = KEY) -> list[Agenda]:
    """What the server keeps of the groups of a stream, of those that it has looked at."""
    services = kitchen.direct.server.services
    db = services.state.keyspace.databases[0]
    refs = [existing_group(db, key.encode(), b"g%d" % number) for number in range(GROUPS)]
    known = [services.policies.known_as_ruled(ref) for ref in refs]
    return [ruled.agenda for ruled in known if ruled is not None]


def in_lanes(found: list[Agenda]) -> int:
    """How many entries are in lanes."""
    return sum(len(agenda.lanes._values) for agenda in found if agenda.lanes is not None)


@pytest.mark.parametrize(
    ("before", "words", "key"),
    [
        ((), ("PENSTOCK", "POLICY", "SET", KEY, "order-by", "order"), KEY),
        (("order-by", "order"), ("PENSTOCK", "POLICY", "SET", KEY, "ack-wait", "1d"), KEY),
        (("order-by", "order"), ("RENAME", KEY, "other"), "other"),
        (("order-by", "order"), ("COPY", KEY, "other"), "other"),
    ],
)
def test_lanes_of_many_groups_are_made_in_slices(
    before: tuple[str, ...], words: tuple[str, ...], key: str
) -> None:
    kitchen = with_many_groups(*before)
    former = agendas(kitchen)
    kitchen.ask(*words)
    made, more = [0], True
    while more:
        now = [agenda for agenda in agendas(kitchen, key) if agenda not in former]
        made.append(in_lanes(now))
        more = kitchen.direct.run_slice()
    assert made[1] == 0, "the command itself makes none"
    assert max(after - so_far for so_far, after in pairwise(made)) <= SLICE
    assert in_lanes(agendas(kitchen, key)) == GROUPS * MANY


def test_what_happens_in_many_groups_at_once_makes_no_lanes() -> None:
    kitchen = with_many_groups()
    kitchen.set_stream("order-by", "order")
    assert kitchen.ask("XTRIM", KEY, "MAXLEN", "1", "DELREF") == MANY - 1
    assert len(agendas(kitchen)) == GROUPS, "all have been told"
    assert in_lanes(agendas(kitchen)) == 0
    kitchen.ask("XACK", KEY, "g0", f"{MANY}-1")
    kitchen.add(MANY + 1, "order", "one")
    words = ("ann", "STREAMS", KEY, ">")
    assert numbers_in(kitchen.ask("XREADGROUP", "GROUP", "g0", *words)) == [MANY + 1]
    assert numbers_in(kitchen.ask("XREADGROUP", "GROUP", "g1", *words)) == []
