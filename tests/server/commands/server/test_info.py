from __future__ import annotations

import itertools
import os
import re
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from server.commands.server.memory import human_size
from server.runtime import process
from server.runtime import version as version_module
from server.runtime.version import PENSTOCK_VERSION
from storage.engine import log
from tests.support.direct import START_MS, Direct, DirectClient
from tests.support.servers import PenstockThread
from tests.support.wire import Client, packed

USUAL = (
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Threads",
    "Stats",
    "Replication",
    "CPU",
    "Modules",
    "Errorstats",
    "Cluster",
    "Keyspace",
)


def text(client: DirectClient, *sections: str) -> str:
    reply = client.send("INFO", *sections)
    assert reply is not None
    head, _, body = reply.partition(b"\r\n")
    assert head == b"$%d" % (len(body) - 2)
    return body[:-2].decode()


def titles(client: DirectClient, *sections: str) -> list[str]:
    lines = text(client, *sections).split("\r\n")
    return [line.removeprefix("# ") for line in lines if line.startswith("#")]


def fields(client: DirectClient, section: str) -> dict[str, str]:
    title, *lines = text(client, section).split("\r\n")
    assert title.lower() == f"# {section}"
    assert lines.pop() == ""
    return dict(line.split(":", 1) for line in lines)


OF_REDIS = dict(
    line.split(": ")
    for line in (Path(__file__).parents[2] / "data/info-8.0.6.txt")
    .read_text()
    .replace("\n    ", " ")
    .splitlines()
)
"""The fields of each section as Redis 8.0.6 shows them when nothing goes on."""


@pytest.mark.parametrize("section", OF_REDIS)
def test_every_field_of_redis_is_there_in_its_order(client: DirectClient, section: str) -> None:
    wanted = OF_REDIS[section].split()
    assert [name for name in fields(client, section) if name in wanted] == wanted


def test_what_there_is_nothing_to_tell_of_is_as_redis_shows_it(client: DirectClient) -> None:
    found = fields(client, "persistence") | fields(client, "stats")
    nothing = {name: found[name] for name in found if "_cow_" in name or "expired_" in name}
    assert nothing == {
        "current_cow_peak": "0",
        "current_cow_size": "0",
        "current_cow_size_age": "0",
        "rdb_last_cow_size": "0",
        "aof_last_cow_size": "0",
        "module_fork_last_cow_size": "0",
        "expired_subkeys": "0",
        "expired_keys": "0",
        "expired_stale_perc": "0.00",
        "expired_time_cap_reached_count": "0",
    }
    assert found["current_fork_perc"] == "0.00"


class TestSections:
    def test_the_usual_ones(self, client: DirectClient) -> None:
        assert titles(client) == list(USUAL)
        assert titles(client, "DEFAULT") == list(USUAL)

    @pytest.mark.parametrize("name", ["all", "everything"])
    def test_all_of_them(self, client: DirectClient, name: str) -> None:
        more = list(USUAL)
        more[9:10] = ["Commandstats", "Errorstats", "Latencystats"]
        assert titles(client, name) == more

    def test_they_come_in_their_own_order_and_once(self, client: DirectClient) -> None:
        asked = ["keyspace", "CPU", "clients", "cpu", "foo"]
        assert titles(client, *asked) == ["Clients", "CPU", "Keyspace"]
        assert titles(client, "commandstats", "default")[9] == "Commandstats"

    def test_an_unknown_one_is_empty(self, client: DirectClient) -> None:
        assert client.send("INFO", "foo") == b"$0\r\n\r\n"

    def test_an_empty_line_stands_between_them(self, client: DirectClient) -> None:
        assert text(client, "cluster", "keyspace", "modules") == (
            "# Modules\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n# Keyspace\r\n"
        )

    def test_resp3_gets_them_as_text(self, direct: Direct) -> None:
        reply = direct.client(resp3=True).send("INFO", "cluster")
        assert reply == b"=34\r\ntxt:# Cluster\r\ncluster_enabled:0\r\n\r\n"


