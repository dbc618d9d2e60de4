"""A scrape: everything there is to tell, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from server.runtime.clockwork import Slice
from server.runtime.histogram import Histogram
from server.services import Services
from server.state.server_state import Phase
from server.web.metrics.collector import ServerCollector, labelled
from server.web.metrics.stream_series import CONSUMERS, DELIVERIES, DELIVERY_BOUNDS, GROUPS, STREAMS
from server.web.metrics.text import Family, Value
from server.web.survey import Rows, Survey, Surveyor

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SOME: Final = 250
"""How many lines are written before the time is looked at."""


class _Collected:
    """A family as a collector of its own: prometheus_client writes what a collector has."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


async def scrape(server: Services, loop_lag: Histogram, pace: Slice) -> list[bytes]:
    """All series, in pieces that follow each other. Others are served meanwhile, so they may belong
    to different moments.

    Streams are left out as long as their data is not loaded."""
    pieces: list[bytes] = []
    for family in ServerCollector(server, loop_lag).collect():
        pieces.append(generate_latest(_Collected(family)))
        await pace.rest()
    state = server.state
    if state.phase is Phase.SERVING:
        survey = await Surveyor(server, pace).run()
        pieces.append(generate_latest(_Collected(_left_out(survey))))
        await _write(survey, pieces, pace)
    return pieces


def _left_out(survey: Survey) -> Metric:
    help = (
        "What has no series because there would be more than metrics-max-series;"
        " what belongs to something that is left out is not counted."
    )
    name = "penstock_metrics_left_out"
    return labelled(GaugeMetricFamily, name, help, "kind", survey.left_out)


async def _write(survey: Survey, pieces: list[bytes], pace: Slice) -> None:
    """Adds the series of streams, groups and consumers. A column is freed when it is written, as
    freeing all of them at once takes long, too."""
    for families, rows in (
        (STREAMS, survey.streams),
        (GROUPS, survey.groups),
        (CONSUMERS, survey.consumers),
    ):
        before = ""
        for family in families:
            head = "" if family.name == before else family.head
            await _write_family(family, head, rows.labels, rows.columns.pop(0), pieces, pace)
            before = family.name
    await _write_deliveries(survey.deliveries, pieces, pace)


async def _write_family(
    family: Family,
    head: str,
    labels: list[str],
    values: list[Value],
    pieces: list[bytes],
    pace: Slice,
) -> None:
    name = family.name
    for at in range(0, len(values), _SOME):
        lines = [
            f"{name}{family.labelled(own)} {value}\n"
            for own, value in zip(labels[at : at + _SOME], values[at : at + _SOME], strict=True)
            if value is not None
        ]
        if lines:
            pieces.append((head + "".join(lines)).encode())
            head = ""
        await pace.rest()


async def _write_deliveries(rows: Rows, pieces: list[bytes], pace: Slice) -> None:
    if rows.labels:
        pieces.append(DELIVERIES.head.encode())
    step = _SOME // len(DELIVERY_BOUNDS)
    for at in range(0, len(rows.labels), step):
        some = zip(*(column[at : at + step] for column in rows.columns), strict=True)
        labels = rows.labels[at : at + step]
        lines = [_histogram(own, row) for own, row in zip(labels, some, strict=True)]
        pieces.append("".join(lines).encode())
        await pace.rest()


def _histogram(own: str, row: Sequence[Value]) -> str:
    """The lines of one group."""
    name = DELIVERIES.name
    *counts, deliveries = row
    totals = list(accumulate(count or 0 for count in counts))
    bounds = (*DELIVERY_BOUNDS, "+Inf")
    lines = [
        f'{name}_bucket{own[:-1]},le="{bound}"}} {total}\n'
        for bound, total in zip(bounds, totals, strict=True)
    ]
    lines.append(f"{name}_sum{own} {deliveries}\n")
    lines.append(f"{name}_count{own} {totals[-1]}\n")
    return "".join(lines)
