"""The commands, one module a family. Importing a module registers its commands."""

from __future__ import annotations

from importlib import import_module
from typing import Final

FAMILIES: Final = (
    "connection",
    "streams",
    "idempotency",
    "reading",
    "group_reading",
    "groups",
    "pending",
    "policies",
    "introspection",
    "databases",
    "keys",
    "scan",
    "objects",
    "payloads",
    "expiry",
    "strings",
    "counters",
    "increx",
    "ranges",
    "digests",
    "lcs",
    "bits",
    "bitop",
    "bitfield",
    "transactions",
    "pubsub",
    "shards",
    "scripting",
    "functions",
    "admin",
    "debug",
    "memory",
    "replication",
    "cluster",
    "persistence",
    "client",
    "client_tracking",
    "acl",
    "commandinfo",
    "info",
    "latency",
    "monitoring",
    "lolwut",
    "configuration",
)


def load() -> None:
    """Registers every command."""
    for family in FAMILIES:
        import_module(f"server.commands.{family}")
