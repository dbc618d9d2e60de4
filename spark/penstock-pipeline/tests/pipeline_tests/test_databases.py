"""A batch in a database: upserts, deletions, and what is left after a kill, on real databases."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock_pipeline.errors import NotWritable
from penstock_pipeline.sinks import jdbc
from penstock_pipeline.sinks.base import Batch
from penstock_pipeline.sinks.databases import Database, database
from penstock_pipeline.sinks.jdbc import Target, last_batch, write_batch
from pyspark_redis_streams.batches import BatchMark
from pyspark_redis_streams.errors import CheckpointError

SCHEMA = pa.schema({"k": pa.int64(), "v": pa.string(), 'Odd %s "name"': pa.float64()})


@pytest.fixture(params=["sqlite", "postgres", "mariadb"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        url = f"jdbc:sqlite:{tmp_path}/base.db"
    else:
        url = request.getfixturevalue(f"{request.param}_url")
    found = database(url, None, None)
    assert found is not None
    for table in ("t", "penstock_batches", "u"):
        execute(found, f"DROP TABLE IF EXISTS {table}")
    return found


@pytest.fixture
def target(base: Database) -> Target:
    return Target(base, "t", ("k",), "sink")


def execute(base: Database, statement: str) -> list[tuple[Any, ...]]:
    with closing(base.connect()) as connection, closing(connection.cursor()) as cursor:
        cursor.execute(statement)
        found = cursor.fetchall() if cursor.description else []
        connection.commit()
    return [tuple(row) for row in found]


def batch(*values: tuple[Any, ...]) -> pa.Table:
    columns = list(map(list, zip(*values, strict=True))) or [[], [], []]
    return pa.table(columns, schema=SCHEMA)


def contents(target: Target) -> list[tuple[Any, ...]]:
    return sorted(execute(target.database, "SELECT * FROM t"))


def test_a_batch_is_written_once(target: Target) -> None:
    adding = target._replace(keys=())
    assert last_batch(adding, "q") is None
    for number, value in ((0, "a"), (1, "b"), (1, "again")):
        write_batch(adding, batch((number, value, 0.5)), None, "q", BatchMark(number))
    assert contents(target) == [(0, "a", 0.5), (1, "b", 0.5)]
    assert last_batch(adding, "q") == BatchMark(1)
    assert last_batch(adding, "other") is None
    write_batch(adding, batch((2, "c", None)), None, "other", BatchMark(0))
    assert contents(target)[2] == (2, "c", None)


def test_another_batch_in_the_place_of_one_that_is_noted_is_refused(target: Target) -> None:
    this, other = BatchMark(1, "0000000a s up to 5-0"), BatchMark(1, "0000000b s up to 9-0")
    write_batch(target, batch((1, "a", 0.5)), None, "q", this)
    write_batch(target, batch((1, "again", 0.5)), None, "q", this)
    text = r"has batch 1 \(s up to 5-0\) of this query, and this is batch 1 \(s up to 9-0\): "
    with pytest.raises(CheckpointError, match=text):
        write_batch(target, batch((2, "b", 0.5)), None, "q", other)
    with pytest.raises(CheckpointError, match=r"and this is batch 0 \(s up to 5-0\): "):
        write_batch(target, batch((2, "b", 0.5)), None, "q", this._replace(number=0))
    assert contents(target) == [(1, "a", 0.5)]


def test_a_register_that_has_numbers_only_gets_a_column_for_ends(target: Target) -> None:
    execute(target.database, "CREATE TABLE t (k bigint PRIMARY KEY, v varchar(9))")
    register = "query varchar(200) PRIMARY KEY, batch bigint NOT NULL"
    execute(target.database, f"CREATE TABLE penstock_batches ({register})")
    execute(target.database, "INSERT INTO penstock_batches VALUES ('q', 1), ('other', 7)")
    end = "0000000a s up to 5-0"
    rows = batch((1, "a", 0.5)).select(["k", "v"])
    assert last_batch(target, "q") == BatchMark(1)
    write_batch(target, rows, None, "q", BatchMark(1, end))
    assert contents(target) == []
    write_batch(target, rows, None, "q", BatchMark(2, end))
    assert contents(target) == [(1, "a")]
    assert last_batch(target, "q") == BatchMark(2, end)
    assert last_batch(target, "other") == BatchMark(7)


def test_rows_are_replaced_added_and_removed_by_their_keys(target: Target) -> None:
    write_batch(target, batch((1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)), None, "q", BatchMark(0))
    removed = pa.table({"k": [2, 9]})
    for _ in range(2):
        write_batch(target, batch((1, "new", None), (4, "d", 4.0)), removed, "q", BatchMark(1))
        assert contents(target) == [(1, "new", None), (3, "c", 3.0), (4, "d", 4.0)]
    write_batch(target, batch().select(["k"]), pa.table({"k": [1, 3]}), "q", BatchMark(2))
    assert contents(target) == [(4, "d", 4.0)]


def test_a_row_may_have_several_keys_and_nothing_else(base: Database) -> None:
    target = Target(base, "t", ("a", "B"), "sink")
    rows = pa.table({"A": ["x", "x", "y"], "b": pa.array([1, 2, 1], pa.int32())})
    write_batch(target, rows, None, "q", BatchMark(0))
    write_batch(target, rows, rows.slice(0, 0), "q", BatchMark(1))
    write_batch(target, rows.slice(0, 0), rows.slice(1), "q", BatchMark(2))
    assert contents(target) == [("x", 1)]


@pytest.mark.parametrize("step", ["_prepared", "_remove", "_add", "_note"])
@pytest.mark.parametrize("after", [False, True])
def test_a_kill_between_the_steps_of_a_write_loses_and_repeats_nothing(
    target: Target, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    class Killed(BaseException):
        pass

    original = getattr(jdbc, step)

    def kill(*args: Any) -> None:
        if after:
            original(*args)
        raise Killed

    rows = batch((1, "new", 1.0), (4, "d", 4.0))
    write_batch(target, batch((1, "a", 1.0), (2, "b", 2.0)), None, "q", BatchMark(0))
    with monkeypatch.context() as patch:
        patch.setattr(jdbc, step, kill)
        with pytest.raises(Killed):
            write_batch(target, rows, pa.table({"k": [2]}), "q", BatchMark(1))
    assert contents(target) == [(1, "a", 1.0), (2, "b", 2.0)]
    write_batch(target, rows, pa.table({"k": [2]}), "q", BatchMark(1))
    assert contents(target) == [(1, "new", 1.0), (4, "d", 4.0)]


def test_values_are_kept(base: Database) -> None:
    target = Target(base, "t", (), "sink")
    moment = dt.datetime(2026, 1, 31, 10, 0, 0, 5, tzinfo=dt.UTC)
    values: dict[str, tuple[Any, pa.DataType]] = {
        "a": (True, pa.bool_()),
        "b": (7, pa.int8()),
        "c": (2**40, pa.int64()),
        "d": (1.5, pa.float32()),
        "e": (Decimal("12345678901234567.125"), pa.decimal128(20, 3)),
        "f": ("ä\t\\N\n'", pa.string()),
        "g": (b"\x00\xff", pa.binary()),
        "h": (dt.date(2026, 1, 31), pa.date32()),
        "i": (moment, pa.timestamp("us", "UTC")),
        "j": (moment.replace(tzinfo=None), pa.timestamp("us")),
        "l": (None, pa.string()),
    }
    schema = pa.schema({name: kind for name, (_, kind) in values.items()})
    row = {name: value for name, (value, _) in values.items()}
    write_batch(target, pa.Table.from_pylist([row] * 3, schema=schema), None, "q", BatchMark(0))
    found = dict(zip(schema.names, contents_of(base)[0], strict=True))
    if base.module == "sqlite3":
        texts = {name: str(row[name]) for name in "ehj"}
        assert found == {**row, **texts, "i": texts["j"]}
    elif base.module == "pymysql":
        assert found == {**row, "i": row["j"]}
    else:
        assert found == row


def contents_of(base: Database) -> list[tuple[Any, ...]]:
    return execute(base, "SELECT * FROM t")


def test_columns_that_the_table_lacks_are_added_to_it(target: Target) -> None:
    execute(target.database, "CREATE TABLE t (k bigint PRIMARY KEY, v varchar(9))")
    execute(target.database, "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    for number in range(2):
        write_batch(target, batch((1, "new", 1.5), (3, "c", None)), None, "q", BatchMark(number))
        assert contents(target) == [(1, "new", 1.5), (2, "b", None), (3, "c", None)]
    kinds: dict[str, pa.DataType] = {
        "flag": pa.bool_(),
        "cost": pa.decimal128(9, 2),
        "at": pa.timestamp("us", "UTC"),
        "bytes": pa.binary(),
    }
    schema = pa.schema({"K": pa.int64(), "V": pa.string(), **kinds})
    row = {"K": 2, "flag": True, "cost": Decimal("1.25"), "bytes": b"\xff"}
    write_batch(target, pa.Table.from_pylist([row], schema=schema), None, "q", BatchMark(2))
    (found,) = execute(target.database, "SELECT flag, cost, at, bytes FROM t WHERE k = 2")
    assert (bool(found[0]), Decimal(found[1]), found[2], found[3]) == (
        *(True, Decimal("1.25"), None),
        b"\xff",
    )


def test_a_column_that_another_query_adds_in_the_same_moment_is_no_failure(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(target.database, "CREATE TABLE t (k bigint PRIMARY KEY, v varchar(9))")
    original = jdbc._add_column

    def faster(to: Target, connection: Any, cursor: Any, name: str, definition: str) -> None:
        execute(to.database, f"ALTER TABLE t ADD COLUMN {definition}")
        original(to, connection, cursor, name, definition)

    monkeypatch.setattr(jdbc, "_add_column", faster)
    write_batch(target, batch((1, "a", 1.0)), None, "q", BatchMark(0))
    assert contents(target) == [(1, "a", 1.0)]


def test_a_frozen_table_gets_no_columns(target: Target) -> None:
    execute(target.database, "CREATE TABLE t (k bigint PRIMARY KEY, v varchar(9))")
    frozen = target._replace(schema="freeze")
    with pytest.raises(NotWritable) as caught:
        write_batch(frozen, batch((1, "a", 1.0)), None, "q", BatchMark(0))
    assert str(caught.value) == (
        "sink 'sink': table t has no column 'Odd %s \"name\"' (double), and schema = 'freeze'; it "
        "has k, v; use schema = 'evolve', or leave the column out in SQL"
    )
    write_batch(frozen, batch((1, "a", 1.0)).select(["k", "v"]), None, "q", BatchMark(0))
    assert contents(target) == [(1, "a")]


def test_columns_that_can_t_be_added_are_named_and_nothing_is_written(target: Target) -> None:
    execute(target.database, "CREATE TABLE t (v varchar(9))")
    with pytest.raises(NotWritable) as caught:
        write_batch(target, batch((1, "a", 1.0)), None, "q", BatchMark(0))
    assert str(caught.value) == (
        "sink 'sink': table t has no column 'k' (int64), and 'keys' needs it; it has v; add it "
        "there, with a unique index"
    )
    lists = pa.table({"v": ["a"], "n": [1], "l": [[1]]})
    for table in ("t", "u"):
        with pytest.raises(NotWritable, match=r"column 'l' is list<.*>, which no column of a data"):
            write_batch(target._replace(table=table, keys=()), lists, None, "q", BatchMark(0))
    write_batch(target._replace(keys=()), pa.table({"v": ["a"]}), None, "q", BatchMark(0))
    assert contents(target) == [("a",)], "no column was added before the one that can't be"


def test_keys_need_a_unique_index(target: Target) -> None:
    execute(target.database, "CREATE TABLE t (k bigint, v varchar(9))")
    driver = target.database.driver
    with pytest.raises((NotWritable, driver.Error), match=r"(?i)unique"):
        write_batch(target, batch((1, "a", 1.0)).select(["k", "v"]), None, "q", BatchMark(0))
    assert contents(target) == []


def test_a_url_may_have_the_form_of_java_or_not() -> None:
    for url in ("jdbc:postgresql://h/d", "postgres://h/d", "postgresql://h/d"):
        found = database(url, "u", "p")
        assert found is not None
        assert (found.module, found.url) == ("psycopg", "postgresql://h/d")
    assert database("jdbc:oracle:thin:@h", None, None) is None


# --- Values that Spark takes and a database does not ---------------------------------------------


def written(base: Database, columns: dict[str, pa.Array]) -> str | None:
    """What is said of rows that a sink does not write; None if it writes them."""
    sink = jdbc.JdbcSink("stock", "t", "t", "append", options={"url": base.url})
    try:
        with sink.errors():
            sink._change(sink.open(), pa.table(columns), Batch("q", 0, ordered=True))
    except NotWritable as error:
        return str(error)
    return None


def said(column: str, what: str, base: Database, remedy: str) -> str:
    return (
        f"sink 'stock': column '{column}' has {what} in 1 of 3 rows of the batch, which "
        f"{base.name} does not take; write {remedy} in SQL, or leave such rows out"
    )


US = pa.timestamp("us", "UTC")
BEYOND = {
    "nul": pa.array(["a", "b\0c", None]),
    "nan": pa.array([1.0, float("nan"), None]),
    "inf": pa.array([1.0, float("-inf"), None], pa.float32()),
    "at": pa.array([0, 253_402_300_800_000_000, None], pa.int64()).cast(US),
    "day": pa.array([0, -719_163, None], pa.int32()).cast(pa.date32()),
}
ALL = {"PostgreSQL", "SQLite", "MySQL"}
YEARS = "CASE WHEN year(`{0}`) BETWEEN 1 AND 9999 THEN `{0}` END"
TOLD = {
    "nul": ("a text with the character U+0000", "replace(`nul`, chr(0), '')", {"PostgreSQL"}),
    "nan": ("NaN", "nanvl(`nan`, NULL)", {"SQLite", "MySQL"}),
    "inf": ("infinity", "CASE WHEN abs(`inf`) < double('Infinity') THEN `inf` END", {"MySQL"}),
    "at": ("a time that is not in the years 1 to 9999", YEARS.format("at"), ALL),
    "day": ("a time that is not in the years 1 to 9999", YEARS.format("day"), ALL),
}


@pytest.mark.parametrize("column", BEYOND)
def test_a_value_that_a_database_does_not_take_is_told_with_its_column_and_what_to_do(
    base: Database, column: str
) -> None:
    what, remedy, whose = TOLD[column]
    expected = said(column, what, base, remedy) if base.name in whose else None
    assert written(base, {"k": pa.array([1, 2, 3]), column: BEYOND[column]}) == expected
    if expected is None:
        assert execute(base, "SELECT count(*) FROM t") == [(3,)]


def test_bytes_that_are_no_text_are_told_with_their_column(base: Database) -> None:
    broken = pa.StringArray.from_buffers(1, *pa.array([b"\xff"]).buffers()[1:])
    assert written(base, {"item": broken}) == (
        "sink 'stock': column 'item' has bytes that are no UTF-8 in a text; write "
        "make_valid_utf8(`item`) in SQL, or leave such rows out"
    )


def test_what_postgres_refuses_itself_is_told_with_its_column(postgres_url: str) -> None:
    base = database(postgres_url, None, None)
    assert base is not None
    for statement in ("DROP TABLE IF EXISTS t", "CREATE TABLE t (k int, price numeric(4, 2))"):
        execute(base, statement)
    assert written(base, {"k": pa.array([2**31])}) == (
        "sink 'stock': column 'k': value \"2147483648\" is out of range for type integer; cast it "
        "in SQL, or leave such rows out"
    )
    assert str(written(base, {"price": pa.array([Decimal("100.00")])})).startswith(
        "sink 'stock': column 'price': numeric field overflow"
    )
