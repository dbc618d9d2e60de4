"""A scrape: everything there is to tell, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from server.runtime.histogram import Histogram
from server.runtime.phase import Phase
from server.services import Services
from server.web.collector import ServerCollector
from server.web.pace import Pace
from server.web.stream_series import CONSUMERS, DELIVERIES, DELIVERY_BOUNDS, GROUPS, STREAMS
from server.web.survey import Deliveries, Row, Survey, Surveyor
from server.web.text import Family

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SOME: Final = 250
"""How many lines are written before the time is looked at."""


class _Collected:
    """A family as a collector of its own: prometheus_client writes what a collector has."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


async def scrape(server: Services, loop_lag: Histogram, pace: Pace) -> bytes:
    """All series. Others are served meanwhile, so they may belong to different moments.

    Streams are left out as long as their data is not loaded."""
    pieces: list[bytes] = []
    for family in ServerCollector(server, loop_lag).collect():
        pieces.append(generate_latest(_Collected(family)))
        await pace.rest()
    state = server.state
    if state.phase is Phase.SERVING:
        surveyor = Surveyor(state.config, server.blocking, state.clock(), pace)
        survey = await surveyor.run(state.keyspace)
        pieces.append(generate_latest(_Collected(_left_out(survey))))
        await _write(survey, pieces, pace)
    return b"".join(pieces)


def _left_out(survey: Survey) -> Metric:
    family = GaugeMetricFamily(
        "penstock_metrics_left_out",
        "What has no series because there would be more than metrics-max-series;"
        " what belongs to something that is left out is not counted.",
        labels=["kind"],
    )
    for kind, count in survey.left_out.items():
        family.add_metric([kind], count)
    return family


async def _write(survey: Survey, pieces: list[bytes], pace: Pace) -> None:
    """Adds the series of streams, groups and consumers."""
    for families, rows in (
        (STREAMS, survey.streams),
        (GROUPS, survey.groups),
        (CONSUMERS, survey.consumers),
    ):
        for column, family in enumerate(families):
            await _write_family(family, column, rows, pieces, pace)
    if survey.deliveries:
        pieces.append(DELIVERIES.head.encode())
    for at in range(0, len(survey.deliveries), _SOME // len(DELIVERY_BOUNDS)):
        some = survey.deliveries[at : at + _SOME // len(DELIVERY_BOUNDS)]
        pieces.append("".join(map(_histogram, some)).encode())
        await pace.rest()


async def _write_family(
    family: Family, column: int, rows: list[Row], pieces: list[bytes], pace: Pace
) -> None:
    name, head = family.name, family.head
    for at in range(0, len(rows), _SOME):
        lines = [
            f"{name}{row.labels} {row.values[column]}\n"
            for row in rows[at : at + _SOME]
            if row.values[column] is not None
        ]
        if lines:
            pieces.append((head + "".join(lines)).encode())
            head = ""
        await pace.rest()


def _histogram(deliveries: Deliveries) -> str:
    """The lines of one group."""
    name, own = DELIVERIES.name, deliveries.labels
    lines: list[str] = []
    total = 0
    for bound, count in zip((*DELIVERY_BOUNDS, "+Inf"), deliveries.counts, strict=True):
        total += count
        lines.append(f'{name}_bucket{own[:-1]},le="{bound}"}} {total}\n')
    lines.append(f"{name}_sum{own} {deliveries.total}\n")
    lines.append(f"{name}_count{own} {total}\n")
    return "".join(lines)
