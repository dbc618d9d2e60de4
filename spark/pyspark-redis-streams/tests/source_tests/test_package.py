"""The shape of the package, and its page of documentation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from pyspark_redis_streams import DefaultSource, RedisStreamsSource
from pyspark_redis_streams.options import READ, SERVER, WRITE, Option
from tests.support.process import brings

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "pyspark_redis_streams").rglob("*.py"))
PAGE = (ROOT / "docs" / "spark.md").read_text()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_of_the_server_is_imported(path: Path) -> None:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            names.add(node.module.split(".")[0])
    assert not names & {"server", "protocol", "storage", "penstock", "penstock_pipeline", "tests"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_holds_one_idea(path: Path) -> None:
    assert len(path.read_text().splitlines()) < 500


def test_spark_finds_the_source_by_its_name() -> None:
    assert DefaultSource is RedisStreamsSource
    assert DefaultSource.name() == "redis-streams"


def test_a_python_process_of_spark_starts_without_pandas() -> None:
    assert not brings("pyspark_redis_streams.source", "pandas")


def documented(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    section = PAGE.split(f"### {heading}\n")[1].split("\n#")[0]
    lines = re.findall(r"^\| (`.*) \|$", section, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def row(option: Option) -> list[str]:
    names = ", ".join(f"`{alias}`" for alias in option.aliases)
    name = f"`{option.name}` ({names})" if names else f"`{option.name}`"
    default = f"`{option.default or option.otherwise}`".replace("``", "")
    return [name, default, option.meaning]


@pytest.mark.parametrize(
    ("heading", "options"), [("Servers", SERVER), ("Reading", READ), ("Writing", WRITE)]
)
def test_the_page_says_of_every_option_what_the_table_says(
    heading: str, options: tuple[Option, ...]
) -> None:
    assert documented(heading) == [row(option) for option in options]
