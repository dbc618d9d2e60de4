# Compiled by mypyc.
"""The payloads of DUMP and RESTORE: a value, the version of the format, a checksum."""

from __future__ import annotations

from typing import Final

from storage.checksums import crc64
from storage.engine.limits import StreamLimits
from storage.rdb import codes
from storage.rdb.encode import needed_version, value_pieces, value_type
from storage.rdb.errors import DamagedRDB
from storage.rdb.read import read_value, type_name
from storage.rdb.source import Source
from storage.types.kinds import Value

_SUM: Final = 8
_FOOTER: Final = 2 + _SUM
"""Bytes behind the value."""


class WrongFooter(Exception):
    """The version of a payload is not known, or its checksum is not right."""


class OtherType(Exception):
    """The payload holds a value of a type that Penstock does not have, which ``kind`` names."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def dump(value: Value, version: int | None = None) -> bytes:
    """The payload that makes the value anew, by default in the oldest version that holds all of
    it."""
    version = version or needed_version(value)
    data = bytes((value_type(value, version),)) + b"".join(value_pieces(value, version))
    data += version.to_bytes(2, "little")
    return data + crc64(data).to_bytes(_SUM, "little")


def verify(payload: bytes) -> int:
    """The version of a payload. Raises :class:`WrongFooter`."""
    if len(payload) < _FOOTER:
        raise WrongFooter
    version = int.from_bytes(payload[-_FOOTER:-_SUM], "little")
    if version > codes.NEWEST and version != codes.VALKEY:
        raise WrongFooter
    if crc64(payload[:-_SUM]) != int.from_bytes(payload[-_SUM:], "little"):
        raise WrongFooter
    return version


def restore(payload: bytes, limits: StreamLimits) -> Value:
    """The value in a payload. Raises :class:`WrongFooter`, :class:`OtherType`, or
    :class:`DamagedRDB`."""
    valkey = verify(payload) == codes.VALKEY
    source = Source([payload[:-_FOOTER]])
    kind = source.byte()
    name = type_name(kind, valkey)
    if not name:
        raise DamagedRDB(0, f"a value of the unknown type {kind}")
    value = read_value(source, kind, limits)
    if not source.is_at_end():
        raise DamagedRDB(source.offset, "there is more than one value")
    if value is None:
        raise OtherType(name)
    return value
