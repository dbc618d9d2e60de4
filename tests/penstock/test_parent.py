"""A server ends with the process that started it."""

from __future__ import annotations

import io
import os
import signal

import pytest

from penstock import parent
from server.runtime.log import Log
from tests.support.process import PenstockProcess


def test_a_server_ends_when_its_standard_input_does() -> None:
    penstock = PenstockProcess("--port", "0", "--shutdown-on-stdin-eof", "yes", stdin="words")
    assert penstock.wait() == 0
    told = [line.partition(" * ")[2] for line in penstock.lines]
    assert "Standard input has ended" in told
    assert told[-3:] == ["Received SIGTERM", "Shutting down", "Bye"]


def test_the_end_of_what_is_no_pipe_means_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    with open(os.devnull) as null:
        monkeypatch.setattr(parent, "STDIN", null.fileno())
        parent.follow(Log(stream))
    told = " # shutdown-on-stdin-eof: standard input is neither a pipe nor a socket\n"
    assert stream.getvalue().endswith(told)


def test_a_server_that_does_not_shut_down_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    reading, writing = os.pipe()
    os.close(writing)
    monkeypatch.setattr(parent, "STDIN", reading)
    monkeypatch.setattr("penstock.parent.os.kill", lambda process, number: done.append(number))
    monkeypatch.setattr("penstock.parent.time.sleep", done.append)
    parent._follow(Log(io.StringIO()))
    os.close(reading)
    assert done == [signal.SIGTERM, parent.PATIENCE_S, signal.SIGKILL]
