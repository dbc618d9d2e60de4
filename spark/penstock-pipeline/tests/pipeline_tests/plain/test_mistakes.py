"""``validate`` finds mistakes that people make, and says what to do about each."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_pipeline.decode.patterns import check_pattern
from penstock_pipeline.statement import read_statement
from pipeline_tests.plain.files import Command, write

RIGHT = '''\
name = "orders"
[source]
url = "redis://127.0.0.1:1"
subscribe = "orders"
[parse.columns]
item = { type = "string", required = true }
qty = { type = "int", required = true }
at = "timestamp"
[dead_letters]
stream = "orders-dead"
[[transform]]
name = "hours"
watermark = { column = "at", delay = "10 minutes" }
sql = """
SELECT item, window.start AS hour, sum(qty) AS qty
FROM entries
GROUP BY item, window(at, '1 hour')
"""
[[sink]]
name = "hours"
path = "lake/hours"
partition_by = ["item"]
[checkpoint]
path = "checkpoint"
'''

MARK = 'watermark = { column = "at", delay = "10 minutes" }\n'
KEYS = 'type = "delta"\noutput_mode = "update"\nkeys = ["item", "hr"]'
TYPES = (
    "string, binary, boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), date, "
    "timestamp"
)

MISTAKES = [
    # Columns, tables and SQL.
    ("SELECT", "SELEC", "14: transform[1].sql: begins with 'SELEC'; allowed: one SELECT; did you "
        "mean 'SELECT'?"),
    ("FROM entries", "FROM orders", "14: transform[1].sql: reads the table 'orders', which is not "
        "there; tables before it: entries; another one of Spark's has a name with a dot"),
    ("sum(qty)", "sum(quantity)", "14: transform[1].sql: names the column 'quantity', which table "
        "'entries' does not have; it has stream, id, timestamp, item, qty, at; did you mean "
        "'qty'?"),
    ("GROUP BY item", "GROUP BY itm", "14: transform[1].sql: names the column 'itm', which table "
        "'entries' does not have; it has stream, id, timestamp, item, qty, at; did you mean "
        "'item'?"),
    (MARK, "", "11: transform[1]: has GROUP BY and no 'watermark', but sink 'hours' appends rows, "
        "of groups that are complete: give 'watermark' and GROUP BY a window of its column, or "
        "the sink output_mode = 'update'"),
    ('column = "at"', 'column = "ts"', "13: transform[1].watermark.column: names the column 'ts', "
        "which table 'entries' does not have; it has stream, id, timestamp, item, qty, at; did "
        "you mean 'at'?"),
    (MARK, MARK + 'deduplicate = { keys = ["nr"] }\n', "14: transform[1].deduplicate.keys: names "
        "the column 'nr', which table 'entries' does not have; it has stream, id, timestamp, "
        "item, qty, at"),
    ('["item"]', '["region"]', "22: sink[1].partition_by: names the column 'region', which table "
        "'hours' does not have; it has item, hour, qty"),
    ('partition_by = ["item"]', KEYS, "24: sink[1].keys: names the column 'hr', which table "
        "'hours' does not have; it has item, hour, qty; did you mean 'hour'?"),
    ('at = "timestamp"', 'at = { type = "timestamp", format = "YYYY-MM-DD" }',
        "8: parse.columns.at.format: is 'YYYY-MM-DD': Y is no letter with which Spark reads times: "
        "y is the year; write 'yyyy-MM-dd'"),
    # Types and kinds.
    ('"int"', '"varchar(20)"', f"7: parse.columns.qty: type is 'varchar(20)'; allowed: {TYPES}; "
        "did you mean 'string'?"),
    ('"int"', '"integr"', f"7: parse.columns.qty: type is 'integr'; allowed: {TYPES}; did you "
        "mean 'int'?"),
    ('"int"', '"decimal(3,5)"', f"7: parse.columns.qty: type is 'decimal(3,5)'; allowed: {TYPES}; "
        "in decimal(p,s) p counts all digits, up to 38, and s those behind the point"),
    ('["item"]', '"item"', "22: sink[1].partition_by: is 'item'; allowed: a list, as ['item']"),
    ("[[sink]]", "[sink]", "19: sink: is one table, of which there may be several: write "
        "[[sink]]"),
    # What is no TOML.
    ('"redis://127.0.0.1:1"', "redis://h", "3: not TOML: Invalid value; a text needs quotes: "
        '"redis://h"'),
    ('{ type = "int", required = true }', "{ required = true, type = int }",
        '7: not TOML: Invalid value; a text needs quotes: "int"'),
    ("required = true }\nqty", "required = True }\nqty", "6: not TOML: Invalid value; write true"),
    ('path = "checkpoint"', "path = 10 minutes", "24: not TOML: Expected newline or end of "
        'document after a statement; a text needs quotes: path = "10 minutes"'),
    ('name = "orders"', "name: orders", "1: not TOML: Expected '=' after a key in a key/value "
        'pair; write name = "orders", as this is no YAML'),
    ('qty = {', 'qty = "int"\nqty = {', "8: not TOML: Cannot overwrite a value; 'qty' is there "
        "twice in its table, of which one has to go"),
    ("[checkpoint]", "[source]\n[checkpoint]", "23: not TOML: Cannot declare ('source',) twice; a "
        "table is there once; for each [[source]] of several write two brackets"),
    ("[parse.columns]", "[parse.columns", "5: not TOML: Expected ']' at the end of a table "
        "declaration; write [parse.columns]"),
    ('subscribe = "orders"', 'subscribe = "orders', "4: not TOML: Illegal character '\\n'; the "
        "text has to end with the sign that it begins with, in the same line"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "said"), MISTAKES)
def test_a_mistake_is_found_with_what_to_do(
    tmp_path: Path, command: Command, right: str, wrong: str, said: str
) -> None:
    assert right in RIGHT
    file = write(tmp_path, RIGHT.replace(right, wrong, 1))
    assert command("validate", file) == (1, "", f"{file}:{said}\n")


NO_MISTAKES = [
    "SELECT e.item, i.price FROM entries AS e JOIN items i ON e.item = i.item",
    "WITH big (item) AS (SELECT item FROM entries) SELECT item FROM big",
    "SELECT extract(YEAR FROM at) AS year, trim(LEADING 'x' FROM item) AS item FROM entries",
    "SELECT * FROM entries WHERE item IS NOT DISTINCT FROM stream",
    "SELECT item, tag FROM entries LATERAL VIEW explode(split(item, ',')) AS tag",
    "SELECT filter(array(qty), x -> x > 0) AS f, timestampadd(HOUR, 1, at) AS l FROM entries",
    "SELECT item AS name, upper(name) AS big FROM entries -- FROM nothing",
    "/* FROM x */ SELECT 'FROM x', `it``em` FROM (SELECT item AS `it``em` FROM entries)",
    "SELECT * FROM range(3) JOIN entries ON id = item",
    "SELECT * FROM catalog.shop.items",
    "FROM entries |> WHERE qty > 1 |> SELECT item",
    "SELECT ITEM, cast(QTY AS string) q, current_date FROM Entries",
    "SELECT item FROM entries UNION ALL SELECT price FROM items",
]


@pytest.mark.parametrize("sql", NO_MISTAKES)
def test_sql_that_may_be_right_is_left_to_spark(tmp_path: Path, command: Command, sql: str) -> None:
    begin, _, rest = RIGHT.partition(MARK)
    table = '[[table]]\nname = "items"\npath = "items"\n'
    end = rest.partition('"""\n[[sink]]')[2].replace('partition_by = ["item"]', table)
    file = write(tmp_path, f"{begin}sql = '''{sql}'''\n[[sink]]{end}")
    assert command("validate", file) == (0, f"{file}: no problems\n", "")


