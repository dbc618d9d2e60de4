"""Requests that are written as lines of words, and INFO as a table."""

from __future__ import annotations

from tests.support.direct import DirectClient


def sent(client: DirectClient, *lines: str) -> None:
    """Sends requests, none of which may be refused."""
    for line in lines:
        reply = client.send(*line.split())
        assert reply is not None
        assert not reply.startswith(b"-"), reply


def info_fields(client: DirectClient, section: str) -> dict[str, str]:
    """The fields of a section of INFO."""
    _, *lines = client.ask("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines)
