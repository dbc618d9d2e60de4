"""Methods and options of redis-py of which its own suite tries nothing that Penstock has."""

from __future__ import annotations

from typing import Any

import pytest
from redis import Redis

pytestmark = pytest.mark.usefixtures("clock")


def test_a_stream_is_found_by_its_type_and_moves_between_databases(client: Redis) -> None:
    client.set("text", "v")
    assert client.type("orders") == "stream"
    assert list(client.scan_iter(_type="stream", count=7)) == ["orders"]
    assert client.move("orders", 1)
    assert client.keys() == ["text"]
    assert client.swapdb(0, 1)
    assert client.keys() == ["orders"]
    assert client.flushall(asynchronous=True)
    assert client.dbsize() == 0


def test_commands_are_listed_and_their_keys_found(client: Redis) -> None:
    listed: Any = client.command_list(category="stream")
    assert {"xadd", "xreadgroup", "xgroup|create", "xinfo|stream"} <= set(listed)
    assert "get" not in listed
    assert set(client.command_list(pattern="xa*")) == {"xack", "xackdel", "xadd", "xautoclaim"}
    flagged: Any = client.command_getkeysandflags("XADD", "orders", "*", "f", "v")
    assert [[key, set(flags)] for key, flags in flagged] == [["orders", {"RW", "update"}]]


def test_a_client_names_its_library(client: Redis) -> None:
    assert client.client_setinfo("LIB-NAME", "tests")
    info: Any = client.client_info()
    assert info["lib-name"] == "tests"


def test_the_lengths_of_common_parts_are_told(client: Redis) -> None:
    client.mset({"s": "ohmytext", "t": "mynewtext"})
    found: Any = client.lcs("s", "t", idx=True, minmatchlen=4, withmatchlen=True)
    pairs = found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
    assert pairs == {"matches": [[[4, 7], [5, 8], 4]], "len": 6}
