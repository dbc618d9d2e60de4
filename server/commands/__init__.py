"""The commands, a folder a family. Importing a module registers its commands."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

FAMILIES: Final = {
    "connection": ("connection", "transactions", "pubsub", "client", "client_tracking"),
    "streams": ("adding", "trimming", "streams", "reading", "introspection"),
    "groups": ("group_reading", "groups", "nack", "pending"),
    "delivery": ("policies", "failures", "stats"),
    "keys": ("keys", "scan", "values", "expiry", "sorting"),
    "strings": ("strings", "counters", "increx", "lcs", "bitmaps", "bitfield"),
    "hashes": ("hashes", "field_times"),
    "lists": ("lists", "moving"),
    "sets": ("sets", "combining"),
    "sorted_sets": ("sorted_sets", "ranges", "pops", "combinations"),
    "hyperloglog": ("hyperloglog",),
    "scripting": ("scripting",),
    "replication": ("replication",),
    "acl": ("acl",),
    "server": (
        *("databases", "admin", "memory", "cluster", "commandinfo", "info", "monitoring"),
        "configuration",
    ),
    "testing": ("debug",),
}
"""The modules of each folder that declare commands."""


@cache
def load() -> None:
    """Imports what declares commands."""
    for folder, modules in FAMILIES.items():
        for module in modules:
            import_module(f"server.commands.{folder}.{module}")
