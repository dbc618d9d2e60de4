"""The check of the image's health, on tables of the kernel that the test has made up."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock import health
from tests.support.certificates import Certificates
from tests.support.ports import free_port
from tests.support.servers import PenstockThread
from tests.support.wire import Client

TCP_HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"
    "   uid  timeout inode\n"
)
TIMEOUT_S = 5
UNIX_HEAD = "Num       RefCount Protocol Flags    Type St Inode Path\n"


class Kernel:
    """A folder like ``/proc``, with one process and the sockets that it has."""

    def __init__(self, folder: Path) -> None:
        self.proc = str(folder)
        self._process = folder / "1"
        self._files = self._process / "fd"
        self._files.mkdir(parents=True)
        self._net = folder / "net"
        self._net.mkdir()
        (self._net / "tcp").write_text(TCP_HEAD)
        (self._files / "1").symlink_to("/dev/null")
        (self._files / "2").write_text("this is no link")

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


def test_a_server_that_answers_is_healthy(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with PenstockThread() as penstock:
        kernel.add(penstock.port, inode=70)
        assert health.main(proc=kernel.proc) == 0
        assert health.main(["--ready"], kernel.proc) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("host", ["127.0.0.2", "::1"])
def test_it_asks_at_the_only_address_that_the_server_listens_on(kernel: Kernel, host: str) -> None:
    with PenstockThread(bind=host) as penstock:
        kernel.add(penstock.port, inode=70, host=host)
        assert health.main(proc=kernel.proc) == 0


@pytest.mark.parametrize(("bind", "host"), [("*", "0.0.0.0"), ("::*", "::")])
def test_it_asks_at_loopback_if_the_server_listens_on_every_address(
    kernel: Kernel, bind: str, host: str
) -> None:
    with PenstockThread(bind=bind) as penstock:
        kernel.add(penstock.port, inode=70, host=host)
        assert health.main(proc=kernel.proc) == 0


def test_it_asks_at_a_unix_socket_if_there_is_nothing_else(kernel: Kernel, tmp_path: Path) -> None:
    path = tmp_path / "a server.sock"
    with PenstockThread(bind="", unixsocket=str(path)):
        kernel.add_unix("", inode=69, flags="00000000")
        kernel.add_unix(str(path), inode=70)
        assert health.main(proc=kernel.proc) == 0


def test_the_path_of_a_unix_socket_may_begin_where_the_server_works(
    kernel: Kernel, tmp_path: Path
) -> None:
    with PenstockThread(bind="", unixsocket=str(tmp_path / "server.sock")):
        kernel.add_unix("server.sock", inode=70)
        kernel.work_in(tmp_path)
        assert health.main(proc=kernel.proc) == 0


def test_a_unix_socket_that_is_not_there_is_named(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add_unix("gone.sock", inode=70)
    kernel.add_unix("@penstock-nobody", inode=71)
    assert health.main(proc=kernel.proc) == 1
    assert capsys.readouterr().err == (
        "@penstock-nobody: [Errno 111] Connection refused; "
        "gone.sock: [Errno 2] No such file or directory\n"
    )


def test_one_address_that_answers_is_enough(kernel: Kernel) -> None:
    with PenstockThread() as penstock:
        kernel.add(1, inode=69)
        kernel.add(penstock.port, inode=70)
        assert health.main(proc=kernel.proc) == 0


def test_only_own_listening_sockets_count(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with PenstockThread() as penstock:
        kernel.add(penstock.port, inode=70, state="01")
        kernel.add(penstock.port, inode=71, own=False)
        assert health.main(proc=kernel.proc) == 1
    assert capsys.readouterr().err == "no process of this user listens on a socket\n"


def test_an_address_that_refuses_is_named(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel.add(1, inode=70)
    kernel.add(1, inode=71, host="::1")
    assert health.main(proc=kernel.proc) == 1
    assert capsys.readouterr().err == (
        "127.0.0.1:1: [Errno 111] Connection refused; [::1]:1: [Errno 111] Connection refused\n"
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"-LOADING Redis is loading the dataset in memory",
        b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    ],
    ids=["loading", "script"],
)
def test_a_server_that_is_at_work_is_healthy_but_not_ready(
    kernel: Kernel, capsys: pytest.CaptureFixture[str], answer: bytes
) -> None:
    with answering(answer + b"\r\n") as port:
        kernel.add(port, inode=70)
        assert health.main(proc=kernel.proc) == 0
    with answering(answer + b"\r\n") as port:
        kernel.add(port, inode=71)
        assert health.main(["--ready"], kernel.proc) == 1
    assert f"127.0.0.1:{port}: {answer.decode()}" in capsys.readouterr().err


@pytest.mark.parametrize("answer", [b"-NOAUTH Authentication required.", b"-NOPERM no"])
def test_a_server_that_wants_a_password_is_healthy_and_ready(kernel: Kernel, answer: bytes) -> None:
    for inode, arguments in enumerate(([], ["--ready"]), 70):
        with answering(answer + b"\r\n") as port:
            kernel.add(port, inode)
            assert health.main(arguments, kernel.proc) == 0


def test_a_server_that_hangs_up_is_not_healthy(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(b"", clients=2) as port:
        kernel.add(port, inode=70)
        assert health.main(proc=kernel.proc) == 1
    assert capsys.readouterr().err == f"127.0.0.1:{port}: it hangs up\n"


def test_what_a_server_answers_that_takes_nobody_is_told(
    kernel: Kernel, capsys: pytest.CaptureFixture[str]
) -> None:
    with PenstockThread(maxclients=1) as penstock:
        kernel.add(penstock.port, inode=70)
        with Client(penstock.address) as first:
            assert first.ask("PING") == b"PONG"
            assert health.main(proc=kernel.proc) == 1
    message = f"127.0.0.1:{penstock.port}: -ERR max number of clients reached\n"
    assert capsys.readouterr().err == message


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
        assert health.main([], kernel.proc) == 0
        assert health.main(["--ready"], kernel.proc) == 0


def test_a_port_that_serves_http_refuses_at_once_and_does_not_hold_the_check_up(
    kernel: Kernel,
) -> None:
    port = free_port()
    with PenstockThread(metrics_port=port, metrics_bind="127.0.0.1") as penstock:
        kernel.add(port, 7)
        assert health.ask(("127.0.0.1", port)) == b"HTTP/1.1 400 Bad Request"
        assert health.main(proc=kernel.proc) == 1
        kernel.add(penstock.port, 8)
        assert health.main(proc=kernel.proc) == 0
