"""What is wrong with an RDB file or a payload."""

from __future__ import annotations


class DamagedRDB(Exception):
    """The bytes are no RDB that Penstock can read; ``offset`` is the place of the first byte that
    does not fit, and ``reason`` says why, in one line."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(f"at byte {offset}: {reason}")
        self.offset = offset
        self.reason = reason
