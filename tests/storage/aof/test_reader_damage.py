"""Files that have been damaged, which must never be taken for torn ones."""

from __future__ import annotations

import re
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.aof.framing import Command
from storage.aof.reader import Damaged, Reader
from tests.storage.aof.disks import MemoryDisk
from tests.storage.aof.samples import EXEC, MULTI, STAMP, Content, encoded, xadd, xclaim
from tests.support.bits import outcomes

BEFORE = encoded(xadd(1))


@pytest.mark.parametrize(
    ("rest", "at", "reason"),
    [
        (b"+PING\r\n", 0, r"expected * and a number of arguments, not '+PING\r\n'"),
        (b"*0\r\n" + BEFORE, 0, r"expected * and a number of arguments, not '*0\r\n*5\r\n$4\r\n'"),
        (
            b"\0\0\0" + BEFORE,
            0,
            r"expected * and a number of arguments, not '\x00\x00\x00*5\r\n$4\r\nX'",
        ),
        (b"\0*\0", 0, r"expected * and a number of arguments, not '\x00*\x00'"),
        (
            b"*1\r\n$4\r\nPI\0\0\0\0\0x",
            12,
            r"expected CRLF behind an argument, not '\x00\x00\x00x'",
        ),
        (
            b"*1\r\n$4\r\nPINGG\r\n\0\0",
            12,
            r"expected CRLF behind an argument, not 'G\r\n\x00\x00'",
        ),
        (encoded(EXEC), 0, "EXEC without MULTI"),
        (
            encoded(MULTI, xadd(2), [b"EXEB"]) + BEFORE,
            15 + len(BEFORE),
            "expected EXEC, not 'EXEB'",
        ),
    ],
)
def test_damage_is_told_with_its_offset(rest: bytes, at: int, reason: str) -> None:
    with pytest.raises(Damaged) as raised:
        Content(BEFORE + rest)
    assert (raised.value.offset, raised.value.reason) == (len(BEFORE) + at, reason)


def test_a_group_within_a_group_is_damage() -> None:
    with pytest.raises(Damaged) as raised:
        Content(BEFORE + encoded(MULTI, xadd(2), MULTI, xadd(3), EXEC))
    assert raised.value.offset == 2 * len(BEFORE) + len(encoded(MULTI))
    assert raised.value.reason == f"MULTI within the MULTI at offset {len(BEFORE)}"


def test_commands_of_one_word_may_stand_in_a_group() -> None:
    commands: list[Command] = [MULTI, [b"FLUSHALL"], EXEC, [b"PING"]]
    assert Content(encoded(*commands)).commands == commands


def test_what_is_before_the_start_is_left_out() -> None:
    disk = MemoryDisk(b"REDIS..." + encoded([b"PING"]) + b"broken")
    with pytest.raises(Damaged) as raised:
        list(Reader("file", disk, start=8))
    assert raised.value.offset == 8 + len(encoded([b"PING"]))


@pytest.mark.parametrize("chunk", [1, 100, 2**20])
@pytest.mark.parametrize("length", [b"$500", b"$5000", b"$999999999", b"$9999999999"])
def test_a_length_that_swallows_commands_is_damage(length: bytes, chunk: int) -> None:
    data = BEFORE + encoded(xadd(2)).replace(b"$1\r\nv", length + b"\r\nv") + encoded(xclaim(1))
    with pytest.raises(Damaged) as raised:
        Content(data, chunk=chunk)
    assert raised.value.offset == len(BEFORE)
    assert raised.value.reason == (
        "the file ends within the command that begins here, but another command begins at"
        f" offset {data.index(b'*12')}: an argument's length must be wrong"
    )


def test_a_count_that_swallows_commands_is_damage() -> None:
    for chunk in (1, 32, 33, 2**20):
        with pytest.raises(Damaged) as raised:
            Content(b"*900" + BEFORE[2:] + BEFORE, chunk=chunk)
        assert raised.value.offset == len(BEFORE) + 2


# --- flipped bits ----------------------------------------------------------------------------

UNITS: list[list[Command]] = [
    [[b"SELECT", b"0"]],
    [xadd(1, b"v" * 12)],
    [MULTI, xadd(2, b"a\r\nb"), xclaim(2), EXEC],
    [xadd(3, b"\0" * 40)],
    [xadd(4, b"w" * 300)],
    [MULTI, xadd(5), EXEC],
    [xadd(6)],
]
COMMANDS = [command for unit in UNITS for command in unit]
SAMPLE = STAMP.join(encoded(*unit) for unit in UNITS)
LAST = len(SAMPLE) - len(encoded(*UNITS[-1]))


def differs_in_one_byte(one: Command, other: Command) -> bool:
    """Whether the commands differ in a byte of one word, or not at all."""
    differing = sum(a != b for a, b in zip(b"".join(one), b"".join(other), strict=True))
    return differing <= 1 and list(map(len, one)) == list(map(len, other))


def became(content: Content | Damaged) -> str:
    """What became of a file with a flipped bit, which is harmless."""
    if isinstance(content, Damaged):
        return "refused"
    if content.tail is not None:
        assert content.tail.offset == LAST
        assert content.commands == COMMANDS[:-1]
        return "torn in the last command"
    pairs = list(zip(content.commands, COMMANDS, strict=True))
    assert all(differs_in_one_byte(one, other) for one, other in pairs)
    assert sum(one != other for one, other in pairs) <= 1
    return "read"


def test_a_flipped_bit_is_refused_or_changes_one_byte_of_a_word() -> None:
    """Or it is in the last command, where it can't be told from a torn write. Nowhere else does
    it make a torn tail."""
    results = set[str]()
    for at, content in outcomes(SAMPLE, Content, Damaged):
        result = became(content)
        assert result != "torn in the last command" or at >= LAST
        results.add(result)
    assert {"refused", "read"} <= results


@given(st.integers(0, len(SAMPLE)), st.integers(0, len(SAMPLE)), st.binary(max_size=6))
def test_what_is_read_from_any_bytes_is_what_stands_there(start: int, end: int, put: bytes) -> None:
    data = SAMPLE[:start] + put + SAMPLE[end:]
    try:
        content = Content(data, chunk=500)
    except Damaged:
        return
    for offset, command in zip(content.offsets, content.commands, strict=True):
        assert data.startswith(encoded(command), offset)
    starts = [*content.offsets[: content.reader.commands], len(data)]
    if content.tail is not None:
        starts[-1] = content.tail.offset
    ends = [0, *map(add, content.offsets, map(len, map(encoded, content.commands)))]
    for start, end in zip(starts, ends, strict=False):
        assert re.fullmatch(rb"(#[ -~]*\r\n)*", data[end:start])


class ShrinkingDisk(MemoryDisk):
    """Has a file that loses its end once its size is known."""

    def size(self, fd: int) -> int:
        return super().size(fd) + 10


def test_a_file_that_becomes_shorter_while_it_is_read_is_told() -> None:
    data = encoded(xadd(1))
    with pytest.raises(Damaged) as caught:
        list(Reader("file", ShrinkingDisk(data)))
    assert (caught.value.offset, caught.value.reason) == (
        len(data),
        "the file has become shorter while it was read",
    )
