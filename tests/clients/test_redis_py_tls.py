"""redis-py over TLS, blocking and in asyncio: a certificate, a user, and what each refusal says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

import pytest
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError

from tests.clients.conftest import BOTH_CLIENTS, Connect
from tests.clients.observing import until
from tests.clients.secure import ALERTS, HOST, NO_KEY, NO_RIGHT, USER, Secure
from tests.clients.secure import WRONG_PASSWORD as WRONG

pytestmark = BOTH_CLIENTS

REFUSED: Final = pytest.mark.parametrize("name", ALERTS)
"""The identities whose certificate is refused."""

DISTRUSTED: Final = "certificate verify failed: self-signed certificate in certificate chain"
WRONG_PASSWORD: Final = WRONG.removeprefix("WRONGPASS ")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


Connecting = Callable[[str], AbstractContextManager[Any]]


@pytest.fixture
def connected(secure: Secure, open_client: Connect) -> Connecting:
    """Clients of the identities, which try once."""

    @contextmanager
    def run(name: str) -> Iterator[Any]:
        identity, before = secure.identities[name], _descriptors()
        with open_client(
            host=HOST,
            port=secure.port,
            username=USER,
            password=identity.password,
            ssl=True,
            ssl_ca_certs=identity.authority,
            ssl_certfile=identity.certificate,
            ssl_keyfile=identity.key,
            retry=None,
        ) as client:
            yield client
        # In asyncio, redis-py does not wait for the transport of a connection on which it was
        # refused, which ends when the server has taken leave, too.
        until(lambda: _descriptors() <= before)

    return run


def told(error: pytest.ExceptionInfo[Exception]) -> str:
    """The text of an error with the word that redis-py takes from denials."""
    return f"NOPERM {error.value}"


def test_a_user_with_a_certificate_works_within_its_rights(connected: Connecting) -> None:
    with connected("good") as packer:
        assert packer.acl_whoami() == USER
        assert packer.xadd("orders", {"item": "x" * 100_000}, "1-1") == "1-1"
        assert packer.xgroup_create("orders", "packers", "0")
        read = packer.xreadgroup("packers", "ann", {"orders": ">"}, block=1000)
        assert read == {"orders": [("1-1", {"item": "x" * 100_000})]}
        assert packer.xack("orders", "packers", "1-1") == 1
        with pytest.raises(NoPermissionError) as right:
            packer.get("orders")
        assert told(right) == NO_RIGHT
        with pytest.raises(NoPermissionError) as key:
            packer.xadd("prices", {"tea": "4"})
        assert told(key) == NO_KEY
        assert packer.xlen("orders") == 1


@REFUSED
def test_a_certificate_that_is_refused_is_told_why(connected: Connecting, name: str) -> None:
    with connected(name) as client, pytest.raises(ConnectionError, match=ALERTS[name]):
        client.ping()


def test_a_wrong_password_is_an_error_of_its_own(connected: Connecting) -> None:
    with connected("password") as client, pytest.raises(AuthenticationError) as raised:
        client.ping()
    assert str(raised.value) == WRONG_PASSWORD


def test_a_server_that_is_not_trusted_is_not_talked_to(connected: Connecting) -> None:
    with connected("distrust") as client, pytest.raises(ConnectionError, match=DISTRUSTED):
        client.ping()
