"""URLs of the tools: what they name, what is refused, and that no password is shown."""

from __future__ import annotations

import pytest

from penstock.client.errors import AddressError
from penstock.client.urls import parse


@pytest.mark.parametrize(
    ("url", "place", "db"),
    [
        ("redis://localhost", "localhost:6379", None),
        ("redis://u:p@10.0.0.1:7000/", "10.0.0.1:7000", None),
        ("rediss://h/15?ssl_cert_reqs=none", "h:6379", 15),
        ("valkey://h/0", "h:6379", 0),
        ("redis://[::1]:1/2", "[::1]:1", 2),
        ("unix:///run/x.sock", "/run/x.sock", None),
        ("unix://u:p@/run/x.sock?db=4", "/run/x.sock", 4),
        ("redis+cluster://u:p@a:1,b", "cluster a:1,b:6379", None),
        ("redis+cluster://[::1]:1,b/0", "cluster [::1]:1,b:6379", 0),
        ("redis://h?db=3", "h:6379", 3),
    ],
)
def test_a_url_names_a_server_and_maybe_a_database(url: str, place: str, db: int | None) -> None:
    address = parse(url)
    assert (address.place, address.db) == (place, db)
    assert address.db == db


BAD_PART = "one with a bad port, database or host"


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://u:secret@a", "not of the right form"),
        ("redis://u:secret@", "one without a host or path"),
        ("redis://u:secret@a..b", BAD_PART),
        ("unix://", "one without a host or path"),
        ("redis://u:se/cret@a", BAD_PART),
        ("redis://u:secret", BAD_PART),
        ("redis://u:12/secret@a", BAD_PART),
        ("redis://a:99999", BAD_PART),
        ("redis://a/x", BAD_PART),
        ("redis://a:1,b:2", "one of several servers"),
    ],
)
def test_what_names_no_single_server_is_refused_without_being_shown(url: str, what: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse(url)
    text = str(caught.value)
    assert text.startswith(f"the URL is {what}; allowed: redis://[user:password@]host")
    assert "secret" not in text
    assert "cret@" not in text


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("redis://a?speed=9", "option 'url?speed' is 'not an option'; allowed: client_name, "),
        ("redis://a?socket_timeout=x", "option 'url?socket_timeout' is 'x'; allowed: a number of"),
        # redis-py has it for clusters alone, and each node is asked as a server here.
        (
            "redis+cluster://a?require_full_coverage=true",
            "option 'url?require_full_coverage' is 'not an option'; allowed: client_name, ",
        ),
        (
            "rediss://a?ssl_cert_reqs=some",
            "option 'url?ssl_cert_reqs' is 'some'; allowed: none, optional, required",
        ),
        ("unix:///s?db=0&x=1", "option 'url?x' is 'not an option'; allowed: client_name, "),
    ],
)
def test_options_behind_a_url_are_checked(url: str, text: str) -> None:
    with pytest.raises(AddressError) as caught:
        parse(url)
    assert str(caught.value).startswith(text)
