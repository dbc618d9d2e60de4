"""Scripts as clients use them: locks, registered scripts, pipelines that load what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import LockNotOwnedError, NoScriptError, ResponseError

from tests.support.servers import PenstockThread

ADD_ONCE = """
    if redis.call('SET', KEYS[2], ARGV[1], 'NX') then
        return redis.call('XADD', KEYS[1], '*', 'job', ARGV[1])
    end
    return false
"""


@pytest.fixture
def client(penstock: PenstockThread, protocol: int) -> Iterator[Redis]:
    with Redis(penstock.host, penstock.port, protocol=protocol, decode_responses=True) as client:
        yield client


def test_a_lock_is_held_by_one_and_given_back_by_its_holder(client: Redis) -> None:
    mine, theirs = client.lock("lock", timeout=60), client.lock("lock", timeout=60)
    assert mine.acquire(blocking=False)
    assert not theirs.acquire(blocking=False)
    assert mine.extend(60)
    assert mine.reacquire()
    client.set("lock", "somebody else")
    with pytest.raises(LockNotOwnedError):
        mine.release()
    client.delete("lock")
    assert theirs.acquire(blocking=False)
    theirs.release()
    assert client.exists("lock") == 0


def test_a_registered_script_is_loaded_when_the_server_lacks_it(client: Redis) -> None:
    script = client.register_script(ADD_ONCE)
    assert script(keys=["stream", "seen"], args=["a"]) is not None
    client.script_flush()
    assert script(keys=["stream", "seen"], args=["a"]) is None
    assert client.xlen("stream") == 1


def test_a_pipeline_loads_its_scripts_first(client: Redis) -> None:
    script = client.register_script("return {KEYS[1], ARGV[1]}")
    with client.pipeline() as pipeline:
        pipeline.set("k", "v")
        script(keys=["k"], args=["x"], client=pipeline)
        pipeline.get("k")
        assert pipeline.execute() == [True, ["k", "x"], "v"]


def test_an_unknown_sha1_has_an_error_of_its_own(client: Redis) -> None:
    with pytest.raises(NoScriptError):
        client.evalsha("0" * 40, 0)


def test_a_read_only_script_may_not_write(client: Redis) -> None:
    assert client.eval_ro("return redis.call('get',KEYS[1])", 1, "k") is None
    with pytest.raises(ResponseError, match="Write commands are not allowed"):
        client.eval_ro("return redis.call('set',KEYS[1],'v')", 1, "k")


def test_json_in_a_script_is_what_python_writes(client: Redis) -> None:
    script = "local o = cjson.decode(ARGV[1]) o.n = o.n + 1 return cjson.encode(o)"
    assert client.eval(script, 0, '{"n": 41}') == '{"n":42}'


async def test_a_lock_of_the_asyncio_client(penstock: PenstockThread) -> None:
    async with AsyncRedis(host=penstock.host, port=penstock.port) as client:
        async with client.lock("lock", timeout=60):
            assert not await client.lock("lock").acquire(blocking=False)
        assert await client.exists("lock") == 0
