"""Runs of entries: added at once, they leave what they leave one by one."""

from __future__ import annotations

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.aof.commands import add_entry
from storage.engine import block, ids, runs
from storage.engine.entries import encode_entry
from storage.engine.limits import StreamLimits
from storage.engine.runs import Moment, Run
from storage.engine.stream import Stream
from storage.engine.trimming import ACKED, DELREF, KEEPREF, Trim, quiet_room, trim
from tests.support.wire import bulk

MS = 1_700_000_000_000


def run_of(first: int, entries: list[list[bytes]], known: bool = False) -> Run:
    names = entries[0][::2]
    alike = all(items[::2] == names for items in entries)
    pieces = [b"".join(map(bulk, items)) for items in entries]
    bulks = list(map(bulk, names)) if alike else None
    return Run(first, len(names), bulks, pieces, *(ids.split(first) if known else ()))


@pytest.mark.parametrize(
    "first",
    [
        ids.join(MS, 0),
        ids.join(MS, 7),
        ids.join(MS, 97),
        ids.join(MS, 997),
        ids.join(MS, 123456),
        ids.join(MS, ids.HALF - 2),
        1,
    ],
)
@pytest.mark.parametrize("walks", [False, True])
def test_entries_are_spelt_as_they_are_one_by_one(
    first: int, walks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "IS_COMPILED", walks)
    entries = [[b"f", b"%d" % number] for number in range(12)]
    run = run_of(first, entries)
    singly = [encode_entry(first + place, items) for place, items in enumerate(entries)]
    assert len(run) == 12
    assert run.last == first + 11
    assert run.payloads() == singly
    assert run.texts == [bulk(ids.text(first + place)) for place in range(12)]
    assert run.commands(b"key") == b"".join([add_entry(b"key", payload) for payload in singly])
    known = run_of(first, entries, known=True)
    assert (known.texts, known.ms, known.seq) == (run.texts, run.ms, run.seq)


def test_ids_that_streams_ask_for_again_are_shared() -> None:
    moment = Moment(MS)
    asked = [0, 1, 0, 2, 0, 1, 1, 3, 3]
    named = [moment.id_of(seq) for seq in asked]
    wanted = [ids.join(MS, seq) for seq in asked]
    assert named == [(entry_id, bulk(ids.text(entry_id))) for entry_id in wanted]

    def share(first: int, second: int) -> list[bool]:
        return [one is other for one, other in zip(named[first], named[second], strict=True)]

    # From the second time on as long as the numbers below are shared, too.
    assert share(2, 4) == share(5, 6) == [True, True]
    assert share(0, 2) == share(1, 5) == share(7, 8) == [False, False]


def test_a_run_may_go_on_in_the_next_millisecond() -> None:
    stream = Stream(StreamLimits())
    stream.add_run(run_of(ids.join(MS, ids.HALF - 1), [[b"f", b"v"]] * 4))
    assert stream.last_id == ids.join(MS + 1, 1)
    assert stream.next_usual(Moment(MS + 1)) == 2
    stream.check()


def test_every_millisecond_has_its_own_text() -> None:
    for passed in range(200):
        first = ids.join(MS + passed, 8)
        texts = run_of(first, [[b"f", b"v"]] * 4).texts
        assert texts == [bulk(ids.text(first + place)) for place in range(4)]
        assert run_of(first, [[b"f", b"v"]]).texts == texts[:1]


NAMES = st.sampled_from([[b"f"], [b"g"], [b"a long name"], [b"f", b"g"], [b"g", b"12"]])
LENGTHS = st.lists(st.sampled_from([0, 1, 5, 30, 63, 64, 300, 4090, 4100]), min_size=1, max_size=60)


