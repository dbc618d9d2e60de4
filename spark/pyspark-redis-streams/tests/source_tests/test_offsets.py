"""Offsets of mode `offsets` as the checkpoint holds them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_redis_streams.errors import RedisStreamsError
from pyspark_redis_streams.ids import MAX_ID
from pyspark_redis_streams.offsets.positions import Position, from_json, to_json
from pyspark_redis_streams.options import ServerSettings
from pyspark_redis_streams.streams import Stream
from pyspark_redis_streams.values import parse_urls

IDS = st.integers(0, MAX_ID)
COUNTS = st.integers(0, 2**63)
POSITIONS = st.builds(Position, IDS, COUNTS, IDS, COUNTS, IDS, IDS, st.none() | IDS)


def servers(*urls: str) -> ServerSettings:
    return ServerSettings(parse_urls(",".join(urls)), 0, {})


ONE = servers("redis://a")
TWO = servers("redis://a", "redis://b")


@given(st.dictionaries(st.builds(Stream, st.integers(0, 1), st.binary()), POSITIONS, max_size=3))
def test_an_offset_survives_json(positions: dict[Stream, Position]) -> None:
    text = json.dumps(to_json(positions, TWO))
    assert text.isascii()
    assert from_json(json.loads(text), TWO, []) == positions


def test_an_offset_looks_like_this() -> None:
    position = Position((5 << 64) + 1, 12, 3 << 64, 10, 4 << 64, 6 << 64)
    assert to_json({Stream(0, b"orders"): position}, ONE) == {
        "v": 2,
        "servers": {
            "": {
                "orders": {
                    "id": "5-1",
                    "n": 12,
                    "from": "3-0",
                    "n0": 10,
                    "head": "4-0",
                    "deleted": "6-0",
                }
            }
        },
    }
    assert list(to_json({Stream(1, b"orders"): position}, TWO)["servers"]) == ["b:6379/0"]


HERE = Position(5 << 64, 7, 5 << 64, 7, deleted=0)


def offset(label: str, *names: str) -> Any:
    entry = {"id": "5-0", "n": 7, "from": "5-0", "n0": 7}
    return {"v": 2, "servers": {label: dict.fromkeys(names, entry)}}


def test_a_query_goes_on_when_its_only_url_is_changed() -> None:
    other = servers("redis+cluster://x:1,y:2")
    assert from_json(offset("", "s"), other, []) == {Stream(0, b"s"): HERE}


def test_a_query_goes_on_when_several_servers_become_one() -> None:
    both = offset("a:6379/0", "s")
    both["servers"].update(offset("b:6379/0", "t")["servers"])
    assert from_json(both, ONE, []) == {Stream(0, b"s"): HERE, Stream(0, b"t"): HERE}


def test_two_streams_of_one_name_can_not_become_one() -> None:
    both = offset("a:6379/0", "s")
    both["servers"].update(offset("b:6379/0", "s")["servers"])
    with pytest.raises(RedisStreamsError, match="stream 's' of the checkpoint is on several serv"):
        from_json(both, ONE, [])


def test_a_stream_that_has_moved_is_found_where_it_is() -> None:
    there = [Stream(0, b"t"), Stream(1, b"s")]
    assert from_json(offset("", "s"), TWO, there) == {Stream(1, b"s"): HERE}


def test_a_stream_that_is_on_two_servers_is_not_guessed() -> None:
    there = [Stream(0, b"s"), Stream(1, b"s")]
    with pytest.raises(RedisStreamsError, match="is on 2 of the servers in 'url', which 'c:1/0'"):
        from_json(offset("c:1/0", "s"), TWO, there)


def test_what_the_first_version_did_not_ask_is_not_known() -> None:
    old = {**offset("", "s"), "v": 1}
    assert from_json(old, ONE, []) == {Stream(0, b"s"): replace(HERE, deleted=None)}


@pytest.mark.parametrize("other", [{"q": "c", "n": 3}, {"v": 2, "q": "c", "n": 3, "servers": {}}])
def test_the_checkpoint_of_the_other_mode_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(RedisStreamsError, match="was not written by mode 'offsets'"):
        from_json(other, ONE, [])
