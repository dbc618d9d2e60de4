"""The log of what was denied: failed logins, and commands that a user may not run."""

from __future__ import annotations

from typing import Final

MERGED_MS: Final = 60_000
"""A denial like one that is in the log and not older than this is counted there."""


class LogEntry:
    """Denials of one kind: how many, of whom, and the last of them."""

    def __init__(
        self, reason: str, context: str, subject: bytes, user: bytes, client: bytes, now_ms: int
    ) -> None:
        self.reason = reason
        self.context = context
        self.subject = subject
        self.user = user
        self.client = client
        self.count = 1
        self.number = 0
        self.created_ms = self.updated_ms = now_ms

    def is_like(self, other: LogEntry) -> bool:
        """Whether both are about the same thing, and close enough in time."""
        return (
            self.reason == other.reason
            and self.context == other.context
            and self.subject == other.subject
            and self.user == other.user
            and abs(self.updated_ms - other.updated_ms) <= MERGED_MS
        )


class AclLog:
    """The entries, the newest first."""

    def __init__(self) -> None:
        self.entries: list[LogEntry] = []
        self._numbers = 0

    def add(self, entry: LogEntry, most: int) -> None:
        """Adds an entry, or counts it in one that is like it; keeps ``most`` entries."""
        if not most:
            self.entries.clear()
            return
        known = next((each for each in self.entries if each.is_like(entry)), None)
        if known is None:
            entry.number = self._numbers
            self._numbers += 1
        else:
            entry.count += known.count
            entry.number, entry.created_ms = known.number, known.created_ms
            self.entries.remove(known)
        self.entries.insert(0, entry)
        del self.entries[most:]

    def clear(self) -> None:
        """Forgets all entries; their numbers go on."""
        self.entries.clear()