@given(
    batches=st.lists(
        st.tuples(LENGTHS, st.lists(NAMES, min_size=1, max_size=3), st.sampled_from([0, 1, 5000])),
        min_size=1,
        max_size=5,
    ),
    most=st.sampled_from([(100, 4096), (3, 4096), (0, 4096), (100, 90), (0, 600), (100, 0)]),
    packed=st.booleans(),
    walks=st.booleans(),
)
def test_runs_end_blocks_where_single_entries_do(
    batches: list[tuple[list[int], list[list[bytes]], int]],
    most: tuple[int, int],
    packed: bool,
    walks: bool,
) -> None:
    limits = StreamLimits(*most)
    together, singly = Stream(limits), Stream(limits)
    now = MS
    for lengths, shapes, passing in batches:
        now += passing
        shapes = [names for names in shapes if len(names) == len(shapes[0])]
        entries = [
            [part for name in names for part in (name, b"v" * length)]
            for length, names in zip(lengths, cycle(shapes), strict=False)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block, "IS_COMPILED", walks)
            together.add_run(run_of(together.next_id(now), entries))
        for items in entries:
            singly.add(singly.next_id(now), items)
        if packed:
            together.log.blocks[-1].pack()
    together.check()
    for attribute in ("first", "last", "taken"):
        values = [[getattr(block, attribute) for block in s.log.blocks] for s in (together, singly)]
        assert values[0] == values[1]
    assert [b.contents() for b in together.log.blocks] == [b.contents() for b in singly.log.blocks]
    assert [b.node_size() for b in together.log.blocks] == [
        b.node_size() for b in singly.log.blocks
    ]
    assert (together.last_id, together.entries_added) == (singly.last_id, singly.entries_added)
    assert together.next_usual(Moment(now)) == singly.next_usual(Moment(now))


def test_a_run_ends_a_block_at_the_same_byte_as_single_entries() -> None:
    """Whatever the limit: the bound that a run is added by is above the exact size."""
    for most in range(40, 300):
        together, singly = (Stream(StreamLimits(100, most)) for _ in range(2))
        together.add_run(run_of(ids.join(MS, 0), [[b"f", b"v"]] * 20))
        for _ in range(20):
            singly.add(singly.next_id(MS), [b"f", b"v"])
        taken = [[block.taken for block in stream.log.blocks] for stream in (together, singly)]
        assert taken[0] == taken[1]


@given(
    before=st.integers(0, 40),
    gone=st.integers(0, 10),
    threshold=st.integers(0, 50),
    by_length=st.booleans(),
    approximate=st.booleans(),
    policy=st.sampled_from([KEEPREF, ACKED]),
    group=st.booleans(),
)
def test_nothing_is_trimmed_as_long_as_there_is_quiet_room(
    before: int,
    gone: int,
    threshold: int,
    by_length: bool,
    approximate: bool,
    policy: str,
    group: bool,
) -> None:
    stream = Stream(StreamLimits(max_entries=7))
    for number in range(1, before + 1):
        stream.add(ids.join(number, 0), [b"f", b"v"])
    stream.log.trim_to_length(max(before - gone, 0))
    if group:
        stream.add_group(b"g", ids.MAX, None)
    least = threshold if by_length else ids.join(threshold, 0)
    order = Trim(by_length, least, approximate, 0, policy)
    room = quiet_room(stream, order)
    for number in range(min(room, 60)):
        stream.add(ids.join(100 + number, 0), [b"f", b"v"])
        assert trim(stream, order).removed == 0


@pytest.mark.parametrize(("policy", "room"), [(KEEPREF, 6), (DELREF, 0)])
def test_there_is_no_room_while_references_to_deleted_entries_are_to_go(
    policy: str, room: int
) -> None:
    stream = Stream(StreamLimits(max_entries=7))
    for number in range(1, 5):
        stream.add(number, [b"f", b"v"])
    group = stream.add_group(b"g", 0, None)
    group.deliver([1, 2], group.add_consumer(b"ann", 0), 0)
    stream.delete([1])
    order = Trim(True, 9, False, 0, policy)
    assert quiet_room(stream, order) == room
    trim(stream, order)
    assert quiet_room(stream, order) == 6


@pytest.mark.parametrize("approximate", [False, True])
def test_room_is_there_up_to_the_entry_that_trims(approximate: bool) -> None:
    stream = Stream(StreamLimits(max_entries=7))
    order = Trim(True, 20, approximate, 0, KEEPREF)
    for number in range(1, 21):
        stream.add(number, [b"f", b"v"])
    room = quiet_room(stream, order)
    assert room == (6 if approximate else 0)
    for number in range(21, 22 + room):
        stream.add(number, [b"f", b"v"])
    assert trim(stream, order).removed == (7 if approximate else 1)
