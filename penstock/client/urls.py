"""URLs of servers, as redis-py has them: what they name, and what they may say of a connection.

No error shows a URL: any part of a malformed one may be half a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.client.errors import AddressError

ALLOWED: Final = (
    "redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path?db=0,"
    " redis+cluster:// or rediss+cluster:// with one or more host:port for a cluster;"
    " characters such as '/' and '@' in a password are written %2F and %40"
)

_SCHEME: Final = re.compile(r"(?P<scheme>rediss?|valkeys?|unix)(?P<cluster>\+cluster)?://")
_HOST_PORT: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\[\]]*)(?::(\d+))?")
_HIGHEST: Final = 65535
"""The highest port, and the highest number of a database."""


def _truth(text: str) -> bool:
    """Whether a text is ``true``, in any case; raises ValueError unless it is that or ``false``."""
    return bool(("false", "true").index(text.lower()))


_REQUIREMENTS: Final = ("none", "optional", "required")


def _requirement(text: str) -> str:
    """Return what is required of a certificate; raises ValueError for another word."""
    return _REQUIREMENTS[_REQUIREMENTS.index(text)]


OPTIONS: Final[dict[str, tuple[Callable[[str], Any], str]]] = {
    **dict.fromkeys(("socket_timeout", "socket_connect_timeout"), (float, "a number of seconds")),
    "health_check_interval": (int, "a number of seconds"),
    "ssl_cert_reqs": (_requirement, ", ".join(_REQUIREMENTS)),
    **dict.fromkeys(
        ("ssl", "ssl_check_hostname", "socket_keepalive"),
        (_truth, "true, false"),
    ),
    **dict.fromkeys(
        (
            *("username", "password", "client_name", "ssl_keyfile", "ssl_certfile"),
            *("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_password"),
            "ssl_ciphers",
        ),
        (str, "a text"),
    ),
}
"""The arguments of redis-py's client that may follow ``?``: how the text is read, and what is
allowed, in words."""


Place = tuple[str, int]
"""Host and port."""


@dataclass(frozen=True)
class Address:
    """A server, or a cluster with the nodes to ask first, as a URL names it."""

    nodes: tuple[Place, ...]
    db: int | None = None
    """The database that the URL names."""
    tls: bool = False
    cluster: bool = False
    path: str | None = None
    """Where the server's Unix socket is; there are no ``nodes`` then."""
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    options: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """Arguments of redis-py's client, from :data:`OPTIONS`."""

    @property
    def place(self) -> str:
        """Host and port, the path of a socket, or the nodes of a cluster, to show."""
        if self.path is not None:
            return self.path
        nodes = [
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.nodes
        ]
        return f"cluster {','.join(nodes)}" if self.cluster else nodes[0]


def parse(text: str) -> Address:
    """Return the address that a URL such as ``redis://user:password@host:6379/0`` stands for.

    Raises :class:`AddressError`.
    """
    found = _SCHEME.match(text)
    if found is None:
        raise _bad("not of the right form")
    try:
        address, options = _from_parts(text, found["scheme"], found["cluster"] is not None)
    except ValueError:  # Those of the standard library may quote the password.
        raise _bad("one with a bad port, database or host") from None
    if len(address.nodes) > 1 and not address.cluster:
        raise _bad("one of several servers")
    return replace(address, options=tuple(map(_option, options)))


def _from_parts(text: str, scheme: str, cluster: bool) -> tuple[Address, list[tuple[str, str]]]:
    parts = urlsplit(text)
    user, _, hosts = parts.netloc.rpartition("@")
    username, _, password = user.partition(":")
    query = dict(parse_qsl(parts.query))
    local = scheme == "unix"
    database = query.pop("db", "") or ("" if local else parts.path.strip("/"))
    if not (unquote(parts.path) if local else parts.hostname):
        raise _bad("one without a host or path")
    if cluster and database not in ("", "0"):
        raise ValueError("a cluster has database 0 only")
    address = Address(
        nodes=() if local else tuple(_node(host) for host in hosts.split(",")),
        db=_number(database) if database else None,
        tls=scheme in ("rediss", "valkeys"),
        cluster=cluster,
        path=unquote(parts.path) if local else None,
        username=unquote(username) or None,
        password=unquote(password) or None,
    )
    return address, list(query.items())


def _node(text: str) -> Place:
    found = _HOST_PORT.fullmatch(text.strip())
    if found is None:
        raise ValueError("not host:port")
    host, port = found.groups()
    host.encode("idna")  # or else connecting raises what nobody expects
    return host.strip("[]") or "127.0.0.1", 6379 if port is None else _number(port)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > _HIGHEST:
        raise ValueError("not a port or database")
    return int(text)


def _option(given: tuple[str, str]) -> tuple[str, Any]:
    name, value = given
    if name not in OPTIONS:
        raise _bad_option(name, "not an option", ", ".join(sorted(OPTIONS)))
    read, allowed = OPTIONS[name]
    try:
        return name, read(value)
    except ValueError:
        raise _bad_option(name, value, allowed) from None


def _bad(what: str) -> AddressError:
    return AddressError(f"the URL is {what}; allowed: {ALLOWED}")


def _bad_option(name: str, value: str, allowed: str) -> AddressError:
    return AddressError(f"option 'url?{name}' is '{value}'; allowed: {allowed}")
