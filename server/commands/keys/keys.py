"""Single keys, whatever they hold: deleting, finding, renaming, copying, moving."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Reply, Simple
from server.commands.declare import command
from server.commands.keys import errors as key_errors
from server.commands.keys.scan import type_name
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import database_index
from server.services import Services
from server.state.session import Session
from storage.keyspace.databases import Database

_SHARDS: Final = ("request_policy:multi_shard", "response_policy:agg_sum")


@command(
    "DEL",
    flags="write",
    since="1.0.0",
    summary="Removes keys.",
    complexity="O(N) in the number of keys, and for each stream in the number of its blocks.",
    syntax="key [key ...]",
    keys=[KeySpec("RM delete", last=-1)],
    tips=_SHARDS,
)
@command(
    "UNLINK",
    flags="write fast",
    since="4.0.0",
    summary="Removes keys; their memory may be freed later.",
    complexity="O(1) a key, whatever it holds.",
    syntax="key [key ...]",
    keys=[KeySpec("RM delete", last=-1)],
    tips=_SHARDS,
)
def delete(server: Services, session: Session, args: Arguments) -> Reply:
    """How many of the keys there were."""
    return session.db.delete_all(args[1:])


@command(
    "EXISTS",
    flags="readonly fast",
    since="1.0.0",
    summary="Counts those of the given keys that are there.",
    complexity="O(N) in the number of keys.",
    syntax="key [key ...]",
    keys=[KeySpec("RO", last=-1)],
    tips=_SHARDS,
    history=[("3.0.3", "Several keys in one call.")],
)
def exists(server: Services, session: Session, args: Arguments) -> Reply:
    """How many of the keys are there; one that is named twice counts twice."""
    read = session.db.read
    return sum(read(key, touch=False) is not None for key in args[1:])


@command(
    "TOUCH",
    flags="readonly fast",
    since="3.2.1",
    summary="Marks keys as used just now.",
    complexity="O(N) in the number of keys.",
    syntax="key [key ...]",
    keys=[KeySpec("RO", last=-1)],
    tips=_SHARDS,
)
def touch(server: Services, session: Session, args: Arguments) -> Reply:
    """How many of the keys are there; they count as used even by a client in no-touch mode."""
    return sum(session.db.read(key) is not None for key in args[1:])


@command(
    "TYPE",
    flags="readonly fast",
    since="1.0.0",
    summary="Names the type of the value at a key.",
    syntax="key",
    keys=[KeySpec("RO")],
)
def type_(server: Services, session: Session, args: Arguments) -> Reply:
    """``string``, ``list``, ``set``, ``zset``, ``hash`` or ``stream``; ``none`` for no key."""
    return Simple(type_name(session.db.read(args[1], touch=False)))


@command(
    "RENAME",
    flags="write",
    since="1.0.0",
    summary="Gives a key another name, replacing what has that name.",
    syntax="key newkey",
    keys=[KeySpec("RW access delete"), KeySpec("OW update", index=2)],
)
def rename(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the expiry goes with the value. An error if there is no such key."""
    database, key, target = session.db, args[1], args[2]
    _check_exists(database, key)
    if key != target:
        database.rename(key, target)
    return OK


@command(
    "RENAMENX",
    flags="write fast",
    since="1.0.0",
    summary="Gives a key another name unless that is taken.",
    syntax="key newkey",
    keys=[KeySpec("RW access delete"), KeySpec("OW insert", index=2)],
    history=[("3.2.0", "Two equal names are no error any more.")],
)
def renamenx(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key was renamed, 0 if the name was taken."""
    database, key, target = session.db, args[1], args[2]
    _check_exists(database, key)
    if database.get(target) is not None:
        return 0
    database.rename(key, target)
    return 1


def _check_exists(database: Database, key: bytes) -> None:
    if database.get(key) is None:
        raise CommandError(errors.NO_SUCH_KEY)


@command(
    "COPY",
    flags="write denyoom",
    since="6.2.0",
    summary="Copies a value and its expiry to another key.",
    complexity="O(N) in the number of entries of a stream; O(1) for a string.",
    syntax="source destination [DB destination-db] [REPLACE]",
    keys=[KeySpec("RO access"), KeySpec("OW update", index=2)],
)
def copy(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the value was copied, 0 if there is none, or something else in its place."""
    source, key, target = session.db, args[1], args[2]
    to, replace = _copy_options(server, session, args)
    if to is source and key == target:
        raise CommandError(key_errors.SAME_OBJECT)
    if source.read(key, touch=not session.no_touch) is None:
        return 0
    if not replace and to.get(target) is not None:
        return 0
    source.copy(key, to, target)
    return 1


def _copy_options(server: Services, session: Session, args: Arguments) -> tuple[Database, bool]:
    """The database to copy to, and whether to replace what is there."""
    to, replace = session.db, False
    options = iter(args[3:])
    for option in options:
        word = option.upper()
        if word == b"REPLACE":
            replace = True
        elif word == b"DB" and (index := next(options, None)) is not None:
            to = _database(server, index)
        else:
            raise CommandError(errors.SYNTAX)
    return to, replace


@command(
    "MOVE",
    flags="write fast",
    since="1.0.0",
    summary="Moves a key to another database.",
    syntax="key db",
    keys=[KeySpec("RW access update")],
)
def move(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the key was moved, 0 if there is none, or one of that name in the other database."""
    source, key = session.db, args[1]
    to = _database(server, args[2])
    if to is source:
        raise CommandError(key_errors.SAME_OBJECT)
    if source.get(key) is None or to.get(key) is not None:
        return 0
    source.move(key, to)
    return 1


def _database(server: Services, arg: bytes) -> Database:
    databases = server.state.keyspace.databases
    return databases[database_index(arg, len(databases))]
