"""``redrive`` of streams that are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_tests.plain.files import Command, text, write
from tests.support.servers import PenstockThread

LETTERS = """\
[parse.columns]
a = "int"
[dead_letters]
stream = "orders-dead"
"""


def test_dead_letters_that_are_named_have_to_be_there(command: Command) -> None:
    with PenstockThread() as server:
        status, out, err = command("redrive", "--url", server.url, "--dead-letters", "nope")
    assert (status, out) == (1, "")
    assert err == f"there is no stream 'nope' on 127.0.0.1:{server.port}/0\n"


def test_those_of_a_pipeline_may_have_to_come_yet(command: Command, tmp_path: Path) -> None:
    with PenstockThread() as server:
        file = write(tmp_path, text(server.url, more=LETTERS))
        assert command("redrive", "--file", file) == (0, "orders-dead: 0 sent, 0 there\n", "")


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_limit_is_a_number_from_1(command: Command, limit: str) -> None:
    status, _, err = command("redrive", "--dead-letters", "d", "--limit", limit)
    assert status == 2
    assert f"'{limit}' is no whole number from 1" in err
