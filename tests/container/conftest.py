"""The image under test, and containers of it that a test leaves nothing of."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pytest
from redis import Redis
from redis.exceptions import ConnectionError

from tests.clients.observing import until
from tests.support import logs

IMAGE_VARIABLE: Final = "PENSTOCK_IMAGE"
TIMEOUT_S: Final = 120

# The engine may be on another host in principle; the ports it publishes are taken to be here.
HOST: Final = "127.0.0.1"


def docker(*args: str, status: int = 0) -> str:
    """What a docker command prints; its exit status has to be ``status``."""
    ended = subprocess.run(
        ["docker", *args], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert ended.returncode == status, ended.stderr or ended.stdout
    return ended.stdout + ended.stderr


def read_log(*command: str) -> None:
    """Reads the log that a command prints, of containers that may not have been started."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    logs.read(ended.stdout + ended.stderr)


def new_name() -> str:
    """One that no container and no volume has."""
    return f"penstock-{uuid.uuid4().hex}"


def connect(port: int, password: str | None = None) -> Redis:
    """A client of the server at a published port, when that answers."""
    client = Redis(HOST, port, password=password, decode_responses=True)
    until(lambda: _answers(client))
    return client


def _answers(client: Redis) -> bool:
    try:
        return bool(client.ping())
    except ConnectionError:
        return False


class Container:
    """A container that runs in the background with its port 6379, or another, published."""

    def __init__(self, image: str, port: int) -> None:
        self.name = new_name()
        self._image = image
        self._inner = port

    def start(self, *args: str, options: tuple[str, ...]) -> None:
        """Starts it; ``args`` are for the server, ``options`` for the engine."""
        published = f"--publish={HOST}::{self._inner}"
        docker("run", "--detach", f"--name={self.name}", published, *options, self._image, *args)

    @property
    def port(self) -> int:
        """Where the server is reached from outside; another one after each start."""
        return int(docker("port", self.name, str(self._inner)).splitlines()[0].rpartition(":")[2])

    def inspect(self) -> dict[str, Any]:
        """What the engine knows."""
        [found] = json.loads(docker("inspect", self.name))
        state: dict[str, Any] = found
        return state

    def client(self, password: str | None = None) -> Redis:
        """A client of the server, when that answers."""
        assert self.inspect()["State"]["Running"], docker("logs", self.name)
        return connect(self.port, password)

    def stop(self) -> int:
        """Sends SIGTERM, and SIGKILL two seconds later; returns the exit status, then 137."""
        docker("stop", "-t", "2", self.name)
        status: int = self.inspect()["State"]["ExitCode"]
        return status

    def remove(self) -> None:
        """Ends it, with the volumes that have no name; its log is read."""
        read_log("docker", "logs", self.name)
        docker("rm", "--force", "--volumes", self.name)


class Containers:
    """Starts containers of one image, and removes them with what they have stored."""

    def __init__(self, image: str) -> None:
        self.image = image
        self._containers: list[Container] = []
        self._volumes: list[str] = []

    def start(self, *args: str, options: tuple[str, ...] = (), port: int = 6379) -> Container:
        """A new container; ``args`` are for the server, ``options`` for the engine."""
        container = Container(self.image, port)
        # One whose start fails may have to be removed as well.
        self._containers.append(container)
        container.start(*args, options=options)
        return container

    def run(self, *args: str, status: int = 0) -> str:
        """What a container prints that ends by itself, with an exit status."""
        printed = docker("run", "--rm", self.image, *args, status=status)
        logs.read(printed)
        return printed

    def volume(self) -> str:
        """The name of a new volume."""
        self._volumes.append(new_name())
        return self._volumes[-1]

    def remove(self) -> None:
        """Leaves nothing behind."""
        for container in self._containers:
            container.remove()
        for volume in self._volumes:
            docker("volume", "rm", "--force", volume)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that need the image, which takes minutes to build."""
    for item in items:
        if "image" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


@pytest.fixture(scope="session")
def image() -> str:
    """The name of the image; without it these tests are skipped."""
    name = os.environ.get(IMAGE_VARIABLE, "")
    if not name or not shutil.which("docker"):
        pytest.skip(f"needs docker, and {IMAGE_VARIABLE}: make test-container sees to both")
    return name


@pytest.fixture
def containers(image: str) -> Iterator[Containers]:
    containers = Containers(image)
    yield containers
    containers.remove()
