"""Whether a group has got each entry once."""

from __future__ import annotations

from penstock.testing.clock import Ask
from penstock.testing.waiting import SHOWN, as_dict, groups_of


def assert_delivered_once(ask: Ask, stream: str, group: str) -> None:
    """Raises :class:`AssertionError` unless the group was given each entry, and only once."""
    if wrong := ", ".join(_wrong(ask, stream, group)):
        raise AssertionError(f"not delivered once to the group {group!r} of {stream!r}: {wrong}")


def _wrong(ask: Ask, stream: str, group: str) -> list[str]:
    """What speaks against it: counts, and the entries among those that are pending."""
    counts = as_dict(ask("DEBUG", "GROUP", stream, group))
    added = as_dict(ask("XINFO", "STREAM", stream))["entries-added"]
    lag = groups_of(ask, stream)[group]["lag"]
    told = [f"{counts[name]} {name}" for name in ("redelivered", "claimed") if counts[name]]
    if counts["delivered"] > added:
        told.append(f"{counts['delivered']} delivered, but only {added} added")
    if not counts["delivered"]:
        told.append("nothing was delivered")
    elif lag:
        told.append(f"{lag} not delivered")
    return told and [*told, *_again(ask, stream, group)]


def _again(ask: Ask, stream: str, group: str) -> list[str]:
    """The pending entries that were delivered more than once."""
    rows = [row for row in ask("XPENDING", stream, group, "-", "+", 1000) if row[3] != 1]
    return [f"{row[0]} delivered {row[3]} times, now to {row[1]}" for row in rows[:SHOWN]]
