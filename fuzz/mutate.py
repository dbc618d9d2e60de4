"""Changes to bytes: anywhere, and where RESP has lengths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Final

_HEADER: Final = re.compile(rb"[*$%~>:]-?[0-9]+\r\n")

LENGTHS: Final = (
    b"0",
    b"-1",
    b"-0",
    b"1",
    b"00",
    b"+1",
    b"16",
    b"1048577",
    b"536870913",
    b"9" * 19,
)
SIGNS: Final = b"*$%~>:+-_,#!=(|"
JUNK: Final = (
    b"\r\n",
    b"\n",
    b"\r",
    b"\x00",
    b"\x00" * 64,
    b"*1\r\n",
    b"$-1\r\n",
    b"#",
    b'"',
    b"PING\r\n",
)


def mutated(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """The data with one to four changes, some of which take a part of ``others``."""
    for _ in range(random.choice((1, 1, 2, 4))):
        change = random.choice((_flip, _insert, _delete, _repeat, _header, _header, _cut))
        data = _splice(random, data, others) if random.random() < 0.1 else change(random, data)
    return data


def _span(random: Random, data: bytes) -> tuple[int, int]:
    """Where a part begins and ends; short parts are more likely than long ones."""
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + int(random.expovariate(1 / 16)))


def _flip(random: Random, data: bytes) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _insert(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data) + 1)
    return data[:at] + random.choice((*JUNK, random.randbytes(3))) + data[at:]


def _delete(random: Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes) -> bytes:
    start, end = _span(random, data)
    return data[:end] + data[start:end] * random.choice((1, 2, 30)) + data[end:]


def _cut(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _header(random: Random, data: bytes) -> bytes:
    """Another type or another length in one of the headers."""
    headers = list(_HEADER.finditer(data))
    if not headers:
        return _flip(random, data)
    found = random.choice(headers)
    sign, length = found[0][:1], found[0][1:-2]
    if random.random() < 0.4:
        sign = bytes([random.choice(SIGNS)])
    else:
        length = random.choice((*LENGTHS, b"%d" % (int(length) + random.choice((-1, 1)))))
    return data[: found.start()] + sign + length + b"\r\n" + data[found.end() :]


def _splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = random.choice(others) if others else data
    start, end = _span(random, other)
    at = random.randrange(len(data) + 1)
    return data[:at] + other[start : end + 40] + data[at:]
