"""Which addresses are those of the host itself."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis.strategies import ip_addresses

from server.runtime.addresses import is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "::1%lo"])
def test_a_host_reaches_itself_there(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["192.0.2.7", "10.0.0.1", "fe80::1%eth0", "::ffff:192.0.2.7"])
def test_a_host_does_not_reach_itself_there(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("text", ["", "localhost", "/tmp/socket"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be an IPv4 or IPv6"):
        is_loopback(text)


@given(ip_addresses())
def test_the_standard_library_says_the_same(address: IPv4Address | IPv6Address) -> None:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    assert is_loopback(str(address)) == (mapped or address).is_loopback
