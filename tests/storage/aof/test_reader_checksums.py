"""Checksum lines: what they find, and what is loaded where there are none."""

from __future__ import annotations

from bisect import bisect
from functools import partial
from itertools import accumulate

import pytest

from storage.aof.checksum_lines import NOTHING, Uncovered
from storage.aof.checksum_lines import with_lines as written_with_lines
from storage.aof.framing import Command
from storage.aof.reader import Damaged
from storage.checksums import crc32c
from tests.storage.aof.samples import EXEC, MULTI, STAMP, Content, encoded, xadd, xclaim
from tests.support.bits import refusals
from tests.support.checksum_lines import line_of, with_lines

GROUPS: list[list[Command]] = [
    [[b"SELECT", b"0"], xadd(1)],
    [xadd(2, b"a\r\nb")],
    [MULTI, xadd(3), xclaim(3), EXEC, xadd(4, b"v" * 90)],
    [[b"ECHO", encoded([b"penstock:1", b"seen", b"s"])]],
    [xadd(5, b"w" * 100), xadd(6)],
]
WRITTEN = [encoded(*group) for group in GROUPS]
WRITTEN[1] = STAMP + WRITTEN[1]
SAMPLE = with_lines(*WRITTEN)
COMMANDS = [command for group in GROUPS for command in group]
ENDS = [0, *accumulate(len(with_lines(group)) for group in WRITTEN)]

ONE = encoded(xadd(1))
TWO = encoded(xadd(2))


def differ(size: int, offset: int) -> str:
    """What is said of so many bytes from an offset on."""
    return (
        f"the {size} bytes from here on are not those that were written:"
        f" the checksum at offset {offset + size} is that of others"
    )


def damage(data: bytes, *, chunk: int = 100) -> tuple[int, str]:
    """Where a file is damaged, and how."""
    with pytest.raises(Damaged) as raised:
        Content(data, chunk=chunk)
    return raised.value.offset, raised.value.reason


@pytest.mark.parametrize("chunk", [1, 7, 64, 500, 5000])
def test_a_file_with_checksums_is_read_as_its_commands(chunk: int) -> None:
    content = Content(SAMPLE, chunk=chunk)
    assert content.commands == COMMANDS
    assert content.tail is None
    assert content.reader.uncovered == NOTHING
    assert content.reader.has_checksums
    for offset, command in zip(content.offsets, COMMANDS, strict=True):
        assert SAMPLE.startswith(encoded(command), offset)


@pytest.mark.parametrize("chunk", [1, 50, 5000])
def test_each_bit_that_changes_is_found_in_its_group(chunk: int) -> None:
    read = partial(Content, chunk=chunk)
    bits = range(0, 8 * len(SAMPLE), 1 if chunk == 5000 else 7)
    for at, error in refusals(SAMPLE, read, Damaged, bits):
        group = bisect(ENDS, at)
        assert ENDS[group - 1] <= error.offset < ENDS[group]


def test_a_changed_value_is_told_with_the_bytes_that_the_checksum_covers() -> None:
    data = SAMPLE.replace(b"w" * 100, b"w" * 99 + b"x")
    size = len(WRITTEN[-1])
    assert damage(data) == (ENDS[-2], differ(size, ENDS[-2]))


def test_a_changed_length_at_the_end_is_no_torn_write() -> None:
    data = SAMPLE.replace(b"$100\r\n", b"$900\r\n")
    offset = ENDS[-2]
    assert damage(data) == (offset, differ(len(WRITTEN[-1]), offset))
    # Not even with a torn one behind it, or with zeros.
    for rest in (ONE[:-3], b"\0" * 5, ONE + b"#CRC3"):
        assert damage(data + rest)[0] == offset


def test_the_line_is_found_wherever_portions_of_the_file_end() -> None:
    group = encoded(xadd(1, b"v" * 80))
    data = with_lines(group).replace(b"$80", b"$90")
    for chunk in range(40, 160, 7):
        assert damage(data, chunk=chunk) == (0, differ(len(group), 0))


def test_each_portion_of_a_new_file_gets_its_checksum() -> None:
    assert b"".join(written_with_lines([ONE, TWO])) == with_lines(ONE, TWO)


