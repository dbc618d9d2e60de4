"""Checksums: what a server does about files, or ends of files, that have none, and about damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig, refused
from tests.server.persistence.test_recovery import BOTH, put
from tests.storage.aof.samples import EXEC, MULTI, encoded, xadd
from tests.support.checksum_lines import groups, with_lines, without_lines

ONE, TWO = encoded(xadd(1)), encoded(xadd(2))
GROUP = encoded(MULTI, xadd(2), EXEC)
INCREMENT = "appendonly.aof.1.incr.aof"
LOAD_FAILED = "ERR Error trying to load the AOF files, check server logs."


def differ(path: Path, size: int, offset: int) -> str:
    """What is said of so many bytes from an offset on."""
    return (
        f"{path}: damaged at offset {offset}: the {size} bytes from here on are not those that were"
        f" written: the checksum at offset {offset + size} is that of others"
    )


@pytest.mark.parametrize(
    ("data", "uncovered"),
    [
        (with_lines(ONE) + TWO, TWO),
        (with_lines(ONE) + TWO + b"*3\r\n$4\r\nXADD\r\n$1", TWO),
        (with_lines(ONE) + TWO + b"#CRC32C:89ab", TWO),
        (with_lines(ONE) + TWO + b"\0" * 100, TWO),
        (with_lines(ONE) + GROUP + encoded(MULTI, xadd(3)), GROUP),
        (with_lines(ONE) + GROUP + encoded(MULTI, xadd(3)) + b"*1\r\n$4\r", GROUP),
    ],
)
async def test_the_next_write_covers_what_has_no_checksum_yet(
    start: Start, tmp_path: Path, data: bytes, uncovered: bytes
) -> None:
    """A crash has cut off the line behind it, or Redis has written it."""
    path = put(tmp_path, BOTH, base=b"", incr=data) / INCREMENT
    rig = await start()
    told = f"{path}: the last {len(uncovered)} bytes have no checksum; loaded anyway"
    assert told in rig.log
    assert await rig.ask("XADD", "s", "9-1", "f", "v") == b"9-1"
    await rig.stop()
    first, second, *_ = groups(path.read_bytes())
    assert first == ONE
    assert second.startswith(uncovered)
    assert without_lines(path.read_bytes()).startswith(ONE + uncovered)
    again = await start()
    assert await again.ask("XLEN", "s") == 3
    assert not any("checksum" in line for line in again.log)


async def test_files_without_checksums_are_loaded_and_covered_from_then_on(
    start: Start, tmp_path: Path
) -> None:
    folder = put(tmp_path, BOTH, base=ONE, incr=TWO)
    rig = await start()
    assert await rig.ask("XLEN", "s") == 2
    assert rig.log[:2] == [
        f"{folder / 'appendonly.aof.1.base.aof'}: it has no checksum; loaded anyway",
        f"{folder / INCREMENT}: it has no checksum; loaded anyway",
    ]
    await rig.stop()
    assert without_lines((folder / INCREMENT).read_bytes()).startswith(TWO)


async def test_damage_in_a_value_stops_the_start(tmp_path: Path) -> None:
    data = with_lines(ONE, TWO.replace(b"v", b"w"), ONE).replace(b"w", b"v")
    path = put(tmp_path, BOTH, base=b"", incr=data) / INCREMENT
    assert await refused(tmp_path) == differ(path, len(TWO), len(with_lines(ONE)))
    assert path.read_bytes() == data


@pytest.mark.parametrize("value", [b"v", b"v" * 70_000])
async def test_a_command_that_damage_has_made_is_told_as_damage(
    tmp_path: Path, value: bytes
) -> None:
    """Its group need not end in the bytes that were read with it."""
    group = TWO + encoded(xadd(3, value))
    data = with_lines(ONE, group).replace(
        b"XADD\r\n$1\r\ns\r\n$3\r\n2", b"XADE\r\n$1\r\ns\r\n$3\r\n2"
    )
    path = put(tmp_path, BOTH, base=b"", incr=data) / INCREMENT
    assert await refused(tmp_path) == differ(path, len(group), len(with_lines(ONE)))


async def test_a_command_that_was_written_so_is_told_as_it_is(tmp_path: Path) -> None:
    path = put(tmp_path, BOTH, base=b"", incr=with_lines(TWO, ONE, TWO)) / INCREMENT
    assert await refused(tmp_path) == (
        f"{path}: offset {len(with_lines(TWO))}: 'XADD' 's' '1-1': the ID is not above that of the"
        " newest entry"
    )


async def test_loadaof_changes_nothing_if_the_file_is_damaged(start: Start) -> None:
    rig: Rig = await start()
    await rig.ask("SET", "k", "one")
    await rig.ask("SET", "k", "two")
    path = rig.folder / INCREMENT
    data = path.read_bytes()
    path.write_bytes(data.replace(b"one", b"ond"))
    before = rig.state
    assert await rig.ask("DEBUG", "LOADAOF") == LOAD_FAILED
    assert rig.log[-1].startswith(f"DEBUG LOADAOF: {path}: damaged at offset ")
    assert rig.state == before
    path.write_bytes(data)
    assert await rig.ask("DEBUG", "LOADAOF") == b"OK"
    assert rig.state == before


async def test_all_files_of_a_rewrite_are_covered(start: Start) -> None:
    rig = await start()
    for number in range(3000):
        rig.first.send(("XADD", "s", f"{number + 1}-1", "field", "x" * 50))
    for _ in range(3000):
        await rig.first.reply()
    await rig.ask("BGREWRITEAOF")
    await rig.ask("XADD", "s", "9999-1", "f", "v")
    await rig.rewritten()
    await rig.stop()
    for name in rig.files:
        if name.endswith(".aof"):
            data = (rig.folder / f"appendonly.aof.{name}").read_bytes()
            assert len(groups(data)) > (1 if "base" in name else 0)
            without_lines(data)
    again = await start()
    assert again.state == rig.state
