"""Files that end too early, and files in which a bit has changed."""

from __future__ import annotations

import signal
from bisect import bisect
from itertools import accumulate
from pathlib import Path

import pytest

from server.persistence.recovery import RecoveryError
from storage.aof.folder import FolderError
from storage.aof.reader import Damaged, Reader
from tests.durability.history import History, Restart, behind_records
from tests.durability.servers import FOLDER, AofProcess, AofThread, image_of, lay_out
from tests.durability.steps import Steps
from tests.durability.talking import Talker
from tests.storage.aof.disks import MemoryDisk
from tests.support.bits import flipped, refusals
from tests.support.checksum_lines import groups, line_of
from tests.support.process import run_penstock

LAST_BYTES = 1024
STEPS = 45


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history"), STEPS)


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
async def test_a_file_cut_anywhere_in_its_last_kilobyte_holds_exactly_the_steps_before(
    history: History, tmp_path: Path, step: int
) -> None:
    path = tmp_path / "file"
    restart = Restart()
    size = len(history.data)
    for end in range(size - LAST_BYTES, size + 1, step):
        path.write_bytes(history.data[:end])
        restart.load(path)
        assert (end, restart.state(history.steps)) == (end, history.state_at(end))
        # What was cut off is a step that was not written as a whole, and the rest is untouched.
        left = path.read_bytes()
        assert history.data.startswith(left)
        assert len(left) >= max(moment.size for moment in history.moments if moment.size <= end)


def lay_out_history(folder: Path, data: bytes) -> Path:
    """A folder with that as its increment, behind an empty base; returns the increment."""
    names = ("appendonly.aof.1.base.aof", "appendonly.aof.1.incr.aof")
    manifest = b"file %s seq 1 type b\nfile %s seq 1 type i\n" % tuple(map(str.encode, names))
    lay_out(folder, {names[0]: b"", names[1]: data, "appendonly.aof.manifest": manifest})
    return folder / FOLDER / names[1]


def start_in_vain(folder: Path, *options: str) -> str:
    """What a server prints that does not start."""
    started = run_penstock("--port", "0", "--dir", str(folder), "--appendonly", "yes", *options)
    assert started.returncode == 1
    return started.stderr


def test_a_torn_tail_is_cut_off_with_a_warning_unless_that_is_not_allowed(
    history: History, tmp_path: Path
) -> None:
    whole = behind_records(history.data, history.moments[-2].size)
    torn = history.data[: history.moments[-1].size - 1]
    path = lay_out_history(tmp_path, torn)
    found = f"{path}: offset {whole}: the file ends within a command, {len(torn) - whole} bytes"
    assert start_in_vain(tmp_path, "--aof-load-truncated", "no") == (
        f"penstock: {found}; aof-load-truncated is no, so nothing was cut off:"
        " 'penstock check-aof --fix' can do it\n"
    )
    assert path.read_bytes() == torn
    with AofProcess(tmp_path) as server:
        assert any(line.endswith(f" # {found}: they were cut off") for line in server.lines)
        server.stop(signal.SIGKILL)
    assert path.read_bytes() == torn[:whole]


def test_a_damaged_file_stops_the_start_with_one_line_that_says_where(
    history: History, tmp_path: Path
) -> None:
    damaged = flipped(history.data, 0)
    size = len(groups(history.data)[0])
    path = lay_out_history(tmp_path, damaged)
    assert start_in_vain(tmp_path) == (
        f"penstock: {path}: damaged at offset 0: the {size} bytes from here on are not those that"
        f" were written: the checksum at offset {size} is that of others\n"
    )
    assert path.read_bytes() == damaged


# --- bits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.heavy)])
def test_a_flipped_bit_in_a_file_is_found_wherever_it_is(history: History, step: int) -> None:
    written = [len(group) + len(line_of(group)) for group in groups(history.data)]
    ends = [0, *accumulate(written)]

    def read(data: bytes) -> None:
        for _ in Reader("file", MemoryDisk(data)):
            pass

    bits = range(0, 8 * len(history.data), step)
    for at, error in refusals(history.data, read, Damaged, bits):
        # What is told is where the group begins that is covered, or a place in it.
        group = bisect(ends, at)
        assert ends[group - 1] <= error.offset < ends[group]


# --- bits of all files -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A base, an increment and their manifest: what every command of a client has left in them."""
    folder = tmp_path_factory.mktemp("image")
    steps = Steps(0, seed=3)
    with AofThread(folder, aof_timestamp_enabled=True) as server, Talker(server.port) as talker:
        for index in range(30):
            if index == 15:
                assert talker.ask("SAVE") == "OK"
            for command in steps[index]:
                talker.ask(*command)
            talker.ask("XADD", "idempotent", "IDMP", "p", index, "*", "f", "v")
    image = image_of(folder)
    return {name: data for name, data in image.items() if not name.endswith(".lock")}


@pytest.mark.parametrize("step", [41, pytest.param(7, marks=pytest.mark.heavy)])
async def test_no_file_with_a_flipped_bit_is_loaded(
    image: dict[str, bytes], tmp_path: Path, step: int
) -> None:
    """Of the manifest neither. A bit of every so many: the tests of the reader try each."""
    restart = Restart()
    folder = lay_out(tmp_path, image)
    restart.load_folder(folder)
    assert sum(map(len, image.values())) > 4000
    for name, data in image.items():
        path = folder / FOLDER / name
        kind: type[Exception] = RecoveryError
        told = f"{path}: damaged at offset "
        if name.endswith(".manifest"):
            kind, told = FolderError, f"the manifest '{path}' "

        def load(damaged: bytes, path: Path = path) -> None:
            path.write_bytes(damaged)
            try:
                restart.load_folder(folder)
            finally:
                assert path.read_bytes() == damaged

        for at, error in refusals(data, load, kind, range(0, 8 * len(data), step)):
            assert str(error).startswith(told), at
        path.write_bytes(data)


def test_a_start_is_refused_by_what_is_flipped_at_the_end_of_a_killed_server(
    tmp_path: Path,
) -> None:
    with AofProcess(tmp_path) as server:
        with Talker(server.address[1]) as talker:
            assert talker.ask("XADD", "s", "1-1", "f", "v") == "1-1"
        server.stop(signal.SIGKILL)
    path = tmp_path / FOLDER / "appendonly.aof.1.incr.aof"
    data = path.read_bytes()
    group = groups(data)[-1]
    begin = len(data) - len(group) - len(line_of(group))
    for offset in (data.rindex(b"$1\r\nv") + 1, data.rindex(b"v\r\n#"), len(data) - 1):
        path.write_bytes(flipped(data, 8 * offset + 1))
        assert start_in_vain(tmp_path).startswith(f"penstock: {path}: damaged at offset ")
    path.write_bytes(flipped(data, 8 * data.rindex(b"v\r\n#") + 1))
    assert start_in_vain(tmp_path) == (
        f"penstock: {path}: damaged at offset {begin}: the {len(group)} bytes from here on are not"
        f" those that were written: the checksum at offset {begin + len(group)} is that of others\n"
    )
