"""Reading a pipeline file: what it says, and every problem by line and key."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock_pipeline.decode.protobuf import compile_files
from penstock_pipeline.errors import InvalidFile, PipelineError
from penstock_pipeline.file import load
from penstock_pipeline.model import Column, Deduplicate, Parse, Registry, Retry, Watermark
from penstock_pipeline.plan import describe
from penstock_pipeline.sinks.kinds import KINDS
from penstock_pipeline.sinks.parquet import ParquetSink
from pipeline_tests.conftest import ROOT, Load
from tests.support.missing import check_extra

LEAST = """\
[source]
subscribe = "orders"

[[sink]]
path = "out"

[checkpoint]
path = "checkpoint"
"""

WHOLE = """\
name = "shop"

[source]
url = "redis://:${SECRET}@host:7000/2"
subscribe = ["a,b", "c"]
starting_offsets = { "a,b" = "5-0", c = "earliest" }
groupId = "g"
fail_on_data_loss = false
max_offsets_per_trigger = 500
redis.client_name = "me"

[parse]
nulls = ["", "NA"]

[parse.columns]
item = "string"
qty = { type = "int", required = true }
at = { type = "timestamp", from = "time", format = "yyyy/MM/dd" }

[dead_letters]
stream = "bad"
maxlen = 100

[[transform]]
name = "fresh"
watermark = { column = "at", delay = "1 hour" }
deduplicate = { keys = ["item"] }

[[transform]]
name = "sums"
sql = "SELECT item, sum(qty) FROM fresh GROUP BY item, window(at, '1 day');"

[[sink]]
path = "s3a://lake/sums"
partition_by = ["item"]
compression = "zstd"

[[sink]]
name = "copy"
type = "stream"
from = "entries"
stream = "copied"
url = "redis://other"
output_mode = "update"

[[sink]]
name = "base"
type = "jdbc"
url = "jdbc:postgresql://db/x"
table = "t"
password = "${SECRET}"

[checkpoint]
path = "check"

[trigger]
every = "5 minutes"

[metrics]
file = "m.jsonl"

[retry]
attempts = 7
pause = "1 minute"

[spark]
master = "local[4]"
log_level = "WARN"

[spark.conf]
"spark.executor.memory" = "2g"
spark.sql.shuffle.partitions = 3
spark.x = true
"""


def test_a_file_may_be_short(load_text: Load, tmp_path: Path) -> None:
    pipeline = load_text(LEAST)
    assert pipeline.name == "p"
    assert pipeline.source == {"subscribe": "orders"}
    assert pipeline.mode == "offsets"
    assert pipeline.parse is None
    assert pipeline.transforms == ()
    (sink,) = pipeline.outputs
    out = str(tmp_path / "out")
    assert sink == ParquetSink(
        "entries", "entries", out, "append", options={"compression": "snappy"}
    )
    assert pipeline.checkpoint == str(tmp_path / "checkpoint")
    assert (pipeline.every, pipeline.metrics, pipeline.master) == (None, None, None)
    assert pipeline.retry == Retry(3, 5.0)


def test_a_file_may_say_everything(load_text: Load, tmp_path: Path) -> None:
    pipeline = load_text(WHOLE, SECRET="hush")
    assert pipeline.name == "shop"
    assert pipeline.source == {
        "url": "redis://:hush@host:7000/2",
        "subscribe": '["a,b", "c"]',
        "startingOffsets": '{"a,b": "5-0", "c": "earliest"}',
        "groupId": "g",
        "failOnDataLoss": "false",
        "maxOffsetsPerTrigger": "500",
        "redis.client_name": "me",
    }
    assert pipeline.parse == Parse(
        (
            Column("item", "string", "item"),
            Column("qty", "int", "qty", required=True),
            Column("at", "timestamp", "time", format="yyyy/MM/dd"),
        ),
        nulls=("", "NA"),
    )
    fresh, sums = pipeline.transforms
    assert (fresh.origin, fresh.sql) == ("entries", "SELECT * FROM entries")
    assert fresh.watermark == Watermark("at", "1 hour")
    assert fresh.deduplicate == Deduplicate(("item",))
    assert (sums.origin, sums.sql_line) == ("fresh", 31)
    assert sums.sql.endswith("'1 day')")
    table, copy, base = pipeline.sinks
    assert (table.name, table.place) == ("sums", "s3a://lake/sums")
    assert (table.partition_by, table.options) == (("item",), {"compression": "zstd"})
    assert (copy.origin, copy.output_mode) == ("entries", "update")
    assert copy.options == {"url": "redis://other", "stream": "copied"}
    assert base.options == {"url": "jdbc:postgresql://db/x", "password": "hush"}
    assert pipeline.dead_letters is not None
    assert pipeline.dead_letters.options == {
        "url": "redis://:hush@host:7000/2",
        "redis.client_name": "me",
        "maxlen": "100",
        "stream": "bad",
    }
    assert [output.name for output in pipeline.outputs] == [
        *("sums", "copy", "base", "dead-letters")
    ]
    assert pipeline.metrics == str(tmp_path / "m.jsonl")
    assert pipeline.retry == Retry(7, 60.0)
    assert (pipeline.master, pipeline.log_level) == ("local[4]", "WARN")
    assert pipeline.spark == {
        "spark.executor.memory": "2g",
        "spark.sql.shuffle.partitions": "3",
        "spark.x": "true",
    }


def test_nothing_secret_shows_in_the_text_of_a_pipeline(load_text: Load) -> None:
    assert "hush" not in repr(load_text(WHOLE, SECRET="hush"))


def problems(load_text: Load, text: str, **environment: str) -> list[str]:
    with pytest.raises(InvalidFile) as caught:
        load_text(text, **environment)
    return [f"{p.line}: {p}" for p in caught.value.problems]


def test_all_problems_are_told_at_once_with_line_and_key(load_text: Load) -> None:
    text = """\
