"""Compiles the hot modules ahead of time when PENSTOCK_COMPILE is 1; else there is nothing to do.

The same Python source runs either way: mypyc makes extension modules of it, which are imported in
place of the source where they were built. ``pyproject.toml`` describes the package.
"""

from __future__ import annotations

import os

from setuptools import setup

HOT = {
    "protocol": ["encoder", "errors", "inline", "replies", "requests", "strict"],
    "storage": [
        "block",
        "buffers",
        "counters",
        "disposal",
        "effects",
        "entries",
        "expiry",
        "failures",
        "groups",
        "idempotency",
        "ids",
        "keyspace",
        "log",
        "nodes",
        "packing",
        "pending",
        "records",
        "scanning",
        "sorted_ids",
        "stream",
        "tree",
        "trimming",
    ],
    "storage/aof": [
        "commands",
        "dangling",
        "forms",
        "own_records",
        "places",
        "plain_forms",
        "restoring",
        "restoring_options",
        "restoring_records",
        "seen_times",
        "snapshot",
    ],
    "server": [
        "app",
        "arguments",
        "blocking",
        "changes",
        "clock",
        "connection",
        "dispatch",
        "glob",
        "loading",
        "notifications",
        "session",
        "settling",
        "stats",
        "steps",
        "turns",
        "watching",
    ],
    "server/commands": [
        "connection",
        "entries",
        "full_form",
        "group_effects",
        "groups",
        "idempotency",
        "introspection",
        "pending",
        "reading",
        "spec",
        "streams",
        "trim_options",
    ],
}
"""The modules that every stream command passes through, by folder."""

if os.environ.get("PENSTOCK_COMPILE") == "1":
    from mypyc.build import mypycify

    paths = [f"{folder}/{name}.py" for folder, names in HOT.items() for name in names]
    setup(ext_modules=mypycify(paths, opt_level="3"))
else:
    setup()
