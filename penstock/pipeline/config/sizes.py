"""Sizes of files and memory: ``128 MB``, ``1 GB``, in steps of 1024."""

from __future__ import annotations

import re
from typing import Final

BYTES: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def size(text: str) -> int:
    """The bytes of a size; raises ValueError with what is allowed."""
    found = re.fullmatch(rf"\s*(\d+)\s*({'|'.join(BYTES)})\s*", text, re.IGNORECASE)
    count = int(found[1]) * BYTES[found[2].upper()] if found else 0
    if not count:
        raise ValueError(f"is '{text}'; allowed: a number with KB, MB or GB, as '128 MB'")
    return count
