"""Sample entries and cases: how they are read, and how rows are compared."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from penstock.testing import Penstock
from penstock_pipeline.errors import InvalidFile, PipelineError
from penstock_pipeline.samples.cases import (
    Case,
    Entry,
    chosen,
    default_file,
    last_entries,
    line_of,
    read_cases,
    read_lines,
    to_bytes,
)
from penstock_pipeline.samples.compare import canonical, compare
from pipeline_tests.plain.files import Command, pipeline, text, write

PARSE = """\
[parse.columns]
item = "string"
qty = "int"
[dead_letters]
stream = "dead"
"""


def lines(folder: Path, *given: str) -> Path:
    file = folder / "entries.jsonl"
    file.write_text("\n".join(given) + "\n", encoding="utf-8")
    return file


def test_entries_are_lines_of_json(tmp_path: Path) -> None:
    file = lines(
        tmp_path,
        '{"fields": {"a": "x", "n": 3, "flag": true, "j": {"k": [1]}}}',
        "",
        '{"stream": "t", "id": "7", "fields": [["a", "1"], ["a", {"_base64": "/w=="}]]}',
    )
    assert read_lines(file, "s") == [
        Entry("s", "1-0", ((b"a", b"x"), (b"n", b"3"), (b"flag", b"true"), (b"j", b'{"k": [1]}'))),
        Entry("t", "7-0", ((b"a", b"1"), (b"a", b"\xff"))),
    ]


def test_every_wrong_line_is_told(tmp_path: Path) -> None:
    file = lines(
        tmp_path,
        "no json",
        '{"field": {}}',
        '{"fields": {}}',
        '{"fields": 5}',
        '{"fields": {"a": 1}, "more": 2}',
        '{"fields": {"a": 1}, "id": "x"}',
        '{"fields": {"a": null}}',
    )
    with pytest.raises(InvalidFile) as caught:
        read_lines(file, "s")
    allowed = '{"stream": "orders", "id": "5-0", "fields": {"item": "ink"}}'
    assert str(caught.value).replace(f"{file}:", "").splitlines() == [
        f"1: not JSON; allowed: a line as {allowed}",
        f"2: no entry; allowed: a line as {allowed}",
        "3: has no field",
        "4: has fields that are neither an object nor a list of pairs",
        "5: has the unknown key 'more'; allowed: stream, id, fields",
        "6: has the ID 'x'; allowed: 5-0, or 1700000000000",
        "7: is None; allowed: text, numbers, times, lists and tables",
    ]


def test_a_stream_has_to_be_named_if_there_are_several(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="names no stream, and the pipeline reads several"):
        read_lines(lines(tmp_path, '{"fields": {"a": 1}}'), None)


@pytest.mark.parametrize(
    "fields",
    [((b"a", b"1"),), ((b"a", b"1"), (b"a", b"2")), ((b"\xff", b"\x00\xfe"),), ((b"", b""),)],
)
def test_an_entry_survives_being_written_and_read(
    tmp_path: Path, fields: tuple[tuple[bytes, bytes], ...]
) -> None:
    entry = Entry("s", "5-1", fields)
    assert read_lines(lines(tmp_path, line_of(entry)), None) == [entry]


def test_values_become_what_a_producer_writes() -> None:
    assert to_bytes(datetime(2026, 1, 2, 3, tzinfo=UTC)) == b"2026-01-02T03:00:00+00:00"
    assert to_bytes(date(2026, 1, 2)) == b"2026-01-02"
    assert to_bytes(1.5) == b"1.5"


# --- cases -------------------------------------------------------------------------------------

CASES = """\
[[case]]
name = "one"
[[case.entries.orders]]
item = "ink"
qty = 3
[[case.entries.orders]]
_id = "9-1"
item = "pen"
[case.expect]
entries = [{ item = "ink", qty = 3 }]
[[case.dead_letters]]
reason = "field 'qty' is missing"
[[case]]
name = "two"
entries_file = "entries.jsonl"
expect.entries = []
"""


def cases(folder: Path, content: str) -> list[Case]:
    file = folder / "p.test.toml"
    file.write_text(content, encoding="utf-8")
    return read_cases(file, pipeline(folder, "redis://h", more=PARSE))


def test_cases_hold_entries_and_what_is_expected(tmp_path: Path) -> None:
    lines(tmp_path, '{"fields": {"item": "x"}}')
    one, two = cases(tmp_path, CASES)
    assert (one.name, one.line) == ("one", 1)
    assert one.entries == (
        Entry("orders", "1-0", ((b"item", b"ink"), (b"qty", b"3"))),
        Entry("orders", "9-1", ((b"item", b"pen"),)),
    )
    assert one.expected == {"entries": ({"item": "ink", "qty": 3},)}
    assert one.dead_letters == ({"reason": "field 'qty' is missing"},)
    assert two.entries == (Entry("orders", "1-0", ((b"item", b"x"),)),)
    assert (two.expected, two.dead_letters) == ({"entries": ()}, None)


def test_what_is_wrong_in_cases_is_told_with_lines(tmp_path: Path) -> None:
    content = """\
