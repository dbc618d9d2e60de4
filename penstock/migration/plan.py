"""Decides what to do with one stream: copy it, continue a copy, or skip it."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from penstock.client.connection import ServerConnection
from penstock.migration.model import GroupState, Head, entry_id, is_placeholder
from penstock.migration.read import read_groups, read_head
from penstock.terminal import shown
from storage.engine import ids


class StreamError(Exception):
    """Base of what keeps one stream from being copied; the text is one line for the user."""


class StreamGone(StreamError):
    """The source has no stream of this name any more."""


class StreamRefused(StreamError):
    """Says why a stream of the target is left alone."""


class Endpoints(NamedTuple):
    """The server that streams are copied from, and the one that gets them."""

    source: ServerConnection
    target: ServerConnection


class TargetAction(Enum):
    """An action on the stream of the target."""

    COPY = "copy"
    CONTINUE = "continue"
    REPLACE = "replace"


class Plan(NamedTuple):
    """A plan of what is to be done with one stream."""

    key: bytes
    action: TargetAction
    source: Head
    """The source's counters at the start: entries are copied up to this last-generated-id."""
    after: int
    """The last-generated-id of the target's copy: entries are copied from above it."""
    present: int
    """How many entries the target's copy has."""


REMEDY: Final = "--replace puts the source's in its place"


def make_plan(endpoints: Endpoints, key: bytes, replace: bool) -> Plan:
    """Return what to do with the stream ``key``; ``replace`` allows to remove what is in the way.

    Raises :class:`StreamGone`, or :class:`StreamRefused` if something is in the way.
    """
    source = read_head(endpoints.source, key)
    if source is None:
        raise StreamGone("gone from the source")
    kind = endpoints.target.call("TYPE", key)
    if kind == b"none":
        return Plan(key, TargetAction.COPY, source, 0, 0)
    target = read_head(endpoints.target, key) if kind == b"stream" else None
    obstacle = (
        f"the target's key is a {shown(kind)}"
        if target is None
        else _obstacle(endpoints, key, source, target)
    )
    if target is not None and obstacle is None:
        return Plan(key, TargetAction.CONTINUE, source, target.last_id, target.length)
    if replace:
        return Plan(key, TargetAction.REPLACE, source, 0, 0)
    raise StreamRefused(f"{obstacle}; {REMEDY}")


def _obstacle(endpoints: Endpoints, key: bytes, source: Head, target: Head) -> str | None:
    """Why the target's stream is not an earlier or unfinished copy of the source's.

    This compares its first and last entry and the IDs behind them; the verification does the rest.
    """
    if target.last_id > source.last_id:
        return (
            f"the target's last-generated-id is {_text(target.last_id)},"
            f" above the source's {_text(source.last_id)}"
        )
    return (
        _foreign_last_entry(endpoints.source, key, target)
        or _foreign_first_entry(source, target)
        or _missing_entry(endpoints.source, key, target)
        or _foreign_group(read_groups(endpoints.source, key), read_groups(endpoints.target, key))
    )


def _foreign_last_entry(source: ServerConnection, key: bytes, target: Head) -> str | None:
    if target.last is None or is_placeholder(target.last):
        return None
    text = target.last[0]
    found = source.call("XRANGE", key, text, text)
    if not found:
        return f"the target's last entry, {shown(text)}, is not on the source"
    return None if found[0] == target.last else f"the entry {shown(text)} differs"


def _foreign_first_entry(source: Head, target: Head) -> str | None:
    """An entry before the source's first is no obstacle: the source has trimmed it since."""
    if target.first is None or source.first is None:
        return None
    here, there = entry_id(target.first), entry_id(source.first)
    if here > there:
        return f"the target's stream begins at {_text(here)}, the source's at {_text(there)}"
    if here == there and target.first != source.first:
        return f"the entry {_text(here)} differs"
    return None


def _missing_entry(source: ServerConnection, key: bytes, target: Head) -> str | None:
    """Entries cannot be added below the last-generated-id, so none may be lacking there."""
    start = 0 if target.last is None else entry_id(target.last) + 1
    if start > target.last_id:
        return None
    lacking = source.call("XRANGE", key, _text(start), _text(target.last_id), "COUNT", 1)
    return f"the target lacks the entry {shown(lacking[0][0])}" if lacking else None


def _foreign_group(source: list[GroupState], target: list[GroupState]) -> str | None:
    known = {group.name: group for group in source}
    for group in target:
        model = known.get(group.name)
        if model is None:
            return f"the target has a group '{shown(group.name)}' that the source lacks"
        if group.last_id > model.last_id:
            return (
                f"the target's group '{shown(group.name)}' has read up to {_text(group.last_id)},"
                f" the source's up to {_text(model.last_id)}"
            )
    return None


def _text(id: int) -> str:
    return ids.text(id).decode()
