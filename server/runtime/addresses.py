"""Addresses of hosts and of sockets."""

from __future__ import annotations

import socket
from typing import Final

_LOOPBACK_6: Final = bytes(15) + b"\1"
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""What an IPv6 address begins with that stands for one of IPv4."""


def is_loopback(host: str) -> bool:
    """Whether an address is one at which a host reaches itself; raises :class:`ValueError` for
    what is no address. The zone of an address (``fe80::1%eth0``) does not matter."""
    address = host.partition("%")[0]
    try:
        packed = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
    except OSError:
        raise ValueError(f"{host!r} does not appear to be an IPv4 or IPv6 address") from None
    packed = packed.removeprefix(_MAPPED)
    return packed == _LOOPBACK_6 or (len(packed) == 4 and packed[0] == 127)


def address_text(peer: object, own: object) -> str:
    """Return ``host:port``, ``[host]:port`` for IPv6, or the path of a Unix socket, which only the
    own end may have."""
    if isinstance(peer, tuple):
        host, port = peer[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    path = peer or own
    return f"{path.decode() if isinstance(path, bytes) else path}:0"
