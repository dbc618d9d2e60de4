"""Compares the consumer groups of a stream with those of its copy."""

from __future__ import annotations

from collections import Counter

from penstock.migration.copy import Copied
from penstock.migration.differences import PendingChange, compare_pending
from penstock.migration.findings import Depth, Findings, plural
from penstock.migration.groups import Settled, Wanted
from penstock.migration.plan import Ends
from penstock.migration.read import read_groups, read_pending, read_pending_ids
from penstock.migration.values import Digest, Group, Head, noted, shown
from storage import ids


def compare_groups(
    ends: Ends, copied: Copied, groups: list[Group], now: Head, depth: Depth, findings: Findings
) -> None:
    """Compares the target's groups with what was copied, and that with the source's ``groups``.

    Consumers may go on working on the source: what is there ``now`` may be another thing.
    """
    key = copied.plan.key
    found = {group.name: group for group in read_groups(ends.target, key)}
    current = {group.name: group for group in groups}
    for settled in copied.groups:
        here = found.pop(settled.group.name, None)
        there = current.pop(settled.group.name, None)
        if here is None:
            findings.differences.append(f"{_called(settled.group)} missing")
        else:
            _GroupCheck(ends, copied, settled, findings).run(here, there, depth)
    for group in found.values():
        findings.differences.append(f"{_called(group)} too many")
    if current:
        findings.notes.append(f"the source has {plural(len(current), 'newer group')}")
    if now.last_id == copied.plan.source.last_id:
        _find_unreachable(ends, key, groups, now.last_id, findings)


def _called(group: Group) -> str:
    return f"group '{shown(group.name)}'"


def _find_unreachable(
    ends: Ends, key: bytes, groups: list[Group], last: int, findings: Findings
) -> None:
    """Pending IDs above the last-generated-id: the source's must have been lowered by XSETID."""
    number = sum(1 for _ in read_pending_ids(ends.source, key, groups, last + 1, ids.MAX))
    if number:
        what = plural(number, "pending entry")
        findings.differences.append(f"{what} above the last-generated-id cannot be copied")


class _GroupCheck:
    """The comparison of one group."""

    def __init__(self, ends: Ends, copied: Copied, settled: Settled, findings: Findings) -> None:
        self._ends = ends
        self._key = copied.plan.key
        self._start = copied.plan.source
        self._settled = settled
        self._findings = findings
        self._name = _called(settled.group)

    def run(self, here: Group, there: Group | None, depth: Depth) -> None:
        """Compares the target's group with what was copied, and with the source's if it exists."""
        self._compare_state(here)
        if depth is Depth.QUICK:
            self._expect("pending", self._settled.pending, here.pending)
            moved = False
        else:
            moved = self._compare_pending(there)
        if moved or there is None or _position(there) != _position(self._settled.group):
            self._findings.notes.append(f"{self._name} has changed on the source since")

    def _compare_state(self, here: Group) -> None:
        wanted = self._settled.group
        last, its = ids.text(wanted.last_id).decode(), ids.text(here.last_id).decode()
        self._expect("last-delivered-id", last, its)
        self._expect("entries-read", _known(wanted.entries_read), _known(here.entries_read))
        self._count(len(wanted.consumers - here.consumers), "consumer", "missing")
        self._count(len(here.consumers - wanted.consumers), "consumer", "too many")
        given = "given to a consumer without a name, since the target has no XNACK"
        self._count(self._settled.stand_ins, "released entry", given)

    def _compare_pending(self, there: Group | None) -> bool:
        """Whether the source has moved on from what was copied, and the target is still that."""
        digest = Digest()
        found = read_pending(self._ends.target, self._key, self._settled.group.name, ids.MAX)
        wanted = () if there is None else Wanted(self._ends, self._key, there, self._start)
        kinds = Counter(map(_kind, compare_pending(wanted, noted(found, digest))))
        if kinds and digest.value() == self._settled.digest:
            return True
        for kind, number in kinds.items():
            self._count(number, "pending entry", kind)
        return False

    def _expect(self, what: str, wanted: object, found: object) -> None:
        self._findings.expect(f"{self._name}: {what}", wanted, found)

    def _count(self, number: int, noun: str, what: str) -> None:
        if number:
            self._findings.differences.append(f"{self._name}: {plural(number, noun)} {what}")


def _known(count: int | None) -> int | str:
    return "unknown" if count is None else count


def _position(group: Group) -> tuple[int, int | None]:
    return group.last_id, group.entries_read


def _kind(change: PendingChange) -> str:
    """What is wrong with a pending entry on the target."""
    wanted, found = change.wanted, change.found
    if wanted is None:
        return "too many"
    if found is None:
        return "missing"
    if found == wanted._replace(time=found.time) and found.time < wanted.time:
        return "delivered earlier there; if its clock is behind, run again"
    return "different"
