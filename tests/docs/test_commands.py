"""The pages of commands say what the table of commands says."""

from __future__ import annotations

import re

from server.commands import load
from server.core.table import TABLE
from server.runtime.version import REDIS_VERSION
from tests.docs.markdown import pages_of_docs
from tests.support.process import ROOT
from tools.docs.commands_page import DOCS, pages

OF_REDIS = set((ROOT / "tests/server/data/commands-8.0.6.txt").read_text().split())
"""What COMMAND LIST of Redis 8.0.6 has, without subcommands and commands of modules."""

OF_OTHER_SERVERS: dict[str, set[str]] = {}
"""What pages say is called on another server than Penstock."""


def test_the_pages_are_what_the_table_of_commands_gives() -> None:
    there = {f"commands/{path.name}" for path in (DOCS / "commands").iterdir()} | {"commands.md"}
    written = {name: (DOCS / name).read_text() for name in there}
    assert written == pages(), "run: python -m tools.docs.commands_page"


def test_every_command_is_on_a_page() -> None:
    text = "".join(pages().values())
    for entry in dict.fromkeys(TABLE.values()):
        assert f"## {entry.name.upper()}" in text


def test_where_the_version_of_redis_is_named_it_is_said_what_was_not_compared_with_a_server() -> (
    None
):
    pages = [ROOT / "README.md", *pages_of_docs()]
    naming = [
        path for path in pages if REDIS_VERSION in re.sub(r"(?m)^\|.*$", "", path.read_text())
    ]
    assert {path.name for path in naming} == {"README.md", "commands.md"}
    for path in naming:
        assert re.search(
            r"8\.2 to 8\.10\b[^|]*documentation[^|]*suites", path.read_text(), re.DOTALL
        )


def test_pages_name_no_command_of_redis_that_is_not_there() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *pages_of_docs()]
    load()
    there = {entry.name.upper() for entry in TABLE.values()}
    for path in pages:
        words = re.findall(r"(?<![\w.-])[A-Z]{3,}(?![\w-])", path.read_text())
        missing = {word for word in words if word in OF_REDIS and word not in there}
        assert missing == OF_OTHER_SERVERS.get(path.name, set()), path
