"""The entry log, against a dictionary; and where its blocks end, against their exact size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from storage.engine import block as block_module
from storage.engine import compression, ids, nodes
from storage.engine.compression import COLD_AFTER_MS
from storage.engine.entries import pack, unpack
from storage.engine.limits import StreamLimits
from storage.engine.log import Block, EntryLog, decode_entry, encode_entry, id_of
from storage.errors import EntryTooLarge
from tests.storage.strategies import items
from tests.support.examples import scaled

NUMBERS = st.integers(0, 60)
ANY_PAIRS = st.lists(st.tuples(st.binary(), st.binary()), min_size=1).map(
    lambda pairs: [part for pair in pairs for part in pair]
)


# --- entries ---------------------------------------------------------------------------------


def test_an_entry_is_kept_as_the_bytes_it_is_answered_with() -> None:
    assert encode_entry(ids.join(5, 1), [b"f", b"one", b"", b"\r\n"]) == (
        b"*2\r\n$3\r\n5-1\r\n*4\r\n$1\r\nf\r\n$3\r\none\r\n$0\r\n\r\n$2\r\n\r\n\r\n"
    )


@given(entry_id=st.integers(ids.MIN, ids.MAX), pairs=ANY_PAIRS)
def test_the_parts_of_an_entry_are_found_again(entry_id: int, pairs: list[bytes]) -> None:
    payload, text = encode_entry(entry_id, pairs), ids.text(entry_id)
    assert decode_entry(payload) == (text, pairs)
    assert id_of(payload) == b"$%d\r\n%b\r\n" % (len(text), text)


def test_an_entry_above_the_largest_node_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LARGEST", 100)
    log = EntryLog(StreamLimits())
    log.append(1, [b"f", b"v" * 99])
    with pytest.raises(EntryTooLarge):
        log.append(2, [b"f", b"v" * 100])
    assert list(log) == [1]
    log.append(2, [b""] * 100)  # many bytes in the reply, none of them the entry's own


# --- the whole log ---------------------------------------------------------------------------


def outlines(log: EntryLog) -> list[tuple[int, int, int, int]]:
    return [(block.first, block.last, block.taken, block.node_size()) for block in log.blocks]


class Model(RuleBasedStateMachine):
    """Blocks of a few entries; deleting makes them shorter, and empty ones go."""

    def __init__(self) -> None:
        super().__init__()
        self.limits = StreamLimits(max_entries=4, max_bytes=100)
        self.log = EntryLog(self.limits)
        self.model: dict[int, bytes] = {}
        self.newest = 0
        self.now = 0

    def _ids(self) -> list[int]:
        return sorted(self.model)

    def _payloads(self, start: int, end: int) -> list[bytes]:
        return [self.model[entry_id] for entry_id in self._ids() if start <= entry_id <= end]

    @rule(gap=st.integers(1, 4), count=st.integers(1, 9))
    def append(self, gap: int, count: int) -> None:
        for entry_id in range(self.newest + gap, self.newest + gap + count):
            pairs = [b"f", b"%d" % entry_id]
            payload = self.log.append(entry_id, pairs)
            assert payload == encode_entry(entry_id, pairs)
            self.model[entry_id] = payload
            self.newest = entry_id

    @rule(entries=st.integers(0, 4), size=st.sampled_from([0, 30, 100, 4096]))
    def configure(self, entries: int, size: int) -> None:
        self.limits.max_entries, self.limits.max_bytes = entries, size

    @rule(entry_id=NUMBERS)
    def delete(self, entry_id: int) -> None:
        assert self.log.delete(entry_id) == (entry_id in self.model)
        self.model.pop(entry_id, None)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete_several(self, data: st.DataObject) -> None:
        for entry_id in data.draw(st.sets(st.sampled_from(self._ids()))):
            assert self.log.delete(entry_id)
            del self.model[entry_id]

    @rule(length=st.integers(-1, 20))
    def trim(self, length: int) -> None:
        length = max(length, 0)
        gone = self._ids()[: max(len(self.model) - length, 0)]
        assert self.log.trim_to_length(length) == len(gone)
        for entry_id in gone:
            del self.model[entry_id]

    @rule(entry_id=NUMBERS)
    def count_below(self, entry_id: int) -> None:
        assert self.log.count_below(entry_id) == sum(other < entry_id for other in self.model)

    @rule(entry_id=NUMBERS)
    def count_above(self, entry_id: int) -> None:
        assert self.log.count_above(entry_id) == sum(other > entry_id for other in self.model)

    @rule(threshold=NUMBERS, limit=st.integers(0, 9))
    def count_whole_blocks(self, threshold: int, limit: int) -> None:
        """Blocks from the oldest on, as long as each may go whole and the limit is not passed."""
        over = below = 0
        for block in self.log.blocks:
            if self.log.length - over - len(block) < threshold:
                break
            if limit and over + len(block) > limit:
                break
            over += len(block)
        for block in self.log.blocks:
            if block.last >= threshold or (limit and below + len(block) > limit):
                break
            below += len(block)
        assert self.log.count_blocks_over(threshold, limit) == over
        assert self.log.count_blocks_below(threshold, limit) == below

    @rule(start=NUMBERS, end=NUMBERS, count=st.integers(0, 30))
    def read(self, start: int, end: int, count: int) -> None:
        wanted = self._payloads(start, end)
        assert self.log.range(start, end, count) == wanted[:count]
        entry_ids = [entry_id for entry_id in self._ids() if start <= entry_id <= end]
        assert self.log.range_with_ids(start, end, count) == (entry_ids[:count], wanted[:count])
        assert self.log.reverse(start, end, count) == wanted[::-1][:count]
        blocks = list(self.log.by_block(start, end, count, newest=False))
        assert [each for block in blocks for each in block] == wanted[:count]
        blocks = list(self.log.by_block(start, end, count, newest=True))[::-1]
        assert [each for block in blocks for each in block] == wanted[max(len(wanted) - count, 0) :]
        number, chunks = self.log.chunks(start, end, count)
        assert (number, b"".join(chunks)) == (len(wanted[:count]), b"".join(wanted[:count]))

    @rule(wanted=st.sets(NUMBERS))
    def get(self, wanted: set[int]) -> None:
        found = [self.model.get(entry_id) for entry_id in sorted(wanted)]
        assert self.log.get_many(sorted(wanted)) == found
        chunks = self.log.chunks_of(sorted(wanted), lambda entry_id: b"no %d" % entry_id)
        pairs = zip(sorted(wanted), found, strict=True)
        assert b"".join(chunks) == b"".join([entry or b"no %d" % each for each, entry in pairs])
        assert [self.log.get(entry_id) for entry_id in sorted(wanted)] == found

    @rule(start=NUMBERS)
    def get_neighbours(self, start: int) -> None:
        wanted = list(range(start, start + 20))
        found = [self.model.get(entry_id) for entry_id in wanted]
        assert self.log.get_many(wanted) == found
        assert self.log.begins_by(start) == (self.log.first <= start)
        chunks = self.log.chunks_of(wanted, lambda entry_id: b"")
        assert b"".join(chunks) == b"".join([entry or b"" for entry in found])

    @rule(passed=st.sampled_from([1, COLD_AFTER_MS]))
    def let_the_packer_work(self, passed: int) -> None:
        self.now += passed
        self.limits.packer.round(self.now)

    @rule()
    def go_on_with_the_same_entries_arranged_alike(self) -> None:
        original, self.log = self.log, EntryLog(self.limits)
        for entry_id in original:
            payload = original.get(entry_id)
            assert payload is not None
            self.log.append(entry_id, decode_entry(payload)[1])
        if layout := original.layout():
            self.log.arrange(layout)
        assert outlines(self.log) == outlines(original)

    @rule()
    def go_on_with_a_copy(self) -> None:
        original, self.log = self.log, self.log.copy()
        assert self.log.block_count == original.block_count
        original.append(self.newest + 1, [b"f", b"v"])
        original.trim_to_length(1)

    @invariant()
    def everything_is_there_in_order(self) -> None:
        self.log.check()
        assert list(self.log) == self._ids()
        assert self.log.length == len(self.model)
        assert self.log.first == min(self.model, default=0)
        assert self.log.last == max(self.model, default=0)
        assert self.log.block_keys == [block.first for block in self.log.blocks]
        assert self.log.block_count == len(self.log.blocks)


TestModel = Model.TestCase
TestModel.settings = settings(deadline=None, suppress_health_check=list(HealthCheck))


# --- where blocks end ------------------------------------------------------------------------


def _firsts(log: EntryLog) -> list[int]:
    return [block.first for block in log.blocks]


def test_a_block_ends_when_it_has_taken_its_number_of_entries() -> None:
    log = EntryLog(StreamLimits(max_entries=3))
    for entry_id in range(1, 8):
        log.append(entry_id, [b"f", b"v"])
    assert _firsts(log) == [1, 4, 7]


def test_deleted_entries_count_for_the_end_of_a_block() -> None:
    log = EntryLog(StreamLimits(max_entries=3))
    log.append(1, [b"f", b"v"])
    log.append(2, [b"f", b"v"])
    log.delete(2)
    log.append(3, [b"f", b"v"])
    log.append(4, [b"f", b"v"])
    assert _firsts(log) == [1, 4]


def test_without_limits_nothing_ends_a_block() -> None:
    log = EntryLog(StreamLimits(max_entries=0, max_bytes=0))
    for entry_id in range(1, 1000):
        log.append(entry_id, [b"f", b"v" * 100])
    assert _firsts(log) == [1]


def test_a_limit_of_bytes_above_the_largest_node_is_the_largest_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nodes, "LARGEST", 1000)
    for configured in (0, 1000, 10**12):
        log = EntryLog(StreamLimits(max_entries=0, max_bytes=configured))
        log.append(1, [b"f", b"v" * 500])
        log.append(2, [b"f", b"v" * 500])
        assert _firsts(log) == [1, 2]


HALVES = st.one_of(st.integers(0, 300), st.sampled_from([4095, 4096, 2**32]), st.integers(0, 2**63))
ENTRIES = st.lists(st.tuples(HALVES, HALVES, items()), min_size=1, max_size=12)


def _takes(block: Block, pairs: list[bytes], most: int) -> bool:
    size = len(encode_entry(0, pairs)) - len(encode_entry(0, []))
    limits = StreamLimits(max_entries=0, max_bytes=most)
    twin = block.copy()
    return twin.surely_takes(size, limits) or twin.takes(sum(map(len, pairs)), limits)


def _append(block: Block, entry_id: int, pairs: list[bytes]) -> None:
    payload = encode_entry(entry_id, pairs)
    packed = len(payload) - payload.index(b"*", 4)
    ms, seq = ids.split(entry_id)
    if max(ms, seq) >= ids.NATIVE:
        ms = seq = ids.UNKNOWN
    block.append(entry_id, ms, seq, payload, packed, pairs[::2] == block.names)


@settings(max_examples=scaled(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(entries=ENTRIES, more=items(), data=st.data(), walks=st.booleans())
def test_the_bound_never_decides_other_than_the_exact_size(
    entries: list[tuple[int, int, list[bytes]]],
    more: list[bytes],
    data: st.DataObject,
    walks: bool,
) -> None:
    block = Block(ids.join(*entries[0][:2]), entries[0][2][::2])
    ms = 0
    for distance, seq, pairs in entries:
        ms = min(ms + distance, ids.HALF) if block.taken else distance
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_module, "IS_COMPILED", walks)
            _append(block, ids.join(ms, seq), pairs)
        if data.draw(st.booleans()):
            block.measure()
        if data.draw(st.booleans()):
            place = data.draw(st.integers(0, len(block)))
            block.remove(place, place + 1)
        exact = block.copy().node_size() + sum(map(len, more))
        assert not _takes(block, more, exact)
        assert _takes(block, more, exact + 1)


@pytest.mark.parametrize(
    "names", [1, 2, *(pytest.param(many, marks=pytest.mark.slow) for many in (9, 30))]
)
@pytest.mark.parametrize(
    ("ms", "seq"),
    [(41, 4095), (41, 4096), (41, 4097), (2**50, 2**60)],
    ids=["IDs near each other", "IDs still near", "IDs no longer near", "IDs far apart"],
)
@pytest.mark.parametrize("value", [b"", b"x" * 63, b"x" * 64, b"x" * 99, b"x" * 130, b"4095"])
def test_the_bound_holds_where_it_is_closest_to_the_exact_size(
    names: int, ms: int, seq: int, value: bytes
) -> None:
    pairs = [part for name in range(names) for part in (b"%c" % (65 + name), value)]
    block = Block(ids.join(0, seq), pairs[::2])
    for number in range(99):
        _append(block, ids.join(number * ms, seq if number % 2 == 0 else 0), pairs)
        exact = block.copy().node_size() + sum(map(len, pairs))
        assert not _takes(block, pairs, exact)
        assert _takes(block, pairs, exact + 1)


@settings(deadline=None)
@given(entries=st.lists(st.tuples(HALVES, HALVES, items(3)), min_size=1, max_size=12))
def test_entries_take_the_same_whether_they_are_measured_one_by_one_or_together(
    entries: list[tuple[int, int, list[bytes]]],
) -> None:
    blocks = [Block(ids.join(*entries[0][:2]), entries[0][2][::2]) for _ in range(2)]
    for walks, block in zip((False, True), blocks, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(block_module, "IS_COMPILED", walks)
            ms = entries[0][0]
            for distance, seq, pairs in entries:
                ms = min(ms + distance, ids.HALF)
                _append(block, ids.join(ms, seq), pairs)
    assert blocks[0].node_size() == blocks[1].node_size()


def test_where_field_names_are_mixed_each_entry_is_measured_as_it_is_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(block_module, "IS_COMPILED", True)
    block = Block(ids.join(1, 0), [b"first"])
    unmeasured: list[int] = []
    for seq, name in enumerate([b"first", b"first", b"other", b"first", b"other"]):
        _append(block, ids.join(1, seq), [name, b"v"])
        unmeasured.append(block.unmeasured)
    assert unmeasured == [1, 2, 0, 0, 0]


def test_entries_of_one_millisecond_need_not_be_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def entries_size(entry_ids: list[int], *_: object) -> int:
        measured.append(len(entry_ids))
        return 1

    monkeypatch.setattr(nodes, "entries_size", entries_size)
    log = EntryLog(StreamLimits())
    for seq in range(10_000):
        log.append(ids.join(1, seq), [b"field", b"%d" % seq])
    assert log.block_count == 100
    assert measured == []


@given(entries=st.lists(items(5), min_size=1, max_size=8), data=st.data())
def test_a_deleted_entry_goes_on_taking_its_bytes(
    entries: list[list[bytes]], data: st.DataObject
) -> None:
    block = Block(1, entries[0][::2])
    for entry_id, pairs in enumerate(entries, 1):
        _append(block, entry_id, pairs)
    whole = block.copy().node_size()
    low = data.draw(st.integers(0, len(entries)))
    block.remove(low, data.draw(st.integers(low, len(entries))))
    assert block.node_size() == whole


# --- the rest --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "limit"), [(100, 10_000), (1, 100), (0, 10_000), (-1, 10_000), (50_000, 1_000_000)]
)
def test_an_approximate_trimming_is_limited_by_the_size_of_nodes(entries: int, limit: int) -> None:
    assert StreamLimits(max_entries=entries).approximate_limit == limit


def outlined(outline: bytes, taken: int | None = None, size: int | None = None) -> bytes:
    """The outline with another number of entries taken, or another size."""
    parts = unpack(outline)
    parts[1] = parts[1] if taken is None else b"%d" % taken
    parts[4] = parts[4] if size is None else b"%d" % size
    return pack(tuple(parts))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda layout: layout[:-1],
        lambda layout: layout + layout[-1:],
        lambda layout: [layout[1], layout[0]],
        lambda layout: [b"*1\r\n$1\r\nx\r\n"],
        lambda layout: [outlined(layout[0], taken=10**20), *layout[1:]],
        lambda layout: [outlined(layout[0], size=10**20), *layout[1:]],
    ],
)
def test_a_layout_that_does_not_fit_is_refused(
    spoil: Callable[[list[bytes]], list[bytes]],
) -> None:
    log = EntryLog(StreamLimits(max_entries=2))
    for entry_id in (1, 2, 3):
        log.append(entry_id, [b"f", b"v"])
    before = outlines(log)
    with pytest.raises(ValueError):  # noqa: PT011 - any of several texts, none of them for users
        log.arrange(spoil(log.layout()))
    assert outlines(log) == before


def test_a_block_that_grew_under_other_limits_keeps_its_outline() -> None:
    limits = StreamLimits(max_entries=3)
    log = EntryLog(limits)
    for entry_id in (1, 2, 3):
        log.append(entry_id, [b"f", b"v"])
    assert log.layout() == []
    limits.max_entries = 2
    assert len(log.layout()) == 1


def test_a_block_keeps_the_field_names_of_an_entry_that_is_gone() -> None:
    log, again = EntryLog(StreamLimits()), EntryLog(StreamLimits())
    for entry_id, field in ((1, b"first"), (2, b"second"), (3, b"first")):
        log.append(entry_id, [field, b"v"])
    log.delete(1)
    for entry_id, field in ((2, b"second"), (3, b"first")):
        again.append(entry_id, [field, b"v"])
    again.arrange(log.layout())
    assert again.blocks[0].names == log.blocks[0].names == [b"first"]


def test_memory_usage_grows_with_the_entries() -> None:
    log = EntryLog(StreamLimits(max_entries=1))
    assert log.memory_usage() == 0
    log.append(1, [b"f", b"v"])
    one = log.memory_usage()
    assert one > len(encode_entry(1, [b"f", b"v"]))
    log.append(2, [b"f", b"v"])
    assert log.memory_usage() == 2 * one


def test_memory_usage_of_a_long_stream_is_told_from_some_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compression, "WAITING", 1000)
    few, many = EntryLog(StreamLimits(max_entries=2)), EntryLog(StreamLimits(max_entries=2))
    few.append(1000, [b"f", b"v"])
    for entry_id in range(1000, 1900):
        many.append(entry_id, [b"f", b"v"])
    assert many.memory_usage() == 900 * few.memory_usage()


def test_a_range_read_backwards_ends_with_the_block_it_starts_in() -> None:
    log = EntryLog(StreamLimits(max_entries=2))
    for entry_id in range(1, 10):
        log.append(entry_id, [b"f", b"v"])
    assert log.reverse(4, 6, 9) == [encode_entry(entry_id, [b"f", b"v"]) for entry_id in (6, 5, 4)]


def test_a_check_notices_a_wrong_length() -> None:
    log = EntryLog(StreamLimits())
    log.append(1, [b"f", b"v"])
    log.length = 2
    with pytest.raises(AssertionError):
        log.check()
