"""Sinks that keep tables, in the file: what they say, and every problem by line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_pipeline.errors import InvalidFile, PipelineError
from penstock_pipeline.plan import describe
from penstock_pipeline.queries import source_options
from penstock_pipeline.sinks.changes import Changes
from penstock_pipeline.sinks.delta import DeltaSink
from penstock_pipeline.sinks.iceberg import IcebergSink, Partition
from penstock_pipeline.sinks.jdbc import JdbcSink
from pipeline_tests.conftest import ROOT, Load
from pipeline_tests.pipelines import ONE_SINK
from tests.support.missing import check_extra


def test_a_delta_table_has_defaults(load_text: Load, tmp_path: Path) -> None:
    (sink,) = load_text(f'{ONE_SINK}type = "delta"\npath = "t"\n').sinks
    assert sink == DeltaSink("entries", "entries", str(tmp_path / "t"), "append")


def test_a_delta_table_may_say_everything(load_text: Load) -> None:
    text = f"""{ONE_SINK}type = "delta"
path = "s3://bucket/t"
output_mode = "update"
mode = "upsert"
keys = ["k", "l"]
order_by = ["at"]
delete_when = "op = '$d'"
without = ["op"]
late_deletes = "gone"
partition_by = ["k"]
schema = "freeze"
file_size = "1 GB"
compact_every = 0
retain = "7 days"
storage = {{ aws_secret_access_key = "${{SECRET}}", allow_http = true }}
"""
    pipeline = load_text(text, SECRET="hush")
    (sink,) = pipeline.sinks
    changes = Changes("upsert", ("k", "l"), ("at",), "op = '$d'", ("op",), "gone")
    storage = {"aws_secret_access_key": "hush", "allow_http": "true"}
    assert sink == DeltaSink(
        *("entries", "entries", "s3://bucket/t", "update", ("k",), storage),
        *(changes, "freeze", 1 << 30, 0, 604800.0),
    )
    to = "delta s3://bucket/t (upsert by k, l, marked in gone when op = '$d')"
    assert f"to                   {to}\n" in describe(pipeline)


@pytest.mark.parametrize(
    ("keys", "line", "message"),
    [
        ('mode = "replace"', 8, "sink[1].mode: is 'replace'; allowed: append, upsert, delete"),
        (
            'mode = "upsert"',
            *(
                8,
                "sink[1].mode: is 'upsert', which needs 'keys': the columns that rows are found by",
            ),
        ),
        (
            'mode = "append"\nkeys = ["k"]',
            *(9, "sink[1].keys: is for mode = 'upsert' or 'delete'; mode 'append' only adds rows"),
        ),
        (
            'output_mode = "update"',
            8,
            "sink[1].output_mode: is 'update', which gives a row again when it has changed; that "
            "needs mode = 'upsert' and 'keys', the columns that rows are found by",
        ),
        (
            'keys = ["k"]\nmode = "delete"\ndelete_when = "x"',
            *(10, "sink[1].delete_when: is for mode = 'upsert'; the mode is 'delete'"),
        ),
        ('keys = ["k"]\ndelete_when = " "', 9, "sink[1].delete_when: is empty"),
        (
            'keys = ["k"]\nwithout = ["K"]',
            *(9, "sink[1].without: names 'K', which is one of 'keys'; leave it out here"),
        ),
        (
            'keys = ["k"]\norder_by = ["at"]\nwithout = ["At"]',
            *(10, "sink[1].without: names 'At', which is one of 'order_by'; leave it out here"),
        ),
        (
            'keys = ["k"]\ndelete_when = "x"\nlate_deletes = "gone"',
            *(10, "sink[1].late_deletes: needs 'delete_when' and 'order_by'"),
        ),
        ('schema = "free"', 8, "sink[1].schema: is 'free'; allowed: evolve, freeze"),
        (
            'file_size = "12"',
            8,
            "sink[1].file_size: is '12'; allowed: a number with KB, MB or GB, as '128 MB'",
        ),
        ("compact_every = -1", 8, "sink[1].compact_every: is -1; allowed: a whole number from 0"),
        (
            'retain = "5 minutes"',
            8,
            "sink[1].retain: is '5 minutes'; allowed: at least 1 hour, so that no reader loses its "
            "files",
        ),
        (
            "storage = {a = 1.5}",
            8,
            "sink[1].storage.a: is 1.5; allowed: text in quotes, a whole number, true, false",
        ),
        ('partition = ["k"]', 8, "sink[1].partition: unknown; did you mean 'partition_by'?"),
    ],
)
def test_problems_of_a_table_name_line_key_and_what_is_allowed(
    load_text: Load, tmp_path: Path, keys: str, line: int, message: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_text(f'{ONE_SINK}type = "delta"\npath = "t"\n{keys}\n')
    assert str(caught.value).startswith(f"{tmp_path}/p.toml:{line}: {message}")


def test_an_iceberg_table_may_say_everything(load_text: Load, tmp_path: Path) -> None:
    text = f"""{ONE_SINK}type = "iceberg"
