"""ioredis and node-redis over TLS: a certificate, a user, and what each refusal says."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.clients.programs import NODE_FOLDER, TIMEOUT_S, node
from tests.clients.secure import ALERTS, HOST, NO_KEY, NO_RIGHT, USER, WRONG_PASSWORD, Secure
from tests.clients.test_node import PACKAGES

pytestmark = pytest.mark.slow


@pytest.fixture(params=["ioredis", "node-redis"])
def program(request: pytest.FixtureRequest) -> list[str]:
    return [node(PACKAGES[request.param]), str(NODE_FOLDER / f"{request.param}-tls.mjs")]


def run(program: list[str], protocol: int, secure: Secure, name: str) -> tuple[int, list[Any]]:
    """The exit status of a program that has an identity, and the lines it prints."""
    identity = secure.identities[name]
    pair = (identity.certificate, identity.key)
    files = [identity.authority, *(path for path in pair if path)]
    where = [HOST, str(secure.port), str(protocol), USER, identity.password]
    ended = subprocess.run(
        [*program, *where, *files],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.stderr == ""
    return ended.returncode, [json.loads(line) for line in ended.stdout.splitlines()]


def test_a_user_with_a_certificate_works_within_its_rights(
    program: list[str], protocol: int, secure: Secure
) -> None:
    assert run(program, protocol, secure, "good") == (
        0,
        [
            ["reply", USER],
            ["reply", "1-1"],
            ["reply", 1],
            ["denied", NO_RIGHT],
            ["denied", NO_KEY],
        ],
    )


@pytest.mark.parametrize("name", ALERTS)
def test_a_certificate_that_is_refused_is_told_why(
    program: list[str], protocol: int, secure: Secure, name: str
) -> None:
    status, [[kind, code, text]] = run(program, protocol, secure, name)
    assert (status, kind) == (1, "error")
    assert code.startswith("ERR_SSL_")
    assert f"alert {ALERTS[name]}" in text


def test_a_wrong_password_is_told(program: list[str], protocol: int, secure: Secure) -> None:
    told = ["error", None, WRONG_PASSWORD]
    assert run(program, protocol, secure, "password") == (1, [told])


def test_a_server_that_is_not_trusted_is_not_talked_to(
    program: list[str], protocol: int, secure: Secure
) -> None:
    text = "self-signed certificate in certificate chain"
    told = ["error", "SELF_SIGNED_CERT_IN_CHAIN", text]
    assert run(program, protocol, secure, "distrust") == (1, [told])
