"""Tables that do not stream, and joins: with these, and of streams with each other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import pytest
import redis
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from penstock_pipeline.errors import InvalidFile, PipelineError
from penstock_pipeline.model import StaticTable
from penstock_pipeline.queries import queries
from penstock_pipeline.static_tables import TableReader, read
from pipeline_tests.conftest import Load
from pipeline_tests.once import Once, rows
from pipeline_tests.pipelines import GROUP, ONE_SINK, PATIENT, fill, forget_commits, head

ITEMS = pa.table({"item": ["a", "b"], "name": ["apple", "bread"]})


def save(file: Path, *names: str) -> None:
    """A table of items with these names."""
    table = pa.table({"item": ["a", "b", "c"][: len(names)], "name": list(names)})
    pyarrow.parquet.write_table(table, file)


def test_tables_are_read_from_files_folders_and_databases(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs the extra `delta`")
    (tmp_path / "p").mkdir()
    pyarrow.parquet.write_table(ITEMS, tmp_path / "p/x.parquet")
    pyarrow.csv.write_csv(ITEMS, tmp_path / "c.csv")
    deltalake.write_deltalake(tmp_path / "d", ITEMS)
    with closing(sqlite3.connect(tmp_path / "base.db")) as base:
        base.execute("CREATE TABLE items (item TEXT, name TEXT)")
        base.executemany("INSERT INTO items VALUES (?, ?)", [("a", "apple"), ("b", "bread")])
        base.commit()
    url = f"sqlite:{tmp_path}/base.db"
    for table in (
        StaticTable("t", "parquet", f"{tmp_path}/p"),
        StaticTable("t", "csv", f"{tmp_path}/c.csv"),
        StaticTable("t", "delta", f"{tmp_path}/d"),
        StaticTable("t", "jdbc", url, options={"table": "items"}),
    ):
        assert read(table).to_pylist() == ITEMS.to_pylist(), table.kind


def test_a_table_that_can_t_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"^table 't' can't be read: .*/none"):
        read(StaticTable("t", "parquet", f"{tmp_path}/none"))
    with pytest.raises(PipelineError, match=r"^table 't' can't be read: no such table: none"):
        read(StaticTable("t", "jdbc", f"sqlite:{tmp_path}/b", options={"table": "none"}))


def test_a_table_is_read_anew_for_each_batch_with_the_columns_of_the_start(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    save(file, "apple")
    table = StaticTable("t", "parquet", str(file), is_reread=True)
    reader = TableReader(table, from_arrow_schema(read(table).schema))

    def names() -> list[str]:
        batches = [batch for part in reader.partitions() for batch in reader.read(part)]
        return [name for batch in batches for name in batch.column("name").to_pylist()]

    assert names() == ["apple"]
    save(file, "apple", "bread")
    assert names() == ["apple", "bread"]
    pyarrow.parquet.write_table(ITEMS.drop_columns(["name"]), file)
    with pytest.raises(PipelineError, match="table 't' has other columns than at the start: "):
        names()


def test_tables_in_the_file(load_text: Load, tmp_path: Path) -> None:
    text = f"""{ONE_SINK}path = "out"
[[table]]
name = "items"
path = "items"
[[table]]
name = "rates"
type = "jdbc"
url = "jdbc:sqlite:base.db"
table = "rates"
password = "${{SECRET}}"
refresh = "batch"
"""
    pipeline = load_text(text, SECRET="hush")
    options = {"table": "rates", "password": "hush"}
    assert pipeline.tables == (
        StaticTable("items", "parquet", f"{tmp_path}/items"),
        StaticTable("rates", "jdbc", f"jdbc:sqlite:{tmp_path}/base.db", True, options),
    )
    assert "hush" not in repr(pipeline)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('path = "p"', "7: table[1]: 'name' is missing: the name that SQL has for the table"),
        ('name = "Entries"\npath = "p"', "8: table[1].name: is 'Entries', but there is another"),
        ('name = "a b"\npath = "p"', "8: table[1].name: is 'a b'; allowed: letters, digits and _"),
        ('name = "a"', "7: table[1]: 'path' is missing: the file or folder of the table"),
        (
            'name = "a"\ntype = "jdbc"\ntable = "t"\nurl = "jdbc:oracle:x"',
            "11: table[1].url: begins with none of postgresql, postgres, sqlite, mysql, mariadb",
        ),
        (
            'name = "a"\npath = "p"\nrefresh = "hour"',
            "10: table[1].refresh: is 'hour'; allowed: once, batch",
        ),
    ],
)
def test_problems_of_tables_are_named(
    load_text: Load, tmp_path: Path, keys: str, message: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_text(f'{ONE_SINK}path = "out"\n[[table]]\n{keys}\n')
    assert f"{tmp_path}/p.toml:{message}" in str(caught.value)


JOIN = """
[[transform]]
name = "named"
sql = "SELECT e.item, n.name, e.qty FROM entries e LEFT JOIN names n ON e.item = n.item"
"""


def tables(refresh: str) -> str:
    return f'[[table]]\nname = "names"\npath = "names.parquet"\nrefresh = "{refresh}"\n'


def test_a_stream_is_joined_with_a_table_as_it_is_at_each_batch(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    save(tmp_path / "names.parquet", "apple")
    fill(server, ("a", 1, "00:00:00"), ("b", 2, "00:00:00"))
    source = "max_offsets_per_trigger = 1"
    sink = '[[sink]]\ntype = "python"\nfunction = "changing:write"\n'
    (tmp_path / "changing.py").write_text(CHANGING)
    Once(spark, load_text(head(url, source) + PATIENT + tables("batch") + JOIN + sink))
    found = sorted((tmp_path / "seen").read_text().split())
    assert found == ["0:a:apple", "1:b:bread"]


CHANGING = """
from pathlib import Path
import pyarrow as pa, pyarrow.parquet

