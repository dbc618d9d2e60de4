"""A server that is killed again and again while many clients write to it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.durability.disks import PowerLossDisk
from tests.durability.driver import Crowd
from tests.durability.servers import FOLDER, AofProcess
from tests.durability.talking import AsyncTalker, Talker
from tests.support.process import PenstockProcess

CHAINS = 2
"""How many servers are killed side by side."""

ALWAYS = ("--appendfsync", "always")


def kill_often(folder: Path, seed: int, kills: int, policy: str) -> None:
    """Kills a server again and again, and lets nothing be lost that was answered."""
    crowd = Crowd(folder, seed, "--appendfsync", policy)
    moments = random.Random(seed)
    for _ in range(kills):
        crowd.write_until_killed(moments.uniform(0.01, 0.15))
    crowd.check()
    assert crowd.lost == 0


@pytest.mark.parametrize(
    ("policy", "kills"),
    [
        ("always", 4),
        pytest.param("always", 10, marks=pytest.mark.slow),
        pytest.param("always", 40, marks=pytest.mark.heavy),
        pytest.param("everysec", 12, marks=pytest.mark.slow),
        pytest.param("no", 8, marks=pytest.mark.slow),
    ],
)
def test_no_answered_command_is_lost_by_a_kill(tmp_path: Path, policy: str, kills: int) -> None:
    folders = [tmp_path / str(number) for number in range(CHAINS)]
    with ThreadPoolExecutor(CHAINS) as pool:
        for folder in folders:
            folder.mkdir()
        numbers = [kills // CHAINS] * CHAINS
        list(pool.map(kill_often, folders, range(CHAINS), numbers, [policy] * CHAINS))


@pytest.mark.slow
def test_no_answered_command_is_lost_by_a_loss_of_power_with_always(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    folder = tmp_path / "data"
    folder.mkdir()
    crowd = Crowd(folder, 7, *ALWAYS, disk=f"power-loss,{memory}")
    moments = random.Random(7)
    for _ in range(5):
        crowd.write_until_killed(moments.uniform(0.05, 0.3))
        PowerLossDisk(str(memory)).lose_power(folder / FOLDER)
    crowd.check()
    assert crowd.lost == 0


# --- what others were told -------------------------------------------------------------------

SETUP = ("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
READ = ("XREADGROUP", "GROUP", "g", "c", "BLOCK", 0, "STREAMS", "s", ">")


async def add(port: int) -> None:
    """Adds entries, each in a transaction that tells of it as well."""
    with contextlib.suppress(ConnectionError), AsyncTalker(port) as talker:
        while True:
            talker.send("MULTI", "XADD s * f v", "INCR n", "EXEC")
            for _ in range(4):
                await talker.reply()


async def read(port: int, got: list[str]) -> None:
    """Is woken for each entry, and notes which ones it was given."""
    with contextlib.suppress(ConnectionError), AsyncTalker(port) as talker:
        while True:
            [[_, entries]] = await talker.ask(*READ)
            got += [entry_id for entry_id, _ in entries]


async def listen(port: int, told: list[str]) -> None:
    """Notes each message that says that the counter went up."""
    with contextlib.suppress(ConnectionError), AsyncTalker(port) as talker:
        await talker.ask("SUBSCRIBE", "__keyevent@0__:incrby")
        while True:
            told.append((await talker.reply())[2])


async def live(server: PenstockProcess, seconds: float) -> tuple[list[str], list[str]]:
    """Kills a server after so long; what its reader had got, and its listener had heard."""
    got: list[str] = []
    told: list[str] = []
    port = server.address[1]
    tasks = [
        asyncio.ensure_future(work) for work in (read(port, got), listen(port, told), add(port))
    ]
    await asyncio.sleep(seconds)
    server.stop(signal.SIGKILL)
    await asyncio.gather(*tasks)
    return got, told


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["everysec", "no"])
def test_what_a_consumer_or_a_subscriber_was_told_is_there_after_a_kill(
    tmp_path: Path, policy: str
) -> None:
    moments = random.Random(3)
    options = ("--appendfsync", policy, "--notify-keyspace-events", "E$")
    with AofProcess(tmp_path, *options) as server, Talker(server.address[1]) as talker:
        talker.ask(*SETUP)
    everything = 0
    for _ in range(3):
        with AofProcess(tmp_path, *options) as server:
            with Talker(server.address[1]) as talker:
                before = int(talker.ask("GET", "n") or 0)
            got, told = asyncio.run(live(server, moments.uniform(0.1, 0.3)))
        with AofProcess(tmp_path, *options) as server, Talker(server.address[1]) as talker:
            pending = talker.ask("XPENDING", "s", "g", "-", "+", 1_000_000, "c")
            assert set(got) <= {entry[0] for entry in pending}
            assert int(talker.ask("GET", "n") or 0) - before >= len(told)
        everything += len(got)
    assert everything > 0
