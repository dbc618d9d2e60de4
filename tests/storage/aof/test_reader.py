"""Reading whole and torn files."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.aof.framing import Command
from storage.aof.reader import Damaged, Reader, Tail
from tests.storage.aof.samples import EXEC, MULTI, STAMP, Content, encoded, xadd, xclaim

IN_COMMAND = "the file ends within a command"
IN_GROUP = "the file ends between a MULTI and its EXEC"
IN_ZEROS = "the file ends in zeros"

UNITS: list[list[Command]] = [
    [[b"SELECT", b"0"]],
    [xadd(1)],
    [xadd(2, b"a\r\nb")],
    [MULTI, xadd(3, b""), xclaim(3), EXEC],
    [xadd(4, b"\0" * 70)],
    [[b"ECHO", encoded([b"penstock:1", b"seen", b"s"])]],
    [MULTI, xclaim(4), EXEC],
    [xadd(5, b"x" * 500)],
    [[b"XADD", b"s", b"6-1", *[b"%d" % number for number in range(40)]]],
    [[b"multi"], xclaim(6), [b"exec"]],
    [xadd(7, b"\xff*1\r$")],
]
"""What a server writes at once, of every form."""

SAMPLE = b"".join(encoded(*unit) + STAMP for unit in UNITS)
ENDS = list(accumulate(len(encoded(*unit) + STAMP) for unit in UNITS))
COMMANDS = [command for unit in UNITS for command in unit]


def test_a_file_is_read_as_its_commands() -> None:
    content = Content(SAMPLE)
    assert content.commands == COMMANDS
    assert content.tail is None
    assert content.reader.size == len(SAMPLE)
    assert content.reader.commands == len(COMMANDS)


def test_an_empty_file_has_no_commands() -> None:
    content = Content(b"", torn=False)
    assert (content.commands, content.tail) == ([], None)


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1000, 5000])
def test_where_chunks_end_makes_no_difference(chunk: int) -> None:
    content = Content(SAMPLE, chunk=chunk)
    assert content.commands == COMMANDS
    for offset, command in zip(content.offsets, COMMANDS, strict=True):
        assert SAMPLE.startswith(encoded(command), offset)


def test_offsets_count_annotations() -> None:
    first, second = encoded(xadd(1)), encoded(xadd(2))
    content = Content(STAMP + first + STAMP + STAMP + second)
    assert content.offsets == [16, 48 + len(first)]


def test_what_is_appended_while_a_file_is_read_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(encoded(xadd(1)))
    commands: list[Command] = []
    for batch in Reader(str(path)):
        commands += batch.commands
        with path.open("ab") as file:
            file.write(encoded(xadd(2)))
    assert commands == [xadd(1)]


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(Reader(str(tmp_path / "file")))


# --- torn files ------------------------------------------------------------------------------


def written_before(cut: int) -> int:
    """Where the last unit ends that a file of ``cut`` bytes holds, or a stamp behind a unit."""
    stamped = [end for end in ENDS if end <= cut]
    unstamped = [end - len(STAMP) for end in ENDS if end - len(STAMP) <= cut]
    return max(*stamped, *unstamped, 0, 0)


@pytest.mark.parametrize("chunk", [50, pytest.param(2**20, marks=pytest.mark.slow)])
def test_a_file_that_is_cut_anywhere_is_read_up_to_the_last_whole_unit(chunk: int) -> None:
    for cut in range(len(SAMPLE)):
        content = Content(SAMPLE[:cut], chunk=chunk)
        valid = written_before(cut)
        tail = content.tail
        assert (tail.offset if tail else cut) == valid
        assert tail is None or tail == Tail(valid, cut - valid, 0, tail.reason)
        count = content.reader.commands
        assert content.commands[:count] == COMMANDS[:count]
        assert len(encoded(*COMMANDS[:count])) == len(SAMPLE[:valid].replace(STAMP, b""))


@pytest.mark.parametrize("zeros", [1, 4096])
def test_zeros_behind_a_cut_belong_to_the_torn_tail(zeros: int) -> None:
    for cut in range(0, len(SAMPLE) + 1, 5):
        content = Content(SAMPLE[:cut] + b"\0" * zeros, chunk=1024)
        valid = written_before(cut)
        assert content.tail is not None
        assert content.tail.offset == valid
        assert content.tail.size == cut - valid + zeros


@pytest.mark.parametrize(
    ("rest", "zeros", "reason"),
    [
        (b"*3\r\n$3\r\nSE", 0, IN_COMMAND),
        (b"*", 0, IN_COMMAND),
        (b"#TS:17", 0, IN_COMMAND),
        (b"#TS:17\0\0", 2, IN_COMMAND),
        (b"\0" * 10, 10, IN_ZEROS),
        (b"*1\r\n$4\r\nPI\0\0\0\0\0", 5, IN_COMMAND),
        (b"*2\r\n$3\0", 1, IN_COMMAND),
        (encoded(MULTI, xadd(2)), 0, IN_GROUP),
        (encoded(MULTI, xadd(2))[:-1], 0, IN_GROUP),
        (encoded(MULTI, xadd(2)) + b"\0\0\0", 3, IN_GROUP),
        (encoded(MULTI), 0, IN_GROUP),
    ],
)
def test_a_torn_tail_tells_where_it_begins_and_why(rest: bytes, zeros: int, reason: str) -> None:
    whole = encoded(xadd(1))
    content = Content(whole + rest)
    assert content.tail == Tail(len(whole), len(rest), zeros, reason)
    assert content.reader.commands == 1


def test_zeros_that_an_argument_still_has_room_for_are_its_content() -> None:
    content = Content(b"*2\r\n$3\r\nGET\r\n$100\r\nabc" + b"\0" * 50)
    assert content.tail == Tail(0, 72, 0, IN_COMMAND)


def test_a_torn_tail_is_damage_if_another_file_follows() -> None:
    whole = encoded(xadd(1))
    with pytest.raises(Damaged) as raised:
        Content(whole + b"*1\r\n", torn=False)
    assert str(raised.value) == (
        f"file: damaged at offset {len(whole)}: {IN_COMMAND}, and this is not the last file"
    )
    assert Content(whole, torn=False).tail is None


@pytest.mark.parametrize("length", [70_000, 1_100_000, 3_000_000])
def test_a_command_may_be_longer_than_what_is_read_at_once(length: int) -> None:
    long = xadd(1, b"x\r\n" * (length // 3))
    data = encoded(long, xadd(2))
    assert Content(data).commands == [long, xadd(2)]
    torn = Content(data[: length // 2])
    assert torn.tail == Tail(0, length // 2, 0, IN_COMMAND)


def test_a_long_argument_may_hold_what_looks_like_a_command_in_its_beginning() -> None:
    """A value that is RESP itself begins right behind its header."""
    data = encoded([b"SET", b"k", encoded([b"PING"])])
    content = Content(data[:-4])
    assert content.tail == Tail(0, len(data) - 4, 0, IN_COMMAND)


WORDS = st.binary(max_size=30)
FILES = st.lists(
    st.one_of(
        st.lists(WORDS, min_size=2, max_size=5).map(encoded),
        st.just(STAMP),
        st.lists(st.lists(WORDS, min_size=2, max_size=4), max_size=3).map(
            lambda commands: encoded(MULTI, *commands, EXEC)
        ),
    ),
    max_size=8,
)


@given(FILES, st.integers(1, 200), st.data())
def test_any_file_that_is_cut_gives_a_prefix(
    parts: list[bytes], chunk: int, draw: st.DataObject
) -> None:
    data = b"".join(parts)
    cut = draw.draw(st.integers(0, len(data)))
    whole = Content(data, chunk=chunk)
    part = Content(data[:cut], chunk=chunk)
    assert part.commands == whole.commands[: len(part.commands)]
    ends = {0, *accumulate(map(len, parts))}
    assert (part.tail.offset if part.tail else cut) == max(end for end in ends if end <= cut)
