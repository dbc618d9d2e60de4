"""Streams with commas in their names, as the data source subscribes to them; without Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from pyspark_redis_streams.errors import OptionError
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import read_settings
from pyspark_redis_streams.streams import Catalog
from tests.support.servers import PenstockThread
from tests.support.wire import Client


@pytest.fixture(scope="module")
def penstock() -> Iterator[PenstockThread]:
    with PenstockThread() as server:
        yield server


def found(penstock: PenstockThread, subscribe: str) -> dict[bytes, int]:
    """How many entries there are at the keys that a query with this option reads."""
    url = f"redis://127.0.0.1:{penstock.port}/0"
    settings = read_settings({"url": url, "subscribe": subscribe}, streaming=False)
    catalog = Catalog(Servers(settings.servers), settings, lambda: 0.0)
    infos = catalog.infos(catalog.streams())
    return {stream.key: info.length for stream, info in infos.items()}


def test_a_json_list_names_streams_with_commas(penstock: PenstockThread) -> None:
    with Client(penstock.port) as client:
        client.ask("XADD", "json:a,b", "1-1", "f", "v")
    assert found(penstock, '["json:a,b"]') == {b"json:a,b": 1}
    assert found(penstock, '["json:a", "json:a,b"]') == {b"json:a": 0, b"json:a,b": 1}


def test_a_name_that_was_taken_for_several_is_refused(penstock: PenstockThread) -> None:
    with Client(penstock.port) as client:
        client.ask("XADD", "one:a, b", "1-1", "f", "v")
    with pytest.raises(OptionError) as caught:
        found(penstock, "one:a, b")
    assert str(caught.value) == (
        "option 'subscribe' is 'one:a, b'; allowed: [\"one:a, b\"] for the stream of this name,"
        ' ["one:a", "b"] for streams between commas'
    )
    assert found(penstock, '["one:a", "b"]') == {b"one:a": 0, b"b": 0}


@pytest.mark.parametrize("names", ["both:a,both:b", "none:a,none:b", "text:a,text:b"])
def test_commas_stand_between_names_elsewhere(
    penstock: PenstockThread, names: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Client(penstock.port) as client:
        for key in ("both:a", "both:b", "both:a,both:b"):
            client.ask("XADD", key, "*", "f", "v")
        client.ask("SET", "text:a,text:b", "v")
    with caplog.at_level(logging.ERROR):
        assert list(found(penstock, names)) == [name.encode() for name in names.split(",")]
