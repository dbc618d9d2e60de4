"""The server's own messages."""

from __future__ import annotations

import io
import os
import re

import pytest

from server.runtime.log import LEVELS, Log


@pytest.mark.parametrize(
    ("level", "mark"), [("debug", "."), ("verbose", "-"), ("notice", "*"), ("warning", "#")]
)
def test_a_message_is_a_line_with_process_time_and_level(level: str, mark: str) -> None:
    stream = io.StringIO()
    getattr(Log(stream, "debug"), level)("Hello")
    assert re.fullmatch(
        rf"{os.getpid()}:M \d\d \w{{3}} \d{{4}} \d\d:\d\d:\d\d\.\d{{3}} \{mark} Hello\n",
        stream.getvalue(),
    )


@pytest.mark.parametrize("lowest", LEVELS)
def test_messages_below_the_level_are_left_out(lowest: str) -> None:
    stream = io.StringIO()
    log = Log(stream)
    log.set_level(lowest)
    for level in LEVELS[:-1]:
        log.write(level, level)
    written = [line.split()[-1] for line in stream.getvalue().splitlines()]
    assert written == list(LEVELS[LEVELS.index(lowest) : -1])
    assert [level for level in LEVELS[:-1] if log.shows(level)] == written


def test_without_a_stream_nothing_is_shown() -> None:
    log = Log()
    log.warning("Hello")
    assert not log.shows("warning")
