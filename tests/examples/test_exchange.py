"""The example that the wheels of a release are tried with succeeds, and can fail."""

from __future__ import annotations

import pytest

from examples import exchange


def test_it_serves_and_finds_everything_after_a_restart(capsys: pytest.CaptureFixture[str]) -> None:
    assert exchange.main() is None
    assert capsys.readouterr().out.endswith("): asked 8 commands and restarted once\n")


def test_it_says_which_reply_was_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "AFTER", [("XLEN orders", 3)])
    assert exchange.main() == "examples/exchange.py: XLEN orders: the reply is 2 instead of 3"


def test_it_says_why_the_server_does_not_start() -> None:
    told = exchange.main("--databases", "x")
    assert told is not None
    assert told.splitlines()[-1] == (
        "    penstock: command line: databases: argument couldn't be parsed into an integer"
    )
