"""The check of the image's health, on tables of the kernel that the test has made up."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.support.certificates import Certificates
from tests.support.ports import free_port
from tests.support.process import ROOT
from tests.support.servers import PenstockThread
from tests.support.wire import Client

TCP_HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"
    "   uid  timeout inode\n"
)
TIMEOUT_S = 5

HEALTHY: Final = (0, "")
NOBODY: Final = (1, "no process of this user listens on a socket\n")

pytestmark = pytest.mark.skipif(not shutil.which("perl"), reason="perl is not installed")

with_tls = pytest.mark.skipif(not shutil.which("redis-cli"), reason="redis-cli is not installed")
"""Marks tests of servers that do not answer in plain text: those are asked with TLS."""
UNIX_HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"


class Kernel:
    """A folder like ``/proc``, with one process and the sockets that it has."""

    def __init__(self, folder: Path) -> None:
        self._proc = str(folder)
        self._process = folder / "1"
        self._files = self._process / "fd"
        self._files.mkdir(parents=True)
        self._net = folder / "net"
        self._net.mkdir()
        (self._net / "tcp").write_text(TCP_HEAD)
        (self._files / "1").symlink_to("/dev/null")
        (self._files / "2").write_text("this is no link")

    def check(self, *arguments: str) -> tuple[int, str]:
        """Runs the check; its exit status, and what it says."""
        command = [str(ROOT / "container/health"), *arguments, self._proc]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.stdout == ""
        return ended.returncode, ended.stderr

    def add(
        self, port: int, inode: int, host: str = "127.0.0.1", state: str = "0A", own: bool = True
    ) -> None:
        """A TCP socket, of the process or of another one that cannot be looked at."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        packed = socket.inet_pton(family, host)
        words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
        local = "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)
        row = f"   0: {local}:{port:04X} 0:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0 100\n"
        self._add("tcp6" if ":" in host else "tcp", row, inode, own)

    def add_unix(self, path: str, inode: int, flags: str = "00010000") -> None:
        """A Unix socket of the process; the kernel shows no path for the ends of a connection."""
        row = f"00000000d1aa7279: 00000002 00000000 {flags} 0001 01 {inode:5} {path}".rstrip()
        self._add("unix", f"{row}\n", inode, own=True)

    def _add(self, table: str, row: str, inode: int, own: bool) -> None:
        # Kernels without IPv6 have no table of it.
        file = self._net / table
        head = UNIX_HEAD if table == "unix" else TCP_HEAD
        file.write_text((file.read_text() if file.exists() else head) + row)
        if own:
            (self._files / str(inode)).symlink_to(f"socket:[{inode}]")

    def work_in(self, folder: Path) -> None:
        """Says which folder the process works in."""
        (self._process / "cwd").symlink_to(folder)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@contextmanager
