"""The messages on the page about troubleshooting are those that the code has."""

from __future__ import annotations

import ast
import re

from tests.support.process import ROOT
from tests.test_layout import FOLDERS as APART

PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
MESSAGES = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)

FOLDERS = ("penstock", "protocol", "server", "storage", "tools", *APART.values())
OF_PYTEST = "fixture 'penstock' not found"


def texts() -> str:
    """Every text of the code, a line each, with ``...`` for what is filled in."""
    found = []
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
                elif isinstance(node, ast.JoinedStr):
                    found.append(
                        "".join(
                            str(part.value) if isinstance(part, ast.Constant) else "..."
                            for part in node.values
                        )
                    )
    return "\n".join(text.replace("\n", " ") for text in found)


def test_there_are_messages_of_every_kind() -> None:
    assert len(MESSAGES) > 25
    assert OF_PYTEST in MESSAGES


def test_every_message_is_in_the_code() -> None:
    corpus = texts()
    for message in MESSAGES:
        if message != OF_PYTEST:
            pattern = ".*".join(map(re.escape, message.split("...")))
            assert re.search(pattern, corpus), message
