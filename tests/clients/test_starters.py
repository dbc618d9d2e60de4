"""Programs that start a redis-server themselves, with Penstock in its place."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.clients.applications import find
from tests.clients.results import CASES
from tests.support import logs
from tests.support.process import printed_by, variables

pytestmark = pytest.mark.slow

WITH_PYTEST_REDIS: Final = """\
import pytest
from pytest_redis import factories

saving = factories.redis_proc(save="3600 1 300 100", password="sesame", db_count=4)
saving_client = factories.redisdb("saving", dbnum=3, decode=True)


@pytest.mark.parametrize("time", [1, 2])
def test_each_test_has_an_empty_server(redisdb, time):
    assert redisdb.keys() == []
    redisdb.xgroup_create("orders", "packers", id="0", mkstream=True)
    redisdb.xadd("orders", {"item": "pen"})
    [[_, [(entry, fields)]]] = redisdb.xreadgroup("packers", "ann", {"orders": ">"})
    assert fields == {b"item": b"pen"}
    assert redisdb.xack("orders", "packers", entry) == 1


def test_the_server_has_what_its_options_say(saving_client):
    assert saving_client.config_get("save") == {"save": "3600 1 300 100"}
    assert saving_client.config_get("databases") == {"databases": "4"}
    assert saving_client.config_get("rdbcompression") == {"rdbcompression": "no"}
    assert saving_client.set("key", "value")
    assert saving_client.save()
"""

WITH_TESTING_REDIS: Final = """\
import pathlib
import redis
import testing.redis

with testing.redis.RedisServer(redis_conf={"save": "60 1", "databases": 2}) as server:
    client = redis.Redis(**server.dsn(db=1))
    client.xadd("orders", {"item": "pen"})
    assert client.xlen("orders") == 1
    assert client.config_get("save") == {"save": "60 1"}
    assert client.save()
    assert pathlib.Path(server.get_data_directory(), "dump.rdb").exists()
    pid = server.server_pid
print("ended", pid)
"""


@pytest.fixture
def redis_server(tmp_path: Path) -> Path:
    """A program of the name that is looked for, which is Penstock."""
    path = tmp_path / "bin" / "redis-server"
    path.parent.mkdir()
    own = [f"{name}={variables()[name]}" for name in ("PYTHONPATH", "PYTHONWARNINGS")]
    log = tmp_path / "printed"
    command = shlex.join(["env", *own, sys.executable, "-m", "tests.support.copied", str(log)])
    logs.follow(log)
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)
    return path


def run(program: str, *args: str, cwd: Path, server: Path) -> str:
    """What a program prints, which must end well; ``server`` is the first redis-server there is."""
    path = os.pathsep.join((str(server.parent), os.environ.get("PATH", os.defpath)))
    return printed_by(find(program), *args, cwd=cwd, PATH=path, PYTHONPATH="")


def test_pytest_redis_starts_it(
    tmp_path: Path, redis_server: Path, record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nredis_exec = {redis_server}\n")
    (tmp_path / "test_shop.py").write_text(WITH_PYTEST_REDIS)
    # A folder of its own near the root: names of Unix sockets are short.
    said = run("pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path, server=redis_server)
    found = re.search(r"^(\d+) passed in ", said, re.MULTILINE)
    assert found is not None, said
    assert found[1] == "3"
    record_property(CASES, 3)


def test_testing_redis_starts_it(tmp_path: Path, redis_server: Path) -> None:
    (tmp_path / "shop.py").write_text(WITH_TESTING_REDIS)
    said = run("python", "shop.py", cwd=tmp_path, server=redis_server)
    found = re.search(r"^ended (\d+)$", said, re.MULTILINE)
    assert found is not None, said
    assert not Path("/proc", found[1]).exists()
