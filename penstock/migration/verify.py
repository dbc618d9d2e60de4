"""Compares a stream with its finished copy."""

from __future__ import annotations

from collections import Counter

from penstock.migration.copy import (
    Advance,
    Copied,
    CopiedGroup,
    WantedPending,
    counters_of,
    source_groups,
)
from penstock.migration.model import (
    USUAL_SETTINGS,
    Digest,
    EntryChange,
    EntryFault,
    GroupState,
    Head,
    PendingChange,
    compare_entries,
    compare_pending,
    noted,
)
from penstock.migration.plan import Endpoints, StreamGone
from penstock.migration.read import (
    read_entries,
    read_expiry,
    read_groups,
    read_head,
    read_pending,
    read_pending_ids,
)
from penstock.migration.report import Depth, StreamFindings
from penstock.terminal import plural, shown
from storage.engine import ids

# --- the stream ----------------------------------------------------------------------------------


def verify_stream(
    endpoints: Endpoints, copied: Copied, depth: Depth, advance: Advance
) -> StreamFindings:
    """Compares a stream with its copy, up to where the source was when the copy began.

    What has changed on the source since then is a note, provided that the target is as it was
    copied. ``advance`` is told how many more entries have been found to be equal. Raises
    :class:`StreamGone` if the stream no longer exists on one of the servers.
    """
    findings = StreamFindings()
    key, start = copied.plan.key, copied.plan.source
    groups, now = source_groups(endpoints.source, key, start)
    here = read_head(endpoints.target, key)
    if here is None:
        raise StreamGone("gone from the target")
    _compare_heads(copied, here, findings)
    if now.last_id > start.last_id:
        newer = plural(max(0, now.added - start.added), "newer entry")
        findings.notes.append(f"the source has {newer}")
    if depth is Depth.FULL:
        _compare_entries(endpoints, copied, now, advance, findings)
    elif now.has_same_entries(copied.head) and now.last_id == start.last_id:
        _compare_boundaries(now, here, findings)
    compare_groups(endpoints, copied, groups, now, depth, findings)
    _compare_expiry(endpoints, key, findings)
    return findings


def _compare_heads(copied: Copied, here: Head, findings: StreamFindings) -> None:
    wanted, found = copied.counters, counters_of(here, copied.counters)
    findings.expect("last-generated-id", _text(wanted.last_id), _text(found.last_id))
    findings.expect("entries-added", wanted.added, found.added)
    findings.expect("max-deleted-entry-id", _text(wanted.max_deleted), _text(found.max_deleted))
    source = copied.plan.source
    if source.settings is not None and here.settings is not None:
        findings.expect("idmp-duration", source.settings.duration, here.settings.duration)
        findings.expect("idmp-maxsize", source.settings.maxsize, here.settings.maxsize)
    elif source.settings not in (None, USUAL_SETTINGS):
        findings.notes.append("the target has no idmp-duration and idmp-maxsize")
    if source.remembered:
        remembered = plural(source.remembered, "idempotent ID")
        findings.notes.append(f"{remembered} left behind: no command can read them")


def _compare_entries(
    endpoints: Endpoints, copied: Copied, now: Head, advance: Advance, findings: StreamFindings
) -> None:
    key, stop = copied.plan.key, copied.plan.source.last_id
    wanted = read_entries(endpoints.source, key, ids.MIN, stop)
    found = read_entries(endpoints.target, key, ids.MIN, ids.MAX)
    faults: Counter[EntryFault] = Counter()
    for change in compare_entries(wanted, found):
        if isinstance(change, EntryChange):
            faults[change.fault] += 1
        else:
            advance(change)
    if faults[EntryFault.EXTRA] and not now.has_same_entries(copied.head):
        lost = plural(faults.pop(EntryFault.EXTRA), "entry")
        findings.notes.append(f"the source has removed {lost} since")
    for fault, number in faults.items():
        findings.differences.append(f"{plural(number, 'entry')} {fault.value}")


def _compare_boundaries(now: Head, here: Head, findings: StreamFindings) -> None:
    findings.expect("length", now.length, here.length)
    if now.first != here.first:
        findings.differences.append("another first entry")
    if now.last != here.last:
        findings.differences.append("another last entry")


def _compare_expiry(endpoints: Endpoints, key: bytes, findings: StreamFindings) -> None:
    wanted, found = read_expiry(endpoints.source, key), read_expiry(endpoints.target, key)
    findings.expect("time of expiry", _moment(wanted), _moment(found))


