"""A server that something else has started."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.testing import PenstockError, PenstockServer, RemoteServer
from tests.plugin.conftest import Installation
from tests.support.certificates import Certificates
from tests.support.ports import free_port


def test_the_tools_work_by_url_alone(server: PenstockServer) -> None:
    with RemoteServer(server.url) as remote:
        remote.clock.freeze(1000)
        remote.faults.add("XLEN", "LOADING")
        assert remote.ask("XADD", "orders", "*", "item", "tea") == "1000-0"
        with remote.trace() as trace, pytest.raises(PenstockError, match=r"^XLEN others: LOADI"):
            server.ask("XLEN", "others")
        assert trace.names == ["XLEN"]
        remote.ask("CLIENT", "PAUSE", 60_000, "WRITE")
        remote.reset()
        assert remote.ask("DBSIZE") == 0
        assert remote.clock.now_ms > 1_000_000
        assert remote.faults.list() == []
        assert remote.ask("SET", "k", "v") == "OK"


def test_a_password_of_the_url_is_used_on_each_connection(installation: Installation) -> None:
    command = [str(installation.command)]
    with PenstockServer(command=command) as server:
        server.ask("ACL", "SETUSER", "ann", "on", ">s@same", "~*", "+@all")
        server.ask("CONFIG", "SET", "requirepass", "sesame")
        place = f"{server.host}:{server.port}"
        with RemoteServer(f"redis://ann:s%40same@{place}") as remote:
            assert remote.ask("ACL", "WHOAMI") == "ann"
            remote.close()
            assert remote.ask("ACL", "WHOAMI") == "ann"
        with RemoteServer(f"redis://:sesame@{place}") as remote:
            assert remote.ask("ACL", "WHOAMI") == "default"
        with RemoteServer(f"redis://:wrong@{place}") as remote:
            for _ in range(2):
                with pytest.raises(PenstockError, match=r"^AUTH: WRONGPASS ") as caught:
                    remote.ask("PING")
                assert "wrong" not in str(caught.value)


def test_a_server_that_is_not_there_is_named() -> None:
    port = free_port()
    remote = RemoteServer(f"redis://127.0.0.1:{port}")
    with pytest.raises(PenstockError, match=rf"^the server at 127\.0\.0\.1:{port} does not answer"):
        remote.ask("PING")
    with pytest.raises(PenstockError, match=r"^the server at \[::1\]:1 does not answer: "):
        RemoteServer("redis://[::1]:1").ask("PING")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://host:port", "the URL has no valid port; allowed: redis://"),
        ("http://host", "the URL is not one of a server; allowed: redis://"),
        ("redis://", "the URL is not one of a server; allowed: redis://"),
        ("redis://host/3", "the URL has more than user, host and port; allowed: redis://"),
        ("redis://host?db=3", "the URL has more than user, host and port; allowed: redis://"),
    ],
)
def test_a_url_of_something_else_is_refused(url: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}"):
        RemoteServer(url)


def test_tls_trusts_the_authorities_of_the_system(
    installation: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Certificates(tmp_path)
    port = free_port()
    options = ["--port", str(free_port()), "--tls-port", str(port), "--tls-auth-clients", "no"]
    options += ["--tls-cert-file", files.certificate, "--tls-key-file", files.key]
    with PenstockServer(*options, command=[str(installation.command)]):
        with (
            RemoteServer(f"rediss://localhost:{port}") as remote,
            pytest.raises(PenstockError, match=r"does not answer: .*certificate verify failed"),
        ):
            remote.ask("PING")
        monkeypatch.setenv("SSL_CERT_FILE", files.authority)
        with RemoteServer(f"rediss://localhost:{port}") as remote:
            assert remote.ask("PING") == "PONG"
