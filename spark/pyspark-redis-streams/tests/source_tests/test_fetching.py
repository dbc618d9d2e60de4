"""How the end of a limited batch is found."""

from __future__ import annotations

import pytest
import redis

from pyspark_redis_streams.ids import parse_id
from pyspark_redis_streams.read.fetching import Lookahead, Point, walk
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import read_settings
from pyspark_redis_streams.streams import Stream
from source_tests.driving import Query, add, url_of
from source_tests.test_loss import numbers
from source_tests.test_offsets_planner import options

STREAM = Stream(0, b"s")
END = parse_id("100-0")


def calls(client: redis.Redis) -> int:
    """How often the server was asked for a range."""
    return int(client.info("commandstats").get("cmdstat_xrange", {"calls": 0})["calls"])


@pytest.mark.parametrize("most", [1, 16, 17, 50, 100, 200])
@pytest.mark.parametrize("most_bytes", [None, 1, 100, 250])
def test_a_walk_over_known_ground_ends_where_one_over_new_ground_does(
    server: redis.Redis, most: int, most_bytes: int | None
) -> None:
    add(server, "s", *numbers(1, 100))
    settings = read_settings({"url": url_of(server), "subscribe": "s"}, streaming=True)
    with Servers(settings.servers) as servers:
        trail: list[Point] = []
        walk(servers, settings, STREAM, 0, END, 60, None, trail)
        assert trail[-1].number == 60
        fresh = walk(servers, settings, STREAM, 0, END, most, most_bytes)
        again = walk(servers, settings, STREAM, 0, END, most, most_bytes, trail)
    assert again[:2] == fresh[:2]


def test_what_was_looked_at_ahead_is_not_asked_for_again(server: redis.Redis) -> None:
    add(server, "s", *numbers(1, 100))
    settings = read_settings({"url": url_of(server), "subscribe": "s"}, streaming=True)
    ahead = Lookahead(settings)
    ahead.begin(STREAM, (parse_id("20-0"), 20), END, 30)
    trail = ahead.trail(STREAM, (parse_id("20-0"), 20))
    before = calls(server)
    with Servers(settings.servers) as servers:
        found = walk(servers, settings, STREAM, parse_id("20-0"), END, 30, None, trail)
    assert (found.id, found.number) == (parse_id("50-0"), 30)
    assert calls(server) == before
    ahead.begin(STREAM, (parse_id("20-0"), 20), END, 30)
    assert ahead.trail(STREAM, (parse_id("20-0"), 25)) == [], "the number is another one"
    ahead.close()


def test_entries_that_are_trimmed_behind_a_look_ahead_are_counted(on_each: redis.Redis) -> None:
    add(on_each, "s", *numbers(1, 100))
    query = Query(options(on_each, maxOffsetsPerTrigger="20", onDataLoss="continue"))
    query.step()
    query.plan()
    query.run_planned()
    on_each.xtrim("s", minid="51-0", approximate=False)
    query.drain()
    assert query.ids == [*numbers(1, 40), *numbers(51, 100)]
    assert '"n": 100' in query.planned[-1]
    query.close()
