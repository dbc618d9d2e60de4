"""The pages about tests in other languages show programs that work, where their tools are."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from penstock.testing import PenstockServer
from tests.docs.markdown import blocks, shell_lines
from tests.plugin.conftest import Installation, Project
from tests.support.process import ROOT

DOCS: Final = ROOT / "docs"
NODE: Final = ROOT / "tests" / "clients" / "node" / "node_modules"
REDIGO: Final = Path("/usr/share/gocode/src/github.com/gomodule/redigo")
"""Where Debian puts golang-github-gomodule-redigo-dev."""

TIMEOUT_S: Final = 240


def page(name: str) -> str:
    return (DOCS / f"testing-{name}.md").read_text()


def write_files(name: str, language: str, folder: Path) -> list[str]:
    """Puts the files that a page shows into a folder; their names."""
    names = list[str]()
    for text in blocks(page(name), language):
        if found := re.match(r"(?:#|//) (\S+)\n", text):
            names.append(found[1])
            (folder / found[1]).write_text(text)
    return names


def run(command: Sequence[str], folder: Path, **environment: str) -> str:
    """What a program prints, which must end well."""
    ended = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


# --- the commands ----------------------------------------------------------------------------


def test_the_shell_shows_what_the_page_shows(
    server: PenstockServer, installation: Installation, tmp_path: Path
) -> None:
    [session] = blocks(page("commands"), "console")
    steps = re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", session, re.MULTILINE)
    assert len(steps) == 8
    assert "".join(f"$ {command}\n{output}" for command, output in steps) == session
    for command, output in steps:
        name, *words = shlex.split(command)
        assert name == "penstock"
        shown = run([str(installation.command), *words], tmp_path, PENSTOCK_URL=server.url)
        expected = re.sub(r"^\d+$", r"\\d+", output, flags=re.MULTILINE)
        assert re.fullmatch(expected, shown), command


def test_what_is_to_be_sent_before_each_test_resets_the_server(server: PenstockServer) -> None:
    lines = [line for line in shell_lines(page("commands")) if not line.startswith("docker")]
    commands = [line.split() for line in lines if "action" not in line and "penstock" not in line]
    assert commands == [["DEBUG", "RESET"], ["FLUSHALL"]]
    server.clock.freeze(1000)
    server.ask("SET", "k", "v")
    number = server.ask("DEBUG", "FAULT", "ADD", "XADD", "CLOSE")
    for words in commands:
        server.ask(*words)
    assert server.ask("DBSIZE") == 0
    assert server.clock.now_ms > 1_000_000
    assert number not in [fault["id"] for fault in server.faults.list()]


def test_the_server_takes_the_commands_that_the_page_shows(server: PenstockServer) -> None:
    section = page("commands").split("## What there is\n")[1].split("\n## ")[0]
    server.ask("XGROUP", "CREATE", "orders", "kitchen", "0", "MKSTREAM")
    for cell in re.findall(r"^\| (`.*?) \|", section, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", cell.replace("unix-time-milliseconds", "5000"))
        for words in [first.split(), *(first.split()[:2] + other.split() for other in others)]:
            server.ask(*words)
    server.ask("DEBUG", "SNAPSHOT", "DROP", "prepared")


def test_the_page_of_csharp_shows_commands_that_the_server_takes(server: PenstockServer) -> None:
    calls = re.findall(r"database\.Execute\((.*)\);", page("csharp"))
    assert len(calls) == 5
    for call in calls:
        server.ask(*(word.strip().strip('"') for word in call.split(",")))
    assert server.clock.now_ms == 1000
    server.ask("DEBUG", "SNAPSHOT", "DROP", "prepared")


# --- programs --------------------------------------------------------------------------------


def test_python_by_url(
    server: PenstockServer,
    installation: Installation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", server.url)
    project = Project(tmp_path, installation)
    assert len(write_files("python", "python", tmp_path)) == 2
    assert project.run() == {"passed": 3}, project.output


@pytest.mark.slow
def test_node(server: PenstockServer, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None or not (NODE / "redis").is_dir():
        pytest.skip("needs Node and, in tests/clients/node, npm install")
    (tmp_path / "node_modules").symlink_to(NODE)
    names = write_files("node", "js", tmp_path)
    tests = [name for name in names if name.endswith(".test.mjs")]
    assert len(tests) == 3
    for test in tests:
        output = run([node, "--test", test], tmp_path, PENSTOCK_URL=server.url)
        assert "# fail 0\n" in output


@pytest.mark.slow
def test_go(server: PenstockServer, tmp_path: Path) -> None:
    go = shutil.which("go")
    if go is None or not REDIGO.is_dir():
        pytest.skip(
            "needs Go and redigo: apt-get install golang-go golang-github-gomodule-redigo-dev"
        )
    folder = tmp_path / "src" / "orders"
    folder.mkdir(parents=True)
    assert write_files("go", "go", folder) == ["orders_test.go"]
    output = run(
        [go, "test", "-v", "-count=1", "."],
        folder,
        GO111MODULE="off",
        GOPATH=f"{tmp_path}:{REDIGO.parents[3]}",
        GOCACHE=str(tmp_path / "cache"),
        PENSTOCK_ADDRESS=f"{server.host}:{server.port}",
    )
    assert output.count("--- PASS: ") == 3


@pytest.mark.slow
def test_java(server: PenstockServer, tmp_path: Path) -> None:
    java, compiler = shutil.which("java"), shutil.which("javac")
    if java is None or compiler is None:
        pytest.skip("needs a JDK: apt-get install default-jdk-headless")
    names = write_files("java", "java", tmp_path)
    assert names == ["PenstockControl.java", "Orders.java"]
    run([compiler, *names], tmp_path)
    assert run([java, "-cp", ".", "Orders", str(server.port)], tmp_path) == "passed\n"


def test_every_page_names_the_image_as_the_page_of_the_container_does() -> None:
    assert "docker build --tag penstock ." in (DOCS / "container.md").read_text()
    for name in ("python", "node", "go", "java", "csharp"):
        text = page(name).split("## Testcontainers\n")[1]
        assert '"penstock"' in text
        assert "--enable-debug-command" in text
        assert "Ready to accept connections" in text
