"""The series of the server as a whole: what INFO says, commands, errors, and times."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.commands.server.info import SECTIONS
from server.core.table import every
from server.runtime.histogram import BOUNDS_NS, MILLISECOND, SECOND, Histogram
from server.runtime.version import BUILD, PENSTOCK_VERSION
from server.web.metrics.info_series import SERIES
from tests.server.persistence.conftest import Start
from tests.server.persistence.rig import Rig
from tests.server.web.reading import samples_of, text_of, value
from tests.support.certificates import EXPIRES, Certificates
from tests.support.direct import START_MS, Direct, DirectClient

OF_DASHBOARDS = (
    "redis_up",
    "redis_uptime_in_seconds",
    "redis_connected_clients",
    "redis_blocked_clients",
    "redis_memory_used_bytes",
    "redis_memory_max_bytes",
    "redis_total_system_memory_bytes",
    "redis_memory_used_rss_bytes",
    "redis_mem_fragmentation_ratio",
    "redis_config_maxclients",
    "redis_commands_processed_total",
    "redis_commands_total",
    "redis_commands_duration_seconds_total",
    "redis_commands_failed_calls_total",
    "redis_commands_rejected_calls_total",
    "redis_keyspace_hits_total",
    "redis_keyspace_misses_total",
    "redis_net_input_bytes_total",
    "redis_net_output_bytes_total",
    "redis_connections_received_total",
    "redis_rejected_connections_total",
    "redis_db_keys",
    "redis_db_keys_expiring",
    "redis_expired_keys_total",
    "redis_evicted_keys_total",
    "redis_instance_info",
    "redis_start_time_seconds",
    "redis_connected_slaves",
    "redis_rdb_last_bgsave_status",
    "redis_rdb_changes_since_last_save",
    "redis_aof_enabled",
    "redis_aof_last_write_status",
    "redis_aof_last_bgrewrite_status",
    "redis_loading_dump_file",
    "redis_cpu_sys_seconds_total",
    "redis_cpu_user_seconds_total",
    "redis_acl_access_denied_auth_total",
    "redis_errors_total",
    "redis_slowlog_length",
    "redis_commands_latencies_usec_bucket",
    "redis_commands_latencies_usec_count",
    "redis_commands_latencies_usec_sum",
)
"""What dashboards and alerts for redis_exporter ask for, as far as there is such a thing here."""


async def test_the_names_that_dashboards_for_redis_exporter_ask_for_are_there(
    direct: Direct,
) -> None:
    direct.client().send("GET")
    direct.client().send("EXEC")
    names = {name for name, _ in await samples_of(direct)}
    assert [name for name in OF_DASHBOARDS if name not in names] == []


async def test_every_series_of_info_is_what_info_says(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "k", "v")
    client.send("GET", "k")
    found = await samples_of(direct)
    steady = [series for series in SERIES if series.section not in ("memory", "cpu")]
    for series in steady:
        fields = SECTIONS[series.section](direct.server.services)
        if series.field in fields:
            text = str(fields[series.field])
            assert value(found, series.family.name) == series.convert(text), series.field
    assert value(found, "redis_keyspace_hits_total") == 1
    assert value(found, "redis_aof_last_write_status") == 1


async def test_every_field_that_has_a_series_is_in_info(start: Start) -> None:
    rig = await start()
    services = rig.server.services
    known = {section: SECTIONS[section](services) for section in SECTIONS}
    assert [series for series in SERIES if series.field not in known[series.section]] == []
    assert len({series.family.name for series in SERIES}) == len(SERIES)


async def test_commands_and_errors_are_counted_by_name(
    direct: Direct, client: DirectClient
) -> None:
    client.send("SET", "k", "v")
    client.send("SET", "k", "v")
    client.send("INCR", "k")
    client.send("GET")
    client.send("XGROUP", "CREATE", "s", "g", "0")
    client.send("XADD", "k", "*", "f", "v")
    (set_,) = (entry for entry in every(direct.server.state.table) if entry.name == "set")
    found = await samples_of(direct)
    assert value(found, "redis_commands_total", cmd="set") == 2
    assert value(found, "redis_commands_duration_seconds_total", cmd="set") == pytest.approx(
        set_.nanoseconds / SECOND
    )
    assert value(found, "redis_commands_failed_calls_total", cmd="incr") == 1
    assert value(found, "redis_commands_rejected_calls_total", cmd="get") == 1
    assert value(found, "redis_commands_failed_calls_total", cmd="xgroup|create") == 1
    assert value(found, "redis_commands_total", cmd="swapdb") is None
    assert value(found, "redis_errors_total", err="ERR") == 3
    assert value(found, "redis_errors_total", err="WRONGTYPE") == 1


async def test_how_long_commands_took_is_what_latency_histogram_says(direct: Direct) -> None:
    (get,) = (entry for entry in every(direct.server.state.table) if entry.name == "get")
    for microseconds in (1, 3, 3, 100):
        get.durations.add(1000 * microseconds)
    get.calls, get.nanoseconds = 4, 107_000
    found = await samples_of(direct)
    name = "redis_commands_latencies_usec"
    buckets = [value(found, f"{name}_bucket", cmd="get", le=le) for le in ("1", "4", "132", "+Inf")]
    assert buckets == [1, 3, 4, 4]
    assert value(found, f"{name}_sum", cmd="get") == 107
    assert value(found, f"{name}_count", cmd="get") == 4


async def test_slow_commands_are_counted_and_those_in_the_log(
    direct: Direct, client: DirectClient
) -> None:
    client.send("CONFIG", "SET", "slowlog-log-slower-than", 0, "slowlog-max-len", 2)
    for _ in range(3):
        client.send("PING")
    found = await samples_of(direct)
    assert value(found, "redis_slowlog_length") == 2
    count = value(found, "penstock_slow_commands_total")
    assert count is not None
    assert count >= 3


async def test_a_certificate_has_a_time_left(tmp_path: Path) -> None:
    direct = Direct()
    assert value(await samples_of(direct), "penstock_tls_certificate_expiry_seconds") is None
    direct = Direct(**Certificates(tmp_path).settings(tls_port=1))
    direct.server.services.traffic.tls.load()
    left = value(await samples_of(direct), "penstock_tls_certificate_expiry_seconds")
    assert left == EXPIRES.timestamp() - START_MS / 1000


async def test_the_server_says_what_it_is(direct: Direct) -> None:
    found = await samples_of(direct)
    state = direct.server.state
    (build,) = (dict(labels) for name, labels in found if name == "penstock_build_info")
    assert (build["version"], build["build"]) == (PENSTOCK_VERSION, BUILD)
    (instance,) = (dict(labels) for name, labels in found if name == "redis_instance_info")
    assert instance["role"] == "master"
    assert instance["run_id"] == state.instance.id
    assert instance["maxmemory_policy"] == "noeviction"
    assert value(found, "redis_up") == 1
    assert value(found, "redis_start_time_seconds") == START_MS / 1000


async def test_every_database_has_its_keys() -> None:
    direct = Direct(databases=2)
    client = direct.client()
    client.send("SET", "a", 1, "PX", 100)
    client.send("SET", "b", 1)
    found = await samples_of(direct)
    keys = [value(found, "redis_db_keys", db=name) for name in ("db0", "db1", "db2")]
    assert keys == [2, 0, None]
    assert value(found, "redis_db_keys_expiring", db="db0") == 1
    assert value(found, "redis_db_avg_ttl_seconds", db="db0") == 0.1
    assert value(found, "redis_db_avg_ttl_seconds", db="db1") is None


# --- times -----------------------------------------------------------------------------------


def test_a_histogram_counts_up_to_and_including_each_bound() -> None:
    histogram = Histogram()
    for nanoseconds in (0, BOUNDS_NS[0], BOUNDS_NS[0] + 1, BOUNDS_NS[-1], BOUNDS_NS[-1] + 1):
        histogram.observe(nanoseconds)
    assert histogram.counts[:2] == [2, 1]
    assert histogram.counts[-2:] == [1, 1]
    assert histogram.total_ns == 2 * BOUNDS_NS[0] + 1 + 2 * BOUNDS_NS[-1] + 1
    assert list(BOUNDS_NS) == sorted(set(BOUNDS_NS))


async def test_a_histogram_is_told_in_seconds_and_adds_up(direct: Direct) -> None:
    wakes = direct.server.services.reactions.wakes = Histogram()
    wakes.observe(2 * MILLISECOND)
    wakes.observe(20 * SECOND)
    found = await samples_of(direct)
    name = "penstock_wake_seconds"
    buckets = [value(found, f"{name}_bucket", le=le) for le in ("0.001", "0.002", "10", "+Inf")]
    assert buckets == [0, 1, 1, 2]
    assert value(found, f"{name}_count") == 2
    assert value(found, f"{name}_sum") == 20.002


async def test_each_client_that_is_woken_counts_once_and_one_whose_time_is_up_does_not(
    direct: Direct,
) -> None:
    wakes = direct.server.services.reactions.wakes = Histogram()
    for _ in range(2):
        assert direct.client().send("XREAD", "BLOCK", 0, "STREAMS", "s", "$") is None
    assert direct.client().send("XREAD", "BLOCK", 5, "STREAMS", "other", "$") is None
    direct.client().send("XADD", "s", "*", "f", "v")
    assert sum(wakes.counts) == 2
    direct.advance(5)
    assert sum(wakes.counts) == 2


async def test_there_is_no_time_of_waking_where_nobody_takes_it() -> None:
    text = await text_of(Direct())
    assert "penstock_wake_seconds" not in text
    assert "penstock_fsync_seconds" not in text
    assert "penstock_aof_unsynced_seconds" not in text


def unsynced(rig: Rig) -> float:
    """For how many milliseconds something has not been on the disk."""
    return rig.server.services.persistence.appender.unsynced_ms(rig.now_ms)


async def test_what_is_not_on_the_disk_yet_has_an_age(start: Start) -> None:
    rig = await start()
    rig.cron(1000)
    await rig.disk_rests()
    assert unsynced(rig) == 0
    assert await rig.ask("SET", "k", "v") == b"OK"
    rig.disk.gate.clear()
    rig.cron(900)
    await rig.until(rig.disk.waiting.is_set)
    assert unsynced(rig) == 900
    assert await rig.ask("SET", "k", "w") == b"OK"
    rig.cron(100)
    assert unsynced(rig) == 1000
    syncs = sum(rig.server.services.commit.sync_times.counts)
    rig.disk.gate.set()
    await rig.disk_rests()
    assert unsynced(rig) == 100
    assert sum(rig.server.services.commit.sync_times.counts) == syncs + 1
    rig.cron(1000)
    await rig.disk_rests()
    assert unsynced(rig) == 0
