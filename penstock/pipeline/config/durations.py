"""Lengths of time as Spark writes them: ``10 seconds``, ``2 days``, ``1 hour 30 minutes``."""

from __future__ import annotations

import re
from typing import Final

SECONDS: Final = {
    "millisecond": 0.001,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}
_PART: Final = re.compile(rf"(\d+)\s*({'|'.join(SECONDS)})s?", re.IGNORECASE)


def duration(text: str) -> float:
    """The seconds of a length of time; raises ValueError with what is allowed."""
    if not re.fullmatch(rf"\s*({_PART.pattern}\s*)+", text, re.IGNORECASE):
        raise ValueError(f"is '{text}'; allowed: a number with {', '.join(SECONDS)}(s)")
    return float(sum(int(n) * SECONDS[unit.lower()] for n, unit in _PART.findall(text)))