[[case]]
name = "a"
entry = 5
[case.expect]
entrys = []
entries = 5
[[case]]
name = "b"
entries_file = "nowhere"
[[case.entries.orders]]
_id = "x"
[[case.dead_letters]]
because = "x"
"""
    with pytest.raises(InvalidFile) as caught:
        cases(tmp_path, content)
    found = str(caught.value).replace(f"{tmp_path}/p.test.toml:", "").splitlines()
    assert found == [
        "1: case[1]: expects nothing: give [case.expect] or [[case.dead_letters]]",
        "1: case[1]: has no entries: give [[case.entries.STREAM]] or 'entries_file'",
        "3: case[1].entry: unknown; did you mean 'entries'?",
        "5: case[1].expect.entrys: is no table of the pipeline; it has entries",
        "6: case[1].expect.entries: is no list of rows; write [{ column = value }], or [] for none",
        "7: case[2]: has no entries: give [[case.entries.STREAM]] or 'entries_file'",
        f"9: case[2].entries_file: can't read '{tmp_path}/nowhere': No such file or directory",
        "10: case[2].entries.orders[1]: has the ID 'x'; allowed: 5-0, or 1700000000000",
        "12: case[2].dead_letters[1]: 'because' is unknown; allowed: stream, id, reason",
    ]


def test_a_file_without_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="at least one"):
        cases(tmp_path, "")


def test_cases_are_chosen_by_name(tmp_path: Path) -> None:
    lines(tmp_path, '{"fields": {"item": "x"}}')
    both = cases(tmp_path, CASES)
    assert [case.name for case in chosen(both, ["two"])] == ["two"]
    assert chosen(both, None) == both
    with pytest.raises(PipelineError, match="there is no case 'three'; there are: one; two"):
        chosen(both, ["three"])


def test_cases_are_beside_the_pipeline(tmp_path: Path, command: Command) -> None:
    assert default_file(Path("a/orders.toml")) == Path("a/orders.test.toml")
    status, _, err = command("test", write(tmp_path, text("redis://h")))
    assert (status, err) == (1, f"can't read '{tmp_path}/p.test.toml': No such file or directory\n")


# --- comparing ---------------------------------------------------------------------------------


def test_equal_rows_in_any_order_are_no_difference() -> None:
    expected: list[dict[str, Any]] = [{"a": 2, "b": "x"}, {"a": 1}]
    found: list[dict[str, Any]] = [{"a": 1, "b": None, "c": 9}, {"a": 2, "b": "x", "c": 9}]
    assert not compare("t", expected, found, ["a", "b", "c"])


def test_rows_are_counted() -> None:
    difference = compare("t", [{"a": 1}, {"a": 2}], [{"a": 1}, {"a": 1}], ["a"])
    assert difference
    assert (difference.missing, difference.surplus, difference.equal) == ((("2",),), (("1",),), 1)


def test_rows_where_none_is_expected_are_shown_whole() -> None:
    difference = compare("t", [], [{"a": 1, "b": 2}], ["a", "b"])
    assert (difference.columns, difference.surplus) == (("a", "b"), (("1", "2"),))


def test_a_column_that_is_not_there_is_told() -> None:
    difference = compare("t", [{"z": 1}], [], ["a", "b"])
    assert difference
    assert difference.problem == "has no column 'z'; it has a, b"


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (3, 3.0),
        ("1.50", Decimal("1.5")),
        (1.5, Decimal("1.50")),
        (0.3, 0.1 + 0.2),
        ("2026-01-01T10:00:00Z", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        (datetime(2026, 1, 1, 10), datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ("2026-01-01T12:00:00+02:00", datetime(2026, 1, 1, 10, tzinfo=UTC)),
        ("2026-01-01", date(2026, 1, 1)),
        ("ink", bytearray(b"ink")),
        ({"_base64": "/w=="}, bytearray(b"\xff")),
        ({"a": [1, {"b": 2.0}]}, {"a": [1.0, {"b": 2, "c": None}]}),
        (None, None),
    ],
)
def test_values_of_a_file_equal_those_of_spark(expected: Any, found: Any) -> None:
    assert not compare("t", [{"a": expected}], [{"a": found}], ["a"])


@pytest.mark.parametrize(
    ("expected", "found"),
    [(True, "TRUE"), ("x", 1), (1, None), ("", None), (1, True), ("2026", "2027"), (1.0, 1.01)],
)
def test_other_values_differ(expected: Any, found: Any) -> None:
    assert compare("t", [{"a": expected}], [{"a": found}], ["a"])


def test_values_are_shown_as_people_write_them() -> None:
    assert canonical(datetime(2026, 1, 1, 10, 0, 0, 500_000, UTC)) == "2026-01-01T10:00:00.5Z"
    assert canonical(datetime(2026, 1, 1, 10, tzinfo=UTC)) == "2026-01-01T10:00:00Z"
    assert canonical(Decimal("100.00")) == "100"
    assert canonical(b"\xff") == "0xff"
    assert canonical(float("nan")) == "nan"


# --- entries of a server -----------------------------------------------------------------------


def test_the_last_entries_of_each_stream_are_taken(penstock: Penstock, tmp_path: Path) -> None:
    for number in range(1, 5):
        penstock.client.xadd("orders", {"n": number}, id=f"{number}-0")
    penstock.client.xadd("other", {"n": 9, "m": 8}, id="9-0")
    given = pipeline(tmp_path, penstock.url, 'subscribe_pattern = "o*"')
    assert last_entries(given, 2) == [
        Entry("orders", "3-0", ((b"n", b"3"),)),
        Entry("orders", "4-0", ((b"n", b"4"),)),
        Entry("other", "9-0", ((b"n", b"9"), (b"m", b"8"))),
    ]


def test_streams_without_entries_are_told(
    penstock: Penstock, tmp_path: Path, command: Command
) -> None:
    status, out, _ = command("preview", write(tmp_path, text(penstock.url)))
    assert status == 1
    assert out == "the streams of the source hold no entry: there is nothing to show\n"


def test_saved_entries_never_replace_a_file(
    penstock: Penstock, tmp_path: Path, command: Command
) -> None:
    penstock.client.xadd("orders", {"n": 1}, id="1-0")
    file, kept = write(tmp_path, text(penstock.url)), tmp_path / "kept"
    kept.write_text("mine")
    status, _, err = command("preview", file, "--save", kept)
    assert (status, err) == (1, f"'{kept}' is there already, and stays as it is\n")
    assert kept.read_text() == "mine"
