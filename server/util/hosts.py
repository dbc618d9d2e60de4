"""Addresses of hosts, as sockets name them."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address


def is_loopback(host: str) -> bool:
    """Whether an address is one at which a host reaches itself; raises :class:`ValueError` for
    what is no address. The zone of an address (``fe80::1%eth0``) does not matter."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
