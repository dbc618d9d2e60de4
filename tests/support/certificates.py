"""Certificates of a test: an authority, what it has signed, and where these are as files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import trustme

EXPIRES: Final = datetime(2040, 1, 2, 3, 4, 5, tzinfo=UTC)
"""When certificates of servers end."""

EXPIRED: Final = datetime(2021, 1, 2, 3, 4, 5, tzinfo=UTC)
"""When certificates have ended that are to be refused."""


class Certificates:
    """Files in a folder: those of an authority, of a server, and of clients by their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._authority = trustme.CA()
        self.authority = self._write("ca.pem", self._authority.cert_pem)
        self.certificate, self.key = self.server("server")

    def _write(self, name: str, blob: trustme.Blob) -> str:
        path = self._folder / name
        blob.write_to_path(str(path))
        return str(path)

    def server(self, name: str) -> tuple[str, str]:
        """Paths of a new certificate for this host, and of its key."""
        issued = self._authority.issue_cert("127.0.0.1", "localhost", not_after=EXPIRES)
        return self._pair(name, issued)

    def client(self, name: str) -> tuple[str, str]:
        """Paths of the certificate of a client with this common name, and of its key."""
        issued = self._authority.issue_cert(f"{name}@example.org", common_name=name)
        return self._pair(name, issued)

    def expired_client(self, name: str) -> tuple[str, str]:
        """Paths of such a certificate that has ended long ago."""
        issued = self._authority.issue_cert(
            f"{name}@example.org",
            common_name=name,
            not_before=EXPIRED - timedelta(days=365),
            not_after=EXPIRED,
        )
        return self._pair(name, issued)

    def _pair(self, name: str, issued: trustme.LeafCert) -> tuple[str, str]:
        certificate = self._write(f"{name}.crt", issued.cert_chain_pems[0])
        return certificate, self._write(f"{name}.key", issued.private_key_pem)

    def settings(self, **others: Any) -> dict[str, Any]:
        """The settings of a server with the server's certificate, which wants clients to have one
        of the same authority."""
        return {
            "tls_cert_file": self.certificate,
            "tls_key_file": self.key,
            "tls_ca_cert_file": self.authority,
            **others,
        }
