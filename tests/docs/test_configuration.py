"""The page about settings says what the server does."""

from __future__ import annotations

import re
from pathlib import Path

from server.config.registry import SETTINGS, Config
from server.config.types import Fixed

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head, code marks taken off."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (`.*) \|$", section, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in line.split("|")] for line in lines]


def test_every_setting_with_an_effect_is_described_as_it_is() -> None:
    config = Config()
    described = [row[:3] for row in rows("Settings that have an effect")]
    assert described == [
        [
            name,
            str(setting.default) if name == "dir" else config.get_text(name),
            "yes" if setting.mutable and not setting.guarded else "no",
        ]
        for name, setting in SETTINGS.items()
        if not isinstance(setting, Fixed)
    ]


def test_every_fixed_setting_is_described_as_it_is() -> None:
    assert rows("Settings with a fixed value") == [
        [name, setting.default, setting.reason]
        for name, setting in SETTINGS.items()
        if isinstance(setting, Fixed)
    ]
