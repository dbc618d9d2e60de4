"""The page about settings says what the server does."""

from __future__ import annotations

import re
from pathlib import Path

from server.config.registry import OLDER_NAMES, SETTINGS, UNSUPPORTED, UNUSED, Config
from server.config.types import Setting

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its head, code marks taken off."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\| (`.*) \|$", section, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in line.split("|")] for line in lines]


def test_every_setting_with_an_effect_is_described_as_it_is() -> None:
    config = Config()
    described = [
        [cells.split("`, `"), default, about.endswith("†")]
        for cells, default, about in rows("Settings that have an effect")
    ]
    assert described == [
        [
            names(setting),
            str(setting.default) if name == "dir" else config.get_text(name),
            not setting.mutable or setting.guarded,
        ]
        for name, setting in SETTINGS.items()
        if not setting.unused and not setting.unsupported and name == setting.name
    ]


def names(setting: Setting) -> list[str]:
    """How a setting is called."""
    return list(dict.fromkeys((setting.name, OLDER_NAMES.get(setting.name, setting.name))))


def test_every_setting_without_an_effect_is_named_with_its_reason() -> None:
    described: dict[str, list[str]] = {}
    for setting in UNUSED:
        described.setdefault(setting.unused, []).extend(names(setting))
    assert [
        (reason, cells.split("`, `")) for cells, reason in rows("Settings without an effect")
    ] == list(described.items())


def test_every_unsupported_value_is_described_with_what_to_do_instead() -> None:
    *described, eviction = rows("Unsupported values")
    assert described == [
        ["`, `".join(names(each)), each.show(each.default), each.unsupported]
        for each in UNSUPPORTED
    ]
    assert eviction[0] == "maxmemory-policy"
    assert eviction[2].startswith("no key is ever evicted")
