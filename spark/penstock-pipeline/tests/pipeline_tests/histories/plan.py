"""The file of a history's pipeline, with a sink of each kind, and what is in its tables."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import redis
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from pipeline_tests.conftest import SPARK_SETTINGS
from pipeline_tests.once import rows

STREAMS: Final = ("a", "b")
APPENDED: Final = ("parquet", "delta", "iceberg", "sqlite", "stream", "python")
"""Sinks that get a row for each entry."""
KEYED: Final = ("delta-keyed", "iceberg-keyed", "sqlite-keyed", "postgres-keyed")
"""Sinks of which a row is replaced and removed by its key."""

_KEYED: Final = """\
keys = ["key"]
delete_when = "op = 'd'"
without = ["op", "id", "stream", "timestamp"]
"""

_FUNCTION: Final = '''\
import json, os
from pathlib import Path


def write(frame, batch, options):
    """Notes the rows of a batch under its number, once."""
    rows = [row.n for row in frame.select("n").collect()]
    file = Path(options["folder"]) / f"{options['query']}-{batch}.json"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(rows))
        os.replace(unfinished, file)
'''


class Plan(NamedTuple):
    """Where a history's pipeline reads and writes."""

    folder: Path
    mode: str
    source: str
    target: str
    postgres: str | None
    sinks: Sequence[str]

    def write(self) -> Path:
        """The file of the pipeline, and the module of its function."""
        self.folder.joinpath("sinks.py").write_text(_FUNCTION)
        file = self.folder / "p.toml"
        file.write_text(self._text())
        return file

    def _text(self) -> str:
        conf = "".join(f'"{name}" = "{value}"\n' for name, value in SPARK_SETTINGS.items())
        group = 'mode = "group"\nclaim_min_idle_ms = 3000\n' if self.mode == "group" else ""
        mirror = "group_is_mirror = true\n" if self.mode == "offsets" else ""
        return f"""\
[source]
url = "{self.source}"
subscribe = "{",".join(STREAMS)}"
starting_offsets = "earliest"
max_offsets_per_trigger = 600
min_partitions = 2
on_data_loss = "${{ON_DATA_LOSS}}"
retries = 30
group_id = "g"
{mirror}{group}
[parse.columns]
n = {{ type = "int", required = true }}
key = "string"
op = "string"
[dead_letters]
url = "{self.target}"
stream = "dead"
retries = 30
{"".join(map(self._sink, self.sinks))}
[checkpoint]
path = "checkpoint"
[trigger]
every = "200 milliseconds"
[retry]
attempts = 20
pause = "500 milliseconds"
[metrics]
file = "metrics.jsonl"
[spark]
master = "local[2]"
[spark.conf]
{conf}"""

    def _sink(self, name: str) -> str:
        kind, _, keyed = name.partition("-")
        lines = {
            "parquet": 'path = "parquet"',
            "delta": f'path = "{name}"\ncompact_every = 7',
            "iceberg": f'table = "shop.{keyed or "all"}"\ncatalog = {self._catalog}\n'
            "compact_every = 7",
            "sqlite": f'url = "sqlite:{name}.db"\ntable = "t"',
            "postgres": f'url = "{self.postgres}"\ntable = "t"',
            "stream": f'url = "{self.target}"\nstream = "copy"\nretries = 30',
            "python": f'function = "sinks:write"\noptions = {{ folder = "{self.folder}/python" }}',
        }[kind]
        type_ = "jdbc" if kind in ("sqlite", "postgres") else kind
        return f"""\
[[sink]]
name = "{name}"
from = "entries"
type = "{type_}"
{lines}
{_KEYED if keyed else ""}"""

    @property
    def _catalog(self) -> str:
        return (
            f'{{ type = "sql", uri = "sqlite:///{self.folder}/catalog.db", '
            f'warehouse = "{self.folder}/lake" }}'
        )

    def numbers(self, name: str, target: redis.Redis) -> list[int]:
        """The numbers in the rows of a sink that entries are appended to."""
        if name == "stream":
            return _in_stream(target, "copy")
        if name == "parquet":
            return [n for (n,) in rows(self.folder / name, "n")]
        if name == "python":
            files = (self.folder / "python").glob("*.json")
            return [n for file in files for n in json.loads(file.read_text())]
        return [int(n) for (n,) in self._table(name, "n")]

    def pairs(self, name: str) -> list[tuple[str, int]]:
        """The keys and numbers of a sink whose rows are replaced."""
        return [(str(key), int(n)) for key, n in self._table(name, "key", "n")]

    def _table(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        kind, _, keyed = name.partition("-")
        if kind == "delta":
            frame = DeltaTable(self.folder / name).to_pandas()
        elif kind == "iceberg":
            uri = f"sqlite:///{self.folder}/catalog.db"
            catalog = load_catalog("default", type="sql", uri=uri)
            frame = catalog.load_table(f"shop.{keyed or 'all'}").scan().to_pandas()
        else:
            return self._of_database(name, columns)
        return [tuple(row) for row in frame[list(columns)].itertuples(index=False)]

    def _of_database(self, name: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        select = f"SELECT {', '.join(columns)} FROM t"
        if name.startswith("sqlite"):
            with closing(sqlite3.connect(self.folder / f"{name}.db")) as connection:
                return list(connection.execute(select))
        import psycopg

        with psycopg.connect(self.postgres or "") as base:
            return list(base.execute(select.encode()))

    def dead_letters(self, target: redis.Redis) -> list[int]:
        """The numbers of the dead letters, which stand in their field ``n`` as ``no 17``."""
        return _in_stream(target, "dead")


def _in_stream(client: redis.Redis, key: str) -> list[int]:
    found: list[tuple[bytes, dict[bytes, bytes]]] = client.xrange(key)  # type: ignore[assignment]
    return [int(fields[b"n"].removeprefix(b"no ")) for _, fields in found]


def copy_of(folder: Path, to: Path) -> None:
    """Copies the files of a server over those that were copied before."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)
