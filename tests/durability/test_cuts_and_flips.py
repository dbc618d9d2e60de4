"""Files that end too early, and files in which a bit has changed."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from server.persistence.recovery import RecoveryError
from storage.aof.framing import Command, find_command
from storage.aof.reader import Damaged, Reader
from tests.durability.history import History, Restart, behind_records
from tests.durability.servers import FOLDER, AofProcess, lay_out
from tests.support.process import run_penstock

LAST_BYTES = 1024
STEPS = 45
EXAMINED_BYTES = 400


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return History(tmp_path_factory.mktemp("history"), STEPS)


EVERY_SO_OFTEN = pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
"""Every place is tried where time does not matter."""


@EVERY_SO_OFTEN
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
    torn = history.data[:-1]
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
    damaged = flipped(history.data, 0, 0)
    path = lay_out_history(tmp_path, damaged)
    assert start_in_vain(tmp_path) == (
        f"penstock: {path}: damaged at offset 0: expected * and a number of arguments,"
        r" not '+2\r\n$4\r\nECHO'" + "\n"
    )
    assert path.read_bytes() == damaged


# --- bits ------------------------------------------------------------------------------------


def read(path: Path, data: bytes) -> list[Command] | Damaged:
    """The commands in a file, none of which may be cut off, or how it is damaged."""
    path.write_bytes(data)
    reader = Reader(str(path))
    try:
        commands = [command for batch in reader for command in batch.commands]
    except Damaged as error:
        return error
    assert reader.tail is None
    return commands


def flipped(data: bytes, offset: int, bit: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1 << bit]) + data[offset + 1 :]


def is_harmless(found: list[Command], written: list[Command]) -> bool:
    """Whether nothing differs but one argument of one command, which has kept its length."""
    different = [pair for pair in zip(found, written, strict=True) if pair[0] != pair[1]]
    if len(different) != 1:
        return False
    words = [pair for pair in zip(*different[0], strict=True) if pair[0] != pair[1]]
    return len(words) == 1 and len(words[0][0]) == len(words[0][1])


def places_of_arguments(commands: list[Command]) -> set[int]:
    """The offsets of all bytes that belong to arguments, and not to what stands around them."""
    places: set[int] = set()
    at = 0
    for command in commands:
        at += len(b"*%d\r\n" % len(command))
        for word in command:
            at += len(b"$%d\r\n" % len(word))
            places.update(range(at, at + len(word)))
            at += len(word) + len(b"\r\n")
    return places


def has_swallowed_a_command(found: list[Command]) -> bool:
    """Whether an argument holds another command, with its header and its name."""
    return any(find_command(word) >= 0 for command in found for word in command)


@EVERY_SO_OFTEN
def test_a_flipped_bit_is_refused_or_changes_no_more_than_the_argument_it_is_in(
    history: History, tmp_path: Path, step: int
) -> None:
    path = tmp_path / "file"
    written = read(path, history.data)
    assert not isinstance(written, Damaged)
    arguments = places_of_arguments(written)
    begin = len(history.data) // 3
    by_chance = 0
    for offset in range(begin, begin + EXAMINED_BYTES, step):
        for bit in range(8):
            found = read(path, flipped(history.data, offset, bit))
            if isinstance(found, Damaged):
                assert found.path == str(path)
            elif offset in arguments:
                assert is_harmless(found, written), (offset, bit)
            else:
                # A length has become greater, and what it swallows ends where an argument ends
                # that the command has as well: without checksums nobody can tell.
                assert has_swallowed_a_command(found), (offset, bit)
                by_chance += 1
    assert by_chance * 1000 < EXAMINED_BYTES * 8 // step


def start(restart: Restart, path: Path) -> str:
    """Loads a file; returns why that is refused, or nothing."""
    try:
        restart.load(path)
    except RecoveryError as error:
        return str(error)
    return ""


async def test_a_start_that_is_refused_names_the_place_and_leaves_the_file_as_it_is(
    history: History, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    restart = Restart()
    begin = len(history.data) // 2
    refusals = 0
    for offset in range(begin, begin + EXAMINED_BYTES):
        damaged = flipped(history.data, offset, offset % 8)
        path.write_bytes(damaged)
        refusal = start(restart, path)
        if refusal:
            assert re.match(rf"{re.escape(str(path))}: (damaged at )?offset [0-9]+: ", refusal)
            refusals += 1
        assert path.read_bytes() == damaged
    assert refusals > EXAMINED_BYTES // 4  # What is around arguments is more than that.
