"""maxmemory on a real process: it fills up, refuses, and takes more when something has gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import redis

from tests.support.process import PenstockProcess, run_penstock
from tests.support.servers import PenstockThread
from tests.support.wire import wait_until

MEGABYTE = 1024**2
ROOM = 24 * MEGABYTE
TIMEOUT_S = 30

OOM = "command not allowed when used memory > 'maxmemory'."


def resident(process: PenstockProcess) -> int:
    statm = Path(f"/proc/{process.process.pid}/statm").read_text()
    return int(statm.split()[1]) * os.sysconf("SC_PAGE_SIZE")


def fill(client: redis.Redis) -> None:
    """Adds entries until that is refused."""
    while True:
        pipe = client.pipeline(transaction=False)
        for number in range(200):
            pipe.xadd("s", {"random": os.urandom(400), "number": number})
        pipe.execute()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_a_full_server_refuses_more_and_takes_it_when_there_is_room_again(tmp_path: Path) -> None:
    with PenstockProcess("--port", "0", "--dir", str(tmp_path)) as process:
        with redis.Redis(port=process.address[1]) as client:
            limit = client.info("memory")["used_memory"] + ROOM
            client.config_set("maxmemory", limit)
            with pytest.raises(redis.OutOfMemoryError, match=OOM):
                fill(client)
            assert limit < resident(process) < limit + ROOM // 4
            kept = client.xlen("s")
            assert kept * 400 > ROOM // 2
            info = client.info("memory")
            assert abs(info["used_memory"] - resident(process)) < MEGABYTE
            assert info["maxmemory"] == limit
            assert len(client.xrange("s", count=10)) == 10
            with pytest.raises(redis.OutOfMemoryError, match=OOM):
                client.set("k", "v")
            assert client.delete("s") == 1
            wait_until(lambda: written(client))
        assert process.stop() == 0
    assert not process.errors


def written(client: redis.Redis) -> bool:
    try:
        return bool(client.set("k", "v"))
    except redis.OutOfMemoryError:
        return False


def test_a_limit_at_the_start_counts_from_the_first_command(tmp_path: Path) -> None:
    with PenstockThread(maxmemory="1mb") as server, redis.Redis(port=server.port) as client:
        with pytest.raises(redis.OutOfMemoryError, match=OOM):
            client.set("k", "v")
        assert client.config_set("maxmemory", 0)
        assert client.set("k", "v")


def test_the_log_says_that_the_limit_is_below_what_is_used(tmp_path: Path) -> None:
    with PenstockProcess("--port", "0", "--maxmemory", "1mb", "--dir", str(tmp_path)) as process:
        pass
    assert any(
        "The process takes more memory than maxmemory (1048576 bytes) allows:"
        " commands that may need more are refused" in line
        for line in process.lines
    )


def test_a_limit_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    ended = run_penstock("--maxmemory", "5%", "--dir", str(tmp_path))
    assert ended.returncode == 1
    assert "maxmemory: argument must be a memory value" in ended.stdout + ended.stderr
