"""The page of commands says what the table of commands says."""

from __future__ import annotations

from server.command_table import TABLE
from tests.docs.commands_page import PAGE, page


def test_the_page_is_what_the_table_of_commands_gives() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.docs.commands_page"


def test_every_command_is_on_the_page() -> None:
    text = page()
    for entry in dict.fromkeys(TABLE.values()):
        assert f"`{entry.name.upper()}" in text
