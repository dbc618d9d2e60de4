"""TLS: who gets in, what the settings may be, and certificates that are replaced."""

from __future__ import annotations

import contextlib
import io
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import redis

from server import cron
from server.config.registry import BadSetting, Config
from server.net import listener
from server.net.listener import ListenError
from server.runtime.log import Log
from server.traffic.tls import Tls, TlsError, common_name, make_context
from tests.support.certificates import EXPIRES, Certificates
from tests.support.ports import free_port
from tests.support.process import PenstockProcess, run_penstock
from tests.support.servers import ONCE, PenstockThread
from tests.support.wire import wait_until

PING: Final = b"*1\r\n$4\r\nPING\r\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def tls_settings(certificates: Certificates, **others: Any) -> dict[str, Any]:
    return certificates.settings(**{"port": free_port(), "tls_port": free_port(), **others})


class Secure:
    """A server with TLS, and clients of it."""

    def __init__(self, certificates: Certificates, **settings: Any) -> None:
        self.certificates = certificates
        self.settings = tls_settings(certificates, **settings)
        self.thread = PenstockThread(**self.settings)
        self.port = self.settings["tls_port"]

    def __enter__(self) -> Secure:
        self.thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self.thread.stop()

    def client(self, name: str | None = "alice", **options: Any) -> redis.Redis:
        """A client of redis-py, with a certificate of that name if there is one."""
        certificate, key = (None, None) if name is None else self.certificates.client(name)
        return redis.Redis(
            port=self.port,
            ssl=True,
            ssl_ca_certs=self.certificates.authority,
            ssl_certfile=certificate,
            ssl_keyfile=key,
            decode_responses=True,
            retry=ONCE,
            **options,
        )

    def plain(self) -> redis.Redis:
        """A client without TLS."""
        return redis.Redis(port=self.thread.port, decode_responses=True)

    def context(self) -> ssl.SSLContext:
        """That of a client with a certificate."""
        context = ssl.create_default_context(cafile=self.certificates.authority)
        context.load_cert_chain(*self.certificates.client("alice"))
        return context

    def certificate_seen(self) -> bytes | None:
        """The certificate that a new connection is shown."""
        with (
            socket.create_connection(("127.0.0.1", self.port)) as sock,
            self.context().wrap_socket(sock, server_hostname="localhost") as secure,
        ):
            return secure.getpeercert(binary_form=True)


@pytest.fixture
def secure(certificates: Certificates) -> Iterator[Secure]:
    with Secure(certificates) as server:
        yield server


def test_a_client_with_a_certificate_is_served(secure: Secure) -> None:
    with secure.client(protocol=3) as client, secure.plain() as plain:
        assert client.xadd("s", {"f": "v" * 100_000}, "1-1") == "1-1"
        assert plain.xrange("s") == client.xrange("s") == [("1-1", {"f": "v" * 100_000})]


def test_pipelines_and_blocking_reads_work_over_tls(secure: Secure) -> None:
    with secure.client() as client, secure.client() as other:
        pipe = client.pipeline(transaction=False)
        for number in range(1000):
            pipe.xadd("s", {"n": number}, f"1-{number + 1}")
        assert pipe.execute() == [f"1-{number + 1}" for number in range(1000)]
        subscriber = other.pubsub()
        subscriber.subscribe("c")
        assert subscriber.get_message(timeout=5)["type"] == "subscribe"
        assert client.publish("c", "hello") == 1
        assert subscriber.get_message(timeout=5)["data"] == "hello"
        subscriber.close()


