"""The page about pipelines says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.pipeline.cli import main
from penstock.pipeline.model import Column
from tests.pipeline.conftest import ROOT, Load

PAGE = (ROOT / "docs/pipeline.md").read_text(encoding="utf-8")
TABLES = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
PAGES = PAGE + TABLES + (ROOT / "docs/pipeline-operations.md").read_text(encoding="utf-8")


def test_the_file_of_the_page_is_valid(load_text: Load) -> None:
    text = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    pipeline = load_text(text, REDIS_URL="redis://h")
    assert [output.name for output in pipeline.outputs] == ["hours", "large", "dead-letters"]
    assert pipeline.parse is not None
    assert pipeline.parse.columns[0] == Column("item", "string", "item", required=True)


@pytest.mark.parametrize(
    "command",
    ["demo", "new", "run", "validate", "status", "test", "preview", "redrive", "archive", "replay"],
)
def test_every_option_of_a_command_is_on_the_page(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert {option for option in options if f"{option}" not in PAGES} == set()


def test_every_key_of_a_file_is_on_the_page() -> None:
    code = "".join(path.read_text() for path in Path(ROOT / "penstock/pipeline").rglob("*.py"))
    calls = (
        r"(?:table|given|root)\.(?:text|needed|choice|whole|flag|names|parsed|table|tables|take)"
    )
    keys = set(re.findall(rf'{calls}\("(\w+)"', code))
    assert {"name", "sink", "attempts", "watermark"} <= keys
    assert {key for key in keys if not re.search(rf"[`\[.{{ ]{key}\b", PAGES)} == set()