@pytest.mark.parametrize("chunk", [30, 5000])
def test_a_length_that_swallows_its_checksum_and_ends_well_is_found(chunk: int) -> None:
    """Redis has appended a command, at whose end the argument now ends, too."""
    begin, appended = with_lines(ONE), encoded([b"PING", b"v" * 38])
    group = encoded([b"SET", b"k", b"v" * 10])
    assert len(line_of(group) + appended) == 80
    data = begin + group.replace(b"$10", b"$90") + line_of(group) + appended
    expected = len(begin), differ(len(group), len(begin))
    assert damage(data, chunk=chunk) == expected


def test_a_transaction_that_lost_its_end_is_damage_if_a_checksum_follows() -> None:
    group = encoded(MULTI, xadd(1))
    assert damage(with_lines(group) + TWO) == (
        0,
        "the MULTI here has no EXEC, but a checksum behind it",
    )


# --- files that end too early ------------------------------------------------------------------


def test_a_file_that_is_cut_anywhere_is_read_up_to_the_last_whole_unit() -> None:
    sample = SAMPLE[: ENDS[4]]
    for cut in range(len(sample)):
        content = Content(sample[:cut], chunk=64)
        count = content.reader.commands
        assert content.commands[:count] == COMMANDS[:count]
        end = content.tail.offset if content.tail else cut
        begin = max(end for end in ENDS if end <= cut)
        rest = sample[min(begin, end) : end]
        assert content.reader.uncovered == Uncovered(len(rest), crc32c(rest))
        assert end >= begin


def test_zeros_behind_a_cut_belong_to_the_torn_tail() -> None:
    for cut in range(0, ENDS[3], 3):
        content = Content(SAMPLE[:cut] + b"\0" * 600, chunk=64)
        assert content.tail is not None
        assert content.tail.offset >= max(end for end in ENDS if end <= cut)


def test_commands_without_a_checksum_at_the_end_are_read() -> None:
    content = Content(with_lines(ONE) + STAMP + TWO)
    assert content.commands == [xadd(1), xadd(2)]
    rest = STAMP + TWO
    assert content.reader.uncovered == Uncovered(len(rest), crc32c(rest))
    assert content.reader.has_checksums


def test_a_file_without_checksums_may_have_any_comments() -> None:
    data = b"#made by hand\r\n" + ONE + b"#CRC32\r\n"
    content = Content(data)
    assert content.commands == [xadd(1)]
    assert content.reader.uncovered == Uncovered(len(data), crc32c(data))
    assert not content.reader.has_checksums


@pytest.mark.parametrize("comment", [b"#made by hand", b"#TS:17x", b"#"])
def test_other_comments_behind_checksums_are_damage(comment: bytes) -> None:
    begin = with_lines(ONE)
    assert damage(begin + TWO + comment + b"\r\n") == (
        len(begin + TWO),
        "in a file with checksums, expected '#TS:' or '#CRC32C:' behind '#'",
    )


@pytest.mark.parametrize(
    "line",
    [
        b"#CRC32D:%08x:%d\r\n",
        b"#CRC32C:%08x:0%d\r\n",
        b"#CRC32C:%08X:%d\r\n",
        b"#CRC32C:%09x:%d\r\n",
        b"#CRC32C:%08x;%d\r\n",
        b"#CRC32C:%08x:%d \r\n",
        b"#CRC32C:\r\n",
        b"#CRC32C:%08x:1%d\r\n",
    ],
)
def test_a_line_that_is_nearly_a_checksum_is_damage(line: bytes) -> None:
    """The first line of a file, too: a change in it does not make a file without checksums."""
    data = ONE + (line % (crc32c(ONE), len(ONE)) if b"%" in line else line)
    assert damage(data) == (0, differ(len(ONE), 0))


# --- what clients have sent ----------------------------------------------------------------------


def test_a_value_may_look_like_checksums() -> None:
    value = b"\r\n#CRC32C:00000000:0\r\n" + line_of(ONE) + b"#CRC32C:89abcdef:34\r\n"
    group = encoded(xadd(1, value))
    content = Content(with_lines(group, TWO), chunk=40)
    assert content.commands == [xadd(1, value), xadd(2)]


def test_a_value_that_counts_right_is_no_checksum() -> None:
    for checksum in (b"89abcdef", None):
        head = encoded(xadd(1, b"v" * 40))[:-42]
        line = b"#CRC32C:%b:%d\r\n" % (checksum, len(head)) if checksum else line_of(head)
        value = line + b"v" * (40 - len(line))
        group = encoded(xadd(1, value))
        content = Content(with_lines(group, TWO), chunk=40)
        assert content.commands == [xadd(1, value), xadd(2)]
