"""A checkpoint that is put back from an older copy: no row is lost without a word."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from penstock_pipeline.errors import PipelineError
from pipeline_tests.conftest import Load
from pipeline_tests.once import Once, rows
from pipeline_tests.pipelines import fill, head
from source_tests.backends import Backend
from source_tests.conftest import PROGRAMS
from source_tests.driving import contents

OLDEST = sorted(name for name in PROGRAMS if name.startswith("redis"))[:1]
"""A server without idempotent IDs, if there is one: there a marker tells which batches it has."""

MODES = {
    "offsets": "",
    # Otherwise the source tells first that the group stands elsewhere.
    "group": 'mode = "group"\ngroup_id = "g"\nclaim_min_idle_ms = 0\non_data_loss = "continue"',
}

TABLE = """
[[transform]]
name = "t"
sql = "SELECT id, CAST(CAST(fields['qty'] AS string) AS int) AS qty, stream FROM entries"
[retry]
attempts = 20
pause = "100 milliseconds"
[[sink]]
"""


def parquet(folder: Path) -> list[int]:
    return [qty for (qty,) in rows(folder / "t", "qty")]


def delta(folder: Path) -> list[int]:
    pytest.importorskip("deltalake", reason="needs the extra `delta`")
    from deltalake import DeltaTable

    return sorted(DeltaTable(folder / "t").to_pyarrow_table()["qty"].to_pylist())


def iceberg(folder: Path) -> list[int]:
    pytest.importorskip("pyiceberg", reason="needs the extra `iceberg`")
    from pyiceberg.catalog import load_catalog

    properties = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(folder)}
    catalog = load_catalog("default", type="sql", **properties)
    return sorted(catalog.load_table("shop.t").scan().to_arrow()["qty"].to_pylist())


def sqlite(folder: Path) -> list[int]:
    import sqlite3

    with closing(sqlite3.connect(folder / "base.db")) as base:
        return sorted(qty for (qty,) in base.execute("SELECT qty FROM t"))


Read = Callable[[Path], list[int]]

TABLES: dict[str, tuple[str, Read]] = {
    "parquet": ('path = "t"', parquet),
    "delta": ('type = "delta"\npath = "t"', delta),
    "iceberg": (
        'type = "iceberg"\ntable = "shop.t"\n'
        'catalog = { type = "sql", uri = "sqlite:///catalog.db", warehouse = "." }',
        iceberg,
    ),
    "sqlite": ('type = "jdbc"\nurl = "sqlite:base.db"\ntable = "t"', sqlite),
}


def add(client: redis.Redis, *numbers: int) -> None:
    fill(client, *((f"i{number}", number, "00:00:00") for number in numbers))


class Copied:
    """A pipeline that has run twice, and then once more with its checkpoint of the first time."""

    def __init__(
        self, spark: SparkSession, load_text: Load, client: redis.Redis, text: str, folder: Path
    ) -> None:
        self._spark, self._load, self._text = spark, load_text, text
        self._checkpoint, self._right = folder / "checkpoint", folder / "right"
        add(client, 1, 2)
        self._again()
        shutil.copytree(self._checkpoint, folder / "older")
        add(client, 3, 4)
        self._again()
        written = last(client)
        add(client, 5)
        self._checkpoint.rename(self._right)
        (folder / "older").rename(self._checkpoint)
        with pytest.raises(PipelineError) as caught:
            self._again()
        self.said = str(caught.value)
        self.both = (
            f" has batch 1 (s up to {written}) of this query, and this is batch 1 (s up to "
            f"{last(client)}): the checkpoint is an older copy"
        )

    def _again(self) -> None:
        Once(self._spark, self._load(self._text))

    def mend(self, mode: str) -> None:
        """Does what the message says."""
        shutil.rmtree(self._checkpoint)
        if mode == "offsets":
            self._right.rename(self._checkpoint)
        self._again()


def last(client: redis.Redis) -> str:
    """The last ID of the source's stream."""
    found: Any = client.xrevrange("s", count=1)
    return str(found[0][0].decode())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", TABLES)
def test_a_table_tells_that_the_checkpoint_is_older_and_loses_nothing(
    spark: SparkSession,
    load_text: Load,
    server: redis.Redis,
    url: str,
    tmp_path: Path,
    kind: str,
    mode: str,
) -> None:
    keys, read = TABLES[kind]
    text = head(url, MODES[mode]) + TABLE + keys
    copied = Copied(spark, load_text, server, text, tmp_path)
    place = f"folder {tmp_path}/t" if kind == "parquet" else "the table"
    assert f"sink 't': {place}{copied.both}" in copied.said
    assert read(tmp_path) == [1, 2, 3, 4]
    copied.mend(mode)
    assert read(tmp_path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("program", "mode"),
    [*(("penstock", mode) for mode in MODES), *((old, "offsets") for old in OLDEST)],
)
def test_a_stream_tells_that_the_checkpoint_is_older_and_loses_nothing(
    spark: SparkSession, load_text: Load, tmp_path: Path, program: str, mode: str
) -> None:
    with Backend(PROGRAMS[program]) as backend, backend.client() as client:
        text = head(backend.url, MODES[mode]) + TABLE + 'type = "stream"\nstream = "copied"'
        copied = Copied(spark, load_text, client, text, tmp_path)
        assert f"stream 'copied'{copied.both}" in copied.said
        assert quantities(client) == [1, 2, 3, 4]
        copied.mend(mode)
        assert quantities(client) == [1, 2, 3, 4, 5]


def quantities(client: redis.Redis) -> list[int]:
    return sorted(int(fields[b"qty"]) for _, fields in contents(client, "copied"))


@pytest.mark.parametrize("kind", TABLES)
def test_a_checkpoint_that_is_several_batches_older_is_told_too(
    spark: SparkSession,
    load_text: Load,
    server: redis.Redis,
    url: str,
    tmp_path: Path,
    kind: str,
) -> None:
    keys, read = TABLES[kind]
    pipeline = load_text(head(url) + TABLE + keys)
    add(server, 1)
    Once(spark, pipeline)
    shutil.copytree(tmp_path / "checkpoint", tmp_path / "older")
    for number in (2, 3):
        add(server, number)
        Once(spark, pipeline)
    shutil.rmtree(tmp_path / "checkpoint")
    (tmp_path / "older").rename(tmp_path / "checkpoint")
    with pytest.raises(PipelineError, match=r"has batch 2 \(s up to .*, and this is batch 1 \("):
        Once(spark, pipeline)
    assert read(tmp_path) == [1, 2, 3]
