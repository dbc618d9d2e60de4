"""What the file says about the payload of an entry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

FORMATS: Final = ("json", "csv", "text")
MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Payload:
    """A field whose value is decoded, and how; ``header`` to ``quote`` are for CSV."""

    format: str
    field: str
    compression: str | None = None
    max_bytes: int = MAX_BYTES
    header: tuple[str, ...] = ()
    delimiter: str = ","
    quote: str = '"'
