"""Scrapes of servers without sockets, whole and in parts."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from server.runtime.clockwork import Slice
from server.runtime.histogram import Histogram
from server.web.metrics.exposition import scrape
from server.web.survey import STEP_NS
from tests.support.direct import Direct

Labels = frozenset[tuple[str, str]]
Samples = dict[tuple[str, Labels], float]
"""The values of series by name and labels."""


async def text_of(direct: Direct) -> str:
    """A whole scrape."""
    pieces = await scrape(direct.server.services, Histogram(), Slice(STEP_NS, lambda: 0))
    return b"".join(pieces).decode()


async def streams_of(direct: Direct) -> str:
    """What a scrape says of streams, groups and consumers, without the lines of comment."""
    text = (await text_of(direct)).split("# HELP redis_stream_length ")
    lines = "".join(text[1:]).splitlines(keepends=True)[1:]
    return "".join(line for line in lines if not line.startswith("#"))


def samples(text: str) -> Samples:
    """Every series of a scrape, each of which must be there once, and below a head of its own."""
    found: Samples = {}
    names: set[str] = set()
    for family in text_string_to_metric_families(text):
        assert family.name not in names, f"{family.name} has two heads"
        assert family.type != "unknown", f"{family.name} has no type"
        names.add(family.name)
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"{key} is there twice"
            found[key] = sample.value
    return found


async def samples_of(direct: Direct) -> Samples:
    """Every series of a scrape."""
    return samples(await text_of(direct))


def value(found: Samples, name: str, **labels: str) -> float | None:
    """The value of a series, ``None`` if it is not there."""
    return found.get((name, frozenset(labels.items())))
