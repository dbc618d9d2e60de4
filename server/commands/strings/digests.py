"""Strings compared by their digests, or removed only if they are what they should be."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import Reply
from server.commands.declare import command
from server.commands.strings.set_options import COMPARISONS, Condition
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.services import Services


@command(
    "DIGEST",
    flags="readonly fast",
    since="8.4.0",
    summary="Gets the XXH3 digest of a string.",
    complexity="O(N) in the length of the string.",
    syntax="key",
    keys=[KeySpec("RO access")],
)
def digest(server: Services, session: Session, args: Arguments) -> Reply:
    """Sixteen hexadecimal digits, or null. 512 MB take 25 ms, so it is one step."""
    value = session.db.string_to_read(args[1], touch=not session.no_touch)
    return None if value is None else bulk(b"%016x" % xxh3_64_intdigest(value))


def _delex_flags(args: Arguments) -> str:
    """What a DELEX does to its key: a condition is about what is there."""
    return "RW access delete" if len(args) > 2 else "RM delete"


@command(
    "DELEX",
    flags="write fast",
    since="8.4.0",
    summary="Removes a key, if the string at it meets a condition.",
    complexity="O(1); O(N) in the length of the string for IFDEQ and IFDNE.",
    syntax="key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]",
    keys=[KeySpec("RW delete variable_flags", vary=_delex_flags)],
)
def delex(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key was removed, 0 if there is none or the condition is not met."""
    database, key = session.db, args[1]
    if len(args) == 2:
        return int(database.delete(key))
    if len(args) != 4:
        raise CommandError(errors.wrong_arity("delex"))
    condition = Condition(COMPARISONS)
    if not condition.take(args[2].upper(), iter(args[3:])):
        raise CommandError(errors.SYNTAX)
    value = database.string(key)
    return int(value is not None and condition.met_by(value) and database.delete(key))
