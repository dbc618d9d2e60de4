"""The series of the server as a whole, as prometheus_client collects them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from server.commands.server.info import SECTIONS
from server.commands.server.memory import Fields
from server.config.registry import NO_EVICTION
from server.core.table import Command, every
from server.runtime.histogram import BOUNDS_NS, MICROSECOND, SECOND, Histogram
from server.runtime.version import BUILD, PENSTOCK_VERSION
from server.services import Services
from server.web.metrics.info_series import SERIES
from server.web.metrics.text import COUNTER, Family

INSTANCE_LABELS: Final = ("redis_version", "redis_mode", "os", "process_id", "run_id", "tcp_port")
"""The labels of redis_instance_info that are fields of INFO's section *server*."""


_OF_COMMANDS: Final[tuple[tuple[str, str, Callable[[Command], float]], ...]] = (
    ("", "Calls of each command.", lambda entry: entry.calls),
    ("_duration_seconds", "How long they took.", lambda entry: entry.nanoseconds / SECOND),
    ("_failed_calls", "Calls that ended with an error.", lambda entry: entry.failed),
    ("_rejected_calls", "Calls that were refused before they ran.", lambda entry: entry.rejected),
)
"""The series of each command: the end of its name, what it tells, and its value."""


class ServerCollector:
    """A collector for prometheus_client that reads the state of a server when it is asked.

    ``loop_lag`` is a histogram that somebody else fills.
    """

    def __init__(self, server: Services, loop_lag: Histogram) -> None:
        self._server = server
        self._loop_lag = loop_lag

    def collect(self) -> Iterator[Metric]:
        """Each family of series; every one is read when it is asked for."""
        server = self._server
        yield GaugeMetricFamily("redis_up", "Whether the server answers.", 1)
        yield from self._identity()
        yield from self._of_info()
        yield from self._of_databases()
        yield from self._of_replicas()
        yield from self._of_commands()
        yield self._errors()
        yield self._of_policies()
        yield from self._slow_commands()
        yield from self._certificate()
        yield from self._of_persistence()
        wakes = server.reactions.wakes
        if wakes is not None:
            yield _times(
                "penstock_wake_seconds",
                "From the end of a command until a client that waited for it is answered.",
                wakes,
            )
        yield _times(
            "penstock_loop_lag_seconds", "How late the event loop does what is due.", self._loop_lag
        )

    def _identity(self) -> Iterator[Metric]:
        server, config = self._server, self._server.state.config
        fields = _fields(server, "server")
        shown = {name: str(fields[name]) for name in INSTANCE_LABELS}
        role = str(_fields(server, "replication")["role"])
        shown |= {"role": role, "maxmemory_policy": NO_EVICTION}
        yield InfoMetricFamily("redis_instance", "What the server is.", shown)
        build = {"version": PENSTOCK_VERSION, "build": BUILD}
        build["python"] = str(fields["python_version"])
        yield InfoMetricFamily("penstock_build", "Which Penstock it is.", build)
        yield GaugeMetricFamily(
            "redis_start_time_seconds",
            "When the server began.",
            server.state.instance.started_ms / 1000,
        )
        yield GaugeMetricFamily(
            "redis_config_maxclients", "The setting maxclients.", config.maxclients
        )
        yield GaugeMetricFamily(
            "redis_config_maxmemory", "The setting maxmemory.", config.maxmemory
        )

    def _of_info(self) -> Iterator[Metric]:
        section, fields = "", Fields()
        for series in SERIES:
            if series.section != section:
                section, fields = series.section, _fields(self._server, series.section)
            if series.field in fields:
                yield _single(series.family, series.convert(str(fields[series.field])))

    def _of_databases(self) -> Iterator[Metric]:
        databases = {f"db{each.index}": each for each in self._server.state.keyspace.databases}
        keys = {name: len(database) for name, database in databases.items()}
        yield labelled(GaugeMetricFamily, "redis_db_keys", "Keys of each database.", "db", keys)
        expiring = {name: len(database.expires) for name, database in databases.items()}
        help = "Those of them that expire."
        yield labelled(GaugeMetricFamily, "redis_db_keys_expiring", help, "db", expiring)
        lives: dict[str, float] = {}
        for name, text in _fields(self._server, "keyspace").items():
            values = dict(pair.split("=") for pair in str(text).split(","))
            lives[name] = int(values["avg_ttl"]) / 1000
        help = "How long keys that expire have to live on average, estimated."
        yield labelled(GaugeMetricFamily, "redis_db_avg_ttl_seconds", help, "db", lives)

    def _of_replicas(self) -> Iterator[Metric]:
        """Yield how much each replica has, and how long ago it said so."""
        labels = ["slave_ip", "slave_port", "slave_state"]
        lag = GaugeMetricFamily(
            "redis_connected_slave_lag_seconds",
            "How long ago each replica was heard of.",
            labels=labels,
        )
        offset = GaugeMetricFamily(
            "redis_connected_slave_offset_bytes",
            "How much of the stream of replication each replica has acknowledged.",
            labels=labels,
        )
        now = self._server.state.clock()
        for replica in self._server.replication.replicas.values():
            values = [replica.address, str(replica.introduction.port), replica.phase]
            lag.add_metric(values, max(0, now - replica.heard_ms) / 1000)
            offset.add_metric(values, replica.acknowledged)
        yield lag
        yield offset

    def _of_commands(self) -> Iterator[Metric]:
        used = [
            entry
            for entry in every(self._server.state.table)
            if entry.calls or entry.rejected or entry.failed
        ]
        for name, help, value in _OF_COMMANDS:
            by_name = {entry.fullname: value(entry) for entry in used}
            yield labelled(CounterMetricFamily, f"redis_commands{name}", help, "cmd", by_name)
        yield _latencies([entry for entry in used if entry.durations.total])

    def _slow_commands(self) -> Iterator[Metric]:
        timings = self._server.state.timings
        yield GaugeMetricFamily(
            "redis_slowlog_length", "Commands in the slow log.", len(timings.slow_log.entries)
        )
        yield CounterMetricFamily(
            "penstock_slow_commands",
            "Commands that were slow enough for the slow log.",
            timings.slow_count,
        )

    def _certificate(self) -> Iterator[Metric]:
        expires = self._server.traffic.tls.expires
        if expires is not None:
            yield GaugeMetricFamily(
                "penstock_tls_certificate_expiry_seconds",
                "For how long the certificate of TLS is still valid; negative afterwards.",
                expires - self._server.state.clock() / 1000,
            )

    def _errors(self) -> Metric:
        counts = dict(sorted(self._server.state.stats.errors.items()))
        help = "Error replies by their code."
        return labelled(CounterMetricFamily, "redis_errors", help, "err", counts)

    def _of_policies(self) -> Metric:
        help = (
            "What policies have done: entries that became dead letters, were delivered again, went"
            " for their age or size, or as all groups had acknowledged them; consumers removed."
        )
        counts = self._server.policies.tally.counts()
        return labelled(CounterMetricFamily, "penstock_policy_actions", help, "action", counts)

    def _of_persistence(self) -> Iterator[Metric]:
        persistence, now = self._server.persistence, self._server.state.timekeeper.source()
        if not persistence.on:
            return
        yield GaugeMetricFamily(
            "penstock_aof_unsynced_seconds",
            "For how long the oldest change has been in the file that may not be on the disk yet.",
            persistence.appender.unsynced_ms(now) / 1000,
        )
        yield _times(
            "penstock_fsync_seconds",
            "How long each fsync of the append-only file took.",
            self._server.commit.sync_times,
        )


