"""What docs/container.md shows is run: the compose file of the examples, and the program with
testcontainers."""

from __future__ import annotations

import gc
import io
import os
import re
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from tests.clients.observing import until
from tests.container.conftest import HOST, Containers, connect
from tests.support import logs
from tests.support.process import ROOT

PAGE = (ROOT / "docs" / "container.md").read_text()
COMPOSE = (ROOT / "examples" / "compose" / "compose.yaml").read_text()
PAGE_OF_PYTHON = (ROOT / "docs" / "testing-python.md").read_text()
FOR_REDIS = """\
services:
  redis:
    image: penstock
    command: redis-server --appendonly yes
    healthcheck:
      test: ["CMD", "redis-cli", "ping"]
      interval: 1s
  producer:
    image: penstock
    command: redis-cli -h redis XADD orders 1-0 item pen
    depends_on:
      redis:
        condition: service_healthy
"""
TIMEOUT_S = 120
PASSWORD = "sesame"


def block(language: str) -> str:
    """The contents of the one fenced block of a language."""
    [found] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    text: str = found
    return text


def find_compose() -> list[str]:
    """The command of compose, old or new; empty if there is none."""
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    plugin = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    return [] if plugin.returncode else ["docker", "compose"]


class Project:
    """A compose file with the image under test, on ports that are free."""

    def __init__(self, image: str, folder: Path, text: str) -> None:
        self._command = [*find_compose(), "--project-name", f"penstock{uuid.uuid4().hex[:8]}"]
        self._folder = folder
        text = text.replace("image: penstock\n", f"image: {image}\n")
        (folder / "docker-compose.yml").write_text(
            re.sub(r"127\.0\.0\.1:\d+:", "127.0.0.1::", text)
        )

    def __call__(self, *args: str) -> str:
        """What a command of compose prints."""
        ended = subprocess.run(
            [*self._command, *args],
            cwd=self._folder,
            env={**os.environ, "PENSTOCK_PASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def port(self) -> int:
        """Where the server is reached; another one after each start."""
        return int(self("port", "streams", "6379").rpartition(":")[2])


@pytest.fixture
def project(image: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Project]:
    if not find_compose():
        pytest.skip("compose is not installed")
    project = Project(image, tmp_path, getattr(request, "param", COMPOSE))
    yield project
    logs.read(project("logs", "--no-color"))
    project("down", "--volumes", "--timeout", "2")


def test_the_compose_file_keeps_its_data_through_a_restart(project: Project) -> None:
    project("up", "--detach")
    with connect(project.port(), PASSWORD) as client:
        assert client.xadd("orders", {"item": "pen"}, id="1-0") == "1-0"
    project("restart", "--timeout", "2")
    with connect(project.port(), PASSWORD) as client:
        assert client.xrange("orders") == [("1-0", {"item": "pen"})]


@pytest.mark.parametrize("project", [FOR_REDIS], ids=[""], indirect=True)
def test_a_compose_file_for_redis_works_with_another_image(project: Project) -> None:
    assert project("run", "--rm", "-T", "producer") == "1-0"


def printed_by(program: str, image: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a program with testcontainers prints, with the image under test."""
    # The container that tidies up after a crash is an image of its own, and asked for on import.
    monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
    monkeypatch.setenv("TESTCONTAINERS_HOST_OVERRIDE", HOST)
    pytest.importorskip("testcontainers", reason="testcontainers is not installed")
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(program.replace('"penstock"', f'"{image}"'), {})
    gc.collect()
    return printed.getvalue()


# Clients that testcontainers makes to wait for the server are left to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_the_program_with_testcontainers_prints_what_it_has_read(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = printed_by(block("python"), image, monkeypatch)
    assert printed == "[['orders', [('1-0', {'item': 'pen'})]]]\n1\n"


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_a_server_for_tests_starts_with_testcontainers(
    image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    [program] = re.findall(r"^```python\n(import redis\n.*?)^```$", PAGE_OF_PYTHON, re.M | re.S)
    assert printed_by(program, image, monkeypatch) == "1000-0\n"


def test_the_commands_that_are_shown_run(containers: Containers, tmp_path: Path) -> None:
    lines = re.findall(r"^    docker run( .*)$", PAGE, re.MULTILINE)
    assert len(lines) == 8
    arguments = [line.partition(" penstock")[2].split() for line in lines]
    file = tmp_path / "my.conf"
    file.write_text("")
    tmp_path.chmod(0o755)
    file.chmod(0o644)
    mounted = ("--volume", f"{file}:/etc/my.conf:ro")
    for words in (*arguments[:3], arguments[6]):
        with containers.start(*words, options=mounted).client() as client:
            assert client.ping()
    assert "No such file" in containers.run(*arguments[3], status=1)
    assert "orders:6379/0 can't be reached" in containers.run(*arguments[4], status=1)
    file.write_text("sesame\n")
    options = lines[5].rpartition(" penstock")[0].replace("./password", str(file))
    client = containers.start(options=tuple(shlex.split(options))).client("sesame")
    with client:
        assert client.acl_whoami() == "default"
    container = containers.start(options=tuple(shlex.split(lines[7].rpartition(" penstock")[0])))
    until(lambda: container.inspect()["State"]["Health"]["Status"] == "healthy")
