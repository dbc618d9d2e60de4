"""Compares a stream with its finished copy."""

from __future__ import annotations

from collections import Counter

from penstock.migration.append import Advance
from penstock.migration.copy import Copied
from penstock.migration.differences import EntryChange, Fault, compare_entries
from penstock.migration.errors import StreamGone
from penstock.migration.findings import Depth, Findings, plural
from penstock.migration.finish import counters_of
from penstock.migration.groups import source_groups
from penstock.migration.plan import Ends
from penstock.migration.read import read_entries, read_expiry, read_head
from penstock.migration.values import USUAL_SETTINGS, Head
from penstock.migration.verify_groups import compare_groups
from storage import ids


def verify_stream(ends: Ends, copied: Copied, depth: Depth, advance: Advance) -> Findings:
    """Compares a stream with its copy, up to where the source was when the copy began.

    What has changed on the source since then is a note, provided that the target is as it was
    copied. ``advance`` is told how many more entries have been found to be equal. Raises
    :class:`StreamGone` if the stream no longer exists on one of the servers.
    """
    findings = Findings()
    key, start = copied.plan.key, copied.plan.source
    groups, now = source_groups(ends.source, key, start)
    here = read_head(ends.target, key)
    if here is None:
        raise StreamGone("gone from the target")
    _compare_heads(copied, here, findings)
    if now.last_id > start.last_id:
        newer = plural(max(0, now.added - start.added), "newer entry")
        findings.notes.append(f"the source has {newer}")
    if depth is Depth.FULL:
        _compare_entries(ends, copied, now, advance, findings)
    elif now.has_same_entries(copied.head) and now.last_id == start.last_id:
        _compare_boundaries(now, here, findings)
    compare_groups(ends, copied, groups, now, depth, findings)
    _compare_expiry(ends, key, findings)
    return findings


def _compare_heads(copied: Copied, here: Head, findings: Findings) -> None:
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
    ends: Ends, copied: Copied, now: Head, advance: Advance, findings: Findings
) -> None:
    key, stop = copied.plan.key, copied.plan.source.last_id
    wanted = read_entries(ends.source, key, ids.MIN, stop)
    found = read_entries(ends.target, key, ids.MIN, ids.MAX)
    faults: Counter[Fault] = Counter()
    for change in compare_entries(wanted, found):
        if isinstance(change, EntryChange):
            faults[change.fault] += 1
        else:
            advance(change)
    if faults[Fault.SPARE] and not now.has_same_entries(copied.head):
        lost = plural(faults.pop(Fault.SPARE), "entry")
        findings.notes.append(f"the source has removed {lost} since")
    for fault, number in faults.items():
        findings.differences.append(f"{plural(number, 'entry')} {fault.value}")


def _compare_boundaries(now: Head, here: Head, findings: Findings) -> None:
    findings.expect("length", now.length, here.length)
    if now.first != here.first:
        findings.differences.append("another first entry")
    if now.last != here.last:
        findings.differences.append("another last entry")


def _compare_expiry(ends: Ends, key: bytes, findings: Findings) -> None:
    wanted, found = read_expiry(ends.source, key), read_expiry(ends.target, key)
    findings.expect("time of expiry", _moment(wanted), _moment(found))


def _moment(time: int | None) -> str:
    return "never" if time is None else f"{time} (Unix ms)"


def _text(identity: int | None) -> str:
    return "" if identity is None else ids.text(identity).decode()