def _moment(time: int | None) -> str:
    return "never" if time is None else f"{time} (Unix ms)"


def _text(id: int | None) -> str:
    return "" if id is None else ids.text(id).decode()


# --- its groups ----------------------------------------------------------------------------------


def compare_groups(
    endpoints: Endpoints,
    copied: Copied,
    groups: list[GroupState],
    now: Head,
    depth: Depth,
    findings: StreamFindings,
) -> None:
    """Compares the target's groups with what was copied, and that with the source's ``groups``.

    Consumers may continue on the source, so its groups may have changed by ``now``.
    """
    key = copied.plan.key
    found = {group.name: group for group in read_groups(endpoints.target, key)}
    current = {group.name: group for group in groups}
    for copied_group in copied.groups:
        here = found.pop(copied_group.group.name, None)
        there = current.pop(copied_group.group.name, None)
        if here is None:
            findings.differences.append(f"{_called(copied_group.group)} missing")
        else:
            _GroupCheck(endpoints, copied, copied_group, findings).run(here, there, depth)
    for group in found.values():
        findings.differences.append(f"{_called(group)} too many")
    if current:
        findings.notes.append(f"the source has {plural(len(current), 'newer group')}")
    if now.last_id == copied.plan.source.last_id:
        _find_unreachable(endpoints, key, groups, now.last_id, findings)


def _called(group: GroupState) -> str:
    return f"group '{shown(group.name)}'"


def _find_unreachable(
    endpoints: Endpoints, key: bytes, groups: list[GroupState], last: int, findings: StreamFindings
) -> None:
    """Pending IDs above the last-generated-id: the source's must have been lowered by XSETID."""
    number = sum(1 for _ in read_pending_ids(endpoints.source, key, groups, last + 1, ids.MAX))
    if number:
        what = plural(number, "pending entry")
        findings.differences.append(f"{what} above the last-generated-id cannot be copied")


class _GroupCheck:
    """The comparison of one group."""

    def __init__(
        self,
        endpoints: Endpoints,
        copied: Copied,
        copied_group: CopiedGroup,
        findings: StreamFindings,
    ) -> None:
        self._endpoints = endpoints
        self._key = copied.plan.key
        self._start = copied.plan.source
        self._copied = copied_group
        self._findings = findings
        self._name = _called(copied_group.group)

    def run(self, here: GroupState, there: GroupState | None, depth: Depth) -> None:
        """Compares the target's group with what was copied, and with the source's if it exists."""
        self._compare_state(here)
        if depth is Depth.QUICK:
            self._expect("pending", self._copied.pending, here.pending)
            moved = False
        else:
            moved = self._compare_pending(there)
        if moved or there is None or _position(there) != _position(self._copied.group):
            self._findings.notes.append(f"{self._name} has changed on the source since")

    def _compare_state(self, here: GroupState) -> None:
        wanted = self._copied.group
        self._expect("last-delivered-id", _text(wanted.last_id), _text(here.last_id))
        self._expect("entries-read", _known(wanted.entries_read), _known(here.entries_read))
        self._count(len(wanted.consumers - here.consumers), "consumer", "missing")
        self._count(len(here.consumers - wanted.consumers), "consumer", "too many")
        given = "given to a consumer without a name, since the target has no XNACK"
        self._count(self._copied.stand_ins, "released entry", given)

    def _compare_pending(self, there: GroupState | None) -> bool:
        """Whether only the source has changed since the copy."""
        digest = Digest()
        found = read_pending(self._endpoints.target, self._key, self._copied.group.name, ids.MAX)
        wanted = (
            () if there is None else WantedPending(self._endpoints, self._key, there, self._start)
        )
        kinds = Counter(map(_kind, compare_pending(wanted, noted(found, digest))))
        if kinds and digest.value() == self._copied.digest:
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


def _position(group: GroupState) -> tuple[int, int | None]:
    return group.last_id, group.entries_read


def _kind(change: PendingChange) -> str:
    """Return what is wrong with a pending entry on the target."""
    wanted, found = change.wanted, change.found
    if wanted is None:
        return "too many"
    if found is None:
        return "missing"
    if found == wanted._replace(time=found.time) and found.time < wanted.time:
        return "delivered earlier there; if its clock is behind, run again"
    return "different"
