"""HyperLogLogs: adding elements, counting about how many there were, merging."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from protocol.errors import CommandError
from protocol.replies import OK, Reply
from server.commands.declare import command
from server.commands.hyperloglog import errors as hyperloglog_errors
from server.core.table import Arguments, KeySpec
from server.services import Services
from server.state.session import Session
from storage.types.hyperloglog import (
    HyperLogLog,
    estimated,
    is_dense,
    is_hyperloglog,
    keep_count,
    kept_count,
    merged,
    registers_of,
)
from storage.types.sparse_registers import DamagedRuns
from storage.types.strings import Buffer

PFADD: Final = b"PFADD"
PFCOUNT: Final = b"PFCOUNT"
PFMERGE: Final = b"PFMERGE"

_EVENT: Final = "pfadd"


def _verified(value: Buffer | None) -> Buffer | None:
    """The string, if it is a HyperLogLog. Raises :class:`CommandError`."""
    if value is not None and not is_hyperloglog(value):
        raise CommandError(hyperloglog_errors.NO_HYPERLOGLOG)
    return value


def _to_change(session: Session, key: bytes) -> HyperLogLog:
    """The HyperLogLog at a key, with registers if there is none, not stored."""
    database = session.db
    most = database.keyspace.limits.collections.hll_sparse_max_bytes
    return HyperLogLog(database.edit(key), most)


def _registers(values: Iterable[Buffer]) -> bytes:
    """The registers of all of them. Raises :class:`CommandError`."""
    try:
        return merged(map(registers_of, values))
    except DamagedRuns:
        raise CommandError(hyperloglog_errors.DAMAGED) from None


def _to_read(session: Session, keys: Sequence[bytes]) -> Iterator[Buffer]:
    """The HyperLogLogs that are at the keys, each looked for when the ones before have been read,
    as whichever is wrong first is told. Raises :class:`CommandError`."""
    touch = not session.no_touch
    for key in keys:
        value = _verified(session.db.buffer_to_read(key, touch=touch))
        if value is not None:
            yield value


@command(
    "PFADD",
    flags="write denyoom fast",
    since="2.8.9",
    summary="Adds elements to a HyperLogLog, which is made if there is none.",
    complexity="O(1) for each element.",
    syntax="key [element [element ...]]",
    keys=[KeySpec("RW insert")],
)
def pfadd(server: Services, session: Session, args: Arguments) -> Reply:
    """1 if the HyperLogLog is new or was changed, else 0."""
    database, key = session.db, args[1]
    former = _verified(database.buffer(key))
    present = None if former is None or is_dense(former) else bytes(former)
    sketch = _to_change(session, key)
    try:
        changed = sum([sketch.add(element) for element in args[2:]])
    except DamagedRuns:
        assert present is not None
        sketch.buffer[:] = present
        database.left(key)
        raise CommandError(hyperloglog_errors.DAMAGED) from None
    if former is not None and not changed:
        database.left(key)
        return 0
    sketch.note_change()
    args[0] = PFADD
    database.edited_by(key, sketch.buffer, tuple(args), _EVENT)
    return 1


@command(
    "PFCOUNT",
    flags="readonly",
    since="2.8.9",
    summary="Tells about how many different elements were added to some HyperLogLogs together.",
    complexity="O(N) in the number of keys; the count of a single one is kept until it changes.",
    syntax="key [key ...]",
    keys=[KeySpec("RW access", last=-1, notes="the count of a single one is kept in it")],
)
def pfcount(server: Services, session: Session, args: Arguments) -> Reply:
    """The estimate, of which the standard error is 0.81 %."""
    if len(args) > 2:
        return estimated(_registers(_to_read(session, args[1:])))
    database, key = session.db, args[1]
    value = next(_to_read(session, (key,)), None)
    if value is None:
        return 0
    count = kept_count(value)
    buffer = database.edit(key)
    if count is None:
        try:
            count = estimated(_registers([buffer]))
        except CommandError:
            database.left(key)
            raise
        keep_count(buffer, count)
        database.edited_by(key, buffer, (PFCOUNT, key), "")
    else:
        database.left(key)
    return count


@command(
    "PFMERGE",
    flags="write denyoom",
    since="2.8.9",
    summary="Merges some HyperLogLogs into one, which is made if there is none.",
    complexity="O(N) in the number of keys.",
    syntax="destkey [sourcekey [sourcekey ...]]",
    keys=[KeySpec("RW access insert"), KeySpec("RO access", index=2, last=-1)],
)
def pfmerge(server: Services, session: Session, args: Arguments) -> Reply:
    """OK."""
    registers = _registers(_to_read(session, args[1:]))
    sources = map(session.db.buffer, args[1:])
    is_to_be_dense = any(value is not None and is_dense(value) for value in sources)
    sketch = _to_change(session, args[1])
    if is_to_be_dense:
        sketch.put(registers)
    else:
        for register, rank in enumerate(registers):
            if rank:
                sketch.raise_to(register, rank)
    sketch.note_change()
    args[0] = PFMERGE
    session.db.edited_by(args[1], sketch.buffer, tuple(args), _EVENT)
    return OK
