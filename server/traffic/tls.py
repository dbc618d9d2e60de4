"""TLS on the sockets of clients, with Python's :mod:`ssl`.

asyncio takes a TLS context once, when it begins to listen. What listens here is given a
:class:`CurrentContext` instead, which passes each new connection to the context that the settings
describe at that moment: certificates are replaced while the server runs, and connections that
exist keep what they have. When a certificate expires is read from its DER form (RFC 5280, section
4.1).
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from weakref import WeakSet

from server.config.registry import BadSetting, Config
from server.runtime.log import Log

BEGIN: Final = "-----BEGIN CERTIFICATE-----"
END: Final = "-----END CERTIFICATE-----"

_SEQUENCE: Final = 0x30
_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18


def expiry(pem: str) -> int:
    """The Unix time in seconds up to which the first certificate in ``pem`` is valid.

    Raises :class:`ValueError` if there is none, or if it is no certificate."""
    start = pem.find(BEGIN)
    stop = pem.find(END, start)
    if start < 0 or stop < 0:
        raise ValueError("no certificate in PEM form")
    try:
        return _not_after(ssl.PEM_cert_to_DER_cert(pem[start : stop + len(END)]))
    except IndexError:
        raise ValueError("the certificate is cut short") from None


def _not_after(der: bytes) -> int:
    """The end of the validity, which is the fourth field behind the optional version."""
    _, start, _ = _element(der, 0, _SEQUENCE)
    _, at, _ = _element(der, start, _SEQUENCE)
    kind, _, stop = _element(der, at)
    if kind == _VERSION:
        at = stop
    for _ in ("serial number", "signature", "issuer"):
        at = _element(der, at)[2]
    _, not_before, _ = _element(der, at, _SEQUENCE)
    kind, start, stop = _element(der, _element(der, not_before)[2])
    return _time(kind, der[start:stop].decode("ascii"))


def _element(der: bytes, at: int, wanted: int | None = None) -> tuple[int, int, int]:
    """The type of the element at ``at``, and where its contents begin and end."""
    kind, length = der[at], der[at + 1]
    if wanted is not None and kind != wanted:
        raise ValueError("this is no certificate")
    start = at + 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[at + 2 : start], "big")
    return kind, start, start + length


def _time(kind: int, text: str) -> int:
    """A point in time; years have two digits up to 2049, and four later."""
    if kind == _UTC_TIME:
        century = "19" if text[:2] >= "50" else "20"
        text = century + text
    elif kind != _GENERALIZED_TIME:
        raise ValueError("this is no certificate")
    from datetime import UTC, datetime  # It takes its time, and only servers with TLS need it.

    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp())


FILES: Final = (
    "tls-cert-file",
    "tls-key-file",
    "tls-key-file-pass",
    "tls-ca-cert-file",
    "tls-ca-cert-dir",
    "tls-dh-params-file",
)
OPTIONS: Final = (
    "tls-auth-clients",
    "tls-protocols",
    "tls-ciphers",
    "tls-prefer-server-ciphers",
    "tls-session-caching",
)

CLIENT_CERTIFICATES: Final = {
    "yes": ssl.CERT_REQUIRED,
    "optional": ssl.CERT_OPTIONAL,
    "no": ssl.CERT_NONE,
}
"""What each value of tls-auth-clients asks of clients."""

VERSIONS: Final = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}

SERVED: Final = ("TLSv1.2", "TLSv1.3")
"""The versions that are spoken; older ones are broken (RFC 8996)."""

NO_CERTIFICATE: Final = "No tls-cert-file configured!"
NO_AUTHORITY: Final = (
    "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-cluster,"
    " tls-replication or tls-auth-clients are enabled!"
)
BAD_VERSIONS: Final = (
    "Invalid tls-protocols specified. Use 'TLSv1.2', 'TLSv1.3', or both with a blank between them."
)
SEE_LOG: Final = "Unable to update TLS configuration. Check server logs."
"""What a client is told; the reason, which names paths of the host, is in the log."""


class TlsError(Exception):
    """TLS cannot be served with the settings; the text says which, and why."""


def make_context(config: Config) -> _Context:
    """A context of what the settings say; raises :class:`TlsError`."""
    if not config.tls_cert_file:
        raise TlsError(NO_CERTIFICATE)
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    _set_versions(context, str(config.tls_protocols).split())
    _load_certificate(context, config)
    _load_authorities(context, config)
    if config.tls_ciphers:
        _load(f"set tls-ciphers '{config.tls_ciphers}'", context.set_ciphers, config.tls_ciphers)
    if config.tls_dh_params_file:
        path = config.tls_dh_params_file
        _load(f"load DH parameters: {path}", context.load_dh_params, path)
    if config.tls_prefer_server_ciphers:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    if not config.tls_session_caching:
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


def _set_versions(context: ssl.SSLContext, names: list[str]) -> None:
    """Restricts what versions are spoken; both of :data:`SERVED` if none is named."""
    known = {name.lower(): name for name in SERVED}
    if not all(name.lower() in known for name in names):
        raise TlsError(BAD_VERSIONS)
    wanted = sorted({known[name.lower()] for name in names} or SERVED)
    context.minimum_version = VERSIONS[wanted[0]]
    context.maximum_version = VERSIONS[wanted[-1]]


def _load_certificate(context: ssl.SSLContext, config: Config) -> None:
    """Loads the certificate and its key, which may stand in one file."""
    certificate, key = config.tls_cert_file, config.tls_key_file or config.tls_cert_file
    _look(f"load certificate: {certificate}", certificate)
    _look(f"load private key: {key}", key)
    # Without a password OpenSSL would ask for one at the terminal.
    password = config.tls_key_file_pass
    what = f"load certificate {certificate} with private key {key}"
    _load(what, context.load_cert_chain, certificate, key, password)


def _load_authorities(context: ssl.SSLContext, config: Config) -> None:
    """Loads what certificates of clients are checked against, if they are asked for one."""
    wanted = CLIENT_CERTIFICATES[config.tls_auth_clients]
    if wanted == ssl.CERT_NONE:
        return
    file, folder = config.tls_ca_cert_file or None, config.tls_ca_cert_dir or None
    if file is None and folder is None:
        raise TlsError(NO_AUTHORITY)
    for path in (file, folder):
        if path is not None and not os.path.exists(path):
            raise TlsError(f"Failed to load CA certificates: {path}: {os.strerror(errno.ENOENT)}")
    paths = ", ".join(path for path in (file, folder) if path is not None)
    _load(f"load CA certificates: {paths}", context.load_verify_locations, file, folder)
    context.verify_mode = wanted


def _expiry(path: str) -> int | None:
    """When the certificate in the file expires; ``None`` if it does not say so."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return expiry(file.read())
    except (OSError, ValueError):
        return None


