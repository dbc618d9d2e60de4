"""A server that wants certificates of its clients and has a user with few rights, for any client.

The user ``packer`` may use streams and its own connection, with keys that begin with ``orders``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from redis import Redis

from tests.support.certificates import Certificates
from tests.support.ports import free_port
from tests.support.servers import PenstockThread

HOST: Final = "localhost"
USER: Final = "packer"
PASSWORD: Final = "secret"
RIGHTS: Final = (
    *("on", f">{PASSWORD}", "~orders*"),
    *("+@stream", "+@connection", "+info", "+acl|whoami"),
)

WRONG_PASSWORD: Final = "WRONGPASS invalid username-password pair or user is disabled."
NO_RIGHT: Final = "NOPERM User packer has no permissions to run the 'get' command"
NO_KEY: Final = "NOPERM No permissions to access a key"

ALERTS: Final = {
    "none": "certificate required",
    "other": "unknown ca",
    "expired": "certificate expired",
}
"""Why certificates are refused, in OpenSSL's words for the alerts of TLS."""


class Identity(NamedTuple):
    """What a client shows, whom it trusts, and the password that it sends."""

    certificate: str | None
    key: str | None
    authority: str
    password: str = PASSWORD


class Secure(NamedTuple):
    """A server, its port of TLS, and identities of clients by what is wrong with them.

    With ``good`` nothing is. ``none`` has no certificate, that of ``other`` is of another
    authority, and that of ``expired`` has ended; ``password`` sends a wrong one, and ``distrust``
    knows only another authority than the server's.
    """

    penstock: PenstockThread
    port: int
    identities: dict[str, Identity]


@contextmanager
def secure_server(folder: Path) -> Iterator[Secure]:
    """A server for which ``folder`` is filled with certificates."""
    certificates, port = Certificates(folder), free_port()
    (folder / "elsewhere").mkdir()
    elsewhere = Certificates(folder / "elsewhere")
    good = Identity(*certificates.client("ann"), certificates.authority)
    identities = {
        "good": good,
        "none": good._replace(certificate=None, key=None),
        "other": Identity(*elsewhere.client("ann"), certificates.authority),
        "expired": Identity(*certificates.expired_client("old"), certificates.authority),
        "password": good._replace(password="guessed"),
        "distrust": good._replace(authority=elsewhere.authority),
    }
    settings = certificates.settings(port=free_port(), tls_port=port, tls_auth_clients="yes")
    with PenstockThread(**settings) as penstock:
        with Redis(port=penstock.port) as admin:
            admin.execute_command("ACL", "SETUSER", USER, *RIGHTS)
        yield Secure(penstock, port, identities)