def _fields(server: Services, section: str) -> Fields:
    return SECTIONS[section](server)


def labelled(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily],
    name: str,
    help: str,
    label: str,
    values: Mapping[str, float],
) -> Metric:
    """Return a family of series that are told apart by one label."""
    found = family(name, help, labels=[label])
    for text, value in values.items():
        found.add_metric([text], value)
    return found


def _single(family: Family, value: float) -> Metric:
    """A family of one series without labels."""
    if family.kind == COUNTER:
        return CounterMetricFamily(family.name.removesuffix("_total"), family.help, value)
    return GaugeMetricFamily(family.name, family.help, value)


def _latencies(used: Iterable[Command]) -> Metric:
    """The histograms of LATENCY HISTOGRAM, in microseconds."""
    family = HistogramMetricFamily(
        "redis_commands_latencies_usec", "How long each command took.", labels=["cmd"]
    )
    for entry in used:
        buckets = [(str(bound), count) for bound, count in entry.durations.cumulative()]
        buckets.append(("+Inf", entry.durations.total))
        family.add_metric([entry.fullname], buckets, entry.nanoseconds / MICROSECOND)
    return family


def _times(name: str, help: str, histogram: Histogram) -> Metric:
    """A histogram in seconds."""
    bounds = [f"{bound / SECOND:g}" for bound in BOUNDS_NS] + ["+Inf"]
    buckets: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip(bounds, histogram.counts, strict=True):
        total += count
        buckets.append((bound, float(total)))
    return HistogramMetricFamily(name, help, buckets, histogram.total_ns / SECOND)


EVERY_S: Final = 0.1


class LoopLagProbe:
    """Asks the event loop to call it ten times a second, and counts how late it does."""

    def __init__(self) -> None:
        self.times = Histogram()
        self._timer: asyncio.TimerHandle

    def start(self) -> None:
        """Begins; an event loop must be running."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_at(loop.time() + EVERY_S, self._called, loop.time() + EVERY_S)

    def _called(self, due: float) -> None:
        late = asyncio.get_running_loop().time() - due
        self.times.observe(max(0, int(late * SECOND)))
        self.start()

    def stop(self) -> None:
        """Ends it; it must have begun."""
        self._timer.cancel()
