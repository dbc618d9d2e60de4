"""Tell what the server is."""

from __future__ import annotations

import functools
import os
import re
import sys
from typing import Final

import storage
from storage.checksums import crc64
from storage.engine import log

PENSTOCK_VERSION: Final = "0.1.0"
"""The release of this program."""

REDIS_VERSION: Final = "8.10.0"
"""The release of Redis whose streams are served; clients decide by it what they may use. What came
after 8.0 follows the documentation, and was not compared with a server."""

_FAMILIES: Final = (
    (
        "arrays",
        "ARCOUNT ARDEL ARDELRANGE ARGET ARGETRANGE ARGREP ARINFO ARINSERT ARLASTITEMS ARLEN ARMGET"
        " ARMSET ARNEXT AROP ARRING ARSCAN ARSEEK ARSET",
    ),
    (
        "vector sets",
        "VADD VCARD VDIM VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VREM VSETATTR"
        " VSIM",
    ),
    ("the most used keys", "HOTKEYS"),
    (
        "places on the earth",
        "GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO"
        " GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE",
    ),
)

_MODULES: Final = {
    "BF": "Bloom filters",
    "CF": "cuckoo filters",
    "CMS": "count-min sketches",
    "FT": "search",
    "JSON": "JSON",
    "TDIGEST": "t-digests",
    "TOPK": "top-k lists",
    "TS": "time series",
}
"""What the names of the commands of modules begin with, before a dot."""

NEWER_COMMANDS: Final = {
    name.encode(): family for family, commands in _FAMILIES for name in commands.split()
}
"""What commands are for that are in this release and not here, by their names: clients and their
suites use them because of its number alone."""


def family_of(name: bytes) -> str | None:
    """Return what a command of Redis is for that is not here, ``None`` for any other name."""
    text = name.upper()
    module, dot, _ = text.partition(b".")
    if dot and module.isalpha():
        return _MODULES.get(module.decode())
    return NEWER_COMMANDS.get(text)


BUILD: Final = "plain" if str(log.__file__).endswith(".py") else "compiled"
"""Whether the hot modules run as Python or as the native code that mypyc makes of it."""


@functools.cache
def build_line() -> str:
    """Return :data:`BUILD`, and of compiled modules how they were compiled, which the build has
    written beside the packages."""
    if BUILD == "plain":
        return BUILD
    packages = os.path.dirname(os.path.dirname(str(storage.__file__)))
    with open(os.path.join(packages, "compiled"), encoding="utf-8") as file:
        return f"{BUILD} {file.read().rstrip()}"


@functools.cache
def build_id() -> str:
    """Return what tells this build from others, in hexadecimal digits."""
    return f"{crc64(f'{PENSTOCK_VERSION} {sys.version} {build_line()}'.encode()):016x}"


@functools.cache
def compiler_version() -> str:
    """Return the version of the C compiler that has made the hot modules, or else Python."""
    made_by = build_line() if BUILD == "compiled" else sys.version
    found = re.search(r"(?:gcc|clang) ([0-9.]+)", made_by, re.IGNORECASE)
    return found[1] if found else "0.0.0"
