"""Full blocks are packed and compressed, and compressed further while nobody touches them."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.engine import compression, ids
from storage.engine.compression import COLD_AFTER_MS, IDLE_MS, Packed, Packer
from storage.engine.entries import encode_entry
from storage.engine.groups import Cursor
from storage.engine.limits import StreamLimits
from storage.engine.log import EntryLog
from storage.engine.runs import Run

IDENTITIES = st.one_of(
    st.builds(
        lambda first, step, count: [first + step * place for place in range(count)],
        st.sampled_from([1, ids.join(10**12, 0)]),
        st.sampled_from([1, 3, ids.join(1, 0), ids.join(7, 0)]),
        st.integers(1, 20),
    ),
    st.lists(st.integers(1, 300), min_size=1, max_size=20, unique=True),
    st.lists(st.integers(1, ids.MAX), min_size=1, max_size=20, unique=True),
    st.lists(
        st.builds(ids.join, st.sampled_from([0, 7, 10**18 - 1, 10**18]), st.integers(0, 2**60)),
        min_size=1,
        max_size=9,
        unique=True,
    ),
    st.lists(
        st.builds(ids.join, st.integers(10**12, 10**12 + 9), st.integers(0, 3)),
        min_size=1,
        max_size=20,
        unique=True,
    ),
).map(sorted)


def entry(entry_id: int) -> bytes:
    return encode_entry(entry_id, [b"f", b"v" * (entry_id % 7)])


def full_blocks(limits: StreamLimits, count: int, value: bytes = b"v" * 50) -> EntryLog:
    """A log with so many full blocks of twenty entries, and one that is not."""
    limits.max_entries = 20
    log = EntryLog(limits)
    for ms in range(1, 20 * count + 2):
        log.append(ids.join(ms, 0), [b"f", value])
    return log


def held(log: EntryLog) -> list[int | None]:
    """How many bytes each block keeps for its entries, ``None`` where it is not packed."""
    return [block.packed.held if block.packed is not None else None for block in log.blocks]


@given(entry_ids=IDENTITIES, walks=st.booleans(), wanted=st.integers(0, ids.MAX), data=st.data())
def test_packed_entries_are_those_of_the_lists(
    entry_ids: list[int], walks: bool, wanted: int, data: st.DataObject
) -> None:
    payloads = [entry(entry_id) for entry_id in entry_ids]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "IS_COMPILED", walks)
        patch.setattr(compression, "SMALL", data.draw(st.sampled_from([0, compression.SMALL])))
        packed, packer = Packed(entry_ids, payloads), Packer()
        if data.draw(st.booleans()):
            packed.squeeze()
        if data.draw(st.booleans()):
            packed.condense()
    low = data.draw(st.integers(0, len(entry_ids)))
    high = data.draw(st.integers(low, len(entry_ids)))
    assert len(packed) == len(entry_ids)
    assert packed.size == sum(map(len, payloads))
    assert packed.ids(low, high) == entry_ids[low:high]
    for _ in range(2):
        assert packed.slice(low, high, packer) == b"".join(payloads[low:high])
        assert packed.payloads(low, high, packer) == payloads[low:high]
        packer.now_ms += COLD_AFTER_MS
    assert packed.glance(low, high) == b"".join(payloads[low:high])
    for entry_id in (wanted, entry_ids[low - 1], entry_ids[low - 1] + 1, 0, ids.MAX + 1):
        assert packed.before(entry_id) == sum(other < entry_id for other in entry_ids)
        assert packed.find(entry_id) == (entry_ids.index(entry_id) if entry_id in entry_ids else -1)
    assert packed.copy().unpack() == (entry_ids, payloads)


@pytest.mark.parametrize(
    "entry_ids",
    [
        [ids.join(10**12 + 2 * place, 0) for place in range(20)],
        [ids.join(7, place) for place in range(20)],
        [ids.join(7 + 2 * (place > 10), place**2) for place in range(20)],
        [ids.join(10**12 + place**2, 0) for place in range(20)],
        [5, 6, 8],
        [5, 6, 300],
        [5, 6, 70_000],
        [5, 6, 2**40],
        [5, 2**63, ids.MAX],
        [ids.join(7, 0), ids.join(8, 2**20 - 1)],
        [ids.join(7, 0), ids.join(8, 2**20)],
        [ids.join(2**63, 0), ids.join(2**63 + 9, 1)],
    ],
    ids=[
        *("evenly spaced", "of one millisecond", "of two milliseconds", "many at any distance"),
        *("8 bits", "16 bits", "32 bits", "64 bits", "more than 64 bits"),
        *("a usual number", "an unusual one", "late milliseconds"),
    ],
)
@pytest.mark.parametrize("walks", [False, True])
def test_ids_any_distance_apart_can_be_packed(
    entry_ids: list[int], walks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "IS_COMPILED", walks)
    packed = Packed(entry_ids, [entry(entry_id) for entry_id in entry_ids])
    assert packed.ids(0, len(entry_ids)) == entry_ids
    assert [packed.before(entry_id) for entry_id in entry_ids] == list(range(len(entry_ids)))
    assert packed.before(entry_ids[0] + 1) == 1


@pytest.mark.parametrize("step", [1, 2, 3 << 64])
def test_an_id_is_found_among_evenly_spaced_ones(step: int) -> None:
    entry_ids = [ids.join(10**12, 7) + place * step for place in range(20)]
    packed = Packed(entry_ids, [entry(entry_id) for entry_id in entry_ids])
    assert [packed.find(entry_id) for entry_id in entry_ids] == list(range(20))
    absent = {entry_ids[0] - step, entry_ids[0] + 1, entry_ids[-1] + step} - {*entry_ids}
    assert {packed.find(entry_id) for entry_id in (*absent, 0, ids.MAX)} == {-1}


@given(
    first=st.sampled_from([0, 998, ids.HALF - 3, ids.HALF, ids.join(10**12, ids.HALF - 5)]),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=4),
    gap=st.sampled_from([1, 1 << 64]),
)
def test_ids_in_a_row_can_be_packed(first: int, lengths: list[int], gap: int) -> None:
    entry_ids: list[int] = []
    for length in lengths:
        entry_ids += range(first, first + length)
        first += length + gap
    packed = Packed(entry_ids, [entry(entry_id) for entry_id in entry_ids])
    assert packed.ids(0, len(entry_ids)) == entry_ids
    assert [packed.find(entry_id) for entry_id in entry_ids] == list(range(len(entry_ids)))


def raw_size(log: EntryLog) -> int:
    """How many bytes the entries of the first block have in their RESP form."""
    packed = log.blocks[0].packed
    assert packed is not None
    return packed.size


def test_a_block_is_packed_and_compressed_in_the_round_after_it_has_become_full() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 2)
    assert held(log) == [None, None, None]
    limits.packer.round(1)
    first, second, third = held(log)
    assert first is not None
    assert second is not None
    assert third is None
    assert max(first, second) < raw_size(log) / 4
    assert limits.packer.freed == 0
    log.check()


@pytest.mark.parametrize("packs", [False, True])
def test_entries_that_are_not_neighbours_are_read_from_a_block_together(packs: bool) -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 2)
    if packs:
        limits.packer.round(1)
    wanted = [ids.join(ms, seq) for ms in (3, 7, 8, 19, 30) for seq in (0, 1)]
    found = [None if each & 1 else log.get(each) for each in wanted]
    assert log.get_many(wanted) == found
    assert None not in found[::2]
    chunks = log.chunks_of(wanted, lambda entry_id: b"-")
    assert b"".join(chunks) == b"".join([payload or b"-" for payload in found])
    held_now = log.hold_many(wanted, lambda entry_id: b"-")
    assert b"".join(map(b"".join, held_now)) == b"".join(chunks)
    assert log.missing(wanted) == wanted[1::2]


def test_a_round_packs_a_limited_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "PACKED_A_ROUND", 2000)
    limits = StreamLimits()
    log = full_blocks(limits, 3)
    assert limits.packer.round(1)
    assert [size is None for size in held(log)] == [False, False, True, True]
    assert not limits.packer.round(2)
    assert [size is None for size in held(log)] == [False, False, False, True]


def test_where_blocks_come_faster_than_rounds_the_oldest_are_packed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compression, "WAITING", 2)
    limits = StreamLimits()
    log = full_blocks(limits, 5)
    assert [size is None for size in held(log)] == [False, False, False, False, True, True]
    log.check()
    limits.packer.round(COLD_AFTER_MS)
    limits.packer.round(COLD_AFTER_MS + 1)
    assert [size is None for size in held(log)] == [False] * 5 + [True]


def test_a_block_that_nobody_has_touched_for_a_while_is_compressed_further() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 2, b"temperature 19.8, humidity 40.1")
    limits.packer.round(1)
    quick = held(log)
    limits.packer.round(COLD_AFTER_MS)
    assert log.get(ids.join(21, 0)) is not None
    limits.packer.round(COLD_AFTER_MS + 1)
    first, second, _ = held(log)
    assert first is not None
    assert quick[0] is not None
    assert first < quick[0]
    assert limits.packer.freed == quick[0] - first
    assert log.blocks[1].packed is not None
    assert second == quick[1] + log.blocks[1].packed.size  # type: ignore[operator]
    limits.packer.round(2 * COLD_AFTER_MS)
    third = held(log)[1]
    assert third is not None
    assert third < quick[1]  # type: ignore[operator]
    log.check()


@pytest.mark.parametrize("idle", [0, COLD_AFTER_MS], ids=["compressed", "compressed further"])
def test_a_compressed_block_that_is_read_stays_uncompressed_for_a_while(idle: int) -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(0)
    limits.packer.round(idle)
    cold = held(log)[0]
    assert log.get(ids.join(10, 0)) == encode_entry(ids.join(10, 0), [b"f", b"v" * 50])
    assert held(log)[0] == cold + raw_size(log)  # type: ignore[operator]
    limits.packer.round(idle + COLD_AFTER_MS - 1)
    assert held(log)[0] == cold + raw_size(log)  # type: ignore[operator]
    limits.packer.round(idle + COLD_AFTER_MS)
    assert held(log)[0] <= cold  # type: ignore[operator]


def thawed(log: EntryLog) -> list[int]:
    """The numbers of the blocks that are kept uncompressed as well."""
    sizes = [(each.packed.held, each.packed.size) for each in log.blocks if each.packed is not None]
    return [at for at, (kept, size) in enumerate(sizes) if kept >= size]


def read_in(log: EntryLog, block: int) -> None:
    """Reads the first entry of a block."""
    assert log.get(ids.join(1 + 20 * block, 0)) is not None


@pytest.fixture
def limits_with_room_for_one(monkeypatch: pytest.MonkeyPatch) -> StreamLimits:
    """Limits with room for one uncompressed block of :func:`full_blocks`."""
    monkeypatch.setattr(compression, "THAWED_BYTES", 4000)
    return StreamLimits()


def test_beyond_the_limit_no_block_is_kept_uncompressed_in_the_place_of_one_in_use(
    limits_with_room_for_one: StreamLimits,
) -> None:
    packer = limits_with_room_for_one.packer
    log = full_blocks(limits_with_room_for_one, 3)
    packer.round(0)
    for block in (0, 1, 2, 1, 2):
        read_in(log, block)
    assert thawed(log) == [0]
    packer.now_ms += IDLE_MS
    for block in (0, 1, 2):
        read_in(log, block)
    assert thawed(log) == [0]


def test_beyond_the_limit_a_block_that_is_read_again_takes_the_place_of_an_idle_one(
    limits_with_room_for_one: StreamLimits,
) -> None:
    packer = limits_with_room_for_one.packer
    log = full_blocks(limits_with_room_for_one, 3)
    packer.round(0)
    read_in(log, 0)
    packer.now_ms += IDLE_MS
    read_in(log, 1)
    assert thawed(log) == [0]
    read_in(log, 1)
    assert thawed(log) == [1]
    packer.now_ms += COLD_AFTER_MS
    read_in(log, 2)
    assert thawed(log) == [1]


def test_a_block_in_which_a_group_reads_on_is_kept_uncompressed_whatever_else_is(
    limits_with_room_for_one: StreamLimits,
) -> None:
    log = full_blocks(limits_with_room_for_one, 3)
    limits_with_room_for_one.packer.round(0)
    read_in(log, 0)
    cursor = Cursor()
    assert cursor.read(log, ids.join(20, 0), 9)[0] == [ids.join(ms, 0) for ms in range(21, 30)]
    assert thawed(log) == [1]
    assert cursor.read(log, ids.join(29, 0), 31)[0] == [ids.join(ms, 0) for ms in range(30, 61)]
    assert thawed(log) == [1]
    log.check()


def test_who_reads_in_an_uncompressed_block_shares_its_ids() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(0)
    one, other = (Cursor().read(log, 0, 5)[0] for _ in range(2))
    assert one == [ids.join(ms, 0) for ms in range(1, 6)]
    assert all(mine is yours for mine, yours in zip(one, other, strict=True))
    assert other is not one
    one.clear()
    assert log.ids_of(0, ids.MAX, 5) == other
    log.check()


def test_a_run_is_added_to_a_compressed_block_that_may_be_longer_now() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(1)
    assert log.delete(ids.join(21, 0))
    assert [size is None for size in held(log)] == [False]
    limits.max_entries = 100
    added = log.append_run(
        Run(ids.join(22, 0), 1, [b"$1\r\nf\r\n"], [b"$1\r\nf\r\n$1\r\nv\r\n"] * 3)
    )
    assert held(log) == [None]
    assert log.range(ids.join(22, 0), ids.MAX, 9) == added
    assert log.length == 23
    log.check()


def test_a_block_that_is_read_again_and_again_is_decompressed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expanded: list[bytes] = []
    expand = compression._expand

    def counting(data: bytes) -> bytes:
        expanded.append(data)
        return expand(data)

    monkeypatch.setattr(compression, "_expand", counting)
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(0)
    for place in range(10):
        assert log.get(ids.join(1 + place, 0)) is not None
    assert len(expanded) == 1


def test_reading_everything_does_not_uncompress_everything(
    limits_with_room_for_one: StreamLimits,
) -> None:
    log = full_blocks(limits_with_room_for_one, 10)
    limits_with_room_for_one.packer.round(0)
    for _ in range(2):
        assert len(log.range(0, ids.MAX, 1000)) == 201
    assert thawed(log) == [0]


def test_a_round_compresses_a_limited_number_of_bytes_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compression, "SQUEEZED_A_ROUND", 1)
    limits = StreamLimits()
    log = full_blocks(limits, 2, b"temperature 19.8, humidity 40.1")
    limits.packer.round(0)
    before = held(log)
    assert limits.packer.round(COLD_AFTER_MS)
    assert [after != size for after, size in zip(held(log), before, strict=True)] == [
        True,
        False,
        False,
    ]
    assert limits.packer.round(COLD_AFTER_MS + 1)
    assert not limits.packer.round(COLD_AFTER_MS + 2)


def test_entries_that_are_very_regular_become_smaller_than_zlib_makes_them() -> None:
    limits = StreamLimits()
    log = EntryLog(limits)
    for ms in range(10**12, 10**12 + 101):
        log.append(ids.join(ms, 0), [b"sensor-id", b"1234", b"temperature", b"19.8"])
    entries = log.range(0, ids.MAX, 100)
    limits.packer.round(0)
    limits.packer.round(COLD_AFTER_MS)
    assert held(log)[0] < 0.6 * len(zlib.compress(b"".join(entries)))  # type: ignore[operator]
    assert log.range(0, ids.MAX, 100) == entries
    assert log.copy().range(0, ids.MAX, 100) == entries


def test_entries_that_are_little_alike_become_as_small_as_zlib_makes_them() -> None:
    limits = StreamLimits()
    log = EntryLog(limits)
    for ms in range(10**12, 10**12 + 101):
        chance = random.Random(ms)
        user, city = b"%d" % chance.randrange(1000), chance.choice([b"London", b"Paris", b"Rome"])
        noise = chance.randbytes(20).hex().encode()
        log.append(ids.join(ms, 0), [b"user", user, b"city", city, b"text", noise])
    entries = log.range(0, ids.MAX, 100)
    limits.packer.round(0)
    limits.packer.round(COLD_AFTER_MS)
    assert held(log)[0] < len(zlib.compress(b"".join(entries)))  # type: ignore[operator]
    assert log.range(0, ids.MAX, 100) == entries


def test_what_does_not_get_smaller_is_not_compressed() -> None:
    limits = StreamLimits()
    limits.max_entries = 20
    noise = EntryLog(limits)
    for ms in range(1, 22):
        noise.append(ids.join(ms, 0), [b"f", random.Random(ms).randbytes(100)])
    limits.packer.round(0)
    assert held(noise) == [raw_size(noise), None]
    limits.packer.round(COLD_AFTER_MS)
    assert held(noise) == [raw_size(noise), None]
    assert len(noise.range(0, ids.MAX, 100)) == 21
    noise.check()


def test_what_lz4_cannot_make_smaller_zlib_may() -> None:
    limits = StreamLimits()
    limits.max_entries = 10
    log = EntryLog(limits)
    for ms in range(1, 12):
        log.append(ids.join(ms, 0), [b"f", random.Random(ms).randbytes(150).hex().encode()])
    limits.packer.round(0)
    assert held(log) == [raw_size(log), None]
    limits.packer.round(COLD_AFTER_MS)
    assert held(log)[0] < 0.7 * raw_size(log)  # type: ignore[operator]
    log.check()


def test_a_block_that_is_too_large_to_compress_in_time_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compression, "LARGEST", 100)
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(0)
    assert held(log) == [raw_size(log), None]
    limits.packer.round(COLD_AFTER_MS)
    assert held(log) == [raw_size(log), None]


def test_a_round_looks_at_a_limited_number_of_packed_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 3)
    limits.packer.round(0)
    limits.packer.round(1)
    log.range(0, ids.MAX, 100)
    log.range(0, ids.MAX, 100)
    monkeypatch.setattr(compression, "LOOKED_AT_A_ROUND", 2)
    uncompressed = held(log)
    limits.packer.round(COLD_AFTER_MS)
    assert held(log) == uncompressed


def test_memory_usage_counts_what_is_packed_and_compressed_and_read() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 4, b"temperature 19.8, humidity 40.1")
    usage = [log.memory_usage()]
    limits.packer.round(0)
    log.range(0, ids.MAX, 100)
    log.range(0, ids.MAX, 100)
    usage.append(log.memory_usage())
    limits.packer.round(COLD_AFTER_MS - 1)
    limits.packer.round(COLD_AFTER_MS)
    usage.append(log.memory_usage())
    assert usage == sorted(usage, reverse=True)
    assert len(set(usage)) == 3


def test_measuring_what_is_packed_leaves_it_so() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 3)
    sizes = [block.copy().node_size() for block in log.blocks]
    limits.packer.round(0)
    before = held(log)
    assert [block.node_size() for block in log.blocks] == sizes
    assert held(log) == before
    assert None not in before[:-1]


def test_a_block_that_loses_an_entry_is_packed_again() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(0)
    limits.packer.round(COLD_AFTER_MS)
    assert log.delete(ids.join(5, 0))
    assert held(log) == [None, None]
    limits.packer.round(COLD_AFTER_MS + 1)
    assert held(log)[0] is not None
    log.check()


def test_a_block_that_becomes_the_last_again_takes_more_entries() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    limits.packer.round(0)
    limits.max_entries = 30
    assert log.delete(ids.join(21, 0))
    log.append(ids.join(22, 0), [b"f", b"v"])
    assert log.block_count == 1
    assert log.length == 21
    log.check()


def test_blocks_that_are_dropped_keep_no_memory_until_their_turn_comes() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 3)
    first, second, third, _ = log.blocks
    limits.packer.round(0)
    packed = first.packed
    assert packed is not None
    log.trim_to_length(21)
    assert (packed.held, second.packed and second.packed.held) == (0, 0)
    limits.packer.round(COLD_AFTER_MS)
    assert third.packed is not None
    assert len(log.range(0, ids.MAX, 100)) == 21


def test_a_block_that_is_dropped_before_it_was_packed_never_is() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 1)
    block = log.blocks[0]
    log.trim_to_length(1)
    limits.packer.round(0)
    assert block.packed is None
    assert len(block) == 0


def test_a_block_that_is_dropped_while_it_is_decompressed_is_forgotten() -> None:
    limits = StreamLimits()
    log = full_blocks(limits, 2)
    limits.packer.round(0)
    for _ in range(2):
        assert len(log.range(0, ids.MAX, 100)) == 41
    packed = log.blocks[0].packed
    assert packed is not None
    log.trim_to_length(21)
    limits.packer.round(COLD_AFTER_MS)
    assert packed.held == 0
    log.check()


def test_a_block_of_a_few_large_entries_is_packed_when_it_is_cold_and_compressed_later() -> None:
    limits = StreamLimits()
    limits.max_entries = 3
    log = EntryLog(limits)
    for ms in range(1, 5):
        log.append(ids.join(ms, 0), [b"f", b"v" * 1000])
    entries = log.range(0, ids.MAX, 4)
    for now_ms in (0, COLD_AFTER_MS - 1):
        limits.packer.round(now_ms)
        assert held(log) == [None, None]
    limits.packer.round(COLD_AFTER_MS)
    assert held(log) == [raw_size(log), None]
    limits.packer.round(2 * COLD_AFTER_MS)
    assert held(log)[0] < raw_size(log) / 4  # type: ignore[operator]
    assert log.range(0, ids.MAX, 4) == entries


def test_a_block_of_large_entries_that_is_trimmed_is_not_packed() -> None:
    limits = StreamLimits()
    limits.max_entries = 1
    log = EntryLog(limits)
    for ms in range(1, 3):
        log.append(ids.join(ms, 0), [b"f", b"v" * 1000])
    first = log.blocks[0]
    log.trim_to_length(1)
    limits.packer.round(COLD_AFTER_MS)
    assert first.packed is None