[sources]
[[sink]]
type = "parqet"
pth = "x"
[trigger]
every = 5
"""
    assert problems(load_text, text) == [
        "1: checkpoint: is missing: a table with 'path', where queries keep positions",
        "1: source: is missing: a table with the options of the data source",
        "1: sources: unknown; did you mean 'source'?",
        "2: sink[1]: 'path' is missing: the folder of the table",
        f"3: sink[1].type: is 'parqet'; allowed: {', '.join(KINDS)}; did you mean 'parquet'?",
        "4: sink[1].pth: unknown; did you mean 'path'?",
        "6: trigger.every: is 5; allowed: text in quotes",
    ]


AVRO = """\
{"type": "record", "name": "R", "fields": [
  {"name": "id", "type": "long"}, {"name": "a", "type": ["null", "string"]}
]}
"""

PARSE_PROBLEMS = [
        ('format = "xml"\nfield = "f"\ncolumns.a = "int"',
         "4: parse.format: is 'xml'; allowed: json, avro, protobuf, csv, text, debezium"),
        ('format = "json"\ncolumns.a = "int"',
         "3: parse: 'field' is missing: the field that holds the payload"),
        ('field = "f"\ncolumns.a = "int"',
         "4: parse.field: needs 'format' beside it; allowed: json, avro, protobuf, csv, text, "
         "debezium"),
        ('json = "j"\nfield = "f"\ncolumns.a = "int"',
         "5: parse.field: is given beside 'json', which means format 'json' and its field"),
        ('json = "j"\nquote = "|"\ncolumns.a = "int"', "5: parse.quote: is for format = 'csv'"),
        ('compression = "gzip"\ncolumns.a = "int"',
         "4: parse.compression: needs 'format' beside it; allowed: json, avro, protobuf, csv, "
         "text, debezium"),
        ('json = "j"\ncompression = "gz"\ncolumns.a = "int"',
         "5: parse.compression: is 'gz'; allowed: gzip, zstd, lz4; did you mean "
         "'gzip'?"),
        ('json = "j"\nmax_bytes = 5\ncolumns.a = "int"',
         "5: parse.max_bytes: is for 'compression': how long a value may be when unpacked"),
        ('format = "avro"\nfield = "f"\ncolumns.a = "int"',
         "3: parse: format 'avro' needs 'schema_file' or 'registry'"),
        ('format = "avro"\nfield = "f"\nregistry = "ftp://x"\ncolumns.a = "int"',
         "6: parse.registry: is not of the right form; allowed: "
         "http[s]://[user:password@]host[:port][/path]"),
        ('format = "avro"\nfield = "f"\nregistry = "http://x"\nregistry_user = "u"\n'
         'columns.a = "int"',
         "7: parse.registry_user: and 'registry_password' belong together"),
        ('format = "avro"\nfield = "f"\nregistry = "http://x"\nregistry_timeout = "5"\n'
         'columns.a = "int"',
         "7: parse.registry_timeout: is '5'; allowed: a number with millisecond, second, minute, "
         "hour, day, week(s)"),
        ('format = "avro"\nfield = "f"\nregistry = "http://x"',
         "3: parse.columns: is missing: a table of columns, each as name = \"type\"; they are "
         "proposed from a 'schema_file', but a registry is not asked before entries are there"),
        ('format = "avro"\nfield = "f"\nschema_file = "none.avsc"\ncolumns.a = "int"',
         "6: parse.schema_file: can't read '{folder}/none.avsc': No such file or directory"),
        ('format = "avro"\nfield = "f"\nschema_file = "p.toml"\ncolumns.a = "int"',
         "6: parse.schema_file: is not JSON: Expecting value: line 1 column 2 (char 1)"),
        ('format = "avro"\nfield = "f"\nregistry = "http://x"\n'
         'columns.a = {type = "timestamp", format = "yyyy"}',
         "7: parse.columns.a.format: is 'yyyy'; in avro allowed: epoch_s, epoch_ms, epoch_us, "
         "epoch_d"),
        ('columns.a = {type = "int", expect = " "}', "4: parse.columns.a.expect: is empty"),
        *((f'columns.a = {{type = "timestamp", expect = "a < {text}"}}',
           f"4: parse.columns.a.expect: has '{name}', so that queries and repeated batches would "
           "judge otherwise; compare with 'timestamp', the time in the ID of an entry")
          for text, name in (("now()", "now"), ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP"))),
        ('columns.a = {type = "int", otherwise = "drop"}',
         "4: parse.columns.a.otherwise: needs 'expect' beside it: a condition of SQL"),
        ('columns.a = {type = "int", expect = "a > 0", otherwise = "droop"}',
         "4: parse.columns.a.otherwise: is 'droop'; allowed: dead_letter, drop, warn, fail; did "
         "you mean 'drop'?"),
        ('format = "debezium"\ncolumns.a = {type = "date", format = "yyyy"}',
         "5: parse.columns.a.format: is 'yyyy'; in debezium allowed: epoch_s, epoch_ms, "
         "epoch_us, epoch_d"),
        ('columns.a = {type = "timestamp", format = "epoch_d"}',
         "4: parse.columns.a.format: 'epoch_d' is for the type date"),
        ('format = "protobuf"\nfield = "f"\ndescriptor_file = "p.toml"\nmessage = "M"\n'
         'columns.a = "int"',
         "6: parse.descriptor_file: is no set of descriptors, as protoc --descriptor_set_out makes "
         "it"),
        ('json = "j"\nregistry = "http://x"\ncolumns.a = "int"',
         "5: parse.registry: is for format = 'avro' or 'protobuf'"),
        ('json = "j"\nregistry_user = "u"\ncolumns.a = "int"',
         "5: parse.registry_user: is for format = 'avro' or 'protobuf'"),
        ('format = "avro"\nfield = "f"\nschema_file = "{avro}"\nregistry_user = "u"\n'
         'columns.a = "int"',
         "7: parse.registry_user: needs 'registry' beside it, the URL"),
        ('format = "avro"\nfield = "f"\nschema_file = "{avro}"\ncolumns.b = "int"',
         "7: parse.columns.b: is of 'b'; the schema has id, a"),
        ('format = "avro"\nfield = "f"\nschema_file = "{avro}"\nunknown = "A"',
         "7: parse.unknown: is 'A', but there is a column of this name"),
        ('format = "csv"\nfield = "f"\nheader = ["a", "b", "a"]\ncolumns.a = "int"',
         "6: parse.header: names 'a' twice"),
        ('format = "csv"\nfield = "f"\nheader = [1]\ncolumns.a = "int"',
         "6: parse.header: is not a list of names, in the order of the values"),
        ('format = "csv"\nfield = "f"\nheader = ["b"]\ncolumns.a = "int"',
         "7: parse.columns.a: is of 'a', which 'header' lacks"),
        ('format = "csv"\nfield = "f"\ndelimiter = "||"\ncolumns.a = "int"',
         "6: parse.delimiter: is '||'; allowed: one ASCII character, but for line ends"),
        ('format = "csv"\nfield = "f"\ncolumns.a = "array<int>"',
         "6: parse.columns.a: type is 'array<int>'; allowed: string, binary, boolean, tinyint, "
         "smallint, int, bigint, float, double, decimal(p,s), date, timestamp"),
        ('format = "text"\nfield = "f"\ncolumns.a = "int"\ncolumns.b = "int"',
         "6: parse.columns: are 2; format 'text' is one value, so one column"),
        ('format = "text"\nfield = "f"\nunknown = "m"\ncolumns.a = "int"',
         "6: parse.unknown: is not for format 'text', which is one value"),
        ('unknown = "A"\ncolumns.a = "int"',
         "4: parse.unknown: is 'A', but there is a column of this name"),
        ('json = "j"\ncolumns.a = {type = "date", format = "epoch_s"}',
         "5: parse.columns.a.format: 'epoch_s' is for the types timestamp and timestamp_ntz"),
        ('columns.a = {type = "timestamp", format = "epoch_ns"}',
         "4: parse.columns.a.format: is 'epoch_ns'; allowed: epoch_s, epoch_ms, epoch_us, "
         "epoch_d, or a pattern of Spark"),
        ('json = "j"\ncolumns.a = "int"\ncolumns.b = {type = "int", from = "A"}',
         "6: parse.columns.b: is of the member 'A', but 'a' of 'a', and Spark ignores case"),
]  # fmt: skip
"""Keys of the part that says how entries are parsed, and the problem that comes of them."""

PROBLEMS = [
        ('"orders"', '"orders"\nmax_deliverys = 3', "3: source.max_deliverys: unknown; did you "
         "mean 'max_deliveries'?"),
        ('"orders"', '"orders"\nmin_partitions = 0', "3: source.min_partitions: option "
         "'minPartitions' is '0'; allowed: a whole number from 1"),
        ('"orders"', '"orders"\nminPartitions = 2\nmin_partitions = 2', "4: "
         "source.min_partitions: is given twice, as 'minPartitions' is the same"),
        ('"orders"', '"${NOBODY}"', "2: source.subscribe: the environment variable NOBODY is not "
         "set"),
        ('"orders"', "1.5", "2: source.subscribe: has a value of a kind that no option takes"),
        ('"orders"', '"orders"\nurl = "http://x:pw@h"', "3: source.url: option 'url' is 'not of "
         "the right form'; allowed: redis://[user:password@]host[:port][/database], rediss:// for "
         "TLS, unix:///path, redis+cluster:// or rediss+cluster:// with one or more host:port for "
         "a cluster, redis+sentinel:// or rediss+sentinel:// with those of sentinels and "
         "/name[/database]; valkey:// and valkeys:// mean the same; several URLs are separated by "
         "commas"),
        ('"orders"', '"orders"\n[parse.columns]\nb = "strin"\n[dead_letters]\nstream="d"',
         "4: parse.columns.b: type is 'strin'; allowed: string, binary, boolean, tinyint, "
         "smallint, int, bigint, float, double, decimal(p,s), date, timestamp; did you mean "
         "'string'?"),
        ('"orders"', '"orders"\n[parse.columns]\nID = "string"\n[dead_letters]\nstream="d"',
         "4: parse.columns.ID: every entry has a column of this name; write other = {from = 'ID'}"),
        ('"orders"', '"orders"\n[parse.columns]\nb = "int"\nB = "int"\n[dead_letters]\nstream="d"',
         "5: parse.columns.B: is the same as 'b': case is ignored"),
        ('"orders"', '"orders"\n[parse.columns]\nFields = "int"\n[dead_letters]\nstream="d"',
         "4: parse.columns.Fields: this name is needed for parsing; write other = {from = "
         "'Fields'}"),
        ('"orders"', '"orders"\n[parse]\njson = "j"\ncolumns.qty = "int"\n'
         'columns.raw = {type = "string", from = "qty"}\n[dead_letters]\nstream="d"',
         "6: parse.columns.raw: is string, but 'qty' of the same member is int"),
        ('"orders"', '"orders"\n[parse.columns]\nb = {type = "int", format = "x"}\n'
         '[dead_letters]\nstream="d"',
         "4: parse.columns.b.format: is for the types date and timestamp"),
        ('"orders"', '"orders"\n[parse]\n[dead_letters]\nstream="d"',
         "3: parse.columns: is missing: a table of columns, each as name = \"type\""),
        ('"orders"', '"orders"\n[parse]\njson = "j"\nnulls = ["x"]\n[parse.columns]\na = "int"\n'
         '[dead_letters]\nstream="d"',
         "5: parse.nulls: is for plain fields, csv and text; in json a value can be null"),
        *(('"orders"', f'"orders"\n[parse]\n{keys}\n[dead_letters]\nstream="d"', problem)
          for keys, problem in PARSE_PROBLEMS),
        ('"orders"', '"orders"\n[parse.columns]\na = "int"',
         "3: parse: needs [dead_letters]: entries that do not parse have to go somewhere"),
        ('"orders"', '"orders"\n[parse.columns]\na = "int"\n[dead_letters]\nstream="orders"',
         "6: dead_letters.stream: is 'orders', which the source reads: the pipeline would read "
         "what it writes"),
        ("[[sink]]", '[[transform]]\nname = "1b"\nsql = "SELECT 1"\n[[sink]]',
         "5: transform[1].name: is '1b'; allowed: letters, digits and _, as SQL has it"),
        ("[[sink]]", '[[transform]]\nname = "a"\n[[sink]]',
         "4: transform[1]: does nothing: give 'sql', 'file', 'watermark', 'deduplicate' or "
         "'expect'"),
        ("[[sink]]", '[[transform]]\nname = "a"\nexpect = "b"\notherwise = "dead_letter"\n[[sink]]',
         "7: transform[1].otherwise: is 'dead_letter'; allowed: warn, drop, fail"),
        ("[[sink]]", '[[transform]]\nname = "a"\nfile = "none.sql"\n[[sink]]',
         "6: transform[1].file: can't read '{folder}/none.sql': No such file or directory"),
        ("[[sink]]", '[[transform]]\nname = "a"\nsql = "x"\nfile = "p.toml"\n[[sink]]',
         "7: transform[1].file: is given beside 'sql': only one of them"),
        ("[[sink]]", '[[transform]]\nname = "a"\ndeduplicate = {keys = ["id"]}\n[[sink]]',
         "6: transform[1].deduplicate: needs 'watermark' beside it, which says for how long keys "
         "are remembered"),
        ("[[sink]]", '[[transform]]\nname = "a"\nwatermark = {column = "t", delay = "x"}\n'
         "[[sink]]",
         "6: transform[1].watermark.delay: is 'x'; allowed: a number with millisecond, second, "
         "minute, hour, day, week(s)"),
        ("[[sink]]", '[[transform]]\nname = "entries"\nsql = "x"\n[[sink]]',
         "5: transform[1].name: is 'entries', but there is a table of this name before"),
        ('path = "out"', 'path = "out"\nfrom = "entires"',
         "6: sink[1].from: is 'entires'; allowed: entries; did you mean 'entries'?"),
        ('path = "out"', 'path = "out"\n[[sink]]\npath = "out/x"\nname = "b"',
         "7: sink[2].path: shares a folder with sink 'entries'"),
        ('path = "out"', 'path = "checkpoint"',
         "5: sink[1].path: shares a folder with the checkpoint"),
        ('path = "out"', 'path = "out"\n[[sink]]\npath = "b"',
         "6: sink[2].name: is 'entries', but there is a query of this name already"),
        ('path = "out"', 'type = "stream"\nstream = "orders"',
         "6: sink[1].stream: is 'orders', which the source reads: the pipeline would read what it "
         "writes"),
        ('path = "out"', 'type = "stream"\nstream = "x"\nmaxlen = -1',
         "7: sink[1].maxlen: option 'maxlen' is '-1'; allowed: a whole number from 0"),
        ('path = "out"', 'type = "jdbc"\nurl = "http://x"\ntable = "t"',
         "6: sink[1].url: begins with none of postgresql, postgres, sqlite, mysql, mariadb"),
        ("[checkpoint]", '[spark.conf]\n"spark.sql.adaptive.enabled" = true\n[checkpoint]',
         "7: spark.conf: 'spark.sql.adaptive.enabled' can't be changed: a repeated batch would be "
         "another one"),
        ("[checkpoint]", "[retry]\nattempts = -1\n[checkpoint]",
         "8: retry.attempts: is -1; allowed: a whole number from 0"),
        ("[checkpoint]", "[retry]\nattempts = true\n[checkpoint]",
         "8: retry.attempts: is True; allowed: a whole number"),
        ("[source]", 'name = "a/b"\n[source]',
         "1: name: is 'a/b'; allowed: letters, digits, and the signs . _ -"),
]  # fmt: skip
"""What is replaced in the least file, by what, and the problem that comes of it."""


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    PROBLEMS,
    ids=[f"{n}-{p[2].split()[1]}" for n, p in enumerate(PROBLEMS)],
)
def test_a_problem_is_told_with_line_and_key(
    load_text: Load, tmp_path: Path, replaced: str, by: str, message: str
) -> None:
    avro = tmp_path / "s.avsc"
    avro.write_text(AVRO, encoding="utf-8")
    found = problems(load_text, LEAST.replace(replaced, by.replace("{avro}", str(avro)), 1))
    assert found == [message.replace("{folder}", str(tmp_path))]


GROUP = LEAST.replace('"orders"', '"orders"\nmode = "group"\ngroup_id = "g"\nmax_deliveries = 3', 1)


def test_mode_group_gets_its_consumer_and_dead_letters_from_the_file(load_text: Load) -> None:
    pipeline = load_text(GROUP + '[dead_letters]\nstream = "dead"\n')
    assert pipeline.source["consumerName"] == "p"
    assert pipeline.source["deadLetterStream"] == "dead"
    assert pipeline.dead_letters is None, "nothing is parsed, so no query writes dead letters"


def test_mode_group_keeps_no_state(load_text: Load) -> None:
    text = GROUP + '[dead_letters]\nstream = "dead"\n'
    transform = '[[transform]]\nname = "t"\nwatermark = {column = "timestamp", delay = "1 day"}\n'
    sink = '[[sink]]\ntype = "stream"\nstream = "c"\nname = "c"\noutput_mode = "update"\n'
    advice = "mode 'group' keeps no state between batches; use mode 'offsets'"
    assert problems(load_text, text + transform + sink) == [
        f"16: transform[1].watermark: {advice}",
        f"21: sink[2].output_mode: {advice}",
    ]


def test_mode_group_counts_no_rows_that_are_not_as_expected(load_text: Load) -> None:
    parse = '[parse]\ncolumns.a = {type = "int", expect = "a > 0", otherwise = "warn"}\n'
    text = f'{GROUP}{parse}[dead_letters]\nstream = "dead"\n'
    transform = '[[transform]]\nname = "t"\nexpect = "a > 0"\n'
    advice = "mode 'group' counts no rows, so 'otherwise' can't be 'warn' there"
    assert [each.partition(": ")[2] for each in problems(load_text, text + transform)] == [
        f"parse.columns.a: {advice}",
        f"transform[1].expect: {advice}",
    ]


def test_a_pattern_must_not_match_what_is_written(load_text: Load) -> None:
    text = LEAST.replace('subscribe = "orders"', 'subscribe_pattern = "o*"')
    sink = '[[sink]]\ntype = "stream"\nname = "c"\nstream = "others"\n'
    (problem,) = problems(load_text, text + sink)
    assert problem.startswith("12: sink[2].stream: is 'others', which the source reads")
    elsewhere = f'{sink}url = "redis://elsewhere"\n'
    assert load_text(text + elsewhere).sinks[1].place == "others"


def test_what_is_no_toml_is_told_with_its_line(load_text: Load) -> None:
    assert problems(load_text, "a = 1\nb = \n") == ["2: not TOML: Invalid value"]
    assert problems(load_text, 'a = "') == [
        "1: not TOML: Unterminated string; the text has to end with the sign that it begins with, "
        "in the same line"
    ]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"can't read '.*none': No such file or directory"):
        load(tmp_path / "none")


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b"\xff")
    with pytest.raises(PipelineError, match="is not text in UTF-8"):
        load(tmp_path / "p.toml")


ELSEWHERE = """\
[source]
host = "redis.example"
db_num = 3
retries = 2
redis.username = "reader"
subscribe = "orders"

