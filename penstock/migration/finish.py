"""The last steps of a copy: removes placeholders and sets the counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import Final

from penstock.migration.client import Argument, Command, End
from penstock.migration.differences import EntryChange, Fault, compare_entries
from penstock.migration.errors import StreamGone, StreamRefused
from penstock.migration.groups import Settled, source_head
from penstock.migration.plan import REMEDY, Ends
from penstock.migration.read import read_entries, read_expiry, read_groups, read_head
from penstock.migration.values import Counters, Head, entry_id, is_placeholder
from storage import ids

UNKNOWN_COUNT: Final = -1
"""ENTRIESREAD of a group that does not know how many entries it has read."""

_BATCH: Final = 1000


def target_head(target: End, key: bytes) -> Head:
    """The counters of the target's stream; raises :class:`StreamGone`."""
    head = read_head(target, key)
    if head is None:
        raise StreamGone("removed from the target during the copy")
    return head


# --- entries that the source has no more -----------------------------------------------------


def remove_spare_entries(ends: Ends, key: bytes, start: Head) -> None:
    """Removes placeholders, and entries that the source has lost since an earlier run.

    XTRIM removes those before the source's first entry, as it leaves max-deleted-entry-id alone;
    a trimmed stream's often is 0-0, to which no command can set it back.
    """
    now = source_head(ends.source, key, start)
    if now.first is not None and entry_id(now.first) <= start.last_id:
        ends.target.ask("XTRIM", key, "MINID", now.first[0])
    else:
        ends.target.ask("XTRIM", key, "MAXLEN", 0)
    here = target_head(ends.target, key)
    if here.length != now.length - (now.added - start.added):
        _remove_within(ends, key, start, now)


def _remove_within(ends: Ends, key: bytes, start: Head, now: Head) -> None:
    """Compares all entries and removes those that only the target has."""
    wanted = read_entries(ends.source, key, ids.MIN, start.last_id)
    found = read_entries(ends.target, key, ids.MIN, start.last_id)
    spare = _spare(compare_entries(wanted, found), now.max_deleted)
    for leading, run in groupby(spare, itemgetter(0)):
        while batch := [ids.text(identity + leading) for _, identity in islice(run, _BATCH)]:
            if leading:
                ends.target.ask("XTRIM", key, "MINID", batch[-1])
            else:
                ends.target.ask("XDEL", key, *batch)


def _spare(
    changes: Iterable[int | EntryChange], max_deleted: int | None
) -> Iterator[tuple[bool, int]]:
    """The IDs that only the target has, and whether they come before all that the source has.

    Raises :class:`StreamRefused` at an entry that the target lacks, and at one that cannot have
    been deleted from the source, since that never deleted so high an ID.
    """
    leading = True
    for change in changes:
        if not isinstance(change, EntryChange):
            leading = False
        elif change.fault is not Fault.SPARE or not (leading or _was_deleted(change, max_deleted)):
            text = ids.text(change.id).decode()
            fault = change.fault.value
            raise StreamRefused(f"the entry {text} is {fault} on the target; {REMEDY}")
        else:
            yield leading, change.id


def _was_deleted(change: EntryChange, max_deleted: int | None) -> bool:
    assert change.found is not None
    return max_deleted is None or change.id <= max_deleted or is_placeholder(change.found)


# --- counters --------------------------------------------------------------------------------


def wanted_counters(start: Head, now: Head) -> Counters:
    """The counters that the target should have: those of the source when it ended at the start."""
    if now.last_id == start.last_id:
        return Counters(now.last_id, now.added, now.max_deleted)
    later = now.max_deleted is not None and now.max_deleted > start.last_id
    return Counters(start.last_id, start.added, (start if later else now).max_deleted)


def counters_of(head: Head, wanted: Counters) -> Counters:
    """The same counters of the target, those left out of which any value will do."""
    max_deleted = None if wanted.max_deleted is None else head.max_deleted
    return Counters(head.last_id, head.added, max_deleted)


def set_counters(ends: Ends, key: bytes, wanted: Counters, settled: list[Settled]) -> None:
    """Sets the stream's counters, then the positions of its groups, which depend on them."""
    if counters_of(target_head(ends.target, key), wanted) != wanted:
        last = ids.text(wanted.last_id)
        command: list[Argument] = ["XSETID", key, last, "ENTRIESADDED", wanted.added]
        if wanted.max_deleted is not None:
            command += ["MAXDELETEDID", ids.text(min(wanted.max_deleted, wanted.last_id))]
        ends.target.ask(*command)
    found = {group.name: group for group in read_groups(ends.target, key)}
    commands: list[Command] = []
    for group in (each.group for each in settled):
        here = found[group.name]
        if (here.last_id, here.entries_read) != (group.last_id, group.entries_read):
            read = UNKNOWN_COUNT if group.entries_read is None else group.entries_read
            position = (ids.text(group.last_id), "ENTRIESREAD", read)
            commands.append(("XGROUP", "SETID", key, group.name, *position))
    ends.target.ask_all(commands)


def set_settings(ends: Ends, key: bytes, source: Head) -> None:
    """Sets how long idempotent IDs are remembered, if both ends know of such a thing."""
    here = target_head(ends.target, key).settings
    if source.settings is None or here is None or source.settings == here:
        return
    duration, maxsize = source.settings
    ends.target.ask("XCFGSET", key, "IDMP-DURATION", duration, "IDMP-MAXSIZE", maxsize)


def set_expiry(ends: Ends, key: bytes, start: Head) -> None:
    """Lets the target's key expire when the source's does.

    Raises :class:`StreamGone` if the source's is gone, which reads as one that never expires."""
    wanted = read_expiry(ends.source, key)
    source_head(ends.source, key, start)
    if read_expiry(ends.target, key) == wanted:
        return
    if wanted is None:
        ends.target.ask("PERSIST", key)
    else:
        ends.target.ask("PEXPIREAT", key, wanted)