table = "shop.t"
keys = ["k"]
partition_by = ["k", "day(at)"]
file_size = "64 KB"
compact_every = 3
[sink.catalog]
name = "main"
type = "sql"
uri = "sqlite:///lake/c.db"
warehouse = "lake"
s3.secret-access-key = "${{SECRET}}"
"""
    pipeline = load_text(text, SECRET="hush")
    (sink,) = pipeline.sinks
    assert sink == IcebergSink(
        *("entries", "entries", "shop.t", "append"),
        partition_by=("k", "at"),
        options={
            "name": "main",
            "type": "sql",
            "uri": f"sqlite:///{tmp_path}/lake/c.db",
            "warehouse": str(tmp_path / "lake"),
            "s3.secret-access-key": "hush",
        },
        changes=Changes("upsert", ("k",)),
        file_size=65536,
        compact_every=3,
        transforms=(Partition("k"), Partition("at", "day")),
    )
    plan = describe(pipeline)
    assert "to                   iceberg shop.t of the catalog 'main' (upsert by k)\n" in plan
    assert "hush" not in plan


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            'table = "t"\n',
            "7: sink[1].table: is 't'; allowed: names with dots, as 'shop.customers'",
        ),
        ("", "5: sink[1]: 'table' is missing: the table in the catalog, as 'shop.customers'"),
        ("", "5: sink[1]: 'catalog' is missing: a table with the properties of the catalog, as {"),
        (
            'partition_by = ["week(at)"]',
            "7: sink[1].partition_by: is 'week(at)'; allowed: a column, year(c), month(c), day(c), "
            "hour(c), bucket(n, c), truncate(n, c)",
        ),
    ],
)
def test_problems_of_an_iceberg_table_are_named(
    load_text: Load, tmp_path: Path, keys: str, message: str
) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_text(f'{ONE_SINK}type = "iceberg"\n{keys}\n')
    assert f"{tmp_path}/p.toml:{message}" in str(caught.value)


def test_a_database_is_written_by_its_driver_in_python(load_text: Load, tmp_path: Path) -> None:
    text = f'{ONE_SINK}type = "jdbc"\nurl = "jdbc:sqlite:base.db"\ntable = "t"\n'
    (sink,) = load_text(f'{text}keys = ["k"]\n').sinks
    url = f"jdbc:sqlite:{tmp_path}/base.db"
    changes = Changes("upsert", ("k",))
    assert sink == JdbcSink(
        "entries", "entries", "t", "append", options={"url": url}, changes=changes
    )
    assert sink.destination == f"table t of {url} (upsert by k)"
    (sink,) = load_text(f'{text}schema = "freeze"\n').sinks
    assert isinstance(sink, JdbcSink)
    assert sink.schema == "freeze"


@pytest.mark.parametrize("url", ["jdbc:oracle:thin:@h", "jdbc:derby:d", "oracle://h/d"])
def test_a_database_without_a_driver_in_python_is_refused(load_text: Load, url: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        load_text(f'{ONE_SINK}type = "jdbc"\ntable = "t"\nurl = "{url}"\n')
    assert str(caught.value).endswith(
        "sink[1].url: begins with none of postgresql, postgres, sqlite, mysql, mariadb"
    )


def test_batches_that_go_through_the_driver_have_a_limit(load_text: Load) -> None:
    text = f'{ONE_SINK}type = "delta"\npath = "t"\n[[sink]]\nname = "files"\npath = "u"\n'
    limits = {"maxOffsetsPerTrigger": "500000", "maxBytesPerTrigger": "64m"}
    assert source_options(load_text(text), "entries").items() >= limits.items()
    assert not limits.keys() & source_options(load_text(text), "files").keys()
    group = text.replace('"s"', '"s"\nmode = "group"\ngroup_id = "g"\nmax_offsets_per_trigger = 7')
    assert source_options(load_text(group), "all")["maxOffsetsPerTrigger"] == "7"
    without = group.replace("max_offsets_per_trigger = 7", 'max_bytes_per_trigger = "1g"')
    wanted = limits | {"maxBytesPerTrigger": "1g"}
    assert source_options(load_text(without), "all").items() >= wanted.items()


def test_a_missing_package_is_named_with_its_extra(
    load_text: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock_pipeline.sinks.base.find_spec", lambda name: None)
    (base,) = load_text(f'{ONE_SINK}type = "jdbc"\nurl = "postgresql://h/d"\ntable = "t"\n').sinks
    with pytest.raises(PipelineError) as caught:
        base.require()
    check_extra(str(caught.value), "sink 'entries': type 'jdbc'", "postgres", "psycopg", ROOT)
    (sink,) = load_text(f'{ONE_SINK}type = "delta"\npath = "t"\n').sinks
    with pytest.raises(PipelineError) as caught:
        sink.require()
    check_extra(str(caught.value), "sink 'entries': type 'delta'", "delta", "deltalake", ROOT)


def test_sinks_whose_batches_are_files_take_a_minute(load_text: Load) -> None:
    catalog = 'table = "a.b"\ncatalog = { type = "sql", uri = "sqlite:///c.db" }\n'
    for kind in ('"delta"\npath = "t"\n', f'"iceberg"\n{catalog}'):
        found = load_text(f"{ONE_SINK}type = {kind}")
        assert found.interval(found.sinks[0]) == "1 minute"


@pytest.mark.parametrize(
    ("url", "refuses"),
    [
        ("postgresql://h/d", True),
        ("jdbc:postgresql://h/d", True),
        ("sqlite:d.db", False),
        ("mysql://h/d", False),
    ],
)
def test_postgresql_takes_no_text_with_nul(load_text: Load, url: str, refuses: bool) -> None:
    text = f'{ONE_SINK}type = "jdbc"\nurl = "{url}"\ntable = "t"\n'
    assert load_text(text).sinks[0].refuses_nul is refuses


def test_a_plan_says_what_rows_are_expected_to_be(load_text: Load) -> None:
    text = f"""{ONE_SINK}path = "t"
[parse]
format = "debezium"
[parse.columns]
qty = {{ type = "int", expect = "qty > 0" }}
[dead_letters]
stream = "dead"
[[transform]]
name = "many"
expect = "qty > 9"
"""
    plan = describe(load_text(text))
    assert "Table entries: debezium in the last field; also stream, id, timestamp\n" in plan
    assert "  qty                  int, expected: qty > 0, or else dead letter\n" in plan
    assert "  SELECT * FROM entries\n  expected: qty > 9, or else warn\n" in plan
