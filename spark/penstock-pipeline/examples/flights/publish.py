"""Publishes flights to streams by carrier, ``flights:UA`` and so on: ``python -m ... URL``."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import redis

from flights.data import Flight, flights

PORTION: Final = 1000
"""Flights that are sent at once."""

END_STREAM: Final = "flights:end"


def publish(
    client: redis.Redis,
    chosen: Sequence[Flight],
    rows_per_second: float | None = None,
) -> None:
    """Adds flights in their order.

    An entry's ID begins with the hour of the scheduled departure, so that time in the streams is
    the time of the flights.
    """
    begun = time.monotonic()
    for begin in range(0, len(chosen), PORTION):
        portion = chosen[begin : begin + PORTION]
        with client.pipeline(transaction=False) as pipeline:
            for flight in portion:
                key = f"flights:{flight.fields['carrier']}"
                pipeline.xadd(key, _entry(flight.fields), id=f"{flight.hour_ms}-*")
            pipeline.execute()
        if rows_per_second is not None:
            sent = begin + len(portion)
            time.sleep(max(0.0, begun + sent / rows_per_second - time.monotonic()))


def _entry(fields: Mapping[str, str]) -> dict[Any, Any]:
    """Fields in the type that the client declares, whose keys could be other things as well."""
    return dict(fields)


def publish_end(client: redis.Redis) -> None:
    """Adds a mark long after the last flight, so that all hours before it are closed.

    A watermark moves on only when something later comes. The mark's own hour stays open, so it
    is in no table of hours.
    """
    mark = {"carrier": "END", "flight": "0", "dep_delay": "0", "time_hour": "2014-02-01T00:00:00Z"}
    client.xadd(END_STREAM, _entry(mark))


def main(args: Sequence[str]) -> int:
    """Publishes the whole year to the server of a URL."""
    if len(args) != 1:
        print("usage: python -m flights.publish URL", file=sys.stderr)
        return 2
    with redis.Redis.from_url(args[0]) as client:
        publish(client, flights())
        publish_end(client)
    print("all flights published")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