[[sink]]
type = "stream"
stream = "copy"
retries = 9
redis.username = "writer"

[checkpoint]
path = "checkpoint"
"""


def test_a_sink_is_on_the_database_of_the_source_with_its_own_settings(load_text: Load) -> None:
    pipeline = load_text(ELSEWHERE)
    assert pipeline.source["dbNum"] == "3"
    assert pipeline.sinks[0].options == {
        "host": "redis.example",
        "dbNum": "3",
        "retries": "9",
        "redis.username": "writer",
        "stream": "copy",
    }


def test_dead_letters_of_mode_group_go_to_the_stream_that_the_environment_names(
    load_text: Load,
) -> None:
    pipeline = load_text(GROUP + '[dead_letters]\nstream = "${DEAD}"\n', DEAD="orders-dead")
    assert pipeline.source["deadLetterStream"] == "orders-dead"


PAYLOAD = """\
[parse]
format = "{format}"
field = "f"
{keys}
[dead_letters]
stream = "d"
"""


def test_columns_may_come_of_a_schema_and_have_other_names_than_those_of_entries(
    load_text: Load, tmp_path: Path
) -> None:
    (tmp_path / "s.avsc").write_text(AVRO, encoding="utf-8")
    parse = PAYLOAD.format(format="avro", keys='schema_file = "s.avsc"')
    pipeline = load_text(LEAST + parse)
    assert pipeline.parse is not None
    assert pipeline.parse.columns == (Column("id_", "bigint", "id"), Column("a", "string", "a"))


def test_a_registry_is_named_without_its_credentials(load_text: Load) -> None:
    keys = 'registry = "https://key:s%2Fcret@host:8081/api/"\nmessage = "shop.Order"'
    parse = PAYLOAD.format(format="protobuf", keys=f'{keys}\ncolumns.a = "int"')
    pipeline = load_text(LEAST + parse)
    assert pipeline.parse is not None
    payload = pipeline.parse.payload
    assert payload is not None
    assert payload.registry == Registry("https://host:8081/api", "key", "s/cret", 10.0)
    assert "cret" not in repr(pipeline)
    assert "protobuf in the field 'f', schemas of https://host:8081/api" in describe(pipeline)
    assert "cret" not in describe(pipeline)


def test_columns_may_come_of_a_message(load_text: Load, tmp_path: Path) -> None:
    text = 'syntax = "proto3"; message M { int32 a = 1; string stream = 2; }'
    (tmp_path / "m.bin").write_bytes(compile_files({"m.proto": text}, "m.proto"))
    keys = 'descriptor_file = "m.bin"'
    assert problems(load_text, LEAST + PAYLOAD.format(format="protobuf", keys=keys)) == [
        "9: parse: 'message' is missing: the full name of the message, as shop.Order"
    ]
    wrong = f'{keys}\nmessage = "N"'
    assert problems(load_text, LEAST + PAYLOAD.format(format="protobuf", keys=wrong)) == [
        "13: parse.message: is 'N', which 'descriptor_file' lacks: it has no message 'N'"
    ]
    right = f'{keys}\nmessage = "M"'
    pipeline = load_text(LEAST + PAYLOAD.format(format="protobuf", keys=right))
    assert pipeline.parse is not None
    assert pipeline.parse.columns == (
        Column("a", "int", "a"),
        Column("stream_", "string", "stream"),
    )


def test_a_package_that_is_not_installed_is_named_with_its_extra(
    load_text: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "s.avsc").write_text(AVRO, encoding="utf-8")
    monkeypatch.setitem(sys.modules, "fastavro", None)
    keys = 'schema_file = "s.avsc"'
    (problem,) = problems(load_text, LEAST + PAYLOAD.format(format="avro", keys=keys))
    check_extra(problem, "10: parse.format: the format", "avro", "fastavro", ROOT)
