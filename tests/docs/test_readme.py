"""What the README and the tutorial show happens as it is printed."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from penstock import cli
from penstock.testing import Penstock
from server.config.file import read_text
from server.config.registry import Config
from tests.docs.markdown import blocks, fences, shell_lines
from tests.support.process import ROOT
from tests.support.servers import PenstockThread
from tools.docs import policies_page

README = (ROOT / "README.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
DELIVERY = (ROOT / "docs" / "delivery.md").read_text()
CONTAINER = (ROOT / "docs" / "container.md").read_text()

PROMPT = "127.0.0.1:6379> "


def commands_of(session: str) -> list[tuple[str, str]]:
    """Each command of a redis-cli session with the output printed below it."""
    found = re.findall(rf"^{re.escape(PROMPT)}(.*)\n((?:(?!{PROMPT}).*\n)*)", session, re.MULTILINE)
    assert session.startswith("$ redis-cli\n" + PROMPT)
    assert len(found) == session.count(PROMPT)
    return found


@pytest.fixture
def server() -> Iterator[PenstockThread]:
    with PenstockThread() as thread:
        yield thread


def type_into_redis_cli(session: str, port: int) -> None:
    """Gives redis-cli each command of a session, which has to print what is shown."""
    redis_cli = shutil.which("redis-cli")
    assert redis_cli is not None
    for command, output in commands_of(session):
        ended = subprocess.run(
            [redis_cli, "--no-raw", "-p", str(port)],
            input=command + "\n",
            capture_output=True,
            text=True,
            check=True,
        )
        printed = "".join(line.rstrip(" ") for line in ended.stdout.splitlines(keepends=True))
        assert (command, printed.rstrip("\n")) == (command, output.rstrip("\n"))


def lines_of_report(text: str) -> list[str]:
    """The lines of a failed exploration, without how pytest explains an assertion."""
    return [line for line in text.splitlines() if not re.match(r"  (?:assert |[-+] |$)", line)]


def run_test(text: str, penstock: Penstock) -> None:
    """Calls the test in a block, with the fixture that it asks for."""
    names: dict[str, Any] = {}
    exec(text, names)
    [test] = [value for name, value in names.items() if name.startswith("test_")]
    test(penstock)


def run_program(program: str, port: int) -> None:
    """Runs a program, whose lines that print have to print what the comment behind them says."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(program.replace("port=6379", f"port={port}"), {})
    said = re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
    assert len(said) == program.count("print(")
    assert printed.getvalue().splitlines() == said


def test_every_block_is_of_a_kind_that_is_tried_out() -> None:
    assert fences(README) == ["python", "text", "console", "python"]
    assert fences(TUTORIAL) == ["console", "console", "console", "python"]


def test_the_lines_of_policies_that_are_shown_are_taken() -> None:
    assert fences(DELIVERY) == ["console", "conf", "python"]
    config = Config()
    read_text(config, blocks(DELIVERY, "conf")[0].encode(), "delivery.md")
    assert len(config.stream_policy) == 3


def test_the_tables_of_policies_are_those_of_the_server() -> None:
    written = policies_page.PAGE.read_text()
    assert policies_page.page() == written, "run: python -m tools.docs.policies_page"


@pytest.mark.skipif(shutil.which("redis-cli") is None, reason="redis-cli is not installed")
@pytest.mark.parametrize("pages", [(README, TUTORIAL), (DELIVERY,)], ids=["tutorial", "delivery"])
def test_what_pages_show_happens_in_their_order_on_one_server(
    pages: tuple[str, ...], server: PenstockThread, penstock: Penstock
) -> None:
    for page in pages:
        show(page, server, penstock)


def show(page: str, server: PenstockThread, penstock: Penstock) -> None:
    for language, block in zip(fences(page), blocks(page), strict=True):
        if language == "console":
            type_into_redis_cli(block, server.port)
        elif "explore" in block:
            with pytest.raises(AssertionError) as failed:
                run_test(block, penstock)
            printed = str(failed.value)
            penstock.flush()
        elif language == "text":
            assert lines_of_report(printed)[: block.count("\n")] == block.splitlines()
        elif "(penstock)" in block:
            penstock.flush()
            run_test(block, penstock)
        elif language == "python":
            run_program(block, server.port)


def test_the_first_screen_says_how_to_run_and_how_to_test() -> None:
    first = README[: README.index("## Quick start")]
    assert len(first.splitlines()) < 66
    assert [line.split()[:2] for line in shell_lines(first)][:2] == [
        ["make", "run"],
        ["pip", "install"],
    ]
    assert "penstock.clock.advance" in first


def test_the_make_commands_exist() -> None:
    named = re.findall(r"(?:^    |`)make ([a-z-]+)", README, re.MULTILINE)
    assert {"run", "docs"} <= set(named)
    for target in named:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)


def test_make_alone_prints_what_there_is_and_does_nothing() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.startswith("make run ")
    assert {"make test", "make clean"} <= {line[:10].strip() for line in printed.splitlines()}
    assert "#" not in printed


def test_pip_can_install_what_is_shown() -> None:
    shown = re.findall(r"(?:^    |`)pip install ('?\.\S*?'?)(?:`| |$)", README, re.MULTILINE)
    assert shown == [".", "'.[web]'"]
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "web" in offered["optional-dependencies"]
    offline = ["--dry-run", "--no-deps", "--no-index", "--no-build-isolation", "--quiet"]
    ended = subprocess.run(
        [sys.executable, "-m", "pip", "install", *offline, shown[0]],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_COMPILE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_the_docker_commands_are_those_of_the_page_about_the_image() -> None:
    # The image itself is built and driven by tests/container.
    shown = [line.split("  #")[0].strip() for line in shell_lines(README) if "docker" in line]
    assert [command.split()[1] for command in shown] == ["build", "run"]
    for command in shown:
        assert f"    {command}\n" in CONTAINER


def test_the_server_takes_the_arguments_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.conf").write_text("")
    (tmp_path / "data").mkdir()
    shown = [
        line.split("#")[0]
        for line in shell_lines(TUTORIAL)
        if re.search(r"\bpenstock -|my.conf", line)
    ]
    assert len(shown) == 5
    configs = []
    for line in shown:
        args = shlex.split(line.split("penstock", 1)[1])
        configs.append(cli.configure(args, io.StringIO("port 7000")))
        monkeypatch.chdir(tmp_path)  # `--dir` has entered a folder.
    assert [config.port for config in configs] == [0, 6379, 7000, 6379, 6379]
    assert [config.loglevel for config in configs] == ["notice", "verbose", *["notice"] * 3]
    assert [config.appendonly for config in configs] == [False, False, False, True, True]
