"""When an X.509 certificate expires, read from its DER form (RFC 5280, section 4.1)."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime
from typing import Final

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
    moment = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return int(moment.timestamp())
