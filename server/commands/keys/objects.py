"""OBJECT: how a value is kept, and how long ago it was used."""

from __future__ import annotations

from typing import Final

from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command, container, help_command
from server.commands.keys import errors as key_errors
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.services import Services
from storage.keyspace.databases import Database
from storage.types.kinds import kind_of

_KEYS: Final = [KeySpec("RO", index=2)]
_TIPS: Final = ("nondeterministic_output",)

_SHARED_INTEGERS: Final = 10_000
"""Small integers are objects that Redis keeps once for all keys ..."""

_SHARED_REFERENCES: Final = 2**31 - 1
"""... which therefore have no count of references that means anything."""

container(
    "OBJECT",
    since="2.2.3",
    summary="Looks at how values are kept.",
)


def encoding_of(database: Database, key: bytes) -> str:
    """What OBJECT ENCODING says of a key that is there."""
    value = database.values[key]
    return database.encodings.get(key) or kind_of(value).encoding(value)


def references(database: Database, key: bytes) -> int:
    """What OBJECT REFCOUNT says of a key that is there."""
    value = database.values[key]
    if type(value) is bytes and encoding_of(database, key) == "int":
        return _SHARED_REFERENCES if 0 <= int(value) < _SHARED_INTEGERS else 1
    return 1


@command(
    "OBJECT ENCODING",
    flags="readonly",
    since="2.2.3",
    summary="Names the form in which a value is kept.",
    syntax="key",
    keys=_KEYS,
    tips=_TIPS,
)
def encoding(server: Services, session: Session, args: Arguments) -> Reply:
    """``int``, ``embstr``, ``raw`` or ``stream``; null for no key."""
    return None if session.db.inspect(args[2]) is None else encoding_of(session.db, args[2])


@command(
    "OBJECT FREQ",
    flags="readonly",
    since="4.0.0",
    summary="Tells how often a value has been used lately.",
    syntax="key",
    keys=_KEYS,
    tips=_TIPS,
)
def freq(server: Services, session: Session, args: Arguments) -> Reply:
    """Null for no key; otherwise an error, as frequencies are not counted."""
    if session.db.inspect(args[2]) is None:
        return None
    raise CommandError(key_errors.NO_ACCESS_FREQUENCY)


@command(
    "OBJECT IDLETIME",
    flags="readonly",
    since="2.2.3",
    summary="Tells for how many seconds a value has not been used.",
    syntax="key",
    keys=_KEYS,
    tips=_TIPS,
)
def idletime(server: Services, session: Session, args: Arguments) -> Reply:
    """Whole seconds; null for no key."""
    database, key = session.db, args[2]
    if database.inspect(key) is None:
        return None
    return max(0, database.keyspace.now_ms - database.used[key]) // 1000


@command(
    "OBJECT REFCOUNT",
    flags="readonly",
    since="2.2.3",
    summary="Counts the places that share a value.",
    syntax="key",
    keys=_KEYS,
    tips=_TIPS,
)
def refcount(server: Services, session: Session, args: Arguments) -> Reply:
    """1, or the highest number there is for a small integer; null for no key."""
    if session.db.inspect(args[2]) is None:
        return None
    return references(session.db, args[2])


_HELP: Final = """\
ENCODING <key>
    Return the kind of internal representation used in order to store the value
    associated with a <key>.
FREQ <key>
    Return the access frequency index of the <key>. The returned integer is
    proportional to the logarithm of the recent access frequency of the key.
IDLETIME <key>
    Return the idle time of the <key>, that is the approximated number of
    seconds elapsed since the last access to the key.
REFCOUNT <key>
    Return the number of references of the value associated with the specified
    <key>.
"""

help_command("OBJECT", since="6.2.0", text=_HELP)
