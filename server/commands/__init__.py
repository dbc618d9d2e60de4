"""The commands, a folder a family. Importing a module registers its commands."""

from __future__ import annotations

from importlib import import_module
from typing import Final

FAMILIES: Final = (
    "connection.connection",
    "streams.streams",
    "streams.idempotency",
    "streams.reading",
    "groups.group_reading",
    "groups.groups",
    "groups.pending",
    "delivery.policies",
    "streams.introspection",
    "server.databases",
    "keys.keys",
    "keys.scan",
    "keys.objects",
    "keys.payloads",
    "keys.expiry",
    "strings.strings",
    "strings.counters",
    "strings.increx",
    "strings.ranges",
    "strings.digests",
    "strings.lcs",
    "strings.bits",
    "strings.bitop",
    "strings.bitfield",
    "connection.transactions",
    "connection.pubsub",
    "connection.shards",
    "scripting.scripting",
    "scripting.functions",
    "server.admin",
    "testing.debug",
    "server.memory",
    "replication.replication",
    "server.cluster",
    "connection.client",
    "connection.client_tracking",
    "acl.acl",
    "server.commandinfo",
    "server.info",
    "server.monitoring",
    "server.configuration",
)


def load() -> None:
    """Registers every command."""
    for family in FAMILIES:
        import_module(f"server.commands.{family}")
