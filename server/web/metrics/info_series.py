"""The series that fields of INFO stand for, under the names of redis_exporter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from server.web.text import COUNTER, GAUGE, Family


class InfoSeries(NamedTuple):
    """A series: in which section of INFO its field is, and how its value follows from that."""

    section: str
    field: str
    family: Family
    convert: Callable[[str], float]


def _is_ok(text: str) -> float:
    return float(text == "ok")


def _gauge(
    section: str, field: str, name: str, help: str, convert: Callable[[str], float] = float
) -> InfoSeries:
    return InfoSeries(section, field, Family(f"redis_{name}", GAUGE, help), convert)


def _counter(section: str, field: str, name: str, help: str) -> InfoSeries:
    return InfoSeries(section, field, Family(f"redis_{name}_total", COUNTER, help), float)


SERIES: Final = (
    _gauge("server", "uptime_in_seconds", "uptime_in_seconds", "Seconds since the server began."),
    _gauge("server", "process_id", "process_id", "The number of the process."),
    # Clients.
    _gauge("clients", "connected_clients", "connected_clients", "Clients that are connected."),
    _gauge("clients", "blocked_clients", "blocked_clients", "Clients that wait."),
    _gauge("clients", "maxclients", "max_clients", "How many clients may be connected."),
    _gauge("clients", "pubsub_clients", "pubsub_clients", "Clients with subscriptions."),
    _gauge("clients", "watching_clients", "watching_clients", "Clients that watch keys."),
    _gauge(
        "clients",
        "clients_in_timeout_table",
        "clients_in_timeout_table",
        "Clients that wait until a deadline.",
    ),
    _gauge("clients", "total_watched_keys", "total_watched_keys", "Keys that are watched."),
    _gauge("clients", "total_blocking_keys", "total_blocking_keys", "Keys that clients wait for."),
    _gauge(
        "clients",
        "total_blocking_keys_on_nokey",
        "total_blocking_keys_on_nokey",
        "Keys whose end clients are told of that wait for them.",
    ),
    _gauge(
        "clients",
        "client_recent_max_input_buffer",
        "client_recent_max_input_buffer_bytes",
        "The most bytes of requests that wait of one client.",
    ),
    _gauge(
        "clients",
        "client_recent_max_output_buffer",
        "client_recent_max_output_buffer_bytes",
        "The most bytes of replies that wait for one client.",
    ),
    # Memory.
    _gauge("memory", "used_memory", "memory_used_bytes", "Memory in use."),
    _gauge("memory", "used_memory_rss", "memory_used_rss_bytes", "Memory that is resident."),
    _gauge("memory", "used_memory_peak", "memory_used_peak_bytes", "The most memory ever in use."),
    _gauge(
        "memory", "used_memory_overhead", "memory_used_overhead_bytes", "Memory that is no data."
    ),
    _gauge(
        "memory", "used_memory_startup", "memory_used_startup_bytes", "Memory in use at the start."
    ),
    _gauge("memory", "used_memory_dataset", "memory_used_dataset_bytes", "Memory that is data."),
    _gauge("memory", "total_system_memory", "total_system_memory_bytes", "Memory of the machine."),
    _gauge("memory", "maxmemory", "memory_max_bytes", "The limit of memory; 0 for none."),
    _gauge(
        "memory",
        "mem_fragmentation_ratio",
        "mem_fragmentation_ratio",
        "Resident memory to memory in use.",
    ),
    _gauge("memory", "used_memory_lua", "memory_used_lua_bytes", "Memory of the Lua interpreter."),
    _gauge(
        "memory", "used_memory_vm_eval", "memory_used_vm_eval_bytes", "The same, for EVAL alone."
    ),
    _gauge(
        "memory",
        "used_memory_scripts_eval",
        "memory_used_scripts_eval_bytes",
        "Memory of scripts that are kept for EVALSHA.",
    ),
    _gauge(
        "memory",
        "used_memory_vm_functions",
        "memory_used_vm_functions_bytes",
        "Memory of the Lua interpreter of functions.",
    ),
    _gauge(
        "memory", "used_memory_functions", "memory_used_functions_bytes", "Memory of functions."
    ),
    _gauge(
        "memory",
        "used_memory_scripts",
        "memory_used_scripts_bytes",
        "Memory of scripts and functions.",
    ),
    _gauge(
        "memory", "number_of_cached_scripts", "number_of_cached_scripts", "Scripts for EVALSHA."
    ),
    _gauge("memory", "number_of_functions", "number_of_functions", "Functions."),
    _gauge("memory", "number_of_libraries", "number_of_libraries", "Libraries of functions."),
    _gauge(
        "memory",
        "lazyfree_pending_objects",
        "lazyfree_pending_objects",
        "Objects that are deleted and not freed yet.",
    ),
    _gauge("memory", "lazyfreed_objects", "lazyfreed_objects", "Objects freed in the background."),
    # What outlives the process.
    _gauge("persistence", "loading", "loading_dump_file", "Whether data is being loaded."),
    _gauge(
        "persistence",
        "rdb_changes_since_last_save",
        "rdb_changes_since_last_save",
        "Changes since a base of the append-only file was made.",
    ),
    _gauge(
        "persistence",
        "rdb_bgsave_in_progress",
        "rdb_bgsave_in_progress",
        "Whether BGSAVE is at work.",
    ),
    _gauge(
        "persistence",
        "rdb_last_save_time",
        "rdb_last_save_timestamp_seconds",
        "When data was last saved as a whole.",
    ),
    _gauge(
        "persistence",
        "rdb_last_bgsave_status",
        "rdb_last_bgsave_status",
        "Whether that went well.",
        _is_ok,
    ),
    _gauge(
        "persistence",
        "rdb_last_bgsave_time_sec",
        "rdb_last_bgsave_duration_sec",
        "How long that took; -1 if there was none.",
    ),
    _gauge(
        "persistence",
        "rdb_current_bgsave_time_sec",
        "rdb_current_bgsave_duration_sec",
        "For how long BGSAVE has been at work; -1 if it is not.",
    ),
    _counter("persistence", "rdb_saves", "rdb_saves", "How often data was saved as a whole."),
    _gauge("persistence", "aof_enabled", "aof_enabled", "Whether there is an append-only file."),
    _gauge(
        "persistence",
        "aof_rewrite_in_progress",
        "aof_rewrite_in_progress",
        "Whether the file is being rewritten.",
    ),
    _gauge(
        "persistence",
        "aof_rewrite_scheduled",
        "aof_rewrite_scheduled",
        "Whether it will be, after what is going on.",
    ),
    _gauge(
        "persistence",
        "aof_last_rewrite_time_sec",
        "aof_last_rewrite_duration_sec",
        "How long the last rewrite took; -1 if there was none.",
    ),
    _gauge(
        "persistence",
        "aof_current_rewrite_time_sec",
        "aof_current_rewrite_duration_sec",
        "For how long a rewrite has been going on; -1 if none is.",
    ),
    _gauge(
        "persistence",
        "aof_last_bgrewrite_status",
        "aof_last_bgrewrite_status",
        "Whether the last rewrite went well.",
        _is_ok,
    ),
    _gauge(
        "persistence",
        "aof_last_write_status",
        "aof_last_write_status",
        "Whether the file can be written to; commands that write are refused if not.",
        _is_ok,
    ),
    _gauge("persistence", "aof_current_size", "aof_current_size_bytes", "Size of all files."),
    _gauge("persistence", "aof_base_size", "aof_base_size_bytes", "Size of the base."),
    _gauge(
        "persistence", "aof_pending_rewrite", "aof_pending_rewrite", "Whether a base is missing."
    ),
    _gauge(
        "persistence", "aof_buffer_length", "aof_buffer_length", "Bytes that are to be written."
    ),
    _gauge(
        "persistence",
        "aof_pending_bio_fsync",
        "aof_pending_bio_fsync",
        "Whether something waits for the disk.",
    ),
    _gauge(
        "persistence",
        "aof_delayed_fsync",
        "aof_delayed_fsync",
        "How often the disk took more than two seconds.",
    ),
    # What has happened.
    _counter(
        "stats", "total_connections_received", "connections_received", "Clients that connected."
    ),
    _counter("stats", "rejected_connections", "rejected_connections", "Clients turned away."),
    _counter("stats", "total_commands_processed", "commands_processed", "Commands that have run."),
    _counter("stats", "total_net_input_bytes", "net_input_bytes", "Bytes received from clients."),
    _counter("stats", "total_net_output_bytes", "net_output_bytes", "Bytes sent to clients."),
    _counter("stats", "expired_keys", "expired_keys", "Keys that have expired."),
    _counter("stats", "evicted_keys", "evicted_keys", "Keys that were evicted."),
    _counter("stats", "evicted_clients", "evicted_clients", "Clients that were evicted."),
    _counter("stats", "keyspace_hits", "keyspace_hits", "Keys looked up that there were."),
    _counter("stats", "keyspace_misses", "keyspace_misses", "Keys looked up that there were not."),
    _gauge("stats", "pubsub_channels", "pubsub_channels", "Channels with subscribers."),
    _gauge("stats", "pubsub_patterns", "pubsub_patterns", "Patterns with subscribers."),
    _gauge("stats", "pubsubshard_channels", "pubsubshard_channels", "The same, shard channels."),
    _counter("stats", "eventloop_cycles", "eventloop_cycles", "Calls of the event loop."),
    _counter(
        "stats",
        "eventloop_duration_sum",
        "eventloop_duration_sum_usec",
        "What they took, in microseconds.",
    ),
    _counter(
        "stats",
        "eventloop_duration_cmd_sum",
        "eventloop_duration_cmd_sum_usec",
        "What commands took of that.",
    ),
    _counter(
        "stats",
        "client_query_buffer_limit_disconnections",
        "client_query_buffer_limit_disconnections",
        "Clients cut off for their requests.",
    ),
    _counter(
        "stats",
        "client_output_buffer_limit_disconnections",
        "client_output_buffer_limit_disconnections",
        "Clients cut off because they do not read.",
    ),
    _counter("stats", "acl_access_denied_auth", "acl_access_denied_auth", "Logins refused."),
    _counter(
        "stats",
        "acl_access_denied_cmd",
        "acl_access_denied_cmd",
        "Commands refused by a user's rules.",
    ),
    _counter("stats", "acl_access_denied_key", "acl_access_denied_key", "The same for keys."),
    _counter(
        "stats", "acl_access_denied_channel", "acl_access_denied_channel", "The same for channels."
    ),
    _gauge("replication", "connected_slaves", "connected_slaves", "Replicas."),
    _gauge(
        "replication",
        "master_repl_offset",
        "master_repl_offset",
        "How many bytes the stream of replication has had so far.",
    ),
    _gauge(
        "replication",
        "repl_backlog_histlen",
        "repl_backlog_history_bytes",
        "How many bytes of the stream of replication are kept.",
    ),
    # Processor time.
    _counter("cpu", "used_cpu_sys", "cpu_sys_seconds", "Processor time of the system."),
    _counter("cpu", "used_cpu_user", "cpu_user_seconds", "Processor time of the server."),
    _counter(
        "cpu", "used_cpu_sys_children", "cpu_sys_children_seconds", "The same of its children."
    ),
    _counter(
        "cpu", "used_cpu_user_children", "cpu_user_children_seconds", "The same of its children."
    ),
    _counter(
        "cpu",
        "used_cpu_sys_main_thread",
        "cpu_sys_main_thread_seconds",
        "The same of its main thread.",
    ),
    _counter(
        "cpu",
        "used_cpu_user_main_thread",
        "cpu_user_main_thread_seconds",
        "The same of its main thread.",
    ),
)
"""In the order of INFO. A field that INFO does not have now has no series now."""
