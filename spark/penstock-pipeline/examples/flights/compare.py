"""Compares what the pipeline made with what pandas makes of the same file."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pandas as pd
import redis

from flights.data import folder
from penstock_pipeline.dead_letters import unpack

KEPT: Final = ("carrier", "flight", "tailnum", "origin", "dest", "scheduled", "dep_delay")
HOURS: Final = ("carrier", "hour", "flights", "total_delay", "longest_delay", "late")


def source(most: int | None) -> Any:
    """The first flights of the year as pandas reads the file, with its times as such."""
    frame = pd.read_csv(folder() / "flights.csv.zip")
    frame["scheduled"] = pd.to_datetime(frame["time_hour"], utc=True)
    return frame.sort_values("scheduled", kind="stable")[:most]


def expected_delays(frame: Any) -> Any:
    """The table of hours, from the file."""
    departed = frame[frame["dep_delay"].notna()]
    groups = departed.groupby(["carrier", "scheduled"])["dep_delay"]
    table = groups.agg(
        flights="size",
        total_delay="sum",
        longest_delay="max",
        late=lambda delays: (delays > 15).sum(),
    )
    return _sorted(table.reset_index().rename(columns={"scheduled": "hour"}), HOURS)


def expected_departures(frame: Any) -> Any:
    """The table of departures, from the file."""
    return _sorted(frame[frame["dep_delay"].notna()], KEPT)


def expected_letters(frame: Any) -> Any:
    """Carrier, flight and hour of what was cancelled, from the file."""
    cancelled = frame[frame["dep_delay"].isna()]
    return _sorted(cancelled, ("carrier", "flight", "scheduled"))


def read_table(path: Path, columns: tuple[str, ...]) -> Any:
    """A table that the pipeline has written."""
    return _sorted(pd.read_parquet(path), columns)


def read_letters(client: redis.Redis) -> Any:
    """Carrier, flight and hour of the dead letters."""
    rows = []
    for _, pairs in _entries(client, "cancelled"):
        letter = unpack(pairs)
        assert letter is not None
        assert letter.reason == b"field 'dep_delay' is missing"
        fields = dict(zip(letter.fields[::2], letter.fields[1::2], strict=True))
        rows.append([fields[name].decode() for name in (b"carrier", b"flight", b"time_hour")])
    frame = pd.DataFrame(rows, columns=["carrier", "flight", "scheduled"])
    frame["scheduled"] = pd.to_datetime(frame["scheduled"], utc=True)
    frame["flight"] = frame["flight"].astype(int)
    return _sorted(frame, ("carrier", "flight", "scheduled"))


def _entries(client: redis.Redis, key: str) -> Any:
    """The entries of a stream as the server sends them."""
    client.response_callbacks.pop("XRANGE", None)
    return client.execute_command("XRANGE", key, "-", "+")


def _sorted(frame: Any, columns: tuple[str, ...]) -> Any:
    """Some columns in a common form: rows in order, whole numbers as such, times in UTC."""
    chosen = frame[list(columns)].copy()
    for name in columns:
        if name in ("carrier", "tailnum", "origin", "dest"):
            chosen[name] = chosen[name].astype(object).where(chosen[name].notna(), "")
        elif name in ("hour", "scheduled"):
            chosen[name] = _utc(chosen[name])
        else:
            chosen[name] = chosen[name].astype("int64")
    return chosen.sort_values(list(columns), ignore_index=True)


def _utc(times: Any) -> Any:
    zoned = times if times.dt.tz is not None else times.dt.tz_localize("UTC")
    return zoned.astype("datetime64[us, UTC]")


def compare(out: Path, client: redis.Redis, most: int | None = None) -> list[str]:
    """A line for each table that is equal; raises AssertionError for one that is not."""
    frame = source(most)
    lines = []
    for name, found, expected in (
        ("delays", read_table(out / "delays", HOURS), expected_delays(frame)),
        ("departures", read_table(out / "departures", KEPT), expected_departures(frame)),
        ("dead letters", read_letters(client), expected_letters(frame)),
    ):
        pd.testing.assert_frame_equal(found, expected, obj=name)
        lines.append(f"{name}: {len(found):,} rows, equal to those of pandas")
    return lines
