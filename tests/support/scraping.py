"""A scrape of a live server of which everything has a series."""

from __future__ import annotations

import tempfile
import urllib.request
from pathlib import Path

from tests.support.certificates import Certificates
from tests.support.following import Follower
from tests.support.ports import free_port
from tests.support.servers import PenstockThread
from tests.support.wire import Client

REQUESTS = b"""\
XADD orders 1-1 item tea
XADD orders 2-1 item tea
XGROUP CREATE orders kitchen 0
XREADGROUP GROUP kitchen ann COUNT 1 STREAMS orders >
GET
XADD orders 1-1 item tea
QUIT
"""
"""A stream with an entry that is pending and one that is not delivered; two errors."""


def scraped() -> str:
    """What a server says on its port of metrics that has streams, groups, consumers, pending
    entries, an append-only file, a certificate, a replica, and commands that have failed."""
    port = free_port()
    with (
        tempfile.TemporaryDirectory() as folder,
        PenstockThread(
            port=free_port(),
            metrics_port=port,
            metrics_bind="127.0.0.1",
            metrics_consumers=True,
            appendonly=True,
            **Certificates(Path(folder)).settings(tls_port=free_port()),
        ) as penstock,
    ):
        with Client(penstock.address) as client:
            client.write(REQUESTS)
            client.rest()
        with Follower(penstock.address) as follower:
            follower.synchronise()
            return _scrape(port)


def _scrape(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text: str = response.read().decode()
        return text
