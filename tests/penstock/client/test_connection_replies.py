"""Servers that answer as no server does: one clear sentence in every tool, in bounded memory."""

from __future__ import annotations

import re

import pytest

from penstock.cli import run_tool
from penstock.client import connection
from penstock.client.urls import parse
from tests.support.answering import answering, with_reply

TOOLS = [
    ("top", "--times", "1"),
    ("groups",),
    ("tail", "orders", "--from", "0"),
    ("dead", "list"),
    ("doctor",),
]


def told(name: str, url: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """The line of a tool that fails."""
    assert run_tool(name, [*words, "--url", url]) == 1
    error = capsys.readouterr().err
    assert (error.count("\n"), error[-1:]) == (1, "\n")
    return error.rstrip("\n")


@pytest.mark.parametrize("reply", [b":1\r\n", b"$1\r\n\xff\r\n", b"*1\r\n*0\r\n", b"*1\r\n$-1\r\n"])
@pytest.mark.parametrize(("name", "words"), [(tool[0], tool[1:]) for tool in TOOLS])
def test_a_reply_of_another_type_is_one_sentence(
    name: str, words: tuple[str, ...], reply: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(with_reply(reply)) as url:
        line = told(name, url, words, capsys)
    place = url.removeprefix("redis://")
    assert line.startswith(f"penstock {name}: the server {place}/0 answers ")
    assert line.endswith(" as no Redis, Valkey or Penstock does")


@pytest.mark.parametrize(("name", "words"), [(tool[0], tool[1:]) for tool in TOOLS])
def test_an_error_of_a_server_has_nothing_that_a_terminal_might_act_on(
    name: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(with_reply("-WRONG \x1b[2J\x9b\u202e\r\n".encode())) as url:
        line = told(name, url, words, capsys)
    assert line.endswith(r"refuses: WRONG \x1b[2J\x9b\u202e")


@pytest.mark.parametrize("name", ["import", "export"])
@pytest.mark.parametrize("reply", [b":1\r\n", b"*1\r\n$-1\r\n"])
def test_a_copy_names_the_server_that_has_answered(
    name: str, reply: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(with_reply(reply)) as url:
        other = "--to" if name == "import" else "--from"
        assert run_tool(name, [url, other, url]) == 1
    error = capsys.readouterr().err
    assert re.fullmatch(
        rf"penstock {name}: the (source|target) 127\.0\.0\.1:\d+/0 answers \S.* as no Redis,"
        r" Valkey or Penstock does\n",
        error,
    )


def test_a_reply_without_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 1_000_000)
    with answering(with_reply(b"$100000000\r\n" + b"x" * 50_000_000)) as url:
        line = told("tail", url, ("orders",), capsys)
    place = url.removeprefix("redis://")
    expected = f"the server {place}/0 sends a reply of more than 1,000,000 bytes"
    assert line == f"penstock tail: {expected}"


def test_replies_are_measured_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_BYTES", 200_000)
    with (
        answering(with_reply(b"$100000\r\n" + b"x" * 100_000 + b"\r\n")) as url,
        connection.ServerConnection("server", parse(url), 0) as server,
    ):
        assert [len(server.call("GET", "k")) for _ in range(4)] == [100_000] * 4
