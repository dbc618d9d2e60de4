"""HyperLogLogs as values: their hashes, their registers in both encodings, their estimates."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.types.hyperloglog import (
    DENSE,
    HEADER,
    MAGIC,
    SPARSE,
    HyperLogLog,
    estimated,
    hash_of,
    is_dense,
    is_hyperloglog,
    keep_count,
    kept_count,
    merged,
    place_of,
    registers_of,
)
from storage.types.sparse_registers import REGISTERS, DamagedRuns, SparseRegisters, expanded

RAISED = st.lists(st.tuples(st.integers(0, REGISTERS - 1), st.integers(1, 51)), max_size=60)
NEAR = st.lists(st.tuples(st.integers(100, 110), st.integers(1, 3)), max_size=60)
"""Registers side by side, whose runs are joined and parted."""


def sparse(runs: bytes) -> bytearray:
    """A HyperLogLog with these runs of registers."""
    return bytearray(MAGIC + bytes((SPARSE,)) + bytes(HEADER - 5) + runs)


def filled(*elements: bytes, most: int = 3000) -> HyperLogLog:
    """A HyperLogLog with these elements."""
    sketch = HyperLogLog(bytearray(), most)
    for element in elements:
        sketch.add(element)
    return sketch


def numbers(count: int) -> list[bytes]:
    """Different elements."""
    return [b"element:%d" % number for number in range(count)]


@pytest.mark.parametrize(
    ("element", "place"),
    [(b"", (5938, 2)), (b"a", (12711, 2)), (b"12345678", (10579, 3)), (b"123456789", (9293, 2))],
)
def test_the_register_and_the_rank_of_an_element_are_those_of_redis(
    element: bytes, place: tuple[int, int]
) -> None:
    assert place_of(element) == place


@given(st.binary(max_size=40))
def test_a_rank_is_the_place_of_the_lowest_bit_behind_those_of_the_register(data: bytes) -> None:
    register, rank = place_of(data)
    bits = f"{hash_of(data):064b}"
    assert register == int(bits[-14:], 2)
    assert bits[: -14 - rank + 1].endswith("1") or rank == 51


@given(RAISED | NEAR, st.sampled_from([0, 21, 40, 100, 3000]))
def test_registers_keep_the_highest_rank_in_either_encoding(
    raised: list[tuple[int, int]], most: int
) -> None:
    model = bytearray(REGISTERS)
    sketch = HyperLogLog(bytearray(), most)
    for register, rank in raised:
        assert sketch.raise_to(register, rank) is (rank > model[register])
        model[register] = max(rank, model[register])
        assert is_hyperloglog(sketch.buffer)
        assert is_dense(sketch.buffer) or len(sketch.buffer) <= max(most, HEADER + 2)
    assert registers_of(sketch.buffer) == model
    sketch.make_dense()
    assert registers_of(sketch.buffer) == model


@given(RAISED | NEAR)
def test_runs_are_joined_as_far_as_one_may_be_long(raised: list[tuple[int, int]]) -> None:
    sketch = HyperLogLog(bytearray(), 10_000)
    for register, rank in sorted(raised):
        sketch.raise_to(register, min(rank, 32))
    runs = bytes(sketch.buffer[HEADER:])
    fresh = HyperLogLog(bytearray(), 10_000)
    for register, rank in enumerate(expanded(runs)):
        if rank:
            fresh.raise_to(register, rank)
    assert registers_of(fresh.buffer) == expanded(runs)
    assert len(fresh.buffer) <= len(sketch.buffer)


def test_equal_neighbours_become_one_run_of_up_to_four() -> None:
    sketch = HyperLogLog(bytearray(), 3000)
    for register in range(6):
        sketch.raise_to(register, 2)
    assert sketch.buffer[HEADER:] == b"\x87\x85\x7f\xf9"
    sketch.raise_to(1, 3)
    assert sketch.buffer[HEADER:] == b"\x84\x88\x87\x7f\xf9"
    sketch.raise_to(5, 33)
    assert is_dense(sketch.buffer)


def test_it_becomes_dense_when_it_would_be_too_long() -> None:
    assert not is_dense(filled(b"a", most=21).buffer)
    assert is_dense(filled(b"a", most=20).buffer)
    assert is_dense(filled(*numbers(2000)).buffer)


@pytest.mark.parametrize("count", [0, 1, 10, 1000, 30_000])
def test_an_estimate_is_near_the_number_of_elements(count: int) -> None:
    found = estimated(registers_of(filled(*numbers(count)).buffer))
    assert abs(found - count) <= count * 0.03


def test_an_estimate_of_registers_that_no_elements_have_is_the_one_of_redis() -> None:
    assert estimated(bytes((32,)) * REGISTERS) == 50760319129350
    assert estimated(bytes((40,)) * REGISTERS) == 12994641697113596
    assert estimated(bytes((51,)) * REGISTERS) == -(2**63)
    assert estimated(b"\0" + bytes((51,)) * (REGISTERS - 1)) == 193623433


@given(st.lists(st.integers(), max_size=3))
def test_merged_registers_are_the_highest_ones(seeds: list[int]) -> None:
    parts = [bytes(random.Random(seed).choices(range(64), k=REGISTERS)) for seed in seeds]
    assert merged(parts) == bytes(map(max, bytes(REGISTERS), bytes(REGISTERS), *parts))


def test_a_count_is_kept_until_something_changes() -> None:
    sketch = filled(b"a")
    keep_count(sketch.buffer, 300)
    assert kept_count(sketch.buffer) == 300
    sketch.note_change()
    assert kept_count(sketch.buffer) is None
    assert sketch.buffer[8:10] == b"\x2c\x01"


@pytest.mark.parametrize(
    "runs",
    [b"", b"\x7f", b"\x7f\xfe", b"\x7f\xff\x00", b"\x7f\xff\x40", b"\x7f\xff\x7f\xff", b"\x10"],
)
def test_other_than_all_registers_are_damage(runs: bytes) -> None:
    with pytest.raises(DamagedRuns):
        registers_of(sparse(runs))


@pytest.mark.parametrize("runs", [b"", b"\x7f", b"\x10"])
def test_a_register_that_is_not_there_cannot_be_raised(runs: bytes) -> None:
    buffer = sparse(runs)
    with pytest.raises(DamagedRuns):
        SparseRegisters(buffer, HEADER, 3000).raise_to(17, 1)
    assert buffer == sparse(runs)


def test_what_is_no_hyperloglog_is_told_by_its_header_and_its_length() -> None:
    assert is_hyperloglog(sparse(b"\x7f\xff"))
    assert is_hyperloglog(sparse(b""))
    dense = bytes(filled(*numbers(2000)).buffer)
    assert (len(dense), dense[4]) == (12304, DENSE)
    for other in (
        b"",
        b"HYLL",
        b"HYLX" + dense[4:],
        dense[:-1],
        dense + b"\0",
        b"HYLL\x02" + dense,
    ):
        assert not is_hyperloglog(other)
