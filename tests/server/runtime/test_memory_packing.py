"""Memory that compression has freed goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes

import pytest

from server.runtime import memory, process
from storage.engine import compression
from storage.engine.compression import COLD_AFTER_MS
from storage.engine.stream import Stream
from tests.support.direct import Direct


def test_memory_is_given_back_when_compression_has_freed_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[int] = []
    monkeypatch.setattr(memory, "give_memory_back", lambda: given.append(1))
    monkeypatch.setattr(memory, "GIVEN_BACK_BYTES", 150)
    direct = Direct(stream_node_max_entries=2)
    client = direct.client()
    for _ in range(5):
        client.send("XADD", "k", "*", "f", "v" * 100)
    direct.cron()
    for _ in range(2):
        client.send("XRANGE", "k", "-", "+")
    direct.cron()
    assert given == []
    direct.advance(COLD_AFTER_MS)
    direct.cron()
    assert given == [1]
    direct.advance(COLD_AFTER_MS)
    direct.cron()
    assert given == [1]
    assert client.send("XLEN", "k") == b":5\r\n"


def test_giving_memory_back_does_no_harm() -> None:
    process.give_memory_back()


def test_a_c_library_that_cannot_do_it_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    process.give_memory_back()


def test_what_one_round_leaves_to_pack_is_packed_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "PACKED_A_ROUND", 1)
    monkeypatch.setattr(memory, "PACKING_EVERY_S", 0)

    async def pack() -> list[bool]:
        direct = Direct(stream_node_max_entries=1)
        client = direct.client()
        for _ in range(4):
            client.send("XADD", "k", "*", "f", "v")
        direct.cron()
        direct.cron()
        stream = direct.server.state.keyspace.databases[0].values[b"k"]
        assert isinstance(stream, Stream)
        async with asyncio.timeout(60):
            while stream.log.blocks[2].packed is None:
                await asyncio.sleep(0)
        return [block.packed is not None for block in stream.log.blocks]

    assert asyncio.run(pack()) == [True, True, True, False]
