"""MEMORY: what is known of the memory that the server takes."""

from __future__ import annotations

from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import OK, Encoded, Map, Reply, Verbatim
from server.commands.declare import command, container, help_command
from server.commands.server.info_sections import client_memory, memory_overhead, table_sizes
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime import process
from server.runtime.arguments import integer
from server.services import Services
from storage.keyspace.databases import Database
from storage.types.kinds import kind_of

KEY_OVERHEAD: Final = 150
"""What a key takes besides its name and value, in bytes: its places in the tables of a database."""

_SMALL: Final = 64 * 1024**2
"""Where less than this is in use there is nothing worth a remark."""
_MUCH: Final = 1.5
"""How many times what is in use now the most that ever was may be without a remark."""

_TIPS: Final = (
    "nondeterministic_output",
    "request_policy:all_shards",
    "response_policy:special",
)

container(
    "MEMORY",
    since="4.0.0",
    summary="Commands about the memory that is used.",
)


@command(
    "MEMORY USAGE",
    flags="readonly",
    since="4.0.0",
    summary="Estimates the memory that a key takes.",
    complexity="O(N) in the number of blocks, groups and consumers of a stream.",
    syntax="key [SAMPLES count]",
    keys=[KeySpec("RO", index=2)],
)
def memory_usage(server: Services, session: Session, args: Arguments) -> Reply:
    """The bytes that a key with its value takes. All of it is measured, whatever SAMPLES says."""
    for at in range(3, len(args), 2):
        if args[at].upper() != b"SAMPLES" or at + 1 == len(args):
            raise CommandError(errors.SYNTAX)
        if integer(args[at + 1]) < 0:
            raise CommandError(errors.SYNTAX)
    value = session.db.get(args[2])
    if value is None:
        return None
    return KEY_OVERHEAD + len(args[2]) + kind_of(value).memory(value)


help_command("MEMORY", since="4.0.0")


@command(
    "MEMORY STATS",
    since="4.0.0",
    summary="Tells what the memory is used for.",
    tips=_TIPS,
)
def memory_stats(server: Services, session: Session, args: Arguments) -> Reply:
    """A map of names and numbers: those of a Redis that mean something here."""
    used = process.resident_memory()
    startup, peak = min(server.state.startup_memory, used), max(process.peak_memory(), used)
    overhead = min(memory_overhead(server), used)
    databases = [one for one in server.state.keyspace.databases if len(one)]
    keys = sum(map(len, databases))
    return Map(
        [
            ("peak.allocated", peak),
            ("total.allocated", used),
            ("startup.allocated", startup),
            ("replication.backlog", server.replication.backlog_bytes),
            ("replica.fullsync.buffer", 0),
            ("clients.slaves", client_memory(server, replicas=True)),
            ("clients.normal", client_memory(server, replicas=False)),
            ("cluster.links", 0),
            ("aof.buffer", server.persistence.appender.buffered),
            ("lua.caches", server.scripting.cache_memory),
            ("functions.caches", server.scripting.functions.memory),
            ("script.VMs", server.scripting.lua_memory + server.scripting.functions.lua_memory),
            *[(f"db.{one.index}", _tables(one)) for one in databases],
            ("overhead.db.hashtable.lut", sum(map(sum, map(table_sizes, databases)))),
            ("overhead.db.hashtable.rehashing", 0),
            ("overhead.total", overhead),
            ("db.dict.rehashing.count", 0),
            ("keys.count", keys),
            ("keys.bytes-per-key", (used - startup) // keys if keys else 0),
            ("dataset.bytes", used - overhead),
            ("dataset.percentage", _percentage(session, used - overhead, used - startup)),
            ("peak.percentage", _percentage(session, used, peak)),
            ("fragmentation", _number(session, 1.0)),
            ("fragmentation.bytes", 0),
        ]
    )


def _tables(database: Database) -> Reply:
    main, expires = table_sizes(database)
    return Map([("overhead.hashtable.main", main), ("overhead.hashtable.expires", expires)])


def _percentage(session: Session, part: int, whole: int) -> Encoded:
    return _number(session, 100 * part / max(1, whole))


def _number(session: Session, value: float) -> Encoded:
    """A fraction: a double where the protocol has one, else its text."""
    text = f"{value:.17g}".encode()
    return Encoded(b",%b\r\n" % text if session.resp3 else bulk(text))


@command(
    "MEMORY DOCTOR",
    since="4.0.0",
    summary="Says in words whether anything about the memory is unusual.",
    tips=_TIPS,
)
def memory_doctor(server: Services, session: Session, args: Arguments) -> Reply:
    """A sentence or two."""
    used, peak = process.resident_memory(), process.peak_memory()
    if used < _SMALL:
        text = "The server takes little memory: there is nothing to say about it."
    elif peak > _MUCH * used:
        text = (
            f"The server has taken up to {peak} bytes, and takes {used} now. A short time of much"
            " use, such as a large reply or a script, explains that."
        )
    else:
        text = f"The server takes {used} bytes, which is about the most that it has ever taken."
    return Verbatim(text.encode() + b"\n")


@command(
    "MEMORY MALLOC-STATS",
    since="4.0.0",
    summary="Shows the statistics of the memory allocator, which keeps none.",
    complexity="O(1)",
    tips=_TIPS,
)
def memory_malloc_stats(server: Services, session: Session, args: Arguments) -> Reply:
    """That there are none."""
    return Verbatim(b"The memory allocator keeps no statistics")


@command(
    "MEMORY PURGE",
    since="4.0.0",
    summary="Gives free memory back to the system.",
    complexity="Depends on how much memory is free.",
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def memory_purge(server: Services, session: Session, args: Arguments) -> Reply:
    """Always OK, whatever there was to give."""
    process.give_memory_back()
    return OK
