"""A rewrite that is cut short in any of its phases."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from storage.aof.folder import Folder as AofFolder
from tests.durability.disks import PowerLossDisk
from tests.durability.servers import FOLDER, AofProcess, AofThread, lay_out
from tests.durability.talking import Talker
from tests.support.wire import wait_until

ENTRIES = 300
MANIFEST = "appendonly.aof.manifest"
SIDE_BY_SIDE = 2


class Ended(NamedTuple):
    """How a server has ended that was to be killed in a rewrite."""

    killed: bool
    """Whether it was; otherwise the rewrite was over before that."""
    answered: int
    """The last number of which a client was told that it is there."""


def info(talker: Talker, name: str) -> str:
    """A field of INFO persistence."""
    lines: list[str] = talker.ask("INFO", "persistence").splitlines()
    return next(line.partition(":")[2] for line in lines if line.startswith(f"{name}:"))


def fill(talker: Talker) -> None:
    for number in range(1, ENTRIES + 1):
        talker.send(f"XADD stream {number}-1 number {number}")
    assert [talker.reply() for _ in range(ENTRIES)] == [f"{n}-1" for n in range(1, ENTRIES + 1)]


def write_during_rewrite(talker: Talker) -> Ended:
    """Begins a rewrite, and sets a key to ever greater numbers until it or the server has ended."""
    answered = 0
    try:
        talker.ask("BGREWRITEAOF")
        while True:
            assert talker.ask("SET", "number", answered + 1) == "OK"
            answered += 1
            going_on = (
                info(talker, "aof_rewrite_in_progress"),
                info(talker, "aof_rewrite_scheduled"),
            )
            if going_on == ("0", "0"):
                return Ended(False, answered)
    except ConnectionError:
        return Ended(True, answered)


def rewrite_and_kill(folder: Path, who: str, number: int) -> Ended:
    """Ends a server at the change of this number in a rewrite."""
    folder.mkdir()
    armed = folder / "armed"
    disk = f"killing,{who},{number},{armed}"
    with AofProcess(folder, "--appendfsync", "always", disk=disk) as server:
        with Talker(server.address[1]) as talker:
            fill(talker)
            armed.touch()
            ended = write_during_rewrite(talker)
        server.process.kill()
    # A child that the server had just forked holds the lock until it has begun.
    used = AofFolder(str(folder / FOLDER), "appendonly.aof")
    wait_until(lambda: not used.user())
    return ended


def see_that_all_is_there(folder: Path, answered: int) -> None:
    """Starts a server with what is left, which goes on, and rewrites."""
    with AofThread(folder) as server, Talker(server.port) as talker:
        assert talker.ask("XLEN", "stream") == ENTRIES
        assert talker.ask("XRANGE", "stream", "300-1", "300-1") == [["300-1", ["number", "300"]]]
        assert int(talker.ask("GET", "number") or 0) in (answered, answered + 1)
        assert talker.ask("SET", "after", "it") == "OK"
        server.call(server.server.services.persistence.save)
    manifest = (folder / FOLDER / MANIFEST).read_text().split()
    assert manifest[5::6] == ["b", "i"]
    others = set(os.listdir(folder / FOLDER)) - {MANIFEST, "appendonly.aof.lock", *manifest[1::6]}
    # A base that had its name already when the server was killed, and that no manifest names.
    assert others <= {"appendonly.aof.2.base.aof"}
    with AofThread(folder) as server, Talker(server.port) as talker:
        assert talker.ask("XLEN", "stream") == ENTRIES
        assert talker.ask("GET", "after") == "it"


@pytest.mark.slow
@pytest.mark.parametrize("who", ["server", "parent"])
def test_a_kill_in_any_phase_of_a_rewrite_loses_nothing(tmp_path: Path, who: str) -> None:
    """``server``: at each change that the server makes; ``parent``: at each that its child does."""
    numbers = count()
    completed: list[int] = []

    def kill_at_every_other_change() -> None:
        while not completed:
            number = next(numbers)
            folder = tmp_path / str(number)
            ended = rewrite_and_kill(folder, who, number)
            see_that_all_is_there(folder, ended.answered)
            if not ended.killed:
                completed.append(number)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for done in [pool.submit(kill_at_every_other_change) for _ in range(SIDE_BY_SIDE)]:
            done.result()
    assert min(completed) > (20 if who == "server" else 2)


def test_a_rewrite_whose_process_is_killed_is_given_up_and_the_server_goes_on(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    armed = folder / "armed"
    with (
        AofProcess(folder, disk=f"killing,child,1,{armed}") as server,
        Talker(server.address[1]) as talker,
    ):
        fill(talker)
        armed.touch()
        assert write_during_rewrite(talker).killed is False
        assert info(talker, "aof_last_bgrewrite_status") == "err"
        assert info(talker, "aof_last_write_status") == "ok"
        armed.unlink()
        write_during_rewrite(talker)
        assert info(talker, "aof_last_bgrewrite_status") == "ok"
        assert sorted(os.listdir(folder / FOLDER)) == [
            "appendonly.aof.2.base.aof",
            "appendonly.aof.3.incr.aof",
            "appendonly.aof.lock",
            MANIFEST,
        ]


# --- a loss of power ---------------------------------------------------------------------------


class Photographing(PowerLossDisk):
    """Keeps what a loss of power would leave before each change of the server."""

    def __init__(self, memory: Path, folder: Path) -> None:
        super().__init__(str(memory))
        self.folder = folder
        self.on = False
        self.images: list[dict[str, bytes]] = []

    def _note(self, *call: str) -> None:
        if self.on and self.folder.exists():
            self.images.append(self.image(self.folder))


def test_a_loss_of_power_in_any_phase_of_a_rewrite_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    disk = Photographing(tmp_path / "memory", folder / FOLDER)
    with AofThread(folder, disk, appendfsync="always") as server, Talker(server.port) as talker:
        fill(talker)
        disk.on = True
        assert write_during_rewrite(talker).killed is False
        disk.on = False
    assert len(disk.images) > 20
    for image in disk.images:
        lay_out(folder, image)
        with AofThread(folder) as server, Talker(server.port) as talker:
            assert talker.ask("XLEN", "stream") == ENTRIES


# --- turning it on -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["CONFIG SET appendonly yes", "BGSAVE", "SAVE"])
def test_a_loss_of_power_while_first_files_are_made_leaves_a_folder_that_can_be_used(
    tmp_path: Path, command: str
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    disk = Photographing(tmp_path / "memory", folder / FOLDER)
    disk.on = True
    options = {"appendonly": "no", "appendfsync": "always"}
    with AofThread(folder, disk, **options) as server, Talker(server.port) as talker:
        fill(talker)
        talker.ask(*command.split())
        wait_until(lambda: info(talker, "aof_rewrites") == "1")
        disk.images.append(disk.image(disk.folder))
        disk.on = False
    found = []
    for image in disk.images:
        lay_out(folder, image)
        with AofThread(folder) as server, Talker(server.port) as talker:
            found.append(talker.ask("XLEN", "stream"))
    # Nothing was promised before all was there.
    assert found == sorted(found)
    assert set(found) == {0, ENTRIES}
