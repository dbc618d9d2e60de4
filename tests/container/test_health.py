"""The check of the image's health, on tables of the kernel that the test has made up."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from server import health
from tests.support.servers import PenstockThread

HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"
    "   uid  timeout inode\n"
)


class Kernel:
    """A folder like ``/proc``, with one process and the sockets that it has."""

    def __init__(self, folder: Path) -> None:
        self.proc = str(folder)
        self._files = folder / "1" / "fd"
        self._files.mkdir(parents=True)
        (folder / "net").mkdir()
        self._table = folder / "net" / "tcp"
        self._table.write_text(HEAD)
        (self._files / "1").symlink_to("/dev/null")
        (self._files / "2").write_text("this is no link")

    def add(self, port: int, inode: int, state: str = "0A", own: bool = True) -> None:
        """A socket, of the process or of another one that cannot be looked at."""
        row = f"   0: 0100007F:{port:04X} 00000000:0000 {state} 0:0 00:0 0 0 0 {inode} 1 0 100\n"
        with self._table.open("a") as table:
            table.write(row)
        if own:
            (self._files / str(inode)).symlink_to(f"socket:[{inode}]")


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def test_a_server_that_answers_is_healthy(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with PenstockThread() as penstock:
        kernel.add(penstock.port, inode=70)
        assert health.main(kernel.proc) == 0
    assert capsys.readouterr() == ("", "")


def test_one_port_that_answers_is_enough(kernel: Kernel) -> None:
    with PenstockThread() as penstock:
        kernel.add(1, inode=69)
        kernel.add(penstock.port, inode=70)
        assert health.main(kernel.proc) == 0


def test_only_own_listening_sockets_count(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with PenstockThread() as penstock:
        kernel.add(penstock.port, inode=70, state="01")
        kernel.add(penstock.port, inode=71, own=False)
        assert health.main(kernel.proc) == 1
    assert capsys.readouterr().err == "no process of this user listens on a TCP port\n"


def test_a_port_that_refuses_is_named(kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add(1, inode=70)
    assert health.main(kernel.proc) == 1
    assert capsys.readouterr().err == "port 1: [Errno 111] Connection refused\n"


def test_what_a_server_answers_that_is_not_ready_is_told(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with PenstockThread(maxclients=1) as penstock:
        kernel.add(penstock.port, inode=70)
        with socket.create_connection((penstock.host, penstock.port)) as first:
            first.sendall(b"PING\r\n")
            assert first.recv(64) == b"+PONG\r\n"
            assert health.main(kernel.proc) == 1
    message = f"port {penstock.port}: -ERR max number of clients reached\n"
    assert capsys.readouterr().err == message
