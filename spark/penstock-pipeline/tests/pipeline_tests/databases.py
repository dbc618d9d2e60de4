"""Real databases for the tests: PostgreSQL and MariaDB in a folder, SQLite in a file."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.ports import free_port

START_S = 60

USER: dict[str, Any] = {}
"""Who runs the databases: they refuse to be run by root."""
if os.geteuid() == 0:
    USER = {"user": "nobody", "group": "nogroup", "extra_groups": []}


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL that has just been made; skips the test if it is not installed."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    initdb = shutil.which("initdb", path=os.pathsep.join([*folders, os.environ["PATH"]]))
    if initdb is None:
        pytest.skip("no PostgreSQL is installed (Debian: apt-get install postgresql)")
    with _folder() as folder:
        made = [initdb, "-D", f"{folder}/d", "-A", "trust", "-U", "me", "--no-sync", "-E", "UTF8"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=folder, **USER)
        port = free_port()
        server = [Path(initdb).with_name("postgres"), "-D", folder / "d", "-p", str(port)]
        server += ["-k", folder, "-h", "127.0.0.1", "-F"]
        url = f"postgresql://me@127.0.0.1:{port}/postgres"
        with _running(server, folder, url):
            yield url


@contextmanager
def mariadb() -> Iterator[str]:
    """The URL of a MariaDB that has just been made; skips the test if it is not installed."""
    server = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
    install = shutil.which("mariadb-install-db")
    if server is None or install is None:
        pytest.skip("no MariaDB is installed (Debian: apt-get install mariadb-server)")
    with _folder() as folder:
        made = [
            install,
            "--no-defaults",
            f"--datadir={folder}/d",
            "--auth-root-authentication-method=normal",
        ]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd=folder, **USER)
        port = free_port()
        started = [server, "--no-defaults", f"--datadir={folder}/d", f"--port={port}"]
        started += ["--bind-address=127.0.0.1", f"--socket={folder}/s"]
        url = f"mysql://root@127.0.0.1:{port}/test"
        with _running(started, folder, url):
            yield url


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of the user that runs a database."""
    with tempfile.TemporaryDirectory(prefix="penstock-base-") as path:
        if USER:
            shutil.chown(path, USER["user"])
        yield Path(path)


@contextmanager
def _running(command: Sequence[object], folder: Path, url: str) -> Iterator[None]:
    from penstock_pipeline.sinks.databases import database

    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            list(map(str, command)), cwd=folder, stdout=log, stderr=log, **USER
        )
    base = database(url, None, None)
    assert base is not None
    try:
        deadline = time.monotonic() + START_S
        while True:
            try:
                base.connect().close()
                break
            except base.driver.OperationalError:
                text = (folder / "log").read_text()
                assert server.poll() is None, text
                assert time.monotonic() < deadline, text
                time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait(START_S)
