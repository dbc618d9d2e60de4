"""A server that is killed again and again while many clients write to it."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.durability.disks import PowerLossDisk
from tests.durability.driver import Crowd
from tests.durability.servers import FOLDER

CHAINS = 2
"""How many servers are killed side by side."""

KILLS = 50

ALWAYS = ("--appendfsync", "always")
EVERYSEC = ("--appendfsync", "everysec")


def kill_often(folder: Path, seed: int, kills: int) -> None:
    """Kills a server with ``appendfsync always``, and lets nothing be lost that was answered."""
    crowd = Crowd(folder, seed, *ALWAYS)
    moments = random.Random(seed)
    for _ in range(kills):
        crowd.write_until_killed(moments.uniform(0.01, 0.15))
    crowd.check()
    assert crowd.lost == 0


def test_no_answered_command_is_lost_by_a_kill_with_always(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(CHAINS)]
    with ThreadPoolExecutor(CHAINS) as pool:
        for folder in folders:
            folder.mkdir()
        list(pool.map(kill_often, folders, range(CHAINS), [KILLS // CHAINS] * CHAINS))


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


def lose_a_second_at_most(folder: Path, seed: int) -> None:
    """Kills servers with ``appendfsync everysec`` after more than the second that may be lost."""
    crowd = Crowd(folder, seed, *EVERYSEC, pause=0.01)
    first = crowd.write_until_killed(0.2)
    crowd.check(crowd.write_until_killed(1.7, first - 1) - 1)


def test_no_more_than_the_last_second_is_lost_by_a_kill_with_everysec(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(CHAINS)]
    with ThreadPoolExecutor(CHAINS) as pool:
        for folder in folders:
            folder.mkdir()
        list(pool.map(lose_a_second_at_most, folders, range(CHAINS)))