def _look(what: str, path: str) -> None:
    """Raises :class:`TlsError` if the file cannot be read; OpenSSL would not say which it was."""
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise TlsError(f"Failed to {what}: {error.strerror}") from None


def _load(what: str, load: Callable[..., object], *arguments: object) -> None:
    """Calls a method of a context; raises :class:`TlsError` with what failed, and why."""
    try:
        load(*arguments)
    except (OSError, ValueError) as error:  # An SSLError is an OSError.
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise TlsError(f"Failed to {what}: {reason}") from None


class Handshake(ssl.SSLObject):
    """One connection's TLS: why a handshake has failed is in the log, and told to the client.

    asyncio closes the connection when a handshake fails, before it has sent the alert that says
    why. So it is not told at once: it sends the alert as it sends all that a handshake says, and
    waits. It learns of the failure when the client says something else, and closes the connection;
    mostly the client has done so before.
    """

    _outgoing: ssl.MemoryBIO
    _failure: ssl.SSLError | None = None

    def answers_in(self, outgoing: ssl.MemoryBIO) -> None:
        """Says where bytes for the client are put, before the first of them is."""
        self._outgoing = outgoing

    def do_handshake(self) -> None:
        """Goes on with the handshake; asyncio closes the connection if this raises anything but
        :class:`ssl.SSLWantReadError`."""
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            cast(_Context, self.context).failed(error)
            if not self._outgoing.pending:  # There is no alert to what is no TLS at all.
                raise
            self._failure = error
            raise ssl.SSLWantReadError from None


class _Context(ssl.SSLContext):
    """A context whose connections report failed handshakes to ``failed``."""

    sslobject_class = Handshake
    failed: Callable[[ssl.SSLError], None]


class CurrentContext(ssl.SSLContext):
    """What an event loop is given as its context: each connection gets the one in use then.

    asyncio and uvloop take nothing of it but :meth:`wrap_bio`.
    """

    current: ssl.SSLContext
    connections: WeakSet[ssl.SSLObject]

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *others: Any, **named: Any
    ) -> ssl.SSLObject:
        """The TLS of a new connection."""
        handshake = cast(Handshake, self.current.wrap_bio(incoming, outgoing, *others, **named))
        handshake.answers_in(outgoing)
        self.connections.add(handshake)
        return handshake


def common_name(certificate: Mapping[str, Any] | None) -> bytes | None:
    """The common name in the subject of a verified certificate, as :mod:`ssl` describes it;
    ``None`` without one. It is whole, also behind a NUL."""
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for kind, value in part if kind == "commonName"]
    return names[0].encode() if names else None


class Tls:
    """The TLS of a server: the context that its settings describe, made anew when they change."""

    def __init__(self, config: Config, log: Log) -> None:
        self._config = config
        self._log = log
        self.context: CurrentContext | None = None
        """There is one as soon as one is wanted: it takes OpenSSL half a millisecond."""
        self.connections: WeakSet[ssl.SSLObject] = WeakSet()
        """Every connection whose memory is not free yet, handshakes that go on included."""
        self.expires: int | None = None
        """The Unix time in seconds at which the certificate in use expires."""
        self._refused = False
        """Whether settings have been refused, and the former ones come back next."""
        config.listen_to_all((*FILES, *OPTIONS), self._change)

    @property
    def wanted(self) -> bool:
        """Whether TLS is to be served."""
        return bool(self._config.tls_port)

    def load(self) -> None:
        """Makes the context of the present settings; raises :class:`TlsError`."""
        context = make_context(self._config)
        context.failed = self._handshake_failed
        if self.context is None:
            self.context = CurrentContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.connections = self.connections
        self.context.current = context
        self.expires = _expiry(self._config.tls_cert_file)

    def _change(self) -> None:
        """Takes new settings, and files that may be others now. What fails changes nothing: the
        context of the former settings is still in use when these come back."""
        if self._refused or not self.wanted:
            self._refused = False
            return
        try:
            self.load()
        except TlsError as error:
            self._refused = True
            self._log.warning(str(error))
            self._log.warning(
                "Failed applying new configuration. Possibly related to new TLS settings."
                " Restoring previous settings."
            )
            raise BadSetting(SEE_LOG) from None

    def _handshake_failed(self, error: ssl.SSLError) -> None:
        self._log.warning(f"Error accepting a client connection: {error.reason or error}")
