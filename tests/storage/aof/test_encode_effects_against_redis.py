"""What is expected of the forms is what a real server writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.storage.aof.test_encode_effects import SAME_AS_REDIS
from tests.support.recording import readable
from tests.support.redis_files import FileServer

_TIME = re.compile(r"\b\d{13}\b")


@pytest.fixture(scope="module")
def real(real_server: str) -> Iterator[FileServer]:
    with FileServer(real_server) as server:
        yield server


@pytest.mark.parametrize(
    ("before", "line", "expected"),
    [case[1:] for case in SAME_AS_REDIS],
    ids=[case[0] for case in SAME_AS_REDIS],
)
def test_a_real_server_writes_the_same(
    real: FileServer, before: tuple[str, ...], line: str, expected: list[str]
) -> None:
    real.send("CONFIG", "SET", "stream-node-max-entries", "100")
    real.begin()
    for command in before:
        assert not real.send(*command.split()).startswith(b"-")
    already = len(readable(real.written()))
    real.send(*line.split())
    written = readable(real.written())[already:]
    # The server has selected database 0 before, which is not repeated.
    wanted = expected[1:] if expected[:1] == ["SELECT 0"] else expected
    assert [_TIME.sub("TIME", one) for one in written] == [_TIME.sub("TIME", one) for one in wanted]
