"""The page about exploring workers shows files that do what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

from penstock.explore.scenarios import KINDS
from tests.conformance.reference import RealServer
from tests.docs.markdown import shell_lines
from tests.plugin.conftest import Installation, Project
from tests.plugin.test_languages import NODE, REDIGO, run, write_files
from tests.replication.nodes import program_of
from tests.support.process import ROOT

PAGE = (ROOT / "docs" / "explore.md").read_text()

FILES = dict(
    re.findall(r"^```(?:python|js|sh)\n(?:#|//) (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
)

GO = ROOT / "examples" / "explore" / "worker.go"
JAVA = GO.with_name("Worker.java")

SHOWN = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

COMMANDS = [line[2:] for line in shell_lines(PAGE) if line.startswith("$ penstock explore ")]

OWN = [command for command in COMMANDS if " --server " in command]


def test_the_wrong_worker_is_found_and_the_others_pass(project: Project) -> None:
    for name, text in FILES.items():
        if name.endswith(".py"):
            project.write(name, text)
    assert project.run() == {"failed": 1, "passed": 5}, project.output
    told = "\n".join(re.sub("^E +(AssertionError: )?", "", line) for line in _report(project))
    for line in SHOWN[0].splitlines():
        assert line.strip() in told


def _report(project: Project) -> list[str]:
    return [line for line in project.output.splitlines() if line.startswith("E ")]


def test_every_kind_of_fault_has_a_row() -> None:
    table = PAGE.split("|---|---|\n")[1].split("\n\n")[0]
    assert re.findall(r"^\| `([^`]+)`", table, re.MULTILINE) == list(KINDS)


# --- from a shell -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [command for command in COMMANDS if command not in OWN],
    ids=lambda line: line.split(" -- ", 1)[1],
)
def test_workers_in_each_language_are_found_to_be_wrong_from_a_shell(
    command: str, installation: Installation, tmp_path: Path
) -> None:
    _require_tools(command)
    if "./worker" in command:
        shutil.copy(GO, tmp_path)
        _build(tmp_path)
    if "java Worker" in command:
        shutil.copy(JAVA, tmp_path)
        run(["javac", *write_files("java", "java", tmp_path), JAVA.name], tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE)
    ended = _run(command, installation, tmp_path)
    assert (ended.returncode, ended.stderr) == (1, "")
    lines = ended.stdout.splitlines()
    if " crashes " in command:
        assert lines[: len(SHOWN[0].splitlines())] == SHOWN[0].splitlines()
    else:
        assert lines[0] in shell_lines(PAGE)
        assert "    ann  GET stock" in lines
        assert "    bob  DECR stock" in lines


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.parametrize("name", ["redis-8.0", "valkey-9.1"])
@pytest.mark.parametrize("command", OWN, ids=["own"])
def test_a_real_server_shows_the_same_and_is_left_empty(
    command: str, name: str, installation: Installation, tmp_path: Path
) -> None:
    _require_tools(command)
    mended = FILES["worker.py"].replace("from kitchen", "from mended")
    (tmp_path / "mended_worker.py").write_text(mended)
    path = program_of(name)
    with RealServer(str(path) if path else None) as server, Redis(*server.address, db=9) as client:
        command = command.replace("127.0.0.1:6379", f"127.0.0.1:{server.port}")
        ended = _run(command, installation, tmp_path)
        assert (ended.returncode, ended.stderr) == (1, "")
        assert ended.stdout.splitlines()[: len(SHOWN[0].splitlines())] == SHOWN[0].splitlines()
        ended = _run(command.replace("worker.py", "mended_worker.py"), installation, tmp_path)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert client.dbsize() == 0


def _run(
    command: str, installation: Installation, folder: Path
) -> subprocess.CompletedProcess[str]:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return subprocess.run(
        [str(installation.command), *_words(command)[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def _words(command: str) -> list[str]:
    return [sys.executable if word == "python" else word for word in shlex.split(command)]


def _require_tools(command: str) -> None:
    if shutil.which("redis-cli") is None:
        pytest.skip("no redis-cli on PATH")
    if "node " in command and (shutil.which("node") is None or not (NODE / "ioredis").is_dir()):
        pytest.skip("needs Node and, in tests/clients/node, npm install")
    if "./worker" in command and (shutil.which("go") is None or not REDIGO.is_dir()):
        pytest.skip(
            "needs Go and redigo: apt-get install golang-go golang-github-gomodule-redigo-dev"
        )

    if "java Worker" in command and shutil.which("javac") is None:
        pytest.skip("needs a JDK: apt-get install default-jdk-headless")


def _build(folder: Path) -> None:
    environment = {"GO111MODULE": "off", "GOPATH": str(REDIGO.parents[3])}
    subprocess.run(
        ["go", "build", "-o", "worker", "worker.go"],
        cwd=folder,
        env={**os.environ, **environment, "GOCACHE": str(folder / "cache")},
        check=True,
    )
