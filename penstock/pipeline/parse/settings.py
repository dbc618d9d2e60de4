"""What the file says about the payload of an entry."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

FORMATS: Final = ("json", "avro", "protobuf", "csv", "text")
MAX_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True)
class Registry:
    """Where schemas are registered. ``ca`` is the text of certificates that are trusted."""

    url: str = dataclasses.field(repr=False)
    user: str | None = dataclasses.field(default=None, repr=False)
    password: str | None = dataclasses.field(default=None, repr=False)
    timeout_s: float = 10.0
    ca: str | None = dataclasses.field(default=None, repr=False)


@dataclass(frozen=True)
class Payload:
    """A field whose value is decoded, and how.

    ``schema`` is the text of an Avro schema; ``descriptors`` are the bytes of a set of descriptors
    of Protobuf. Files are read with the pipeline file, since workers may be on other machines.
    """

    format: str
    field: str
    compression: str | None = None
    max_bytes: int = MAX_BYTES
    header: tuple[str, ...] = ()
    delimiter: str = ","
    quote: str = '"'
    schema: str | None = None
    descriptors: bytes | None = dataclasses.field(default=None, repr=False)
    message: str | None = None
    registry: Registry | None = None
