"""redis-cli over TLS: a certificate, a user, and what each refusal says."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.clients.secure import ALERTS, HOST, NO_KEY, NO_RIGHT, USER, WRONG_PASSWORD, Secure

PROGRAM = shutil.which("redis-cli") or ""
TIMEOUT_S = 20


def speaks_tls() -> bool:
    """Whether the program is installed and was built with TLS."""
    if not PROGRAM:
        return False
    shown = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=False)
    return "--tls" in shown.stdout + shown.stderr


pytestmark = pytest.mark.skipif(not speaks_tls(), reason="no redis-cli with TLS is installed")


def run(secure: Secure, name: str, *words: str) -> tuple[int, str, str]:
    """The exit status of the program, what it prints, and its errors, with an identity."""
    identity = secure.identities[name]
    where = ["-h", HOST, "-p", str(secure.port), "--tls", "--cacert", identity.authority]
    if identity.certificate and identity.key:
        where += ["--cert", identity.certificate, "--key", identity.key]
    login = ["--user", USER, "--pass", identity.password, "--no-auth-warning"]
    command = [PROGRAM, *where, *login, *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return ended.returncode, ended.stdout, ended.stderr


def test_a_user_with_a_certificate_works_within_its_rights(secure: Secure) -> None:
    assert run(secure, "good", "acl", "whoami") == (0, f"{USER}\n", "")
    assert run(secure, "good", "xadd", "orders", "1-1", "item", "tea") == (0, "1-1\n", "")
    shown = "1-1\nitem\ntea\n"
    assert run(secure, "good", "xrange", "orders", "-", "+") == (0, shown, "")
    assert run(secure, "good", "get", "orders") == (0, f"{NO_RIGHT}\n\n", "")
    assert run(secure, "good", "xadd", "prices", "*", "f", "v") == (0, f"{NO_KEY}\n\n", "")


@pytest.mark.parametrize("name", ALERTS)
def test_a_certificate_that_is_refused_ends_the_program(secure: Secure, name: str) -> None:
    status, printed, errors = run(secure, name, "xlen", "orders")
    assert printed == ""
    # It does not look at alerts, and may be ended by what it writes to a closed connection.
    assert status == -13 or (status == 1 and "Error: " in errors)


def test_a_wrong_password_is_told(secure: Secure) -> None:
    status, _, errors = run(secure, "password", "xlen", "orders")
    assert (status, errors) == (0, f"AUTH failed: {WRONG_PASSWORD}\n")


def test_a_server_that_is_not_trusted_is_not_talked_to(secure: Secure) -> None:
    where = f"Could not connect to Redis at {HOST}:{secure.port}: "
    assert run(secure, "distrust", "xlen", "orders") == (
        1,
        "",
        f"{where}SSL_connect failed: certificate verify failed\n",
    )
