"""Dates and times as texts (ISO 8601, as Spark casts them) and as numbers since 1970."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

EPOCHS: Final = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
"""The formats of times that are numbers, and the microseconds of one unit."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
FIRST_US: Final = -62_135_596_800_000_000
LAST_US: Final = 253_402_300_799_999_999
"""The microseconds of the years 1 to 9999, which every reader of a table knows."""

_DATE: Final = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_WHOLE_DATE: Final = re.compile(_DATE)
_TIME: Final = re.compile(
    rf"{_DATE}(?:[T ](\d{{1,2}})(?::(\d{{1,2}})(?::(\d{{1,2}})(?:\.(\d*))?)?)?\s*(.*))?", re.DOTALL
)
_OFFSET: Final = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2}))?")


def read_date(text: str) -> date:
    """The date of a text ``yyyy-mm-dd``; raises ValueError for any other."""
    found = _WHOLE_DATE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is no date")
    return date(int(found[1]), int(found[2]), int(found[3]))


def read_time(text: str) -> datetime:
    """The time of a text that begins with a date, in its zone, else in UTC; raises ValueError."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"'{text}' is no time")
    numbers = [int(part or 0) for part in found.groups()[:6]]
    micros = int((found[7] or "").ljust(6, "0")[:6])
    year, month, day, hour, minute, second = numbers
    return datetime(year, month, day, hour, minute, second, micros, _zone(found[8] or ""))


def _zone(text: str) -> tzinfo:
    if text in ("", "Z", "UTC", "GMT"):
        return UTC
    found = _OFFSET.fullmatch(text)
    if found:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"'{text}' is no time zone") from None


def from_epoch(number: Decimal | int, format: str) -> datetime:
    """The time of a number since 1970; raises ValueError beyond the years 1 to 9999.

    What is shorter than a microsecond is cut off.
    """
    micros = number * EPOCHS[format]
    if not FIRST_US <= micros <= LAST_US:
        raise ValueError(f"{number} is no {format}")
    return EPOCH + timedelta(microseconds=math.floor(micros))
