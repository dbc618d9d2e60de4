"""Which entries there were, what has become of them, and what a table may hold.

An entry is *certain* until something is done that may keep it from the pipeline: then it has a
mark, and the table may lack it. What was trimmed or dropped before it was read has to be told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field

Id = tuple[int, int]

_ID = r"(\d+-\d+)"
_STREAM = r"stream '(\w+)': "
_TRIMMED = re.compile(_STREAM + rf".*?after {_ID} and before (?:{_ID}|the end) removed before")
_PENDING = re.compile(_STREAM + rf".*?after {_ID} and up to {_ID} removed while pending in group")
_CLAIMED = re.compile(_STREAM + r".*removed while pending for another consumer")
_DROPPED = re.compile(_STREAM + r".*of consumer '([\w-]+)' of group .* were dropped before")
_TAIL = re.compile(r"stream '(\w+)' lost its end")
_BACK = re.compile(
    _STREAM + rf"group '\w+' stands at {_ID}, before {_ID}, where this query left it"
)
_AGAIN = re.compile(_STREAM + rf".*entr\w+ of batch \d+ are delivered again after {_ID}")
_END: Id = (1 << 63, 0)

CLAIM_LOST = "claim lost"
"""The mark of entries that a failover may have given back to a rival, from which the query had
claimed them: it claims them again."""


def id_of(text: str | bytes) -> Id:
    """An ID as it sorts."""
    ms, _, seq = (text.decode() if isinstance(text, bytes) else text).partition("-")
    return int(ms), int(seq)


@dataclass
class Entry:
    """An entry that was added: ``n`` is its number, which no other has."""

    n: int
    stream: str
    id: Id
    key: str
    op: str
    is_bad: bool
    marks: set[str] = field(default_factory=set)
    """What was done to it that may keep it from the pipeline."""


class Told:
    """What the warnings and errors of runs have said."""

    def __init__(self, text: str) -> None:
        self.knows_entries = False
        self.removed = [
            (stream, id_of(after), id_of(before) if before else _END)
            for stream, after, before in _TRIMMED.findall(text)
        ]
        self.removed += [
            (stream, id_of(after), (id_of(to)[0], id_of(to)[1] + 1))
            for stream, after, to in _PENDING.findall(text)
        ]
        self.dropped = {f"dropped {stream} {name}" for stream, name in _DROPPED.findall(text)}
        self.claimed = set(_CLAIMED.findall(text))
        self.tails = Counter(_TAIL.findall(text))
        self.again = [(s, id_of(after), id_of(to)) for s, after, to in _BACK.findall(text)]
        self.again += [(s, id_of(after), _END) for s, after in _AGAIN.findall(text)]

    def covers(self, entry: Entry) -> bool:
        """Whether the loss of an entry was told."""
        ranges = (
            after < entry.id < before
            for stream, after, before in self.removed
            if stream == entry.stream
        )
        return any(ranges) or bool(self.dropped & entry.marks)

    def without_repeats(self) -> Told:
        """The same for a table that knows each entry: none may be there twice."""
        same = copy(self)
        same.knows_entries = True
        return same

    def repeats(self, entry: Entry) -> bool:
        """Whether it was told that an entry comes again, or nobody can know."""
        if self.knows_entries:
            return False
        return CLAIM_LOST in entry.marks or any(
            after < entry.id <= to for stream, after, to in self.again if stream == entry.stream
        )


SILENT = frozenset(("deleted", "failover", "rival", "forgotten"))
"""Marks of entries that the pipeline can't know of: they were deleted by name, or had gone with
the server before it asked, or another consumer has them."""


class Model:
    """All entries, by number."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, stream: str, id: Id, key: str, op: str, is_bad: bool) -> None:
        """An entry that was added with the next number."""
        self.entries.append(Entry(len(self.entries), stream, id, key, op, is_bad))

    def mark(self, mark: str, stream: str, ids: Iterable[Id]) -> int:
        """Marks entries of a stream; how many."""
        wanted = set(ids)
        found = [e for e in self.entries if e.stream == stream and e.id in wanted]
        for entry in found:
            entry.marks.add(mark)
        return len(found)

    def problems(self, numbers: list[int], told: Told, of_bad: bool) -> list[str]:
        """What is wrong with a table that entries are appended to: the numbers of its rows."""
        counts = Counter(numbers)
        found = [f"{n} was never added" for n in counts if not 0 <= n < len(self.entries)]
        for entry in self.entries:
            count = counts[entry.n]
            if entry.is_bad != of_bad:
                found += [f"{entry} does not belong here"] if count else []
            elif count > 1 and not told.repeats(entry):
                found.append(f"{count} times: {entry}")
            elif not count and not self._may_lack(entry, told):
                found.append(f"missing: {entry}")
        return found

    def _may_lack(self, entry: Entry, told: Told) -> bool:
        return bool(entry.marks & SILENT) or (bool(entry.marks) and told.covers(entry))

    def problems_by_key(self, rows: list[tuple[str, int]], told: Told) -> list[str]:
        """What is wrong with a table of which each row is the last of its key."""
        found = [
            f"key {key} {count} times"
            for key, count in Counter(k for k, _ in rows).items()
            if count > 1
        ]
        values = dict(rows)
        keys: dict[str, list[Entry]] = {}
        for entry in self.entries:
            if not entry.is_bad:
                keys.setdefault(entry.key, []).append(entry)
        for key, entries in keys.items():
            allowed = self._allowed(entries, told)
            if values.get(key) not in allowed:
                found.append(f"key {key} is {values.get(key)}, not one of {allowed}: {entries}")
        return found + [f"key {key} was never added" for key in values.keys() - keys.keys()]

    def _allowed(self, entries: list[Entry], told: Told) -> set[int | None]:
        """The values that a key may have: the last certain one, or an uncertain one after it.

        Where entries come late or again their order is not known.
        """
        ordered = sorted(entries, key=lambda entry: entry.id)
        if any(e.marks & {"left", "claimed"} or told.repeats(e) for e in entries):
            return {None, *(e.n for e in entries)}
        allowed: set[int | None] = set()
        for entry in reversed(ordered):
            allowed.add(None if entry.op == "d" else entry.n)
            if not entry.marks:
                return allowed
        return {None, *allowed}

    def lost(self, numbers: list[int]) -> int:
        """How many entries with marks a table lacks, which is allowed."""
        there = set(numbers)
        return sum(1 for e in self.entries if not e.is_bad and e.n not in there)
