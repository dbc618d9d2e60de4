"""URLs of servers, checked before connecting."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qs, urlsplit

from redis.connection import parse_url

from penstock.migration.errors import BadAddress

SCHEMES: Final = ("redis", "rediss", "unix")

OPTIONS: Final = frozenset(
    {
        "socket_timeout",
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_keyfile",
    }
)
"""What may follow a URL's ``?``: redis-py takes these as they are."""

_CREDENTIALS = re.compile(r"(?<=://).*@", re.DOTALL)


_HINT: Final = "signs such as '/' and '@' in a password are written %2F and %40"


class Address(NamedTuple):
    """A server as :func:`parse` found it in a URL."""

    url: str
    """The URL without a database, for redis-py; it may hold a password, so it is never shown."""
    place: str
    """Host and port, or the path of a socket, to show."""
    db: int | None
    """The database that the URL names."""


def redact(text: str) -> str:
    """The text without what stands before the ``@`` of URLs."""
    return _CREDENTIALS.sub("***@", text)


def parse(url: str) -> Address:
    """The address that a URL such as ``redis://user:password@host:6379/0`` stands for.

    Raises :class:`BadAddress`.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        # The URL is not shown: whatever is in the place of the port may be half a password.
        raise BadAddress(f"no host and port can be found in the URL; {_HINT}") from error
    if parts.scheme not in SCHEMES:
        raise _bad(url, "expected redis://, rediss:// or unix:// and an address")
    options = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme == "unix":
        return _socket(url, parts, options)
    _check_options(url, options)
    if not parts.hostname:
        raise _bad(url, "it names no host")
    try:
        parts.hostname.encode("idna")
    except UnicodeError:
        raise _bad(url, f"'{parts.hostname}' is no name of a host") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    db = parts.path.strip("/")
    bare = f"{parts.scheme}://{parts.netloc}?{parts.query}"
    _check_values(url, bare)
    return Address(bare, f"{host}:{port or 6379}", _db(url, db) if db else None)


def _socket(url: str, parts: SplitResult, options: dict[str, list[str]]) -> Address:
    db = options.pop("db", None)
    if options:
        raise _bad(url, f"unknown option '{min(options)}'; there is db")
    if not parts.path.strip("/"):
        raise _bad(url, "it names no socket")
    bare = f"unix://{parts.netloc}{parts.path}"
    return Address(bare, parts.path, _db(url, db[0]) if db else None)


def _check_options(url: str, options: dict[str, list[str]]) -> None:
    for name in options:
        if name not in OPTIONS:
            known = ", ".join(sorted(OPTIONS))
            raise _bad(url, f"unknown option '{name}'; there are {known}")


def _check_values(url: str, bare: str) -> None:
    """Lets redis-py read the URL, which knows what type each option has."""
    try:
        parse_url(bare)
    except ValueError as error:
        raise _bad(url, f"{error}") from error


def _db(url: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _bad(url, "what follows the last '/' is not the number of a database")
    return int(text)


def _bad(url: str, reason: str) -> BadAddress:
    return BadAddress(f"{redact(url)}: {reason}")
