"""Users and passwords: redis-py's own functions, and redis-cli with a user."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError

from tests.clients.conftest import Connect
from tests.support.servers import ONCE, PenstockThread

CLI = shutil.which("redis-cli")

"""A client tries to log in several times otherwise."""


@pytest.fixture
def penstock() -> Iterator[PenstockThread]:
    """A server that asks for a password."""
    with PenstockThread(requirepass="sesame") as thread:
        yield thread


@pytest.fixture
def admin(connect: Connect) -> Redis:
    client: Redis = connect(password="sesame")
    client.acl_setuser(
        "packer",
        enabled=True,
        passwords=["+secret"],
        categories=["+@stream", "+@connection"],
        commands=["-xgroup|destroy", "+select|0"],
        keys=["orders*"],
        channels=["news"],
    )
    return client


def test_whoever_does_not_know_the_password_stays_outside(connect: Connect) -> None:
    with pytest.raises(AuthenticationError):
        connect(retry=ONCE).ping()
    with pytest.raises(AuthenticationError):
        connect(password="wrong", retry=ONCE).ping()
    assert connect(password="sesame").ping()


def test_a_user_works_within_its_rights(admin: Redis, connect: Connect) -> None:
    packer = connect(username="packer", password="secret")
    packer.xadd("orders", {"item": "tea"}, id="1-1")
    packer.xgroup_create("orders", "packers", id="0")
    assert packer.xreadgroup("packers", "ann", {"orders": ">"})
    with pytest.raises(NoPermissionError, match="access a key"):
        packer.xadd("prices", {"tea": "4"})
    with pytest.raises(NoPermissionError, match=r"run the 'xgroup\|destroy' command"):
        packer.xgroup_destroy("orders", "packers")
    with pytest.raises(NoPermissionError, match="run the 'get' command"):
        packer.get("orders")


def test_what_a_user_may_do_is_shown(admin: Redis) -> None:
    assert admin.acl_getuser("packer") == {
        "flags": ["on", "sanitize-payload"],
        "passwords": ["2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"],
        "commands": ["-xgroup|destroy", "+select|0"],
        "keys": ["~orders*"],
        "channels": ["&news"],
        "selectors": [],
        "categories": ["-@all", "+@stream", "+@connection"],
        "enabled": True,
    }
    assert admin.acl_getuser("nobody") is None
    assert admin.acl_users() == ["default", "packer"]
    assert admin.acl_whoami() == "default"
    assert "stream" in admin.acl_cat()
    assert "xadd" in admin.acl_cat("stream")
    assert len(admin.acl_genpass(128)) == 32
    assert admin.acl_dryrun("packer", "xlen", "orders") == "OK"
    assert admin.acl_dryrun("packer", "flushall") == (
        "User packer has no permissions to run the 'flushall' command"
    )


def test_denials_are_in_the_log(admin: Redis, connect: Connect, protocol: int) -> None:
    packer = connect(username="packer", password="secret")
    for _ in range(2):
        with pytest.raises(NoPermissionError):
            packer.get("orders")
    with pytest.raises(AuthenticationError):
        connect(username="nobody", password="x", retry=ONCE).ping()
    found = [
        tuple(entry[name] for name in ("reason", "object", "username", "count"))
        for entry in admin.acl_log()
    ]
    login = "AUTH" if protocol == 2 else "HELLO"
    assert found == [("auth", login, "nobody", 1), ("command", "get", "packer", 2)]
    assert admin.acl_log_reset()
    assert admin.acl_log() == []


def test_a_removed_user_is_disconnected(admin: Redis, connect: Connect) -> None:
    packer = connect(username="packer", password="secret", retry=ONCE)
    assert packer.client_id()
    assert admin.acl_deluser("packer") == 1
    with pytest.raises(ConnectionError):
        packer.client_id()
    with pytest.raises(AuthenticationError):
        packer.client_id()


@pytest.mark.skipif(CLI is None, reason="redis-cli is not installed")
def test_redis_cli_logs_in(admin: Redis, penstock: PenstockThread) -> None:
    def run(*words: str) -> str:
        command = [str(CLI), "-p", str(penstock.port), "--no-auth-warning", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    assert run("ping") == "NOAUTH Authentication required.\n\n"
    assert run("-a", "sesame", "ping") == "PONG\n"
    assert run("--user", "packer", "--pass", "secret", "xlen", "orders") == "0\n"
    assert run("--user", "packer", "--pass", "secret", "get", "k") == (
        "NOPERM User packer has no permissions to run the 'get' command\n\n"
    )