def write(frame, batch, options):
    folder = Path(__file__).parent
    with (folder / "seen").open("a") as file:
        for row in frame.collect():
            file.write(f"{batch}:{row.item}:{row.name}\\n")
    table = pa.table({"item": ["a", "b"], "name": ["apple", "bread"]})
    pyarrow.parquet.write_table(table, folder / "names.parquet")
"""


def test_a_table_that_may_change_is_no_part_of_what_goes_to_a_stream(
    spark: SparkSession, load_text: Load, tmp_path: Path
) -> None:
    save(tmp_path / "names.parquet", "apple")
    sink = '[[sink]]\ntype = "stream"\nstream = "x"\n'
    text = head("redis://h") + PATIENT + JOIN + sink
    assert len(queries(spark, load_text(text + tables("once")))) == 2
    with pytest.raises(PipelineError) as caught:
        queries(spark, load_text(text + tables("batch")))
    assert str(caught.value) == (
        "sink 'named': a batch that is repeated must have the same rows for a stream, and a "
        "[[table]] with refresh = 'batch' may have changed; use refresh = 'once'"
    )


def test_mode_group_may_join_with_a_table(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    save(tmp_path / "names.parquet", "apple")
    fill(server, ("a", 1, "00:00:00"), ("b", 2, "00:00:00"))
    sink = '[[sink]]\npath = "out"\n'
    Once(spark, load_text(head(url, GROUP) + PATIENT + tables("once") + JOIN + sink))
    found = pyarrow.dataset.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert sorted(zip(found["item"].to_pylist(), found["name"].to_pylist(), strict=True)) == [
        *(("a", "apple"), ("b", None))
    ]


def test_two_streams_are_joined_within_their_watermarks(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    text = f'''\
{head(url).replace('"s"', '["orders", "payments"]')}{PATIENT}
[[transform]]
name = "orders"
watermark = {{ column = "at", delay = "1 hour" }}
sql = "SELECT item, qty, at FROM entries WHERE stream = 'orders'"
[[transform]]
name = "payments"
from = "entries"
watermark = {{ column = "at", delay = "1 hour" }}
sql = "SELECT item, qty AS paid, at FROM entries WHERE stream = 'payments'"
[[transform]]
name = "paid"
sql = """
SELECT o.item, o.qty, p.paid
FROM orders o JOIN payments p
ON o.item = p.item AND p.at BETWEEN o.at AND o.at + INTERVAL 30 MINUTES"""
[[sink]]
path = "paid"
'''
    pipeline = load_text(text)

    def add(stream: str, item: str, qty: int, at: str) -> None:
        server.xadd(stream, {"item": item, "qty": qty, "at": f"2026-01-01T{at}Z"})

    add("orders", "a", 1, "00:00:00")
    add("orders", "b", 2, "00:00:00")
    add("payments", "a", 10, "00:10:00")
    Once(spark, pipeline)
    add("payments", "b", 20, "00:20:00")
    add("payments", "a", 11, "00:40:00")
    Once(spark, pipeline)
    forget_commits(tmp_path / "checkpoint/paid")
    Once(spark, pipeline)
    assert rows(tmp_path / "paid", "item", "qty", "paid") == [("a", 1, 10), ("b", 2, 20)]
