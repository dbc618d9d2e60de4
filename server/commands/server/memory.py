"""MEMORY: what is known of the memory that the server takes."""

from __future__ import annotations

import sys
from typing import Final

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from protocol.replies import OK, Encoded, Map, Reply, Verbatim
from server.commands.declare import command, container, help_command
from server.config.registry import NO_EVICTION
from server.core.table import Arguments, KeySpec
from server.runtime import process
from server.runtime.arguments import integer
from server.services import Services
from server.state.session import Session
from storage.keyspace.databases import Database
from storage.types.kinds import kind_of

KEY_OVERHEAD: Final = 150
"""How many bytes a key takes besides its name and value: its places in the tables of a database."""

_SMALL: Final = 64 * 1024**2
"""Where less than this is in use there is nothing worth a remark."""
_MUCH: Final = 1.5
"""How many times what is in use now the most that ever was may be without a remark."""

_TIPS: Final = ("nondeterministic_output", "request_policy:all_shards", "response_policy:special")

# --- figures ---------------------------------------------------------------------------------


UNITS: Final = "KMGTP"

Fields = dict[str, object]


def human_size(size: int) -> str:
    """A number of bytes for people: ``2.12M``."""
    if size < 1024:
        return f"{size}B"
    steps = min((size.bit_length() - 1) // 10, len(UNITS))
    return f"{size / 1024**steps:.2f}{UNITS[steps - 1]}"


def memory_overhead(server: Services) -> int:
    """The bytes that are taken by something else than keys and values, as far as that is known."""
    scripting = server.scripting
    return (
        server.state.instance.startup_memory
        + client_memory(server, replicas=False)
        + client_memory(server, replicas=True)
        + server.replication.backlog_bytes
        + server.persistence.appender.buffered
        + scripting.cache_memory
        + scripting.functions.memory
        + sum(map(sum, map(table_sizes, server.state.keyspace.databases)))
    )


def table_sizes(database: Database) -> tuple[int, int]:
    """The bytes of a database's tables: of those with all keys, and of that with those that
    expire. What is in the tables is not counted."""
    main = sys.getsizeof(database.values) + sys.getsizeof(database.used)
    return main, sys.getsizeof(database.expires)


def client_memory(server: Services, *, replicas: bool) -> int:
    """The bytes that wait in the buffers of replicas, or of all other clients."""
    return sum(
        sum(session.link.waiting_bytes())
        for session in server.state.sessions.values()
        if (session.follower is not None) == replicas
    )


# --- the section of INFO ---------------------------------------------------------------------


def memory_fields(server: Services) -> Fields:
    """Return the section of INFO."""
    used, peak, total = process.resident_memory(), process.peak_memory(), process.total_memory()
    startup = min(server.state.instance.startup_memory, used)
    overhead = min(memory_overhead(server), used)
    peak = max(peak, used)
    of_replicas = client_memory(server, replicas=True)
    disposal = server.state.keyspace.limits.disposal
    return {
        "used_memory": used,
        "used_memory_human": human_size(used),
        "used_memory_rss": used,
        "used_memory_rss_human": human_size(used),
        "used_memory_peak": peak,
        "used_memory_peak_human": human_size(peak),
        "used_memory_peak_time": server.cron.peak_ms // 1000,
        "used_memory_peak_perc": f"{100 * used / peak:.2f}%",
        "used_memory_overhead": overhead,
        "used_memory_startup": startup,
        "used_memory_dataset": used - overhead,
        "used_memory_dataset_perc": f"{100 * (used - overhead) / max(1, used - startup):.2f}%",
        **_allocator(used),
        "total_system_memory": total,
        "total_system_memory_human": human_size(total),
        **_scripts(server),
        "maxmemory": server.state.config.maxmemory,
        "maxmemory_human": human_size(int(server.state.config.maxmemory)),
        "maxmemory_policy": NO_EVICTION,
        "allocator_frag_ratio": "1.00",
        "allocator_frag_bytes": 0,
        "allocator_rss_ratio": "1.00",
        "allocator_rss_bytes": 0,
        **_rest(used),
        "mem_fragmentation_ratio": "1.00",
        "mem_fragmentation_bytes": 0,
        "mem_not_counted_for_evict": server.persistence.appender.buffered,
        "mem_replication_backlog": server.replication.backlog_bytes,
        "mem_total_replication_buffers": server.replication.backlog_bytes + of_replicas,
        "mem_replica_full_sync_buffer": 0,
        "mem_clients_slaves": of_replicas,
        "mem_clients_normal": client_memory(server, replicas=False),
        "mem_cluster_links": 0,
        "mem_aof_buffer": server.persistence.appender.buffered,
        "mem_allocator": "pymalloc",
        "mem_overhead_db_hashtable_rehashing": 0,
        "active_defrag_running": 0,
        "lazyfree_pending_objects": len(disposal),
        "lazyfreed_objects": disposal.freed,
    }


def allocated_memory(used: int) -> int:
    """The bytes in use that allocators have, all of them where the system does not tell. How much
    of theirs is free, Python does not tell: it counts as allocated, and nothing as fragmented."""
    return process.allocated_memory() or used


def _allocator(used: int) -> Fields:
    allocated = allocated_memory(used)
    return {
        "allocator_allocated": allocated,
        "allocator_active": allocated,
        "allocator_resident": allocated,
        "allocator_muzzy": 0,
    }


def _rest(used: int) -> Fields:
    """What is in use beside what allocators have: code and other files."""
    allocated = allocated_memory(used)
    return {
        "rss_overhead_ratio": f"{used / max(1, allocated):.2f}",
        "rss_overhead_bytes": used - allocated,
    }


def _scripts(server: Services) -> Fields:
    scripting = server.scripting
    lua, cache = scripting.lua_memory, scripting.cache_memory
    functions = scripting.functions
    both = lua + functions.lua_memory
    return {
        "used_memory_lua": lua,
        "used_memory_vm_eval": lua,
        "used_memory_lua_human": human_size(lua),
        "used_memory_scripts_eval": cache,
        "number_of_cached_scripts": scripting.count,
        "number_of_functions": functions.count,
        "number_of_libraries": len(functions.libraries),
        "used_memory_vm_functions": functions.lua_memory,
        "used_memory_vm_total": both,
        "used_memory_vm_total_human": human_size(both),
        "used_memory_functions": functions.memory,
        "used_memory_scripts": cache + functions.memory,
        "used_memory_scripts_human": human_size(cache + functions.memory),
    }


# --- MEMORY ----------------------------------------------------------------------------------

container("MEMORY", summary="Commands about the memory that is used.", since="4.0.0")


@command(
    "MEMORY USAGE",
    flags="readonly",
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
    indexes = server.policies.memory_usage(session.db.index, args[2])
    return KEY_OVERHEAD + len(args[2]) + kind_of(value).memory(value) + indexes


_HELP: Final = """\
DOCTOR
    Return memory problems reports.
MALLOC-STATS
    Return internal statistics report from the memory allocator.
PURGE
    Attempt to purge dirty pages for reclamation by the allocator.
STATS
    Return information about the memory usage of the server.
USAGE <key> [SAMPLES <count>]
    Return memory in bytes used by <key> and its value. Nested values are
    sampled up to <count> times (default: 5, 0 means sample all).
"""

help_command("MEMORY", since="4.0.0", text=_HELP)


@command("MEMORY STATS", summary="Tells what the memory is used for.", tips=_TIPS)
def memory_stats(server: Services, session: Session, args: Arguments) -> Reply:
    """A map of the names and numbers that Redis has."""
    used = process.resident_memory()
    allocated = allocated_memory(used)
    startup = min(server.state.instance.startup_memory, used)
    peak = max(process.peak_memory(), used)
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
            ("allocator.allocated", allocated),
            ("allocator.active", allocated),
            ("allocator.resident", allocated),
            ("allocator.muzzy", 0),
            ("allocator-fragmentation.ratio", _number(session, 1.0)),
            ("allocator-fragmentation.bytes", 0),
            ("allocator-rss.ratio", _number(session, 1.0)),
            ("allocator-rss.bytes", 0),
            ("rss-overhead.ratio", _number(session, used / max(1, allocated))),
            ("rss-overhead.bytes", used - allocated),
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
    summary="Shows the statistics of the memory allocator, which keeps none.",
    tips=_TIPS,
)
def memory_malloc_stats(server: Services, session: Session, args: Arguments) -> Reply:
    """A line that there are none."""
    return Verbatim(b"The memory allocator keeps no statistics")


@command(
    "MEMORY PURGE",
    summary="Gives free memory back to the system.",
    complexity="Depends on how much memory is free.",
    tips=("request_policy:all_shards", "response_policy:all_succeeded"),
)
def memory_purge(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, whatever there was to give."""
    process.give_memory_back()
    return OK
