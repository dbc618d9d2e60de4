"""Error texts that are put together from what a client sent."""

from __future__ import annotations

import pytest

from protocol import errors
from protocol.encoder import error_line
from protocol.errors import CommandError


def test_a_command_error_carries_its_text() -> None:
    error = CommandError(errors.SYNTAX)
    assert error.text == str(error) == "ERR syntax error"


@pytest.mark.parametrize("name", [bytes(range(256)), b"", b"\xff\xfe", "\u00e9".encode()])
def test_a_name_in_an_error_comes_out_as_the_bytes_it_was(name: bytes) -> None:
    wire = error_line(errors.shown(name))
    assert wire == b"-" + name.replace(b"\r", b" ").replace(b"\n", b" ") + b"\r\n"


def test_a_key_in_an_error_ends_at_its_first_nul() -> None:
    assert errors.shown_name(b"ab\0cd") == "ab"
    assert errors.no_group(b"k\0x", b"g") == "NOGROUP No such key 'k' or consumer group 'g'"


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [
        ([], ""),
        ([b"bar", b"baz"], "'bar' 'baz' "),
        ([b"x" * 200], f"'{'x' * 128}' "),
        ([b"x" * 100, b"y" * 100, b"z"], f"'{'x' * 100}' '{'y' * 25}' "),
    ],
)
def test_an_unknown_command_is_shown_with_its_first_arguments(
    arguments: list[bytes], listed: str
) -> None:
    text = errors.unknown_command(b"FOO", arguments)
    assert text == f"ERR unknown command 'FOO', with args beginning with: {listed}"


def test_long_names_are_cut() -> None:
    name = b"n" * 200
    assert errors.unknown_command(name, []).startswith(f"ERR unknown command '{'n' * 128}',")
    assert errors.unknown_subcommand("xgroup", name) == (
        f"ERR unknown subcommand '{'n' * 128}'. Try XGROUP HELP."
    )
    assert errors.bad_subcommand("client", name) == (
        f"ERR unknown subcommand or wrong number of arguments for '{'n' * 128}'. Try CLIENT HELP."
    )


def test_a_refused_exec_says_why_without_the_code_err() -> None:
    assert errors.exec_aborted_by("ERR no") == "EXECABORT Transaction discarded because of: no"
    assert errors.exec_aborted_by("NOAUTH no") == (
        "EXECABORT Transaction discarded because of: NOAUTH no"
    )
