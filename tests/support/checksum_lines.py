"""The checksum lines in files of commands: what is written between them."""

from __future__ import annotations

import re

from storage.checksums import crc32c

LINE = re.compile(rb"#CRC32C:([0-9a-f]{8}):([0-9]+)\r\n")


def groups(data: bytes) -> list[bytes]:
    """What was written at once, one by one; a last group without a checksum is left out.

    A line belongs to a group if it counts from its beginning; it must tell the right checksum.
    """
    found: list[bytes] = []
    begin = 0
    for line in LINE.finditer(data):
        group = data[begin : line.start()]
        if len(group) == int(line[2]):
            assert crc32c(group) == int(line[1], 16)
            found.append(group)
            begin = line.end()
    return found


def without_lines(data: bytes) -> bytes:
    """The contents of a file, each byte of which has to be covered."""
    found = groups(data)
    assert with_lines(*found) == data
    return b"".join(found)


def line_of(group: bytes) -> bytes:
    """The line that belongs behind these bytes."""
    return b"#CRC32C:%08x:%d\r\n" % (crc32c(group), len(group))


def with_lines(*written: bytes) -> bytes:
    """A file into which these groups were written."""
    return b"".join(group + line_of(group) for group in written)