class TestServer:
    def test_it_names_both_versions(self, client: DirectClient) -> None:
        found = fields(client, "server")
        assert list(found)[:3] == ["redis_version", "penstock_version", "penstock_build"]
        assert found["redis_version"] == "8.10.0"
        assert found["penstock_version"] == PENSTOCK_VERSION
        assert found["redis_mode"] == "standalone"
        assert found["arch_bits"] == "64"
        assert found["process_id"] == str(os.getpid())
        assert found["config_file"] == ""
        assert len(found["run_id"]) == 40

    def test_it_says_whether_its_hot_modules_are_compiled(self, client: DirectClient) -> None:
        native = str(log.__file__).endswith(tuple(EXTENSION_SUFFIXES))
        assert fields(client, "server")["penstock_build"] == ("compiled" if native else "plain")

    def test_it_tells_one_build_from_another(self, client: DirectClient) -> None:
        found = fields(client, "server")
        assert re.fullmatch("[0-9a-f]{16}", found["redis_build_id"])
        assert found["redis_build_id"] == fields(client, "server")["redis_build_id"]
        assert re.fullmatch(r"\d+(\.\d+)+", found["gcc_version"])

    @pytest.mark.parametrize(
        ("build", "made_by", "version"),
        [
            ("compiled", "compiled -O1 mypyc 1.18.2 clang 17.0.6", "17.0.6"),
            ("plain", "3.12.1 (main) [Clang 15.0.0 (clang-1500.3.9.4)]", "15.0.0"),
            ("plain", "3.11.2 (main) [MSC v.1934 64 bit]", "0.0.0"),
        ],
    )
    def test_the_compiler_is_that_of_the_hot_modules_or_else_of_python(
        self, monkeypatch: pytest.MonkeyPatch, build: str, made_by: str, version: str
    ) -> None:
        monkeypatch.setattr(version_module, "BUILD", build)
        monkeypatch.setattr(version_module, "build_line", lambda: made_by)
        monkeypatch.setattr("sys.version", made_by)
        assert version_module.compiler_version.__wrapped__() == version

    def test_systemd_is_named_where_it_waits_for_the_server(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("NOTIFY_SOCKET", "/run/notify")
        told = [
            fields(Direct(supervised=how).client(), "server")["process_supervised"]
            for how in ("no", "auto", "systemd")
        ]
        assert told == ["no", "systemd", "systemd"]
        monkeypatch.delenv("NOTIFY_SOCKET")
        assert fields(Direct(supervised="auto").client(), "server")["process_supervised"] == "no"

    def test_it_tells_the_time(self, direct: Direct, client: DirectClient) -> None:
        direct.now_ms += 90_000_999
        found = fields(client, "server")
        assert found["server_time_usec"] == str((START_MS + 90_000_999) * 1000)
        assert (found["uptime_in_seconds"], found["uptime_in_days"]) == ("90000", "1")

    def test_it_tells_where_it_listens(self, tmp_path: Path) -> None:
        path = str(tmp_path / "socket")
        direct = Direct(bind="127.0.0.1 -::1", unixsocket=path)
        direct.server.state.instance.port = 7000
        found = fields(direct.client(), "server")
        assert found["tcp_port"] == "7000"
        assert found["listener0"] == "name=tcp,bind=127.0.0.1,bind=-::1,port=7000"
        assert found["listener1"] == f"name=unix,bind={path}"

    def test_it_names_the_configuration_file(self, direct: Direct, client: DirectClient) -> None:
        direct.server.state.config.file = "/etc/penstock.conf"
        assert fields(client, "server")["config_file"] == "/etc/penstock.conf"


class TestClients:
    def test_nobody_does_anything(self, client: DirectClient) -> None:
        assert fields(client, "clients") == {
            "connected_clients": "1",
            "cluster_connections": "0",
            "maxclients": "10000",
            "client_recent_max_input_buffer": "0",
            "client_recent_max_output_buffer": "0",
            "blocked_clients": "0",
            "tracking_clients": "0",
            "pubsub_clients": "0",
            "watching_clients": "0",
            "clients_in_timeout_table": "0",
            "total_watched_keys": "0",
            "total_blocking_keys": "0",
            "total_blocking_keys_on_nokey": "0",
        }

    def test_waiting_watching_and_listening_clients_are_counted(
        self, direct: Direct, client: DirectClient
    ) -> None:
        client.send("XGROUP", "CREATE", "s", "g", "$", "MKSTREAM")
        one, two, three, four, five = (direct.client() for _ in range(5))
        one.send("XREAD", "BLOCK", 0, "STREAMS", "s", "t", "$", "$")
        two.send("XREADGROUP", "GROUP", "g", "c", "BLOCK", 1000, "STREAMS", "s", ">")
        three.send("WATCH", "a", "b")
        four.send("WATCH", "a")
        five.send("SUBSCRIBE", "c")
        found = fields(client, "clients")
        counted = {name: count for name, count in found.items() if count != "0"}
        assert counted == {
            "connected_clients": "6",
            "maxclients": "10000",
            "blocked_clients": "2",
            "pubsub_clients": "1",
            "watching_clients": "2",
            "clients_in_timeout_table": "1",
            "total_watched_keys": "2",
            "total_blocking_keys": "2",
            "total_blocking_keys_on_nokey": "1",
        }


class TestMemory:
    def test_its_figures_fit_together(self, client: DirectClient) -> None:
        found = fields(client, "memory")
        used, peak = int(found["used_memory"]), int(found["used_memory_peak"])
        overhead, dataset = int(found["used_memory_overhead"]), int(found["used_memory_dataset"])
        assert 0 < used <= peak
        assert int(found["used_memory_startup"]) <= overhead
        assert overhead + dataset == used
        assert found["maxmemory"] == "0"
        assert found["maxmemory_policy"] == "noeviction"

    def test_what_allocators_have_is_told_apart_from_files(self, client: DirectClient) -> None:
        found = fields(client, "memory")
        resident, rest = int(found["allocator_resident"]), int(found["rss_overhead_bytes"])
        assert 0 < resident < int(found["used_memory_rss"])
        assert rest >= 0
        assert float(found["rss_overhead_ratio"]) >= 1

    def test_allocators_have_all_memory_where_the_system_does_not_tell(
        self, client: DirectClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "allocated_memory", lambda: None)
        monkeypatch.setattr(process, "resident_memory", lambda: 5000)
        found = fields(client, "memory")
        of_allocator = {
            name: value for name, value in found.items() if name.startswith(("allocator_", "rss_"))
        }
        assert of_allocator == {
            "allocator_allocated": "5000",
            "allocator_active": "5000",
            "allocator_resident": "5000",
            "allocator_muzzy": "0",
            "allocator_frag_ratio": "1.00",
            "allocator_frag_bytes": "0",
            "allocator_rss_ratio": "1.00",
            "allocator_rss_bytes": "0",
            "rss_overhead_ratio": "1.00",
            "rss_overhead_bytes": "0",
        }

    def test_it_tells_when_the_peak_was(self, direct: Direct, client: DirectClient) -> None:
        direct.now_ms += 5000
        direct.cron()
        direct.server.services.cron.peak_memory = 2**62
        direct.now_ms += 5000
        direct.cron()
        assert fields(client, "memory")["used_memory_peak_time"] == str(START_MS // 1000 + 5)

    def test_the_peak_stands_in_where_the_system_does_not_tell(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*args: object) -> None:
            raise FileNotFoundError

        monkeypatch.setattr("builtins.open", fail)
        assert process.resident_memory() == process.peak_memory()
        assert process.allocated_memory() is None

    @pytest.mark.parametrize(
        ("size", "shown"),
        [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (2222312, "2.12M"),
            (25276518400, "23.54G"),
            (2**60, "1024.00P"),
        ],
    )
    def test_sizes_are_shown_for_people(self, size: int, shown: str) -> None:
        assert human_size(size) == shown


class TestProcessorTime:
    def test_a_system_may_not_know_that_of_the_thread(
        self, client: DirectClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert len(fields(client, "cpu")) == 6
        monkeypatch.delattr("resource.RUSAGE_THREAD")
        assert list(fields(client, "cpu")) == [
            "used_cpu_sys",
            "used_cpu_user",
            "used_cpu_sys_children",
            "used_cpu_user_children",
        ]


class TestStats:
    def test_commands_keys_and_errors_are_counted(
        self, direct: Direct, client: DirectClient
    ) -> None:
        client.send("SET", "k", "v", "PX", 10)
        client.send("GET", "k")
        client.send("GET", "nothing")
        client.send("FOO")
        client.send("AUTH", "nobody", "x")
        client.send("SUBSCRIBE", "a", "b")
        client.send("PSUBSCRIBE", "c*")
        direct.now_ms += 10
        other = direct.client()
        other.send("GET", "k")
        found = fields(other, "stats")
        for name, count in {
            "total_commands_processed": 7,
            "expired_keys": 1,
            "keyspace_hits": 1,
            "keyspace_misses": 2,
            "pubsub_channels": 2,
            "pubsub_patterns": 1,
            "total_error_replies": 2,
            "acl_access_denied_auth": 1,
        }.items():
            assert found[name] == str(count), name

    def test_rates_are_made_of_the_last_samples(self, direct: Direct, client: DirectClient) -> None:
        assert fields(client, "stats")["instantaneous_ops_per_sec"] == "0"
        direct.server.state.stats.samples.clear()
        for _ in range(3):
            direct.cron()
            client.send("PING")
            client.send("PING")
            direct.server.state.stats.bytes_in += 1024
            direct.server.state.stats.bytes_out += 512
            direct.now_ms += 500
            direct.cron()
            direct.now_ms += 500
        found = fields(client, "stats")
        assert found["instantaneous_ops_per_sec"] == "2"
        assert found["instantaneous_input_kbps"] == "1.00"
        assert found["instantaneous_output_kbps"] == "0.50"

    def test_reads_and_writes_are_counted(self, penstock: PenstockThread) -> None:
        with Client(penstock.address) as first, Client(penstock.address) as second:
            assert first.ask("PING") == b"PONG"
            received = second.raw("INFO", "stats", "threads")
        size = len(packed("PING", "INFO stats threads"))
        assert b"\r\ntotal_reads_processed:2\r\n" in received
        assert b"\r\ntotal_writes_processed:1\r\n" in received
        assert b"\r\nio_thread_0:clients=2,reads=2,writes=1\r\n" in received
        assert b"\r\ntotal_net_input_bytes:%d\r\n" % size in received
        assert b"\r\ntotal_connections_received:2\r\n" in received

    def test_each_command_has_its_counts(self, client: DirectClient) -> None:
        # Nothing takes so long that it is in the slow log, however busy the machine is.
        client.server.state.stopwatch._nanoseconds = lambda: 0
        client.send("SELECT", 1)
        client.send("SELECT", 99)
        client.send("SELECT")
        client.send("CLIENT", "ID")
        client.server.state.table[b"select"].nanoseconds = 5_000
        client.server.state.table[b"client"].subcommands[b"id"].nanoseconds = 2_000
        assert fields(client, "commandstats") == {
            "cmdstat_select": ("calls=2,usec=5,usec_per_call=2.50,rejected_calls=1,failed_calls=1"),
            "cmdstat_client|id": (
                "calls=1,usec=2,usec_per_call=2.00,rejected_calls=0,failed_calls=0"
            ),
        }

    def test_errors_are_counted_by_their_code(self, client: DirectClient) -> None:
        client.send("SET", "k", "v")
        client.send("XLEN", "k")
        client.send("FOO")
        client.send("GET")
        assert fields(client, "errorstats") == {
            "errorstat_ERR": "count=2",
            "errorstat_WRONGTYPE": "count=1",
        }

    def test_no_latency_is_known_before_a_command_has_run(self, client: DirectClient) -> None:
        assert text(client, "latencystats") == "# Latencystats\r\n"


class TestWhatCameLater:
    def test_reads_and_slow_commands_are_counted(self, client: DirectClient) -> None:
        found = fields(client, "stats")
        newer = (
            "slowlog_commands_count slowlog_commands_time_ms_sum slowlog_commands_time_ms_max"
            " total_client_processing_events commands_per_parse_batch_avg"
            " expire_cycle_cpu_milliseconds"
        )
        assert [found[name] for name in newer.split()] == ["0", "0.00", "0.00", "0", "0.00", "0"]

    def test_the_mean_of_requests_in_a_read(self, direct: Direct, client: DirectClient) -> None:
        stats = direct.server.state.stats
        stats.batches, stats.batched, stats.expiry_ns = 4, 10, 7_999_999
        found = fields(client, "stats")
        assert found["total_client_processing_events"] == "4"
        assert found["commands_per_parse_batch_avg"] == "2.50"
        assert found["expire_cycle_cpu_milliseconds"] == "7"


class TestKeySizes:
    LINES = (
        "# Keysizes\r\ndb0_distrib_strings_sizes:0=1,1=1,2=2,4=1,8=1\r\n"
        "db2_distrib_strings_sizes:2=1\r\n"
    )

    def test_strings_are_counted_by_powers_of_two(self, client: DirectClient) -> None:
        for value in ("", "1", "12", "123", "1234", "12345678"):
            client.send("SET", f"k{len(value)}", value)
        client.send("XADD", "s", "*", "f", "v")
        client.send("SELECT", 1)
        client.send("XADD", "s", "*", "f", "v")
        client.send("SELECT", 2)
        client.send("SET", "k", "yy")
        assert text(client, "keysizes") == self.LINES
        assert text(client, "KEYSIZES", "cluster") == (
            "# Cluster\r\ncluster_enabled:0\r\n\r\n" + self.LINES
        )

    def test_only_its_own_name_asks_for_it(self, client: DirectClient) -> None:
        client.send("SET", "k", "v")
        assert "Keysizes" not in text(client, "everything")

    def test_of_many_keys_it_gives_way_to_others(
        self, direct: Direct, client: DirectClient
    ) -> None:
        direct.server.services.stepped.nanoseconds = itertools.count(0, 10**9).__next__
        for number in range(10_001):
            client.send("SET", f"k{number}", "v")
        assert client.send("INFO", "keysizes") is None
        assert direct.client().send("DEL", "k1") == b":1\r\n"
        while client.reply_when_woken is None:
            direct.server.services.stepped.turn()
        lines = b"# Keysizes\r\ndb0_distrib_strings_sizes:1=10001\r\n"
        assert client.reply_when_woken == b"$%d\r\n%b\r\n" % (len(lines), lines)


class TestTheRest:
    def test_it_is_a_master_without_replicas(self, client: DirectClient) -> None:
        found = fields(client, "replication")
        assert (found["role"], found["connected_slaves"]) == ("master", "0")
        assert len(found["master_replid"]) == 40

    def test_it_is_not_loading(self, client: DirectClient) -> None:
        found = fields(client, "persistence")
        assert (found["loading"], found["aof_enabled"]) == ("0", "0")

    def test_two_servers_have_different_names(self) -> None:
        ids = [
            fields(Direct().client(), section)[name]
            for section, name in (("server", "run_id"), ("replication", "master_replid"))
            for _ in range(2)
        ]
        assert all(one != other for one, other in itertools.combinations(ids, 2))


class TestKeyspace:
    def test_databases_with_keys_are_listed(self, client: DirectClient) -> None:
        assert fields(client, "keyspace") == {}
        client.send("SET", "a", "1")
        client.send("SELECT", 3)
        client.send("SET", "b", "1", "PX", 1000)
        client.send("SET", "c", "1", "PX", 3000)
        client.send("SET", "d", "1")
        assert fields(client, "keyspace") == {
            "db0": "keys=1,expires=0,avg_ttl=0,subexpiry=0",
            "db3": "keys=3,expires=2,avg_ttl=2000,subexpiry=0",
        }
