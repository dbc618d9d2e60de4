"""Commands out of bytes, at the level where there are no files."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.aof.framing import (
    LATER_COMMAND_SIZE,
    PORTION,
    Command,
    Cut,
    Misframed,
    Parsed,
    find_command,
    parse,
    parse_command,
    shown,
)
from tests.storage.aof.samples import STAMP, encoded, xadd

WORDS = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"\r\n", b"\r", b"\n", b"$1\r\n", b"a\r\n$1\r\nb", b"*1\r\n", b"#", b"\r\n" * 9]
    ),
    st.sampled_from([b"x" * 4095, b"x" * 4096, b"x" * 4097, b"\r\n" * 3000]),
)
COMMANDS = st.lists(st.lists(WORDS, min_size=1, max_size=6), max_size=8)


def portions(data: bytes, at: int = 0) -> Parsed:
    """What is parsed from a place on, portion by portion, up to what is no whole command."""
    commands: list[Command] = []
    places: list[int] = []
    while at < len(data):
        try:
            part = parse(data, at)
        except (Cut, Misframed):
            break
        commands += part.commands
        places += part.places
        at = part.end
    return Parsed(commands, places, [], at)


@given(COMMANDS)
def test_what_has_been_encoded_is_parsed_again(commands: list[Command]) -> None:
    assert portions(encoded(*commands)) == whole(commands)


def whole(commands: list[Command], at: int = 0) -> Parsed:
    """What is parsed of nothing but these commands, which begin at a place."""
    ends = list(accumulate((len(encoded(command)) for command in commands), initial=at))
    return Parsed(commands, ends[:-1], [], ends[-1])


@given(COMMANDS)
def test_commands_are_parsed_from_any_place_on(commands: list[Command]) -> None:
    assert portions(b"PING" + encoded(*commands), 4) == whole(commands, 4)


@given(COMMANDS, st.sampled_from([b"P", b"*", b"*3\r\n$3", b"#TS:", b"\r\n", b"\0", b"*1\r\n*"]))
def test_what_follows_the_last_whole_command_is_left(commands: list[Command], rest: bytes) -> None:
    commands = [[b"PING"], *commands]
    assert portions(encoded(*commands) + rest) == whole(commands)


@pytest.mark.parametrize("count", [1, 1024, 1025, 2000])
def test_any_number_of_arguments_is_parsed(count: int) -> None:
    command = [b"%d" % number for number in range(count)]
    assert parse(encoded(command, xadd(1))) == whole([command, xadd(1)])


def test_annotations_stand_between_commands() -> None:
    first = encoded(xadd(1), [b"SET", b"k", b"a\r\nb"])
    data = STAMP + first + STAMP + b"#\r\n" + encoded(xadd(2))
    size = len(first)
    parsed = parse(data + STAMP)
    assert parsed.commands == [xadd(1), [b"SET", b"k", b"a\r\nb"], xadd(2)]
    assert parsed.places == [16, 16 + len(encoded(xadd(1))), 35 + size]
    assert parsed.annotations == [
        (0, 0, 16),
        (2, 16 + size, 16),
        (2, 32 + size, 3),
        (3, len(data), 16),
    ]
    assert parsed.end == len(data) + 16


def test_the_longest_annotation_has_1022_bytes() -> None:
    longest = b"#" + b"x" * 1019 + b"\r\n"
    assert len(longest) == 1022
    assert parse(longest) == Parsed([], [], [(0, 0, 1022)], 1022)
    for cut in range(1, len(longest)):
        with pytest.raises(Cut):
            parse(longest[:cut])
    with pytest.raises(Misframed):
        parse(b"#" + longest)


def test_of_much_data_a_portion_is_parsed() -> None:
    long = [b"SET", b"k", b"\r\n" * 600_000]
    data = encoded(long, *[xadd(1)] * 5000)
    assert parse(data) == whole([long])
    parsed = parse(data, len(encoded(long)))
    size = len(encoded(xadd(1)))
    assert len(parsed.commands) == -(-PORTION // size)
    assert parsed.end == parsed.places[-1] + size


@pytest.mark.parametrize(
    ("data", "offset", "reason"),
    [
        (b"PING\r\n", 0, r"expected * and a number of arguments, not 'PING\r\n'"),
        (b"*0\r\n", 0, r"expected * and a number of arguments, not '*0\r\n'"),
        (b"*-1\r\n", 0, r"expected * and a number of arguments, not '*-1\r\n'"),
        (
            b"*01\r\n$1\r\na\r\n",
            0,
            r"expected * and a number of arguments, not '*01\r\n$1\r\na\r\n'",
        ),
        (b"*1\n$1\r\na\r\n", 0, r"expected * and a number of arguments, not '*1\n$1\r\na\r\n'"),
        (b"*2147483648\r\n", 0, "2147483648 arguments are more than any command has"),
        (b"\0\0", 0, r"expected * and a number of arguments, not '\x00\x00'"),
        (b"*1\r\n+a\r\n", 4, r"expected $ and an argument's length, not '+a\r\n'"),
        (b"*1\r\n:1\r\n", 4, r"expected $ and an argument's length, not ':1\r\n'"),
        (b"*1\r\n$-1\r\n", 4, r"expected $ and an argument's length, not '$-1\r\n'"),
        (b"*1\r\n$01\r\na\r\n", 4, r"expected $ and an argument's length, not '$01\r\na\r\n'"),
        (b"*1\r\n$00\r\n", 4, r"expected $ and an argument's length, not '$00\r\n'"),
        (b"*1\r\n$12345678901\r\n", 4, "expected $ and an argument's length, not '$12345678901'"),
        (
            b"*1\r\n*1\r\n$1\r\na\r\n",
            4,
            r"expected $ and an argument's length, not '*1\r\n$1\r\na\r\n'",
        ),
        (b"*1\r\n$2\r\nabc\r\n", 10, r"expected CRLF behind an argument, not 'c\r\n'"),
        (b"*1\r\n$2\r\nab\n\n", 10, r"expected CRLF behind an argument, not '\n\n'"),
        (b"*1\r\n$2\r\nab\r\r", 10, r"expected CRLF behind an argument, not '\r\r'"),
        (b"*1\r\n$3\r\na\r\n*", 11, "expected CRLF behind an argument, not '*'"),
    ],
)
def test_what_no_server_writes_is_refused_in_its_place(
    data: bytes, offset: int, reason: str
) -> None:
    with pytest.raises(Misframed) as raised:
        parse(data)
    assert (raised.value.offset, raised.value.reason) == (offset, reason)
    with pytest.raises(Misframed):
        parse(data + b"x" * 2**20)


def test_a_misframed_command_is_an_error_once_those_before_it_are_taken() -> None:
    assert parse(encoded(xadd(1), xadd(2)) + b"PING\r\n") == whole([xadd(1), xadd(2)])


@given(COMMANDS.filter(bool), st.data())
def test_a_cut_command_tells_how_much_is_missing(
    commands: list[Command], draw: st.DataObject
) -> None:
    data = encoded(commands[0])
    at = draw.draw(st.integers(1, len(data) - 1))
    with pytest.raises(Cut) as raised:
        parse(data[:at])
    cut = raised.value
    assert 1 <= cut.needed <= len(data) - at
    assert data[cut.content - 2 : cut.content] == b"\r\n" or cut.content == at


def test_a_cut_argument_tells_where_its_content_begins() -> None:
    with pytest.raises(Cut) as raised:
        parse(b"*2\r\n$3\r\nSET\r\n$10\r\nabc")
    assert (raised.value.content, raised.value.needed) == (18, 9)
    with pytest.raises(Cut) as raised:
        parse(b"*1\r\n$3\r\nSET\r")
    assert (raised.value.content, raised.value.needed) == (8, 1)


def test_one_command_is_parsed_where_it_is() -> None:
    data = encoded(xadd(1), xadd(2), xadd(3))
    size = len(encoded(xadd(1)))
    assert parse_command(data, size) == (xadd(2), 2 * size)


def test_a_later_command_is_found_by_its_header_and_name() -> None:
    assert find_command(b"junk\r\n" + encoded([b"XADD", b"k"])) == 6
    assert find_command(b"junk\r\n" + encoded([b"json.set", b"k"])[:-7]) == 6
    for data in (
        encoded([b"XADD", b"k"]),
        b"\r\n" + encoded([b"penstock:1", b"k"]),
        b"\r\n" + encoded([b"", b"k"]),
        b"\r\n*1\r\n$4\r\nXAD",
        b"\n*1\r\n$4\r\nXADD\r\n",
    ):
        assert find_command(data) == -1


def test_the_longest_later_command_is_seen_in_the_size_that_is_told() -> None:
    longest = b"\r\n*1234567890\r\n$99\r\n" + b"x" * 99 + b"\r\n"
    assert len(longest) == LATER_COMMAND_SIZE
    assert find_command(longest) == 2


def test_numbers_that_are_too_long_to_be_read_at_once_are_parsed_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("storage.aof.framing._LARGE", 1)
    commands = [[b"SET", b"k", b"v" * 20], xadd(1)]
    assert parse(encoded(*commands)) == whole(commands)


# --- messages --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"XADD", "'XADD'"),
        (b"", "''"),
        (b"a b", "'a b'"),
        (b"*1\r\n$1\r\n\x00\xff", r"'*1\x0d\x0a$1\x0d\x0a\x00\xff'"),
        (b"x" * 64, f"'{'x' * 64}'"),
        (b"x" * 65, f"'{'x' * 64}...'"),
    ],
)
def test_an_argument_is_shown_in_one_line(text: bytes, expected: str) -> None:
    assert shown(text) == expected
