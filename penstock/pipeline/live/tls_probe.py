"""Finds out whether a port speaks TLS, to name the cause that a broken connection hides."""

from __future__ import annotations

import socket
import ssl
from typing import Final

from pyspark_redis_streams.urls import ServerUrl

LIMIT_S: Final = 2.0
"""How long connecting, and an answer, may take."""


def mismatch(url: ServerUrl) -> str | None:
    """What to write instead if one side speaks TLS and the other does not; None if both agree.

    None as well if the port can't be reached, which connecting will report.
    """
    if url.path is not None or url.cluster:
        return None
    if url.tls and _answers_plainly(url.nodes[0]):
        return (
            f"{url.label} answers without TLS: write redis:// in place of rediss:// (valkey:// "
            "in place of valkeys://), or give the port that speaks TLS"
        )
    if not url.tls and not _answers_plainly(url.nodes[0]) and _answers_tls(url.nodes[0]):
        return (
            f"{url.label} speaks TLS only: write rediss:// in place of redis:// (valkeys:// in "
            "place of valkey://)"
        )
    return None


def _answers_plainly(address: tuple[str, int]) -> bool:
    """Whether a command as plain text gets a reply, be it a refusal."""
    try:
        with socket.create_connection(address, LIMIT_S) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(1) in (b"+", b"-")
    except OSError:
        return False


def _answers_tls(address: tuple[str, int]) -> bool:
    """Whether a handshake gets an answer; a refused certificate is one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection(address, LIMIT_S) as connection,
            context.wrap_socket(connection, server_hostname=address[0]),
        ):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "").upper()
    except OSError:
        return False
