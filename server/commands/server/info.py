"""INFO: the state of the server, for people and for programs that watch it.

Names and order of fields are those of Redis 8, whose clients and dashboards read them. What this
server has no notion of (an allocator's fragmentation, say) has the value that Redis shows where it
has nothing to tell.
"""

from __future__ import annotations

import os
import selectors
import struct
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from itertools import islice
from typing import Any, Final

from protocol.replies import Reply, Verbatim
from server.clients.blocking import SYNCED
from server.commands.declare import command
from server.commands.server.memory import Fields, memory_fields
from server.config.types import percentage
from server.core.outcomes import Steps, reply_of
from server.core.table import Arguments, Command, every
from server.runtime import process
from server.runtime.version import (
    BUILD,
    PENSTOCK_VERSION,
    REDIS_VERSION,
    build_id,
    compiler_version,
)
from server.services import Services
from server.state.server_state import Phase
from server.state.session import Session
from storage.keyspace.databases import Database, Keyspace
from storage.types.kinds import kind_of


@command(
    "INFO",
    flags="loading stale",
    since="1.0.0",
    categories="dangerous",
    summary="Describes the server: its version, clients, memory, counters and databases.",
    syntax="[section [section ...]]",
    tips=["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    history=[("7.0.0", "Several sections may be asked for at once.")],
)
def info(server: Services, session: Session, args: Arguments) -> Reply | Steps:
    """The sections named, or the usual ones; that of key sizes only by its own name, since every
    key has to be looked at for it."""
    names = [arg.decode("utf-8", "replace").lower() for arg in args[1:]]
    if "keysizes" not in names:
        return _text(render(server, names))
    keys = sum(map(len, server.state.keyspace.databases))
    return reply_of(_with_key_sizes(server, names), session.resp3, long=keys > SIZES_AT_ONCE)


def _with_key_sizes(server: Services, names: list[str]) -> Generator[None, None, Reply]:
    found = yield from key_sizes(server.state.keyspace)
    return _text(render(server, names, found))


def _text(text: str) -> Verbatim:
    return Verbatim(text.encode("utf-8", "surrogateescape"))


# --- the sections ------------------------------------------------------------------------------


SIZES_AT_ONCE: Final = 10_000
"""How many keys are looked at for their sizes before others are answered."""

TTL_SAMPLE: Final = 100
"""How many keys the average time to live of a database is estimated from."""

_NO_REPLICATION_ID: Final = "0" * 40


def render(server: Services, names: Iterable[str], key_sizes: Fields | None = None) -> str:
    """The sections asked for, in INFO's order; an unknown name adds nothing. ``key_sizes`` are the
    fields of the last section, if it is asked for."""
    wanted = _wanted(names)
    sections = [_section(name, SECTIONS[name](server)) for name in SECTIONS if name in wanted]
    if key_sizes is not None:
        sections.append(_section("keysizes", key_sizes))
    return "\r\n".join(sections)


def _wanted(names: Iterable[str]) -> set[str]:
    wanted = {name.lower() for name in names} or {"default"}
    if wanted & {"all", "everything"}:
        return set(SECTIONS)
    if "default" in wanted:
        wanted |= SECTIONS.keys() - ONLY_ON_REQUEST
    return wanted


def _section(name: str, fields: Fields) -> str:
    title = "CPU" if name == "cpu" else name.capitalize()
    lines = [f"# {title}", *(f"{field}:{value}" for field, value in fields.items())]
    return "".join(line + "\r\n" for line in lines)


# --- the process and its clients -------------------------------------------------------------


def _server(server: Services) -> Fields:
    now = server.state.clock()
    uptime = max(0, now - server.state.instance.started_ms) // 1000
    system = os.uname()
    return {
        "redis_version": REDIS_VERSION,
        "penstock_version": PENSTOCK_VERSION,
        "penstock_build": BUILD,
        "redis_git_sha1": "00000000",
        "redis_git_dirty": 0,
        "redis_build_id": build_id(),
        "redis_mode": "standalone",
        "os": f"{system.sysname} {system.release} {system.machine}",
        "arch_bits": struct.calcsize("P") * 8,
        "monotonic_clock": "POSIX clock_gettime",
        "multiplexing_api": selectors.DefaultSelector.__name__.removesuffix("Selector").lower(),
        "atomicvar_api": "none",
        "gcc_version": compiler_version(),
        "python_version": sys.version.split()[0],
        "process_id": os.getpid(),
        "process_supervised": _supervisor(server),
        "run_id": server.state.instance.id,
        "tcp_port": server.state.instance.port,
        "server_time_usec": now * 1000,
        "uptime_in_seconds": uptime,
        "uptime_in_days": uptime // 86400,
        "hz": server.state.config.hz,
        "configured_hz": server.state.config.hz,
        "lru_clock": now // 1000 & 0xFFFFFF,
        "executable": sys.executable,
        "config_file": os.path.abspath(server.state.config.file)
        if server.state.config.file
        else "",
        "io_threads_active": 0,
        **_listeners(server),
        **_certificate(server, now),
    }


def _supervisor(server: Services) -> str:
    """Return who is told that the process is ready."""
    told = server.state.config.supervised != "no" and "NOTIFY_SOCKET" in os.environ
    return "systemd" if told else "no"


def _listeners(server: Services) -> Fields:
    config = server.state.config
    binds = ",".join(f"bind={address}" for address in config.bind.split())
    found: list[str] = []
    if config.has_tcp:
        found.append(f"name=tcp,{binds},port={server.state.instance.port}")
    if config.unixsocket:
        found.append(f"name=unix,bind={config.unixsocket}")
    if config.tls_port:
        found.append(f"name=tls,{binds},port={config.tls_port}")
    return {f"listener{index}": text for index, text in enumerate(found)}


def _certificate(server: Services, now: int) -> Fields:
    """When the certificate of TLS expires, in Unix seconds and in days, if there is one."""
    expires = server.traffic.tls.expires
    if expires is None:
        return {}
    days = (expires - now // 1000) // 86400
    return {"tls_server_cert_expire_time": expires, "tls_server_cert_expires_in_days": days}


def _clients(server: Services) -> Fields:
    sessions, blocking = server.state.sessions.values(), server.blocking
    waiting = [session.link.waiting_bytes() for session in sessions]
    unread, unsent = map(max, zip((0, 0), *waiting, strict=True))
    return {
        "connected_clients": len(sessions),
        "cluster_connections": 0,
        "maxclients": server.state.config.maxclients,
        "client_recent_max_input_buffer": unread,
        "client_recent_max_output_buffer": unsent,
        "blocked_clients": len(blocking.waiters) + len(server.pauses.held),
        "tracking_clients": len(server.tracking.clients),
        "pubsub_clients": server.pubsub.clients,
        "watching_clients": len(set().union(*server.watching.watchers.values())),
        "clients_in_timeout_table": sum(
            waiter.wait.deadline is not None for waiter in blocking.waiters
        ),
        "total_watched_keys": len(server.watching.watchers),
        "total_blocking_keys": sum(place != SYNCED for place in blocking.waiting),
        "total_blocking_keys_on_nokey": sum(
            any(waiter.wait.kind is None for waiter in blocking.queue(place))
            for place in blocking.waiting
            if place != SYNCED
        ),
    }


def _persistence(server: Services) -> Fields:
    persistence, rewriting = server.persistence, server.persistence.rewriting
    recovery = persistence.recovery
    saving = rewriting.in_progress and rewriting.is_save
    return {
        "loading": int(server.state.phase is not Phase.SERVING),
        "async_loading": 0,
        "current_cow_peak": 0,
        "current_cow_size": 0,
        "current_cow_size_age": 0,
        "current_fork_perc": "0.00",
        "current_save_keys_processed": 0,
        "current_save_keys_total": 0,
        "rdb_changes_since_last_save": server.state.changes,
        "rdb_bgsave_in_progress": int(saving),
        "rdb_last_save_time": rewriting.saved_ms // 1000,
        "rdb_last_bgsave_status": _status(rewriting.last_ok),
        "rdb_last_bgsave_time_sec": rewriting.last_seconds,
        "rdb_current_bgsave_time_sec": _running_seconds(server) if saving else -1,
        "rdb_saves": rewriting.count,
        "rdb_last_cow_size": 0,
        "rdb_last_load_keys_expired": server.state.stats.rdb_keys_expired,
        "rdb_last_load_keys_loaded": server.state.stats.rdb_keys_loaded,
        **_append_only_file(server),
        "module_fork_in_progress": 0,
        "module_fork_last_cow_size": 0,
        **({} if recovery is None else recovery.progress()),
    }


def _append_only_file(server: Services) -> Fields:
    persistence, rewriting = server.persistence, server.persistence.rewriting
    rewrites = rewriting.in_progress and not rewriting.is_save
    return {
        "aof_enabled": int(persistence.on),
        "aof_rewrite_in_progress": int(rewrites),
        "aof_rewrite_scheduled": int(persistence.scheduled),
        "aof_last_rewrite_time_sec": rewriting.last_seconds,
        "aof_current_rewrite_time_sec": _running_seconds(server) if rewrites else -1,
        "aof_last_bgrewrite_status": _status(rewriting.last_ok),
        "aof_rewrites": rewriting.count,
        "aof_rewrites_consecutive_failures": rewriting.failures_in_a_row,
        "aof_last_write_status": _status(persistence.refusal is None),
        "aof_last_cow_size": 0,
        **(_sizes(server) if persistence.on else {}),
    }


def _sizes(server: Services) -> Fields:
    persistence, appender = server.persistence, server.persistence.appender
    return {
        "aof_current_size": persistence.size,
        "aof_base_size": persistence.rewriting.base_size,
        "aof_pending_rewrite": int(server.commit.provisional),
        "aof_buffer_length": appender.buffered,
        "aof_pending_bio_fsync": int(appender.syncing),
        "aof_delayed_fsync": appender.delayed_syncs,
    }


def _running_seconds(server: Services) -> int:
    return max(0, server.state.clock() - server.persistence.rewriting.started_ms) // 1000


def _status(well: bool) -> str:
    return "ok" if well else "err"


def _threads(server: Services) -> Fields:
    stats, clients = server.state.stats, len(server.state.sessions)
    return {"io_thread_0": f"clients={clients},reads={stats.reads},writes={stats.writes}"}


# --- counters --------------------------------------------------------------------------------


def _stats(server: Services) -> Fields:
    return {
        **_traffic(server),
        **_data(server),
        **_errors_and_limits(server),
        **_event_loop(server),
        **_slow_commands(server),
        **_batches(server),
        **_denials(server),
    }


def _traffic(server: Services) -> Fields:
    stats = server.state.stats
    operations, bytes_in, bytes_out, _, _ = stats.rates()
    return {
        "total_connections_received": stats.connections,
        "total_commands_processed": server.state.commands_processed(),
        "instantaneous_ops_per_sec": round(operations),
        "total_net_input_bytes": stats.bytes_in,
        "total_net_output_bytes": stats.bytes_out,
        "total_net_repl_input_bytes": 0,
        "total_net_repl_output_bytes": stats.bytes_to_replicas,
        "instantaneous_input_kbps": f"{bytes_in / 1024:.2f}",
        "instantaneous_output_kbps": f"{bytes_out / 1024:.2f}",
        "instantaneous_input_repl_kbps": "0.00",
        "instantaneous_output_repl_kbps": "0.00",
        "rejected_connections": stats.rejected_connections,
        "sync_full": server.replication.full_sync.count,
        "sync_partial_ok": server.replication.partial_syncs,
        "sync_partial_err": server.replication.refused_partial_syncs,
    }


def _data(server: Services) -> Fields:
    stats, keyspace, pubsub = server.state.stats, server.state.keyspace, server.pubsub
    return {
        "expired_subkeys": keyspace.expired_fields,
        "expired_keys": keyspace.expired,
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": 0,
        "expire_cycle_cpu_milliseconds": stats.expiry_ns // 1_000_000,
        "evicted_keys": 0,
        "evicted_clients": stats.evicted_clients,
        "evicted_scripts": 0,
        "total_eviction_exceeded_time": 0,
        "current_eviction_exceeded_time": 0,
        "keyspace_hits": keyspace.hits,
        "keyspace_misses": keyspace.misses,
        "pubsub_channels": len(pubsub.channels),
        "pubsub_patterns": len(pubsub.patterns),
        "pubsubshard_channels": len(pubsub.shards),
        "latest_fork_usec": stats.fork_us,
        "total_forks": stats.forks,
        "migrate_cached_sockets": 0,
        "slave_expires_tracked_keys": 0,
        "active_defrag_hits": 0,
        "active_defrag_misses": 0,
        "active_defrag_key_hits": 0,
        "active_defrag_key_misses": 0,
        "total_active_defrag_time": 0,
        "current_active_defrag_time": 0,
        "tracking_total_keys": len(server.tracking.keys),
        "tracking_total_items": server.tracking.items,
        "tracking_total_prefixes": len(server.tracking.prefixes),
    }


def _errors_and_limits(server: Services) -> Fields:
    stats = server.state.stats
    return {
        "unexpected_error_replies": 0,
        "total_error_replies": sum(stats.errors.values()),
        "dump_payload_sanitizations": 0,
        "total_reads_processed": stats.reads,
        "total_writes_processed": stats.writes,
        "io_threaded_reads_processed": 0,
        "io_threaded_writes_processed": 0,
        "client_query_buffer_limit_disconnections": stats.query_limit_disconnections,
        "client_output_buffer_limit_disconnections": stats.output_limit_disconnections,
        "reply_buffer_shrinks": 0,
        "reply_buffer_expands": 0,
    }


def _event_loop(server: Services) -> Fields:
    *_, cycles, nanoseconds = server.state.stats.rates()
    return {
        "eventloop_cycles": server.traffic.turns.cycles,
        "eventloop_duration_sum": server.traffic.turns.nanoseconds // 1000,
        "eventloop_duration_cmd_sum": server.state.command_nanoseconds() // 1000,
        "instantaneous_eventloop_cycles_per_sec": round(cycles),
        "instantaneous_eventloop_duration_usec": round(nanoseconds / max(1.0, cycles) / 1000),
    }


def _batches(server: Services) -> Fields:
    stats = server.state.stats
    return {
        "total_client_processing_events": stats.batches,
        "commands_per_parse_batch_avg": f"{stats.batched / max(1, stats.batches):.2f}",
    }


def _slow_commands(server: Services) -> Fields:
    timings = server.state.timings
    return {
        "slowlog_commands_count": timings.slow_count,
        "slowlog_commands_time_ms_sum": _milliseconds(timings.slow_sum_ns),
        "slowlog_commands_time_ms_max": _milliseconds(timings.slow_max_ns),
    }


def _denials(server: Services) -> Fields:
    denied = server.state.stats.denied
    return {
        "acl_access_denied_auth": denied["auth"],
        "acl_access_denied_cmd": denied["command"],
        "acl_access_denied_key": denied["key"],
        "acl_access_denied_channel": denied["channel"],
        "acl_access_denied_tls_cert": denied["tls-cert"],
    }


def _replication(server: Services) -> Fields:
    replication = server.replication
    feed = replication.feed
    backlog = feed.backlog
    return {
        "role": "master",
        "connected_slaves": len(replication.replicas),
        **_replicas(server),
        "master_failover_state": "no-failover",
        "master_replid": server.replication.id,
        "master_replid2": _NO_REPLICATION_ID,
        "master_repl_offset": feed.end,
        "second_repl_offset": -1,
        "repl_backlog_active": int(feed.active),
        "repl_backlog_size": server.state.config.repl_backlog_size,
        "repl_backlog_first_byte_offset": 0 if backlog is None else backlog.start + 1,
        "repl_backlog_histlen": 0 if backlog is None else backlog.end - backlog.start,
    }


def _replicas(server: Services) -> Fields:
    """A line for each replica; its lag is how long ago it was heard of, in seconds."""
    now = server.state.clock()
    good: Fields = {}
    if server.state.config.min_replicas_to_write:
        good["min_slaves_good_slaves"] = server.replication.good_replicas()
    lines = (
        f"ip={one.address},port={one.introduction.port},state={one.phase},"
        f"offset={one.acknowledged},lag={max(0, now - one.heard_ms) // 1000}"
        for one in server.replication.replicas.values()
    )
    return good | {f"slave{number}": line for number, line in enumerate(lines)}


def _cpu(server: Services) -> Fields:
    return {name: f"{seconds:.6f}" for name, seconds in process.cpu_times().items()}


def _modules(server: Services) -> Fields:
    return {}


def _commandstats(server: Services) -> Fields:
    return {
        f"cmdstat_{entry.fullname}": (
            f"calls={entry.calls},usec={entry.nanoseconds // 1000},"
            f"usec_per_call={entry.nanoseconds / 1000 / max(1, entry.calls):.2f},"
            f"rejected_calls={entry.rejected},failed_calls={entry.failed}{_slow_calls(entry)}"
        )
        for entry in every(server.state.table)
        if entry.calls or entry.rejected or entry.failed
    }


def _slow_calls(entry: Command) -> str:
    """Return what of a command has been in the slow log, if anything has."""
    if not entry.slow_count:
        return ""
    return (
        f",slowlog_count={entry.slow_count},slowlog_time_ms_sum={_milliseconds(entry.slow_sum_ns)},"
        f"slowlog_time_ms_max={_milliseconds(entry.slow_max_ns)}"
    )


def _milliseconds(nanoseconds: int) -> str:
    return f"{nanoseconds / 1_000_000:.2f}"


def _errorstats(server: Services) -> Fields:
    counted = sorted(server.state.stats.errors.items())
    return {f"errorstat_{code}": f"count={count}" for code, count in counted}


def _latencystats(server: Services) -> Fields:
    """How long the calls of each command took, the shorter ones of them; in microseconds."""
    if not server.state.timings.tracking:
        return {}
    percents: tuple[float, ...] = server.state.config.latency_tracking_info_percentiles
    return {
        f"latency_percentiles_usec_{entry.fullname}": ",".join(
            f"p{percentage(percent)}={entry.durations.percentile(percent) / 1000:.3f}"
            for percent in percents
        )
        for entry in every(server.state.table)
        if entry.durations.counts
    }


def _cluster(server: Services) -> Fields:
    return {"cluster_enabled": 0}


# --- the data --------------------------------------------------------------------------------


def _keyspace(server: Services) -> Fields:
    now = server.state.clock()
    return {
        f"db{database.index}": (
            f"keys={len(database)},expires={len(database.expires)},"
            f"avg_ttl={_average_ttl(database, now)},subexpiry={len(database.field_times)}"
        )
        for database in server.state.keyspace.databases
        if len(database)
    }


def _average_ttl(database: Database, now: int) -> int:
    """Milliseconds, estimated from some of the keys that expire."""
    sample = [max(0, at - now) for at in islice(database.expires.values(), TTL_SAMPLE)]
    return sum(sample) // len(sample) if sample else 0


SIZES: Final = ("strings_sizes", "lists_items", "sets_items", "zsets_items", "hashes_items")
"""What INFO keysizes tells of, in the order of Redis."""


def key_sizes(keyspace: Keyspace) -> Generator[None, None, Fields]:
    """How many values of each type are of which length, rounded down to a power of two, by
    database. It looks at every key, so it gives way from time to time."""
    held = {
        database.index: list(database.values.values())
        for database in keyspace.databases
        if len(database)
    }
    found: Fields = {}
    for index, values in held.items():
        counts: dict[str, Counter[int]] = defaultdict(Counter)
        for first in range(0, len(values), SIZES_AT_ONCE):
            some: list[Any] = values[first : first + SIZES_AT_ONCE]
            for value in some:
                if name := kind_of(value).sizes:
                    counts[name][1 << len(value).bit_length() >> 1] += 1
            yield
        for name in filter(counts.__contains__, SIZES):
            bins = sorted(counts[name].items())
            text = ",".join(f"{_in_units(size)}={count}" for size, count in bins)
            found[f"db{index}_distrib_{name}"] = text
    return found


def _in_units(size: int) -> str:
    """A power of two as INFO keysizes writes it: 512, 1K, 2K."""
    power = max(size.bit_length() - 1, 0) // 10
    return f"{size >> 10 * power}{' KMGTPE'[power].strip()}"


SECTIONS: Final[dict[str, Callable[[Services], Fields]]] = {
    "server": _server,
    "clients": _clients,
    "memory": memory_fields,
    "persistence": _persistence,
    "threads": _threads,
    "stats": _stats,
    "replication": _replication,
    "cpu": _cpu,
    "modules": _modules,
    "commandstats": _commandstats,
    "errorstats": _errorstats,
    "latencystats": _latencystats,
    "cluster": _cluster,
    "keyspace": _keyspace,
}
"""The functions that make each section's fields, in the order of the sections."""

ONLY_ON_REQUEST: Final = frozenset({"commandstats", "latencystats"})
"""Sections that are left out unless they, or all of them, are asked for."""
