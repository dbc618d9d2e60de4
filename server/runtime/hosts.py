"""Addresses of hosts, as sockets name them, and names of hosts, as requests of HTTP do."""

from __future__ import annotations

import re
import socket
from collections.abc import Collection
from typing import Final

_LOOPBACK_6: Final = bytes(15) + b"\1"
_MAPPED: Final = bytes(10) + b"\xff\xff"
"""What an IPv6 address begins with that stands for one of IPv4."""

_HOST: Final = re.compile(r"(\[[\w.:%-]+\]|[\w.-]+)(?::[0-9]*)?", re.ASCII)
"""The header ``Host``: an address or a name, perhaps with a port."""


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


def is_own_host(host: str, names: Collection[str]) -> bool:
    """Whether the header ``Host`` of a request tells of a name that no stranger can have made to
    lead here: an address, a name without a dot, or one of ``names``, where ``*`` is any."""
    if "*" in names:
        return True
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    name = found[1].lower()
    is_address = name.startswith("[") or name.replace(".", "").isdigit()
    return is_address or "." not in name or name in names
