"""redis-py over TLS, synchronous and asyncio: a certificate, a user, and what each refusal says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError
from redis.retry import Retry

from tests.clients.secure import ALERTS, HOST, NO_KEY, NO_RIGHT, USER, Secure, secure_server
from tests.clients.secure import WRONG_PASSWORD as WRONG

REFUSED: Final = pytest.mark.parametrize("name", ALERTS)
"""The identities whose certificate is refused."""

DISTRUSTED: Final = "certificate verify failed: self-signed certificate in certificate chain"
WRONG_PASSWORD: Final = WRONG.removeprefix("WRONGPASS ")

_CLOSING_S: Final = 30


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[Secure]:
    with secure_server(tmp_path) as server:
        yield server


class Connector:
    """Makes clients of the identities, which try once."""

    def __init__(self, secure: Secure, protocol: int) -> None:
        self._secure = secure
        self._protocol = protocol

    def sync(self, name: str) -> Redis:
        return Redis(**self._options(name), retry=Retry(NoBackoff(), 0))

    @asynccontextmanager
    async def asynchronous(self, name: str) -> AsyncIterator[AsyncRedis]:
        """A client, whose transports are closed in the end: redis-py does not wait for that of a
        connection on which it was refused, which ends when the server has taken leave, too."""
        before = _descriptors()
        async with AsyncRedis(**self._options(name), retry=AsyncRetry(NoBackoff(), 0)) as client:
            yield client
        async with asyncio.timeout(_CLOSING_S):
            while _descriptors() > before:
                await asyncio.sleep(0.001)

    def _options(self, name: str) -> dict[str, Any]:
        identity = self._secure.identities[name]
        return {
            "host": HOST,
            "port": self._secure.port,
            "protocol": self._protocol,
            "username": USER,
            "password": identity.password,
            "ssl": True,
            "ssl_ca_certs": identity.authority,
            "ssl_certfile": identity.certificate,
            "ssl_keyfile": identity.key,
            "decode_responses": True,
            "legacy_responses": False,
        }


@pytest.fixture
def connector(secure: Secure, protocol: int) -> Connector:
    return Connector(secure, protocol)


def told(error: pytest.ExceptionInfo[Exception]) -> str:
    """The text of an error with the word that redis-py takes from denials."""
    return f"NOPERM {error.value}"


# --- synchronous -------------------------------------------------------------------------------


def test_a_user_with_a_certificate_works_within_its_rights(connector: Connector) -> None:
    with connector.sync("good") as packer:
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
def test_a_certificate_that_is_refused_is_told_why(connector: Connector, name: str) -> None:
    with connector.sync(name) as client, pytest.raises(ConnectionError, match=ALERTS[name]):
        client.ping()


def test_a_wrong_password_is_an_error_of_its_own(connector: Connector) -> None:
    with connector.sync("password") as client, pytest.raises(AuthenticationError) as raised:
        client.ping()
    assert str(raised.value) == WRONG_PASSWORD


def test_a_server_that_is_not_trusted_is_not_talked_to(connector: Connector) -> None:
    with connector.sync("distrust") as client, pytest.raises(ConnectionError, match=DISTRUSTED):
        client.ping()


# --- asyncio -----------------------------------------------------------------------------------


async def test_asyncio_a_user_with_a_certificate_works_within_its_rights(
    connector: Connector,
) -> None:
    async with connector.asynchronous("good") as packer:
        assert await packer.acl_whoami() == USER
        assert await packer.xadd("orders", {"item": "tea"}, "1-1") == "1-1"
        assert await packer.xrange("orders") == [("1-1", {"item": "tea"})]
        with pytest.raises(NoPermissionError) as right:
            await packer.get("orders")
        assert told(right) == NO_RIGHT
        with pytest.raises(NoPermissionError) as key:
            await packer.xadd("prices", {"tea": "4"})
        assert told(key) == NO_KEY


@REFUSED
async def test_asyncio_a_certificate_that_is_refused_is_told_why(
    connector: Connector, name: str
) -> None:
    async with connector.asynchronous(name) as client:
        with pytest.raises(ConnectionError, match=ALERTS[name]):
            await client.ping()


async def test_asyncio_a_wrong_password_is_an_error_of_its_own(connector: Connector) -> None:
    async with connector.asynchronous("password") as client:
        with pytest.raises(AuthenticationError) as raised:
            await client.ping()
        assert str(raised.value) == WRONG_PASSWORD


async def test_asyncio_a_server_that_is_not_trusted_is_not_talked_to(connector: Connector) -> None:
    async with connector.asynchronous("distrust") as client:
        with pytest.raises(ConnectionError, match=DISTRUSTED):
            await client.ping()
