"""What the command lines share: no password in messages, output that takes every name."""

from __future__ import annotations

import io
import sys

import pytest

from penstock.terminal import PLAIN_WIDTH, Parser, console, redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://user:secret@host", "redis://***@host"),
        ("to redis://:se/cr@et@host/0?a=b", "to redis://***@host/0?a=b"),
        ("redis://u:secret@a redis://v:secret@b", "redis://***@b"),
        ("redis://host", "redis://host"),
        ("a@b", "a@b"),
    ],
)
def test_nothing_before_the_at_sign_of_a_url_is_shown(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_parser_hides_passwords_in_what_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        Parser(prog="tool").parse_args(["redis://u:secret@h"])
    assert caught.value.code == 2
    assert "tool: error: unrecognized arguments: redis://***@h" in capsys.readouterr().err


def test_a_name_that_the_encoding_lacks_is_printed_with_an_escape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    output = console()
    output.print("K\u00f6ln")
    sys.stdout.flush()
    assert (raw.getvalue(), output.width) == (b"K\\xf6ln\n", PLAIN_WIDTH)
