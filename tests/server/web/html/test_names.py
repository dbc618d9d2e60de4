"""Under which names HTTP is answered."""

from __future__ import annotations

import pytest

from server.web.html.names import is_own_host


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:1",
        "10.0.0.1",
        "[::1]:1",
        "[fe80::1%25eth0]",
        "localhost",
        "penstock:1",
        "My_pod:",
    ],
)
def test_no_stranger_can_make_such_a_name_lead_here(host: str) -> None:
    assert is_own_host(host, [])
    assert is_own_host(host, ["other.example"])


@pytest.mark.parametrize(
    "host",
    [
        "a.example",
        "A.EXAMPLE:1",
        "localhost.a.example",
        "10.0.0.1.a.example",
        "b.example\\@localhost",
        "b.example@localhost",
        "b.example#localhost",
        "localhost/",
        "localhost:1:1",
        "[::1",
        "[::1]b.example",
        "",
        ":1",
        ".",
        " localhost",
        "localhost\n",
        "h\xe4user",
    ],
)
def test_it_may_be_behind_such_a_name(host: str) -> None:
    assert not is_own_host(host, [])
    assert is_own_host(host, ["*"])


def test_names_may_be_listed() -> None:
    assert is_own_host("A.example:9121", ["b.example", "a.example"])
    assert not is_own_host("c.a.example", ["b.example", "a.example"])
