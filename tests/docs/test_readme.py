"""What the README shows happens as it is printed."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from penstock import cli
from tests.support.process import ROOT
from tests.support.servers import PenstockThread

README = (ROOT / "README.md").read_text()

PROMPT = "127.0.0.1:6379> "


def blocks(language: str) -> list[str]:
    """The contents of the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def shell_lines() -> list[str]:
    """The lines of the indented blocks, which are for a shell."""
    return re.findall(r"(?<=\n)    (\S.*)", re.sub(r"```.*?```", "", README, flags=re.DOTALL))


def commands_of(session: str) -> list[tuple[str, str]]:
    """Each command of a redis-cli session with the output printed below it."""
    found = re.findall(rf"^{re.escape(PROMPT)}(.*)\n((?:(?!{PROMPT}).*\n)*)", session, re.MULTILINE)
    assert session.startswith("$ redis-cli\n" + PROMPT)
    assert len(found) == session.count(PROMPT)
    return found


@pytest.fixture
def penstock() -> Iterator[PenstockThread]:
    with PenstockThread() as thread:
        yield thread


def test_every_block_is_of_a_kind_that_is_tried_out() -> None:
    fences = re.findall(r"^```(.*)$", README, re.MULTILINE)
    assert fences == ["console", "", "python", ""]


def test_sessions_with_redis_cli_print_what_they_show(penstock: PenstockThread) -> None:
    redis_cli = shutil.which("redis-cli")
    if redis_cli is None:
        pytest.skip("redis-cli is not installed")
    for session in blocks("console"):
        for command, output in commands_of(session):
            ended = subprocess.run(
                [redis_cli, "--no-raw", "-p", str(penstock.port)],
                input=command + "\n",
                capture_output=True,
                text=True,
                check=True,
            )
            printed = "".join(line.rstrip(" ") for line in ended.stdout.splitlines(keepends=True))
            assert (command, printed.rstrip("\n")) == (command, output.rstrip("\n"))


def test_programs_run(penstock: PenstockThread) -> None:
    for program in blocks("python"):
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(program.replace("port=6379", f"port={penstock.port}"), {})
        assert printed.getvalue() == "1\n"


def test_the_make_commands_exist() -> None:
    targets = [line.split()[1] for line in shell_lines() if line.startswith("make ")]
    assert targets == ["run", "test"]
    for target in targets:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, check=True)


def test_the_server_takes_the_arguments_that_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.conf").write_text("")
    (tmp_path / "data").mkdir()
    shown = [
        line.split("#")[0] for line in shell_lines() if re.search(r"\bpenstock -|my.conf", line)
    ]
    assert len(shown) == 4
    configs = [
        cli.configure(shlex.split(line.split("penstock", 1)[1]), io.StringIO("port 7000"))
        for line in shown
    ]
    assert [config.port for config in configs] == [0, 6379, 7000, 6379]
    assert [config.loglevel for config in configs] == ["notice", "verbose", "notice", "notice"]
    assert [config.appendonly for config in configs] == [False, False, False, True]
