"""Scripts in the append-only file: as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from storage.aof.framing import parse
from tests.server.scripting.together.test_busy import begin
from tests.support.servers import ONCE, PenstockThread


def appended(folder: Path, use: Callable[[PenstockThread, Redis], object]) -> list[bytes]:
    """What a server appended for what was done with it: transactions and strings."""
    with (
        PenstockThread(
            dir=folder, appendonly="yes", appendfsync="always", busy_reply_threshold=20
        ) as penstock,
        Redis(penstock.host, penstock.port, retry=ONCE) as client,
    ):
        use(penstock, client)
    (increment,) = folder.glob("appendonlydir/*.incr.aof")
    commands = [b" ".join(command) for command in parse(increment.read_bytes()).commands]
    return [one for one in commands if one.split()[0] in (b"MULTI", b"SET", b"EXEC", b"DEL")]


def test_what_a_script_changes_is_a_transaction(tmp_path: Path) -> None:
    script = (
        "redis.call('set','a','1') redis.pcall('xlen','a') redis.call('set','b','2') error('x')"
    )

    def use(_: PenstockThread, client: Redis) -> None:
        client.execute_command("EVAL", "redis.call('get','a') return 1", 0)
        with pytest.raises(Exception, match="user_script:1: x"):
            client.eval(script, 0)

    assert appended(tmp_path, use) == [b"MULTI", b"SET a 1", b"SET b 2", b"EXEC"]


def test_a_script_in_a_transaction_is_part_of_it(tmp_path: Path) -> None:
    def use(_: PenstockThread, client: Redis) -> None:
        with client.pipeline() as pipeline:
            pipeline.set("a", "1")
            pipeline.eval("return redis.call('set','b','2')", 0)
            pipeline.set("c", "3")
            pipeline.execute()

    assert appended(tmp_path, use) == [b"MULTI", b"SET a 1", b"SET b 2", b"SET c 3", b"EXEC"]


def test_nothing_of_a_script_is_kept_that_the_server_did_not_finish(tmp_path: Path) -> None:
    def use(penstock: PenstockThread, client: Redis) -> None:
        client.set("before", "1")
        author = Redis(penstock.host, penstock.port)
        begin(author, client, "EVAL", "redis.call('set','k','v') while true do end", "0")
        client.shutdown(nosave=True)
        author.close()

    assert appended(tmp_path, use) == [b"SET before 1"]
