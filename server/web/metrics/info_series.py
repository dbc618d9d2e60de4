"""The series that fields of INFO stand for, under the names of redis_exporter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from server.web.metrics.text import COUNTER, GAUGE, Family

_TABLE: Final = """
[server]
gauge uptime_in_seconds: Seconds since the server began.
gauge process_id: The number of the process.
[clients]
gauge connected_clients: Clients that are connected.
gauge blocked_clients: Clients that wait.
gauge maxclients -> max_clients: How many clients may be connected.
gauge pubsub_clients: Clients with subscriptions.
gauge watching_clients: Clients that watch keys.
gauge clients_in_timeout_table: Clients that wait until a deadline.
gauge total_watched_keys: Keys that are watched.
gauge total_blocking_keys: Keys that clients wait for.
gauge total_blocking_keys_on_nokey: Keys whose end clients are told of that wait for them.
gauge client_recent_max_input_buffer -> client_recent_max_input_buffer_bytes: The most bytes of
    requests that wait of one client.
gauge client_recent_max_output_buffer -> client_recent_max_output_buffer_bytes: The most bytes of
    replies that wait for one client.
[memory]
gauge used_memory -> memory_used_bytes: Memory in use.
gauge used_memory_rss -> memory_used_rss_bytes: Memory that is resident.
gauge used_memory_peak -> memory_used_peak_bytes: The most memory ever in use.
gauge used_memory_overhead -> memory_used_overhead_bytes: Memory that is no data.
gauge used_memory_startup -> memory_used_startup_bytes: Memory in use at the start.
gauge used_memory_dataset -> memory_used_dataset_bytes: Memory that is data.
gauge total_system_memory -> total_system_memory_bytes: Memory of the machine.
gauge maxmemory -> memory_max_bytes: The limit of memory; 0 for none.
gauge mem_fragmentation_ratio: Resident memory to memory in use.
gauge used_memory_lua -> memory_used_lua_bytes: Memory of the Lua interpreter.
gauge used_memory_vm_eval -> memory_used_vm_eval_bytes: The same, for EVAL alone.
gauge used_memory_scripts_eval -> memory_used_scripts_eval_bytes: Memory of scripts that are kept
    for EVALSHA.
gauge used_memory_vm_functions -> memory_used_vm_functions_bytes: Memory of the Lua interpreter of
    functions.
gauge used_memory_functions -> memory_used_functions_bytes: Memory of functions.
gauge used_memory_scripts -> memory_used_scripts_bytes: Memory of scripts and functions.
gauge number_of_cached_scripts: Scripts for EVALSHA.
gauge number_of_functions: Functions.
gauge number_of_libraries: Libraries of functions.
gauge lazyfree_pending_objects: Objects that are deleted and not freed yet.
gauge lazyfreed_objects: Objects freed in the background.
[persistence]
gauge loading -> loading_dump_file: Whether data is being loaded.
gauge rdb_changes_since_last_save: Changes since a base of the append-only file was made.
gauge rdb_bgsave_in_progress: Whether BGSAVE is at work.
gauge rdb_last_save_time -> rdb_last_save_timestamp_seconds: When data was last saved as a whole.
ok rdb_last_bgsave_status: Whether that went well.
gauge rdb_last_bgsave_time_sec -> rdb_last_bgsave_duration_sec: How long that took; -1 if there
    was none.
gauge rdb_current_bgsave_time_sec -> rdb_current_bgsave_duration_sec: For how long BGSAVE has been
    at work; -1 if it is not.
counter rdb_saves: How often data was saved as a whole.
gauge aof_enabled: Whether there is an append-only file.
gauge aof_rewrite_in_progress: Whether the file is being rewritten.
gauge aof_rewrite_scheduled: Whether it will be, after what is going on.
gauge aof_last_rewrite_time_sec -> aof_last_rewrite_duration_sec: How long the last rewrite took;
    -1 if there was none.
gauge aof_current_rewrite_time_sec -> aof_current_rewrite_duration_sec: For how long a rewrite has
    been going on; -1 if none is.
