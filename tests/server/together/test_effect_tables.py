"""Nothing is forgotten of an effect: each is in each table, or it is said that nothing follows.

A line that is missing in one of these tables is a wake-up that is lost, or a change that nobody is
told of, and no other test need find it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple, get_args

import pytest

from server.clients.keyspace_events import EVENTS
from server.clients.tracking import CHANGED
from server.dispatch.reactions import MODIFYING, WAKING
from server.runtime import change_count
from storage.aof.effect_commands import PLAIN
from storage.aof.encode_effects import EffectEncoder
from storage.engine import effects as e
from tests.support import replay
from tests.support.direct import Direct

EVERY: Final = frozenset[type](get_args(e.Effect))

DATABASES: Final = {e.Flushed, e.Swapped}
"""Code of its own looks at each key that a whole database held or holds."""
ENTRIES_OF_GROUPS: Final = {
    *(e.Delivered, e.Redelivered, e.Acknowledged, e.ConsumerSeen, e.DeliveriesEnded),
}
GROUPS: Final = {
    *(e.GroupCreated, e.GroupPositionSet, e.GroupDestroyed, e.ConsumerCreated, e.ConsumerDeleted),
    *(e.Released, e.KeptBack, *ENTRIES_OF_GROUPS),
}
BESIDE_ENTRIES: Final = {
    *(e.StreamPositionSet, e.IdempotencyConfigured, e.IdempotentIDRecorded),
    *(e.DuplicateSuppressed, e.PolicySet),
}
"""What a stream has beside its entries and its groups: Redis tells nobody of it."""


class Table(NamedTuple):
    """A table, the effects that code beside it takes, and those of which nothing follows."""

    rows: Callable[[], Collection[type]]
    beside: set[type]
    nothing: set[type]


def table_of_policies() -> Collection[type]:
    return Direct().server.services.policies._followers


def table_of_the_file() -> Collection[type]:
    return [*EffectEncoder(Direct().server.state.keyspace)._forms, *PLAIN]


TABLES: Final = {
    "the transaction of a client that watches the key fails": Table(
        lambda: MODIFYING,
        # A Changed says so itself; the key of a copy is the target's.
        beside={e.Changed, e.KeyCopied, *DATABASES},
        # Redis counts a change of a group as none of its key.
        nothing=GROUPS | BESIDE_ENTRIES,
    ),
    "a parked client looks at its key again": Table(
        lambda: WAKING,
        beside={e.Changed, e.KeyCopied, *DATABASES},
        # A wait ends by an entry that can be read, or by a key or group that is there no more.
        nothing=GROUPS - {e.GroupDestroyed, e.Released}
        | BESIDE_ENTRIES
        | {e.StreamTrimmed, e.EntriesDeleted},
    ),
    "clients forget their copy of the key": Table(
        lambda: CHANGED,
        beside=DATABASES,
        nothing=GROUPS | BESIDE_ENTRIES,
    ),
    "an event is published": Table(
        lambda: EVENTS,
        # While anybody listens entries are added one by one.
        beside={e.EntriesAdded},
        nothing=ENTRIES_OF_GROUPS
        | BESIDE_ENTRIES - {e.StreamPositionSet}
        | DATABASES
        | {e.Released, e.KeptBack},
    ),
    "policies are other ones, or their deadlines": Table(
        table_of_policies,
        # Which entries are gone is found out when they are due.
        beside={e.StreamTrimmed, e.EntriesDeleted},
        nothing=BESIDE_ENTRIES - {e.PolicySet, e.StreamPositionSet}
        | {e.ConsumerSeen, e.DeliveriesEnded},
    ),
    "it is written for the file and for replicas": Table(
        table_of_the_file, beside=set(), nothing=set()
    ),
    "it gives an equal state elsewhere": Table(lambda: replay._APPLY, beside=set(), nothing=set()),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_follows_from_each_effect_is_said(name: str) -> None:
    table, beside, nothing = TABLES[name]
    rows = table()
    assert EVERY - set(rows) - beside - nothing == set(), "nothing says what follows"
    assert set(rows) & beside == set(rows) & nothing == beside & nothing == set(), "said twice"
    assert set(rows) <= EVERY


def test_what_an_effect_counts_as_a_change_is_one_unless_it_is_said() -> None:
    weights = set(change_count._WEIGHTS)
    assert weights <= EVERY
    several = {kind for kind in EVERY if {"ids", "keys", "run", "held", "pieces"} & fields(kind)}
    assert several - weights == {e.Swapped}, "what is about several counts them"


def fields(kind: type) -> set[str]:
    return {*getattr(kind, "_fields", ()), *getattr(kind, "__slots__", ())}
