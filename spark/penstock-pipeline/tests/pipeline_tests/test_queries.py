"""Whole pipelines over what is there: transforms, sinks, and what they promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession

from penstock_pipeline.errors import PipelineError
from penstock_pipeline.queries import queries
from penstock_pipeline.supervise import _problem
from pipeline_tests.commands import Command
from pipeline_tests.conftest import Load
from pipeline_tests.once import Once, rows
from pipeline_tests.pipelines import GROUP, PARSE, fill, forget_commits, head
from source_tests.backends import Backend
from source_tests.conftest import PROGRAMS
from source_tests.driving import contents


def test_each_sink_gets_its_table_and_the_rest_are_dead_letters(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(server, ("a", 1, "00:10:00"), ("b", 2, "00:20:00"), ("a", 4, "00:50:00"))
    fill(server, ("a", "many", "00:30:00"), ("c", 9, "05:00:00"))
    text = f'''\
{head(url, 'group_id = "g"')}{PARSE}
[[transform]]
name = "big"
sql = "SELECT item, qty * 10 AS qty FROM entries WHERE qty > 1"
[[transform]]
name = "hours"
from = "entries"
watermark = {{ column = "at", delay = "1 hour" }}
sql = """
SELECT item, window.start AS hour, sum(qty) AS qty
FROM entries GROUP BY item, window(at, '1 hour')"""
[[sink]]
name = "hours"
path = "hours"
[[sink]]
name = "big"
from = "big"
path = "big"
partition_by = ["item"]
[[sink]]
name = "copy"
from = "big"
type = "stream"
stream = "copied"
'''
    pipeline = load_text(text)
    run = Once(spark, pipeline)
    assert rows(tmp_path / "big", "item", "qty") == [("a", 40), ("b", 20), ("c", 90)]
    assert rows(tmp_path / "hours", "item", "qty") == [("a", 5), ("b", 2)]
    assert [fields for _, fields in contents(server, "copied")] == [
        {b"item": b"b", b"qty": b"20"},
        {b"item": b"a", b"qty": b"40"},
        {b"item": b"c", b"qty": b"90"},
    ]
    ((_, letter),) = contents(server, "dead")
    assert letter[b"dead-letter-reason"] == b"field 'qty' is 'many', not int"
    first = {b["query"]: (b["rows"], b["lag"]) for b in run.batches if b["batch"] == 0}
    assert first == dict.fromkeys(("hours", "big", "copy", "dead-letters"), (5, 0))
    written = {b["query"]: b["written"] for b in run.batches if b["batch"] == 0}
    assert written == {"hours": 0, "big": 3, "copy": 3, "dead-letters": 1}
    assert "dead-letters: 1 row of 5 entries in 1 batch" in run.summary
    # On a busy machine a line before may say that a process was late.
    assert any(line.endswith(" entries/s, lag 0") for line in run.lines)
    groups: Any = server.xinfo_groups("s")
    assert [(g["name"], g["lag"]) for g in groups] == [
        *((b"g.big", 0), (b"g.copy", 0), (b"g.dead-letters", 0), (b"g.hours", 0))
    ]
    fill(server, ("d", 5, "06:00:00"))
    Once(spark, pipeline)
    assert rows(tmp_path / "big", "item", "qty") == [("a", 40), ("b", 20), ("c", 90), ("d", 50)]
    assert server.xlen("copied") == 4


def test_rows_of_the_same_keys_are_one_within_the_watermark(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    text = f"""\
{head(url)}{PARSE}
[[transform]]
name = "fresh"
watermark = {{ column = "at", delay = "1 hour" }}
deduplicate = {{ keys = ["item"] }}
[[sink]]
path = "fresh"
"""
    pipeline = load_text(text)
    fill(server, ("a", 1, "00:00:00"), ("a", 1, "00:01:00"), ("b", 2, "00:02:00"))
    Once(spark, pipeline)
    fill(server, ("a", 1, "00:30:00"), ("c", 3, "00:31:00"))
    Once(spark, pipeline)
    assert rows(tmp_path / "fresh", "item") == [("a",), ("b",), ("c",)]


def test_sql_may_be_in_a_file_and_a_table_may_be_joined(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    (tmp_path / "names.sql").write_text(
        "SELECT e.qty, n.name FROM entries e JOIN VALUES ('a', 'apple') AS n(item, name) "
        "ON e.item = n.item;\n"
    )
    text = f'{head(url)}{PARSE}[[transform]]\nname = "n"\nfile = "names.sql"\n'
    fill(server, ("a", 1, "00:00:00"), ("b", 2, "00:00:00"))
    Once(spark, load_text(f'{text}[[sink]]\npath = "n"\n'))
    assert rows(tmp_path / "n", "name", "qty") == [("apple", 1)]


def test_a_stream_is_copied_exactly_when_nothing_is_parsed(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str
) -> None:
    for number in range(1, 30):
        server.execute_command("XADD", "s", f"{number}-7", "a", "1", "a", b"\xff")
    text = f"""\
{head(url, 'fields_format = "array"')}
[[sink]]
type = "stream"
stream = "copied"
ids = true
"""
    Once(spark, load_text(text))
    key = {"NEVER_DECODE": True}
    assert server.execute_command("XRANGE", "copied", "-", "+", **key) == server.execute_command(
        "XRANGE", "s", "-", "+", **key
    )


def test_a_kill_while_the_first_batch_is_noted_ends_no_later_run(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(server, ("a", 1, "00:00:00"))
    offsets = tmp_path / "checkpoint" / "entries" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.6b79145d-844a-4185-ab60-f6b2620d46f5.tmp").write_bytes(b"half")
    Once(spark, load_text(f'{head(url)}{PARSE}\n[[sink]]\npath = "table"\n'))
    assert rows(tmp_path / "table", "item", "qty") == [("a", 1)]


def test_a_repeated_batch_replaces_itself(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(server, ("a", 1, "00:00:00"), ("b", 2, "00:00:00"))
    text = f"""\
{head(url)}{PARSE}
[[sink]]
path = "table"
[[sink]]
name = "copy"
type = "stream"
stream = "copied"
"""
    pipeline = load_text(text)
    Once(spark, pipeline)
    for name in ("entries", "copy"):
        # As after a kill between the writing of a batch and the noting down of that.
        for file in (tmp_path / "checkpoint" / name / "commits").iterdir():
            file.unlink()
    (batch,) = (tmp_path / "table").glob("batch=*")
    (batch / "part-left-over.parquet").write_bytes(b"of an attempt that was killed")
    run = Once(spark, pipeline)
    assert {b["query"]: b["rows"] for b in run.batches} == {"entries": 2, "copy": 2}
    assert rows(tmp_path / "table", "item", "qty") == [("a", 1), ("b", 2)]
    assert server.xlen("copied") == 2


def test_a_repeated_batch_adds_nothing_on_a_server_without_idempotent_ids(
    spark: SparkSession, load_text: Load, tmp_path: Path
) -> None:
    """In other partitions its rows have other numbers, so it is refused."""
    program = next((path for path in PROGRAMS.values() if path), None)
    if program is None:
        pytest.skip("no real server (see PENSTOCK_REFERENCE_SERVERS)")
    with Backend(program) as backend, backend.client() as client:
        fill(client, ("a", 1, "00:00:00"), ("b", "x", "00:00:00"), ("c", 3, "00:00:00"))
        text = head(backend.url, "min_partitions = 2") + PARSE
        text += '[[sink]]\nname = "copy"\ntype = "stream"\nstream = "copied"\n'
        for _ in range(2):
            Once(spark, load_text(text))
            for name in ("copy", "dead-letters"):
                forget_commits(tmp_path / "checkpoint" / name)
        assert [client.xlen(key) for key in ("copied", "dead")] == [2, 1]
        with pytest.raises(PipelineError, match="number of partitions was 2 then and is 1 now"):
            Once(spark, load_text(text.replace("min_partitions = 2", "")))
        assert [client.xlen(key) for key in ("copied", "dead")] == [2, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[[transform]]\nname = "t"\nsql = "SELECT nothing FROM (SELECT * FROM entries)"\n'
            '[[sink]]\npath="o"\n',
            "transform 't': [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function "
            "parameter with name `nothing` cannot be resolved. Did you mean one of the following?",
        ),
        (
            '[[transform]]\nname = "t"\nsql = "SELECT 1 FRM entries x"\n[[sink]]\npath="o"\n',
            "transform 't': [PARSE_SYNTAX_ERROR] Syntax error at or near 'entries'",
        ),
        (
            '[[transform]]\nname = "t"\nsql = "SELECT count(*) AS n FROM entries"'
            '\n[[sink]]\npath="o"\n',
            "sink 't': [STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION] Invalid streaming output "
            "mode: append.",
        ),
        (
            '[[transform]]\nname = "t"\nwatermark = {column = "item", delay = "1 day"}\n'
            '[[sink]]\npath="o"\n',
            "transform 't': the watermark's column 'item' is no timestamp",
        ),
        (
            '[[transform]]\nname = "t"\nsql = "SELECT * FROM (SELECT item, qty FROM entries)"\n'
            '[[sink]]\npath="o"\npartition_by = ["none"]\n',
            "sink 't': partition_by names 'none', which table 't' does not have; it has item, qty",
        ),
        (
            '[[transform]]\nname = "t"\nsql = "SELECT item AS batch FROM entries"\n[[sink]]\n'
            'path="o"\n',
            "sink 't': table 't' has a column 'batch', which is the folder of each batch; give it "
            "another name in SQL",
        ),
        (
            '[[transform]]\nname = "t"\nsql = "SELECT array(item) AS items FROM entries"\n'
            '[[sink]]\ntype="stream"\nstream="x"\n',
            "sink 't': column 'items' is array<string>, which is no single value",
        ),
    ],
)
def test_what_spark_refuses_is_told_before_anything_runs(
    spark: SparkSession, load_text: Load, text: str, message: str
) -> None:
    pipeline = load_text(head("redis://127.0.0.1:1") + PARSE + text)
    with pytest.raises(PipelineError) as caught:
        queries(spark, pipeline)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_bad_sql_has_the_line_of_its_transform(load_text: Load) -> None:
    text = head("redis://h") + '[[transform]]\nname = "t"\nsql = "SELECT id FROM entries"\n'
    text += '[[sink]]\npath="o"\n'
    problem = _problem(load_text(text), "transform 't': [X] no")
    assert (problem.line, problem.key) == (10, "transform[1]")


def test_a_query_that_fails_is_begun_again_and_then_given_up(
    spark: SparkSession,
    load_text: Load,
    server: redis.Redis,
    url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fill(server, ("a", 0, "00:00:00"))
    text = f"""\
{head(url)}{PARSE}
[[transform]]
name = "t"
sql = "SELECT 1 / qty AS q FROM entries"
[[sink]]
path = "t"
"""
    with pytest.raises(PipelineError) as caught:
        Once(spark, load_text(text))
    assert str(caught.value).startswith("t: [DIVIDE_BY_ZERO] Division by zero.")
    assert caplog.records == [], "no trace is logged"


# --- mode group ----------------------------------------------------------------------------------


def test_mode_group_writes_all_sinks_from_one_query_and_acknowledges(
    spark: SparkSession, load_text: Load, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(server, ("a", 1, "00:00:00"), ("b", "x", "00:00:00"), ("c", 3, "00:00:00"))
    text = f"""\
{head(url, GROUP)}{PARSE}
[[sink]]
path = "table"
[[sink]]
name = "copy"
type = "stream"
stream = "copied"
"""
    run = Once(spark, load_text(text))
    assert [(b["query"], b["rows"]) for b in run.batches] == [("all", 3)]
    assert rows(tmp_path / "table", "item", "qty") == [("a", 1), ("c", 3)]
    assert server.xlen("copied") == 2
    ((_, letter),) = contents(server, "dead")
    assert letter[b"dead-letter-reason"] == b"field 'qty' is 'x', not int"
    (group,) = server.xinfo_groups("s")
    assert (group["name"], group["lag"], group["pending"]) == (b"g", 0, 0)


def test_what_was_delivered_too_often_goes_to_the_dead_letters_and_back(
    spark: SparkSession,
    load_text: Load,
    server: redis.Redis,
    url: str,
    tmp_path: Path,
    command: Command,
) -> None:
    fill(server, ("a", 0, "00:00:00"))
    transform = '[[transform]]\nname = "t"\nsql = "SELECT item, 1 / {} AS q FROM entries"\n'
    sink = '[[sink]]\npath = "t"\n'
    text = head(url, GROUP) + PARSE.replace("attempts = 1", "attempts = 3")
    run = Once(spark, load_text(text + transform.format("qty") + sink))
    assert any("[DIVIDE_BY_ZERO]" in line for line in run.lines)
    ((_, letter),) = contents(server, "dead")
    assert letter[b"dead-letter-deliveries"] == b"3"
    assert letter[b"dead-letter-reason"] == b"delivered more than maxDeliveries times"
    assert letter[b"item"] == b"a"
    (group,) = server.xinfo_groups("s")
    assert group["pending"] == 0
    pipeline = load_text(text + transform.format("(qty + 1)") + sink)
    assert command.out("redrive", "--file", tmp_path / "p.toml") == [
        "s: 1 sent",
        "dead: 1 sent, 0 there",
    ]
    Once(spark, pipeline)
    assert rows(tmp_path / "t", "item", "q") == [("a", 1.0)]


def test_mode_group_refuses_sql_that_needs_more_than_one_entry(
    spark: SparkSession, load_text: Load
) -> None:
    text = head("redis://h", GROUP) + PARSE
    transform = '[[transform]]\nname = "t"\nsql = "SELECT e.item FROM entries e, entries f"\n'
    with pytest.raises(PipelineError) as caught:
        queries(spark, load_text(text + transform + '[[sink]]\npath = "t"\n'))
    assert str(caught.value) == (
        "sink 't': mode 'group' makes each row of one entry, and this SQL does not (Join); use "
        "mode 'offsets'"
    )
