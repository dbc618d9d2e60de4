"""redis-benchmark, which asks for settings first and then sends what it is told to."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess

import pytest
from redis import Redis

from tests.support.servers import PenstockThread

PROGRAM = shutil.which("redis-benchmark") or ""
TIMEOUT_S = 60


def version() -> str:
    """That of the installed program; empty if there is none."""
    if not PROGRAM:
        return ""
    printed = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    found = re.search(r"\d+\.\d+\.\d+", printed.stdout)
    return found[0] if found else ""


pytestmark = pytest.mark.skipif(not PROGRAM, reason="redis-benchmark is not installed")


def measure(penstock: PenstockThread, *args: str) -> list[str]:
    """The names of what it has measured; it must not complain about anything."""
    address = ["-h", penstock.host, "-p", str(penstock.port)]
    ended = subprocess.run(
        [PROGRAM, *address, "--csv", "-n", "400", "-c", "5", *args],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    rows = list(csv.DictReader(ended.stdout.splitlines()))
    assert all(float(row["rps"]) > 0 for row in rows)
    return [row["test"] for row in rows]


@pytest.fixture
def options(protocol: int) -> list[str]:
    return ["-3"] if protocol == 3 else []


def test_it_measures_a_group_at_work(penstock: PenstockThread, options: list[str]) -> None:
    with Redis(penstock.host, penstock.port, decode_responses=True) as client:
        client.xgroup_create("orders", "packers", id="0", mkstream=True)
        add = ["XADD", "orders", "*", "item", "pen"]
        take = ["XREADGROUP", "GROUP", "packers", "ann", "COUNT", "1", "BLOCK", "0"]
        take += ["STREAMS", "orders", ">"]
        assert measure(penstock, *options, *add) == [" ".join(add)]
        assert client.xlen("orders") == 400
        assert measure(penstock, *options, "-P", "10", *take) == [" ".join(take)]
        [group] = client.xinfo_groups("orders")
        assert (group["pending"], group["lag"]) == (400, 0)
        claim = ["XAUTOCLAIM", "orders", "packers", "bob", "0", "0", "COUNT", "10"]
        assert measure(penstock, *options, *claim) == [" ".join(claim)]
        look = ["XPENDING", "orders", "packers"]
        assert measure(penstock, *options, *look) == [" ".join(look)]
        assert client.xpending("orders", "packers")["pending"] == 400


def test_its_own_tests_of_what_there_is_run(penstock: PenstockThread, options: list[str]) -> None:
    assert measure(penstock, *options, "-t", "ping,set,get,incr", "-r", "10", "-d", "16") == [
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
    ]


def test_random_keys_are_made_of_the_placeholder(penstock: PenstockThread) -> None:
    request = ["XADD", "orders:__rand_int__", "*", "item", "pen"]
    assert measure(penstock, "-r", "3", *request) == [" ".join(request)]
    with Redis(penstock.host, penstock.port, decode_responses=True) as client:
        keys = {f"orders:{n:012}" for n in range(3)}
        assert set(client.scan_iter()) == keys
        assert sum(int(client.xlen(key)) for key in keys) == 400
