"""The page about pipelines says what the code does."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession

from penstock_pipeline import file, file_parse
from penstock_pipeline.cli import main
from penstock_pipeline.model import Column
from penstock_pipeline.sinks import changes, kinds
from penstock_pipeline.sinks.kinds import KINDS
from penstock_pipeline.toml_file import Key, Parsed
from pipeline_tests.conftest import ROOT, Load
from pipeline_tests.once import Once, rows
from tests.docs.markdown import shell_lines
from tests.support.process import PYTHON_PATH

DAY = 1_767_225_600_000
"""The first of 2026 in Unix milliseconds."""

PAGE = (ROOT / "docs/pipeline.md").read_text(encoding="utf-8")
TABLES = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
KEYS_PAGES = PAGE + TABLES + (ROOT / "docs/payloads.md").read_text(encoding="utf-8")
ARCHIVES = PAGE.partition("## Archives")[2]
PAGES = PAGE + TABLES + (ROOT / "docs/pipeline-operations.md").read_text(encoding="utf-8")


def test_the_first_steps_of_the_page_make_a_table(
    server: redis.Redis, url: str, tmp_path: Path
) -> None:
    add, *commands = shell_lines(PAGE)[1:4]
    server.execute_command(*shlex.split(add)[1:])
    for line in commands:
        words = shlex.split(line.replace("redis://127.0.0.1:6379", url))
        assert words[0] == "penstock-pipeline"
        done = subprocess.run(
            [sys.executable, "-m", "penstock_pipeline", *words[1:]],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": PYTHON_PATH},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
    assert rows(tmp_path / "lake/orders", "item", "qty") == [("ink", 3)]


def test_the_file_of_the_page_is_valid(load_text: Load) -> None:
    text = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[0]
    pipeline = load_text(text, REDIS_URL="redis://h")
    assert [output.name for output in pipeline.outputs] == ["hours", "large", "dead-letters"]
    assert pipeline.parse is not None
    assert pipeline.parse.columns[0] == Column("item", "string", "item", required=True)


def test_an_archive_as_on_the_page_gives_entries_back_as_they_were(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    for id in (f"{DAY}-9", f"{DAY}-10", f"{DAY + 90_000_000}-0"):
        server.execute_command("XADD", "orders", id, "a", id, b"\xff", "", "a", "2")
    pipeline = load_text(re.findall(r"```toml\n(.*?)```", ARCHIVES, re.DOTALL)[0], REDIS_URL=url)
    Once(spark, pipeline)
    (group,) = server.xinfo_groups("orders")
    assert (group["name"], group["last-delivered-id"]) == (b"archive.days", b"1767315600000-0")
    code = re.findall(r"```python\n(.*?)```", ARCHIVES, re.DOTALL)[0]
    exec(code.replace('"archive"', repr(f"{tmp_path}/archive")), {"spark": spark, "url": url})
    server.response_callbacks.pop("XRANGE")
    there, again = (
        server.execute_command("XRANGE", key, "-", "+") for key in ("orders", "orders-again")
    )
    assert len(there) == 3
    assert again == there


@pytest.mark.parametrize(
    "command",
    ["new", "run", "validate", "status", "test", "preview", "redrive"],
)
def test_every_option_of_a_command_is_on_the_page(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert {option for option in options if f"{option}" not in PAGES} == set()


def declared() -> Iterator[Key]:
    """Every key that some part of a file has."""
    found: list[object] = [kind.keys for kind in KINDS.values()]
    for module in (file, file_parse, kinds, changes):
        found += vars(module).values()
    while found:
        value = found.pop()
        if isinstance(value, Key):
            yield value
        elif isinstance(value, dict) and value is not KINDS:
            found += value.values()
        elif isinstance(value, tuple):
            found += value


KEYS = list(declared())
ROWS = re.findall(r"^\| (`[^|]+?) \| ([^|]*?) ?\| [^\n]+ \|$", KEYS_PAGES, re.MULTILINE)
"""The first two cells of the rows about keys: their names, and the default."""


def test_every_key_of_a_file_is_on_the_page() -> None:
    names = {key.name for key in KEYS}
    assert {"name", "path", "attempts", "delay", "retain"} <= names
    assert {name for name in names if not re.search(rf"[`\[.{{ ]{name}\b", PAGES)} == set()


def test_the_defaults_of_the_page_are_those_that_are_declared() -> None:
    looked_at = set()
    for cell, default in ROWS:
        name, *others = re.findall(r"`[\w.*]*?(\w+)`", cell) or [""]
        known = [key for key in KEYS if key.name == name and type(key.default) in (bool, int, str)]
        known = [key for key in known if not isinstance(key, Parsed)]
        if known and not others and re.fullmatch(r"`?[\w ]+`?", default):
            looked_at.add(name)
            assert default.strip("`") in {_as_toml(key.default) for key in known}, name
    assert looked_at >= {"attempts", "compact_every", "log_level", "required", "schema"}


def _as_toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_lengths_of_time_and_sizes_of_the_page_are_those_that_are_declared() -> None:
    parsed = {key.name: key for key in KEYS if isinstance(key, Parsed) and key.default is not None}
    assert set(parsed) == {"file_size", "pause", "registry_timeout"}
    for name, key in parsed.items():
        (default,) = {d for cell, d in ROWS if re.fullmatch(rf"`(?:\w+\.)?{name}`", cell)}
        assert key.parse(default.strip("`")) == key.default