@pytest.mark.parametrize(
    ("sql", "gives"),
    [
        ("SELECT a, b.c, f(d) AS e, * FROM t", ("a", "c", "e", "*")),
        ("SELECT DISTINCT `a b` FROM t", ("a b",)),
        ("SELECT sum(a) FROM t", None),
        ("SELECT a + b FROM t", None),
        ("SELECT a FROM t UNION SELECT b FROM t", None),
    ],
)
def test_the_columns_of_a_statement_are_known_or_not(
    sql: str, gives: tuple[str, ...] | None
) -> None:
    assert read_statement(sql).gives == gives


@pytest.mark.parametrize(
    "pattern",
    [
        "yyyy-MM-dd'T'HH:mm:ss[.SSSSSSSSS]XXX",
        "dd.MM.yy",
        "yyyyDDD",
        "HH:mm",
        "d MMM yyyy hh:mm a VV",
        "yyyyMMddHHmmssZ",
        "yyyy''MM",
    ],
)
def test_patterns_with_which_spark_reads_times_are_taken(pattern: str) -> None:
    assert check_pattern(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("yyyy-mm-dd", "m is the minute, M the month; write 'yyyy-MM-dd'"),
        ("yyyy-MM-DD", "D is the day of the year, d that of the month; write 'yyyy-MM-dd'"),
        ("yyyy-MM-ddTHH:mm", "T is no letter with which Spark reads times: write 'T' in quotes"),
        ("EEE dd", "E is no letter with which Spark reads times: days of the week are not read"),
        ("%Y-%m-%d", "Y is no letter with which Spark reads times: y is the year"),
        ("MMMMM", "MMMMM is too long: at most 4 M"),
        ("yyyy 'at", "a quote is not closed"),
        ("--", "it has no letter of a time"),
    ],
)
def test_what_spark_reads_otherwise_or_not_is_told(pattern: str, said: str) -> None:
    assert check_pattern(pattern) == said
