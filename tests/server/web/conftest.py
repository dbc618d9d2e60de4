"""Servers with an append-only file, as the tests of that have them."""

from tests.server.persistence.conftest import start

__all__ = ["start"]
