"""Compiles the hot modules ahead of time when PENSTOCK_COMPILE is 1; else there is nothing to do.

The same Python source runs either way: mypyc makes extension modules of it, which are imported in
place of the source where they were built. ``pyproject.toml`` describes the package.
"""

from __future__ import annotations

import os

from setuptools import setup

HOT = {
    "protocol": [
        "encoder",
        "errors",
        "inline",
        "replies",
        "requests",
        "strict",
    ],
    "server": [
        "app",
        "command_table",
        "dispatcher",
        "session",
        "steps",
    ],
    "server/clients": [
        "blocking",
        "keyspace_events",
        "reactions",
        "watch",
    ],
    "server/commands": [
        "connection",
        "entries",
        "full_form",
        "group_helpers",
        "groups",
        "idempotency",
        "introspection",
        "pending",
        "reading",
        "streams",
        "trim_options",
    ],
    "server/net": [
        "connection",
        "turns",
    ],
    "server/persistence": [
        "aof_replay",
    ],
    "server/runtime": [
        "change_count",
        "clock",
        "stats",
    ],
    "server/util": [
        "arguments",
        "glob",
    ],
    "storage": [
        "block",
        "buffers",
        "compression",
        "counters",
        "effects",
        "entries",
        "errors",
        "expiry",
        "groups",
        "idempotency",
        "ids",
        "keyspace",
        "lazy_free",
        "log",
        "nodes",
        "pending",
        "scan_index",
        "sorted_ids",
        "stream",
        "trimming",
    ],
    "storage/aof": [
        "apply_commands",
        "apply_options",
        "apply_records",
        "commands",
        "encode_effects",
        "encode_strings",
        "extension_records",
        "lookup",
        "seen_times",
        "snapshot",
    ],
}
"""The modules that every stream command passes through, by folder."""

if os.environ.get("PENSTOCK_COMPILE") == "1":
    from mypyc.build import mypycify

    paths = [f"{folder}/{name}.py" for folder, names in HOT.items() for name in names]
    setup(ext_modules=mypycify(paths, opt_level="3"))
else:
    setup()