ok aof_last_bgrewrite_status: Whether the last rewrite went well.
ok aof_last_write_status: Whether the file can be written to; commands that write are refused if
    not.
gauge aof_current_size -> aof_current_size_bytes: Size of all files.
gauge aof_base_size -> aof_base_size_bytes: Size of the base.
gauge aof_pending_rewrite: Whether a base is missing.
gauge aof_buffer_length: Bytes that are to be written.
gauge aof_pending_bio_fsync: Whether something waits for the disk.
gauge aof_delayed_fsync: How often the disk took more than two seconds.
[stats]
counter total_connections_received -> connections_received: Clients that connected.
counter rejected_connections: Clients turned away.
counter total_commands_processed -> commands_processed: Commands that have run.
counter total_net_input_bytes -> net_input_bytes: Bytes received from clients.
counter total_net_output_bytes -> net_output_bytes: Bytes sent to clients.
counter expired_keys: Keys that have expired.
counter evicted_keys: Keys that were evicted.
counter evicted_clients: Clients that were evicted.
counter keyspace_hits: Keys looked up that there were.
counter keyspace_misses: Keys looked up that there were not.
gauge pubsub_channels: Channels with subscribers.
gauge pubsub_patterns: Patterns with subscribers.
gauge pubsubshard_channels: The same, shard channels.
counter eventloop_cycles: Calls of the event loop.
counter eventloop_duration_sum -> eventloop_duration_sum_usec: What they took, in microseconds.
counter eventloop_duration_cmd_sum -> eventloop_duration_cmd_sum_usec: What commands took of that.
counter client_query_buffer_limit_disconnections: Clients cut off for their requests.
counter client_output_buffer_limit_disconnections: Clients cut off because they do not read.
counter acl_access_denied_auth: Logins refused.
counter acl_access_denied_cmd: Commands refused by a user's rules.
counter acl_access_denied_key: The same for keys.
counter acl_access_denied_channel: The same for channels.
[replication]
gauge connected_slaves: Replicas.
gauge master_repl_offset: How many bytes the stream of replication has had so far.
gauge repl_backlog_histlen -> repl_backlog_history_bytes: How many bytes of the stream of
    replication are kept.
[cpu]
counter used_cpu_sys -> cpu_sys_seconds: Processor time of the system.
counter used_cpu_user -> cpu_user_seconds: Processor time of the server.
counter used_cpu_sys_children -> cpu_sys_children_seconds: The same of its children.
counter used_cpu_user_children -> cpu_user_children_seconds: The same of its children.
counter used_cpu_sys_main_thread -> cpu_sys_main_thread_seconds: The same of its main thread.
counter used_cpu_user_main_thread -> cpu_user_main_thread_seconds: The same of its main thread.
"""
"""A line for each series in the order of INFO, below its section: of which kind it is, which field
it is of, how it is called where the name is another one, and what it tells. A counter's name ends
in ``_total``; ``ok`` is a gauge that is 1 where the field says so. A line that is indented belongs
to the one before."""


class InfoSeries(NamedTuple):
    """A series: in which section of INFO its field is, and how its value follows from that."""

    section: str
    field: str
    family: Family
    convert: Callable[[str], float]


def _is_ok(text: str) -> float:
    return float(text == "ok")


def _rows(table: str) -> Iterator[InfoSeries]:
    section = ""
    for line in table.replace("\n    ", " ").split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        elif line:
            yield _row(section, line)


def _row(section: str, line: str) -> InfoSeries:
    found = re.fullmatch(r"(\w+) (\w+)(?: -> (\w+))?: (.+)", line)
    assert found is not None, line
    kind, field, name, help = found.groups()
    name = f"redis_{name or field}"
    if kind == COUNTER:
        return InfoSeries(section, field, Family(f"{name}_total", COUNTER, help), float)
    return InfoSeries(section, field, Family(name, GAUGE, help), _is_ok if kind == "ok" else float)


SERIES: Final = tuple(_rows(_TABLE))
"""In the order of INFO. A field that INFO does not have now has no series now."""
