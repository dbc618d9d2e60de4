"""What the README's table says of fakeredis beside Penstock, by scripts that run on both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from tests.clients import rivals
from tests.clients.rivals import Rival
from tests.support.process import ROOT
from tests.support.servers import PenstockThread

pytest.importorskip("fakeredis")
pytest.importorskip("freezegun")


@pytest.fixture
def penstock() -> Iterator[Rival]:
    with PenstockThread(enable_debug_command="yes") as thread:
        made: list[Any] = []

        def client() -> Any:
            made.append(redis.Redis(host=thread.host, port=thread.port, decode_responses=True))
            return made[-1]

        yield Rival(client, lambda: made[0].execute_command("DEBUG", "CLOCK", "ADVANCE", 3_600_000))
        for each in made:
            each.close()


@pytest.mark.parametrize(
    ("script", "fake_does"),
    [
        (rivals.times_pass, True),
        (rivals.blocked_readers_wake, False),
        (rivals.entries_are_given_back, False),
        (rivals.fields_expire, True),
    ],
)
def test_a_row_of_the_table_holds(
    script: Callable[[Rival], bool], fake_does: bool, penstock: Rival
) -> None:
    assert script(penstock)
    command = [sys.executable, "-m", "tests.clients.rivals", script.__name__]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert printed == f"{fake_does}\n"


def test_the_readme_says_so() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    table = {name: rest for name, *rest in cells}
    assert table["time"][0] == "tests move it; blocked readers wake up"
    assert table["time"][2] == "freezegun moves it; blocked readers do not wake up"
    assert table["giving back (XNACK)"][0] == "yes"
    assert table["giving back (XNACK)"][2] == "no"
