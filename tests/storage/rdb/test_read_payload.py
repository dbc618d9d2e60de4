"""Payloads of DUMP: those of real servers, and which are refused for what."""

from __future__ import annotations

from functools import partial

import pytest

from storage.engine.limits import StreamLimits
from storage.engine.stream import Stream
from storage.rdb.read import OtherType, WrongFooter, restore, verify
from storage.rdb.source import DamagedRDB
from storage.rdb.write import dump
from tests.storage.rdb.builders import payload
from tests.support.bits import refusals

LIMITS = StreamLimits()

BY_REDIS_7_0 = bytes.fromhex(
    "13011000000000000000050000000000000001c3404c408d128d000000190002010101020181610281620200200900"
    "002001070101dffb0205010340080eff028568656c6c6f06f27011010405201d02020108201805816302e04678e03c"
    "0003480601ff0207090501060003010167050181ffffffffffffffff01000000000000000500000000000000"
    "01ebc17505a20100000102026331ebc17505a20100000100000000000000050000000000000001026332ecc1"
    "7505a2010000000a003440aa50a9729174"
)
BY_VALKEY_9_1 = bytes.fromhex(
    "15011000000000000000050000000000000001c3404c408d128d000000190002010101020181610281620200200900"
    "002001070101dffb0205010340080eff028568656c6c6f06f27011010405201d02020108201805816302e04678e03c"
    "0003480601ff0207090501060003010167050181ffffffffffffffff010000000000000005000000000000"
    "00013ec37505a201000001020263313ec37505a20100003ec37505a201000001000000000000000500000000"
    "000000010263323ec37505a2010000ffffffffffffffff005000b2b2af428c01c152"
)


@pytest.mark.parametrize("data", [BY_REDIS_7_0, BY_VALKEY_9_1], ids=["Redis 7.0", "Valkey 9.1"])
def test_the_stream_of_a_real_server_is_restored(data: bytes) -> None:
    stream = restore(data, LIMITS)
    assert isinstance(stream, Stream)
    stream.check()
    assert stream.log.ids_of(0, 2**128, 9) == [(5 << 64) + 1, (7 << 64) + 9]
    assert len(stream.groups[b"g"].pending) == 1
    again = restore(dump(stream), LIMITS)
    assert isinstance(again, Stream)
    assert again.log.range(0, 2**128, 9) == stream.log.range(0, 2**128, 9)


@pytest.mark.parametrize("text", [b"", b"12", b"text", b"x" * 100_000])
def test_a_string_is_restored_as_it_was(text: bytes) -> None:
    assert restore(dump(text), LIMITS) == text


@pytest.mark.parametrize("version", [1, 5, 12, 80])
def test_known_versions_are_taken(version: int) -> None:
    data = payload(b"\x00\x01x", version)
    assert verify(data) == version
    assert restore(data, LIMITS) == b"x"


@pytest.mark.parametrize(
    "data", [b"", b"x" * 9, payload(b"\x00\x01x", 13), payload(b"\x00\x01x", 81)]
)
def test_a_wrong_footer_is_refused(data: bytes) -> None:
    with pytest.raises(WrongFooter):
        restore(data, LIMITS)


def test_every_flipped_bit_is_found() -> None:
    found = refusals(BY_REDIS_7_0, partial(restore, limits=LIMITS), WrongFooter)
    assert len(list(found)) == 8 * len(BY_REDIS_7_0)


@pytest.mark.parametrize(
    ("data", "version", "kind"),
    [(b"\x07\x81\x00\x01\x02\x03\x04\x05\x06\x07\x00", 12, "module")],
)
def test_other_types_are_named(data: bytes, version: int, kind: str) -> None:
    with pytest.raises(OtherType) as caught:
        restore(payload(data, version), LIMITS)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (b"", 0, "it ends early"),
        (b"\x16\x01\x01a\x01b" + bytes(8), 0, "a value of the unknown type 22"),
        (b"\x00\x01xy", 3, "there is more than one value"),
        (b"\x00\x05x", 3, "it ends early"),
    ],
)
def test_what_is_damaged_is_told_with_its_offset(data: bytes, offset: int, reason: str) -> None:
    with pytest.raises(DamagedRDB) as caught:
        restore(payload(data), LIMITS)
    assert (caught.value.offset, caught.value.reason) == (offset, reason)