def test_memory_of_handshakes_that_clients_give_up_is_given_back(
    secure: Secure, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    monkeypatch.setattr(cron, "give_memory_back", lambda: given.append(1))
    monkeypatch.setattr(cron, "MANY_ENDED", 20)
    server, half = secure.thread.server, hello(secure.context())[:100]
    handshakes = server.services.traffic.tls.connections
    for wave in (1, 2):
        socks = [socket.create_connection(("127.0.0.1", secure.port)) for _ in range(30)]
        for sock in socks[::2]:
            sock.sendall(half)
        wait_until(lambda: len(handshakes) == 30)
        secure.thread.call(server.cron)
        for sock in socks:
            sock.close()
        wait_until(lambda: not handshakes)
        secure.thread.call(server.cron)
        assert len(given) == wave


def hello(context: ssl.SSLContext) -> bytes:
    """What a client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_a_client_without_a_certificate_is_turned_away(secure: Secure) -> None:
    with secure.client(None) as client, pytest.raises(redis.ConnectionError):
        client.ping()
    with secure.client() as client:
        assert client.ping()


@pytest.mark.parametrize("wanted", ["no", "optional"])
def test_certificates_of_clients_may_be_left_out(certificates: Certificates, wanted: str) -> None:
    with Secure(certificates, tls_auth_clients=wanted) as server:
        for name in (None, "alice"):
            with server.client(name) as client:
                assert client.ping()


def test_a_certificate_of_another_authority_does_not_get_in(
    certificates: Certificates, tmp_path: Path
) -> None:
    certificate, key = Certificates(tmp_path).client("alice")
    for wanted in ("yes", "optional"):
        with Secure(certificates, tls_auth_clients=wanted) as server:
            options: dict[str, Any] = {"port": server.port, "ssl": True, "retry": ONCE}
            options["ssl_ca_certs"] = certificates.authority
            client = redis.Redis(**options, ssl_certfile=certificate, ssl_keyfile=key)
            with client, pytest.raises(redis.ConnectionError):
                client.ping()


@pytest.mark.parametrize(
    ("who", "alert"),
    [
        ("nobody", "TLSV13_ALERT_CERTIFICATE_REQUIRED"),
        ("stranger", "TLSV1_ALERT_UNKNOWN_CA"),
        ("former", "SSLV3_ALERT_CERTIFICATE_EXPIRED"),
    ],
)
def test_a_client_is_told_by_an_alert_why_its_certificate_is_refused(
    certificates: Certificates, secure: Secure, tmp_path: Path, who: str, alert: str
) -> None:
    context = ssl.create_default_context(cafile=certificates.authority)
    if who == "stranger":
        context.load_cert_chain(*Certificates(tmp_path).client("alice"))
    elif who == "former":
        context.load_cert_chain(*certificates.expired_client("former"))
    with (
        socket.create_connection(("127.0.0.1", secure.port)) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as client,
    ):
        with pytest.raises(ssl.SSLError) as raised:  # noqa: PT012
            client.sendall(PING)
            client.recv(100)
        assert raised.value.reason == alert


def test_a_client_that_goes_on_after_the_alert_is_disconnected(
    certificates: Certificates, secure: Secure
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=certificates.authority)
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", secure.port)) as sock:
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()
                break
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(65536))
        sock.sendall(outgoing.read())
        alert = sock.recv(65536)
        assert alert
        client.write(PING)
        sock.sendall(outgoing.read())
        sock.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while alert := sock.recv(65536):
                pass


def test_a_client_that_is_silent_after_the_alert_is_disconnected(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_TIMEOUT_S", 1.0)
    context = ssl.create_default_context(cafile=certificates.authority)
    with (
        Secure(certificates) as secure,
        socket.create_connection(("127.0.0.1", secure.port), timeout=20) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as client,
    ):
        with pytest.raises(ssl.SSLError):
            client.recv(100)
        with socket.socket(fileno=client.detach()) as raw:
            raw.settimeout(20)
            with contextlib.suppress(ConnectionResetError):
                assert raw.recv(100) == b""


def test_plain_text_on_the_port_of_tls_is_closed_without_a_word(secure: Secure) -> None:
    with socket.create_connection(("127.0.0.1", secure.port)) as sock:
        sock.sendall(PING)
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(100) == b""
    with secure.client() as client:
        assert client.ping()


def test_only_versions_that_the_setting_names_are_spoken(certificates: Certificates) -> None:
    spoken = {}
    for names in ("TLSv1.2", "tlsv1.3", "TLSv1.3 TLSv1.2", ""):
        with (
            Secure(certificates, tls_protocols=names) as server,
            socket.create_connection(("127.0.0.1", server.port)) as sock,
            server.context().wrap_socket(sock, server_hostname="localhost") as connection,
        ):
            spoken[names] = connection.version()
    assert spoken == {
        "TLSv1.2": "TLSv1.2",
        "tlsv1.3": "TLSv1.3",
        "TLSv1.3 TLSv1.2": "TLSv1.3",
        "": "TLSv1.3",
    }


def test_the_ciphers_of_the_setting_are_used(certificates: Certificates) -> None:
    cipher = "ECDHE-ECDSA-AES256-GCM-SHA384"
    with (
        Secure(certificates, tls_protocols="TLSv1.2", tls_ciphers=cipher) as server,
        socket.create_connection(("127.0.0.1", server.port)) as sock,
        server.context().wrap_socket(sock, server_hostname="localhost") as connection,
    ):
        used = connection.cipher()
    assert used is not None
    assert used[0] == cipher


def test_a_certificate_that_is_replaced_is_read_when_it_is_set_again(
    certificates: Certificates, tmp_path: Path
) -> None:
    path, key = tmp_path / "server.crt", tmp_path / "server.key"
    first, second = certificates.server("first"), certificates.server("second")
    shutil.copy(first[0], path)
    shutil.copy(first[1], key)
    with (
        Secure(certificates, tls_cert_file=str(path), tls_key_file=str(key)) as server,
        server.client(single_connection_client=True) as client,
    ):
        before = server.certificate_seen()
        shutil.copy(second[0], path)
        shutil.copy(second[1], key)
        assert server.certificate_seen() == before
        assert client.config_set("tls-cert-file", str(path))
        assert server.certificate_seen() == der(second[0]) != before
        assert client.config_set("tls-cert-file", first[0], "tls-key-file", first[1])
        assert server.certificate_seen() == before
        assert client.ping(), "connections go on"


def der(path: str) -> bytes:
    """The first certificate of a file."""
    return ssl.PEM_cert_to_DER_cert(Path(path).read_text())


def test_settings_that_do_not_work_change_nothing(secure: Secure, tmp_path: Path) -> None:
    refusal = (
        "CONFIG SET failed (possibly related to argument '{}') - "
        "Unable to update TLS configuration. Check server logs."
    )
    before = secure.certificate_seen()
    other = secure.certificates.client("other")
    with secure.client() as client:
        for name, value in {
            "tls-cert-file": str(tmp_path / "missing"),
            "tls-key-file": other[1],
            "tls-ca-cert-file": "",
            "tls-protocols": "SSLv3",
            "tls-ciphers": "none-of-these",
            "tls-dh-params-file": str(tmp_path / "missing"),
        }.items():
            kept = client.config_get(name)
            with pytest.raises(redis.ResponseError) as raised:
                client.config_set(name, value)
            assert str(raised.value) == refusal.format(name)
            assert client.config_get(name) == kept
        with pytest.raises(redis.ResponseError, match="one of the following: no, yes, optional"):
            client.config_set("tls-auth-clients", "maybe")
    assert secure.certificate_seen() == before


def test_a_refused_setting_does_not_read_the_files_in_use_again(
    certificates: Certificates, tmp_path: Path
) -> None:
    path, key = tmp_path / "server.crt", tmp_path / "server.key"
    shutil.copy(certificates.certificate, path)
    shutil.copy(certificates.key, key)
    with (
        Secure(certificates, tls_cert_file=str(path), tls_key_file=str(key)) as server,
        server.client() as client,
    ):
        before = server.certificate_seen()
        for changed in (*certificates.server("other"), None):
            if changed is None:
                path.write_text("this is no certificate")
            else:
                shutil.copy(changed, path if changed.endswith(".crt") else key)
            with pytest.raises(redis.ResponseError) as raised:
                client.config_set("tls-protocols", "SSLv3")
            assert "argument 'tls-protocols'" in str(raised.value)
            assert client.config_get("tls-protocols") == {"tls-protocols": ""}
            assert server.certificate_seen() == before
        shutil.copy(certificates.certificate, path)
        shutil.copy(certificates.key, key)
        assert client.config_set("tls-protocols", "TLSv1.2")


def test_info_and_config_say_where_tls_is_served(secure: Secure) -> None:
    with secure.client() as client:
        info = client.info("server")
        assert info["listener1"] == {"name": "tls", "bind": "127.0.0.1", "port": secure.port}
        assert info["tcp_port"] == secure.thread.port
        assert info["tls_server_cert_expire_time"] == int(EXPIRES.timestamp())
        assert info["tls_server_cert_expires_in_days"] > 0
        assert client.config_get("tls-port") == {"tls-port": str(secure.port)}
        assert client.config_get("tls-key-file-pass") == {"tls-key-file-pass": ""}


def test_a_server_may_speak_tls_alone(certificates: Certificates) -> None:
    settings = tls_settings(certificates, port=0)
    words = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    arguments = [part for word in words for part in word.split("=", 1)]
    with PenstockProcess(*arguments) as process:
        assert process.address == ("127.0.0.1", settings["tls_port"])
        assert process.lines[-1].count("127.0.0.1:") == 1
        port = settings["tls_port"]
        certificate, key = certificates.client("alice")
        client = redis.Redis(
            port=port,
            ssl=True,
            ssl_ca_certs=certificates.authority,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        with client:
            assert client.info("server")["tcp_port"] == port
    assert "Traceback" not in process.errors


# --- users --------------------------------------------------------------------------------------


def test_a_certificate_says_who_its_client_is(certificates: Certificates) -> None:
    with Secure(certificates, tls_auth_clients_user="cn") as server, server.plain() as admin:
        assert admin.config_get("tls-auth-clients-user") == {"tls-auth-clients-user": "CN"}
        rules = {"enabled": True, "commands": ["+@read", "+acl|whoami"], "keys": ["s*"]}
        admin.acl_setuser("alice", passwords=["+nobody-knows"], **rules)
        admin.acl_setuser("bob", passwords=["+secret"], **{**rules, "enabled": False})
        admin.xadd("s", {"f": "v"}, "1-1")
        with server.client("alice") as alice:
            assert alice.acl_whoami() == "alice"
            assert alice.xrange("s") == [("1-1", {"f": "v"})]
            with pytest.raises(redis.exceptions.NoPermissionError):
                alice.xadd("s", {"f": "v"})
        for name in ("bob", "carol"):
            with server.client(name) as client:
                assert client.acl_whoami() == "default"
        entries = [entry for entry in admin.acl_log() if entry["reason"] == "tls-cert"]
        assert [(entry["reason"], entry["username"]) for entry in entries] == [
            ("tls-cert", "carol"),
            ("tls-cert", "bob"),
        ]
        assert admin.info("stats")["acl_access_denied_tls_cert"] == sum(
            entry["count"] for entry in entries
        )


def test_a_client_without_a_certificate_logs_in_with_a_password(
    certificates: Certificates,
) -> None:
    settings = {"tls_auth_clients": "optional", "tls_auth_clients_user": "CN"}
    with Secure(certificates, requirepass="sesame", **settings) as server:
        with server.client(None) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        with server.client(None, password="sesame") as client:
            assert client.acl_whoami() == "default"


def test_no_certificate_makes_a_client_a_user_unless_that_is_asked_for(secure: Secure) -> None:
    with secure.plain() as admin, secure.client("alice") as alice:
        admin.acl_setuser("alice", enabled=True, nopass=True)
        assert alice.acl_whoami() == "default"
        assert admin.acl_log() == []


def test_a_common_name_is_taken_as_a_whole() -> None:
    subject = ((("organizationName", "x"),), (("commonName", "alice\0.example"),))
    assert common_name({"subject": subject}) == b"alice\0.example"
    assert common_name({"subject": ((("organizationName", "x"),),)}) is None
    assert common_name({}) is None
    assert common_name(None) is None


# --- what cannot be served ----------------------------------------------------------------------


def contexts_error(certificates: Certificates, **settings: Any) -> str:
    with pytest.raises(TlsError) as raised:
        make_context(Config(**certificates.settings(**settings)))
    return str(raised.value)


def test_what_is_missing_or_wrong_is_named(certificates: Certificates, tmp_path: Path) -> None:
    missing, text = str(tmp_path / "missing.pem"), tmp_path / "text.pem"
    text.write_text("this is no certificate")
    _, key = certificates.client("other")
    error = contexts_error
    assert error(certificates, tls_cert_file="") == "No tls-cert-file configured!"
    assert error(certificates, tls_cert_file=missing) == (
        f"Failed to load certificate: {missing}: No such file or directory"
    )
    assert error(certificates, tls_key_file=missing) == (
        f"Failed to load private key: {missing}: No such file or directory"
    )
    assert error(certificates, tls_key_file=key) == (
        f"Failed to load certificate {certificates.certificate} with private key {key}:"
        " KEY_VALUES_MISMATCH"
    )
    assert error(certificates, tls_cert_file=str(text)).startswith(
        f"Failed to load certificate {text} with private key {certificates.key}: "
    )
    assert error(certificates, tls_ca_cert_file="") == (
        "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster,"
        " tls-replication or tls-auth-clients are enabled!"
    )
    assert error(certificates, tls_ca_cert_dir=missing) == (
        f"Failed to load CA certificates: {missing}: No such file or directory"
    )
    assert error(certificates, tls_ca_cert_file=str(text)).startswith(
        f"Failed to load CA certificates: {text}: "
    )
    assert error(certificates, tls_protocols="TLSv1") == (
        "Invalid tls-protocols specified. Use 'TLSv1.2', 'TLSv1.3', or both with a blank between"
        " them."
    )
    assert error(certificates, tls_ciphers="none").startswith("Failed to set tls-ciphers 'none': ")


def test_a_key_with_a_password_needs_it(certificates: Certificates, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(Path(certificates.key).read_bytes(), None)
    secret = tmp_path / "secret.key"
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"sesame"),
        )
    )
    settings = {"tls_key_file": str(secret)}
    make_context(Config(**certificates.settings(tls_key_file_pass="sesame", **settings)))
    for wrong in ("", "open"):
        text = contexts_error(certificates, tls_key_file_pass=wrong, **settings)
        assert text.startswith(f"Failed to load certificate {certificates.certificate} with")


def test_a_folder_of_authorities_will_do(certificates: Certificates, tmp_path: Path) -> None:
    shutil.copy(certificates.authority, tmp_path / "ca.pem")
    context = make_context(
        Config(**certificates.settings(tls_ca_cert_file="", tls_ca_cert_dir=str(tmp_path)))
    )
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_options_of_the_context_follow_the_settings(certificates: Certificates) -> None:
    plain = make_context(Config(**certificates.settings(tls_auth_clients="no")))
    assert plain.verify_mode == ssl.CERT_NONE
    assert plain.num_tickets > 0
    strict = Config(
        **certificates.settings(tls_prefer_server_ciphers="yes", tls_session_caching="no")
    )
    context = make_context(strict)
    assert context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert context.options & ssl.OP_NO_TICKET
    assert context.num_tickets == 0


def test_a_server_does_not_start_without_its_certificate(tmp_path: Path) -> None:
    ended = run_penstock("--port", "0", "--tls-port", str(free_port()), "--dir", str(tmp_path))
    assert ended.returncode == 1
    assert "cannot listen with TLS: No tls-cert-file configured!" in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr


def test_a_port_of_tls_that_is_taken_is_named(certificates: Certificates) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = PenstockThread(**certificates.settings(tls_port=port))
        with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: Address"):
            server.start()


def test_settings_of_tls_are_not_looked_at_where_it_is_not_served() -> None:
    config = Config()
    Tls(config, Log())
    config.set_text("tls-cert-file", "/nowhere")
    assert config.get_text("tls-cert-file") == "/nowhere"


def test_the_log_says_why_settings_and_handshakes_fail(certificates: Certificates) -> None:
    stream = io.StringIO()
    config = Config(**certificates.settings(tls_port=1))
    tls = Tls(config, Log(stream))
    tls.load()
    with pytest.raises(BadSetting):
        config.set_text("tls-cert-file", "/nowhere")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    assert tls.context is not None
    handshake = tls.context.wrap_bio(incoming, outgoing, server_side=True)
    with pytest.raises(ssl.SSLWantReadError):
        handshake.do_handshake()
    incoming.write(PING)
    with pytest.raises(ssl.SSLError):
        handshake.do_handshake()
    lines = [line.split(" # ")[1] for line in stream.getvalue().splitlines()]
    assert lines == [
        "Failed to load certificate: /nowhere: No such file or directory",
        "Failed applying new configuration. Possibly related to new TLS settings."
        " Restoring previous settings.",
        "Error accepting a client connection: WRONG_VERSION_NUMBER",
    ]
