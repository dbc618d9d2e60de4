"""Copies one stream: entries, groups, then counters.

The steps are in such an order that the copy can be cut off after any command and begun again:
:mod:`penstock.migration.plan` finds what is there, and every step does only what is left of it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from penstock.migration.append import Advance, append_entries
from penstock.migration.finish import (
    remove_spare_entries,
    set_counters,
    set_expiry,
    set_settings,
    wanted_counters,
)
from penstock.migration.groups import Settled, settle_groups
from penstock.migration.plan import Action, Ends, Plan
from penstock.migration.values import Counters, Head

_ANY_GROUP: Final = b"penstock-migration"


class Copied(NamedTuple):
    """What was copied of a stream, for the verification."""

    plan: Plan
    added: int
    """How many entries this run has added."""
    head: Head
    """The source's counters when its groups were read."""
    counters: Counters
    """What the target's counters have been set to."""
    groups: list[Settled]


def copy_stream(ends: Ends, plan: Plan, advance: Advance) -> Copied:
    """Executes the plan. Raises :class:`MigrationError` if either server rejects a command.

    ``advance`` is told how many entries have been dealt with, those already there included.
    """
    key = plan.key
    if plan.action is Action.REPLACE:
        ends.target.ask("UNLINK", key)
    if plan.action is not Action.CONTINUE:
        _make_stream(ends, key)
    added = append_entries(ends, plan, advance)
    groups, head = settle_groups(ends, key, plan.source)
    remove_spare_entries(ends, key, plan.source)
    counters = wanted_counters(plan.source, head)
    set_counters(ends, key, counters, groups)
    set_settings(ends, key, plan.source)
    set_expiry(ends, key, plan.source)
    return Copied(plan, added, head, counters, groups)


def _make_stream(ends: Ends, key: bytes) -> None:
    """Makes a stream without entries: one without groups would have no other first command."""
    ends.target.transact(
        [
            ("XGROUP", "CREATE", key, _ANY_GROUP, "0", "MKSTREAM"),
            ("XGROUP", "DESTROY", key, _ANY_GROUP),
        ]
    )