def answering(answer: bytes, clients: int = 1) -> Iterator[int]:
    """A port at which so many clients are told something, whatever they ask for."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        # A check that does not ask fails its test, and holds nothing up.
        listener.settimeout(TIMEOUT_S)

        def serve() -> None:
            for _ in range(clients):
                with listener.accept()[0] as client:
                    client.recv(4096)
                    client.sendall(answer)

        served = pool.submit(serve)
        yield listener.getsockname()[1]
        served.result()


def test_a_server_that_answers_is_healthy(kernel: Kernel) -> None:
    with PenstockThread() as penstock:
        kernel.add(penstock.port, inode=70)
        assert kernel.check() == HEALTHY
        assert kernel.check("--ready") == HEALTHY


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_it_asks_at_the_only_address_that_the_server_listens_on(kernel: Kernel, host: str) -> None:
    with PenstockThread(bind=host) as penstock:
        kernel.add(penstock.port, inode=70, host=host)
        assert kernel.check() == HEALTHY


@pytest.mark.parametrize(("bind", "host"), [("*", "0.0.0.0"), ("::*", "::")])
def test_it_asks_at_loopback_if_the_server_listens_on_every_address(
    kernel: Kernel, bind: str, host: str
) -> None:
    with PenstockThread(bind=bind) as penstock:
        kernel.add(penstock.port, inode=70, host=host)
        assert kernel.check() == HEALTHY


def test_it_asks_at_a_unix_socket_if_there_is_nothing_else(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "a server.sock"
    with PenstockThread(bind="", unixsocket=str(path)):
        kernel.add_unix("", inode=69, flags="00000000")
        kernel.add_unix(str(path), inode=70)
        assert kernel.check() == HEALTHY


def test_the_path_of_a_unix_socket_may_begin_where_the_server_works(
    kernel: Kernel, tmp_path: Path
) -> None:
    with PenstockThread(bind="", unixsocket=str(tmp_path / "server.sock")):
        kernel.add_unix("server.sock", inode=70)
        kernel.work_in(tmp_path)
        assert kernel.check() == HEALTHY


def test_a_unix_socket_that_is_not_there_is_named(kernel: Kernel) -> None:
    kernel.add_unix("gone.sock", inode=70)
    kernel.add_unix("@penstock-nobody", inode=71)
    assert kernel.check() == (
        1,
        "@penstock-nobody: Connection refused; gone.sock: No such file or directory\n",
    )


def test_one_address_that_answers_is_enough(kernel: Kernel) -> None:
    with PenstockThread() as penstock:
        kernel.add(1, inode=69)
        kernel.add(penstock.port, inode=70)
        assert kernel.check() == HEALTHY


def test_only_own_listening_sockets_count(kernel: Kernel) -> None:
    with PenstockThread() as penstock:
        kernel.add(penstock.port, inode=70, state="01")
        kernel.add(penstock.port, inode=71, own=False)
        assert kernel.check() == NOBODY


def test_an_address_that_refuses_is_named(kernel: Kernel) -> None:
    kernel.add(1, inode=70)
    kernel.add(1, inode=71, host="::1")
    assert kernel.check() == (
        1,
        "127.0.0.1:1: Connection refused; [::1]:1: Connection refused\n",
    )


@pytest.mark.parametrize(
    "answer",
    [
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    ],
    ids=["loading", "script"],
)
def test_a_server_that_is_at_work_is_healthy_but_not_ready(kernel: Kernel, answer: str) -> None:
    with answering(f"-{answer}\r\n".encode()) as port:
        kernel.add(port, inode=70)
        assert kernel.check() == HEALTHY
    with answering(f"-{answer}\r\n".encode()) as port:
        kernel.add(port, inode=71)
        status, said = kernel.check("--ready")
    assert status == 1
    assert f"127.0.0.1:{port}: {answer}" in said


@pytest.mark.parametrize("answer", ["NOAUTH Authentication required.", "NOPERM no"])
def test_a_server_that_wants_a_password_is_healthy_and_ready(kernel: Kernel, answer: str) -> None:
    for inode, arguments in enumerate(([], ["--ready"]), 70):
        with answering(f"-{answer}\r\n".encode()) as port:
            kernel.add(port, inode)
            assert kernel.check(*arguments) == HEALTHY


@with_tls
def test_a_server_that_hangs_up_is_not_healthy(kernel: Kernel) -> None:
    with answering(b"", clients=3) as port:
        kernel.add(port, inode=70)
        assert kernel.check() == (1, f"127.0.0.1:{port}: it hangs up\n")


def test_what_a_server_answers_that_takes_nobody_is_told(kernel: Kernel) -> None:
    with PenstockThread(maxclients=1) as penstock:
        kernel.add(penstock.port, inode=70)
        with Client(penstock.address) as first:
            assert first.ask("PING") == b"PONG"
            assert kernel.check() == (
                1,
                f"127.0.0.1:{penstock.port}: ERR max number of clients reached\n",
            )


@pytest.mark.slow
def test_a_server_that_stands_still_is_not_waited_for_longer_than_the_engine_waits(
    kernel: Kernel,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        kernel.add(port, inode=70)
        assert kernel.check() == (1, f"127.0.0.1:{port}: it does not answer\n")


@with_tls
@pytest.mark.parametrize("wanted", ["yes", "no"])
@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3"])
def test_a_server_that_speaks_tls_alone_is_healthy(
    kernel: Kernel, tmp_path_factory: pytest.TempPathFactory, wanted: str, versions: str
) -> None:
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    settings = certificates.settings(tls_auth_clients=wanted, tls_protocols=versions)
    port = free_port()
    with PenstockThread(tls_port=port, **settings):
        kernel.add(port, inode=101)
        assert kernel.check() == HEALTHY
        assert kernel.check("--ready") == HEALTHY


def test_a_port_that_serves_http_refuses_at_once_and_does_not_hold_the_check_up(
    kernel: Kernel,
) -> None:
    port = free_port()
    with PenstockThread(metrics_port=port, metrics_bind="127.0.0.1") as penstock:
        kernel.add(port, 7)
        assert kernel.check() == (1, f"127.0.0.1:{port}: HTTP/1.1 400 Bad Request\n")
        kernel.add(penstock.port, 8)
        assert kernel.check() == HEALTHY


def test_it_loads_no_module_which_would_take_longer_than_the_check() -> None:
    program = (ROOT / "container/health").read_text()
    assert re.findall(r"^\s*(?:use|require) (.*);$", program, re.MULTILINE) == ["strict"]


def test_an_option_that_there_is_not_is_refused(kernel: Kernel) -> None:
    assert kernel.check("--redy") == (2, "usage: penstock-health [--ready]\n")
