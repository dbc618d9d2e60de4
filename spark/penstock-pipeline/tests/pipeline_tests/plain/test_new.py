"""``penstock-pipeline new``: columns and types from samples, a file that is valid as it is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pexpect
import pytest
import redis

from penstock.testing import Penstock
from penstock_pipeline.file import load
from penstock_pipeline.model import Column
from penstock_pipeline.samples.cases import Entry
from penstock_pipeline.samples.propose import (
    Wanted,
    file_text,
    propose,
    type_of_texts,
    type_of_values,
)
from pipeline_tests.plain.files import Command
from tests.support.process import PYTHON_PATH
from tests.support.servers import PenstockThread


def entries(*given: dict[str, str]) -> list[Entry]:
    return [
        Entry("s", f"{n}-0", tuple((k.encode(), v.encode()) for k, v in fields.items()))
        for n, fields in enumerate(given, 1)
    ]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-20", "+3"], "bigint"),
        (["1", "2.5", "1e9"], "double"),
        (["007"], "string"),
        (["1", "1e999"], "string"),
        (["99999999999999999999"], "double"),
        (["true", "false"], "boolean"),
        (["1", "true"], "string"),
        (["2026-01-31"], "date"),
        (["2026-02-31"], "string"),
        (["2026-01-31T10:00:00Z", "2026-01-31 10:00:00.5+02:00"], "timestamp"),
        (["2026-01-31T10:00:00.123456000Z"], "timestamp"),
        (["2026-01-31T10:00:00.123456789Z"], "string"),
        (["2026-01-31", "2026-01-31T10:00:00Z"], "string"),
        (["a", ""], "string"),
        ([], "string"),
    ],
)
def test_the_type_of_a_field_is_the_narrowest_that_fits(texts: list[str], kind: str) -> None:
    assert type_of_texts([text.encode() for text in texts]) == kind


def test_what_is_no_text_is_binary() -> None:
    assert type_of_texts([b"a", b"\xff"]) == "binary"


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2], "bigint"),
        ([1, 2.5], "double"),
        ([2**63], "string"),
        ([True], "boolean"),
        ([1, "a"], "string"),
        (["2026-01-31T10:00:00Z"], "timestamp"),
        (["5"], "string"),
        ([[1], []], "array<bigint>"),
        ([[]], "array<string>"),
        ([{"x": 1}, {"y": "a"}], "struct<x:bigint,y:string>"),
        ([{"a b": 1}], "map<string,string>"),
        ([{"a": 1, "A": 2}], "map<string,string>"),
        ([], "string"),
    ],
)
def test_the_type_of_a_member_is_that_of_its_values(values: list[object], kind: str) -> None:
    assert type_of_values(values) == kind


def made(folder: Path, given: list[Entry], stream: str = "s", output: str = "lake") -> str:
    """The text of the file, which is valid."""
    text = file_text(Wanted("redis://h", stream, output), propose(given))
    file = folder / "made.toml"
    file.write_text(text, encoding="utf-8")
    load(file, {})
    return text


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("lake/x", ['path = "lake/x"']),
        ("s3a://bucket/x", ['path = "s3a://bucket/x"']),
        ("stream:a:b", ['type = "stream"', 'stream = "a:b"']),
        ("delta:lake/x", ['type = "delta"', 'path = "lake/x"']),
        ("delta:s3://bucket/x", ['type = "delta"', 'path = "s3://bucket/x"']),
    ],
)
def test_the_output_is_a_sink_of_its_kind(tmp_path: Path, output: str, lines: list[str]) -> None:
    text = made(tmp_path, entries({"a": "1"}), output=output)
    sink = text.partition("[[sink]]\n")[2].partition("\n\n")[0]
    assert sink.splitlines() == lines


@pytest.mark.parametrize("output", ["detla:lake/x", "delta:", "postgresql:shop", "iceberg:a.b"])
def test_another_output_is_refused_and_nothing_written(
    tmp_path: Path, command: Command, output: str
) -> None:
    with PenstockThread() as server:
        with redis.Redis(port=server.port) as client:
            client.xadd("s", {"a": "1"})
        file = tmp_path / "new.toml"
        given = ("--url", server.url, "--stream", "s", "--output", output)
        assert command("new", file, *given) == (
            1,
            "",
            f"--output is '{output}'; allowed: a folder for Parquet or its URL, delta:FOLDER, "
            "stream:NAME; write other sinks into the file, as docs/tables.md shows\n",
        )
    assert not file.exists()


def test_a_file_for_plain_fields(tmp_path: Path) -> None:
    given = entries(
        {"item": "ink", "qty": "3", "at": "1767225600000", "id": "x"},
        {"item": "pen", "qty": "", "at": "1767225600001"},
    )
    assert made(tmp_path, given, "orders:eu").splitlines() == [
        "# Proposed by 'penstock-pipeline new' from 2 entries. Check the types of the columns.",
        'name = "orders-eu"',
        "",
        "[source]",
        'url = "redis://h"',
        'subscribe = ["orders:eu"]',
        'starting_offsets = "earliest"',
        "",
        "[parse]",
        'nulls = [""]',
        "",
        "[parse.columns]",
        'item = "string"',
        'qty = "bigint"  # in 1 of 2',
        'at = "bigint"  # may be Unix time in milliseconds',
        'id_2 = { type = "string", from = "id" }  # in 1 of 2',
        "",
        "[dead_letters]",
        'stream = "orders:eu-dead"',
        "",
        "[[sink]]",
        'path = "lake"',
        "",
        "[checkpoint]",
        'path = "orders-eu-checkpoint"',
    ]


def test_a_field_with_json_in_every_entry_is_parsed(tmp_path: Path) -> None:
    body = json.dumps({"n": 1, "in": {"x": 1.5}})
    made(tmp_path, entries({"body": body, "from": "web"}, {"body": '{"n": 2}'}))
    pipeline = load(tmp_path / "made.toml", {})
    assert pipeline.parse is not None
    assert pipeline.parse.json == "body"
    assert pipeline.parse.columns == (
        Column("n", "bigint", "n"),
        Column("in", "struct<x:double>", "in"),
    )


def test_change_events_of_debezium_are_known_by_themselves(tmp_path: Path) -> None:
    def event(op: str, place: str, row: dict[str, object]) -> str:
        return json.dumps({"op": op, place: row, "source": {"lsn": 1}})

    given = entries(
        {'{"id":1}': event("c", "after", {"id": 1, "name": "Ann", "paid": 1.5})},
        {'{"id":1}': event("d", "before", {"id": 1, "name": None, "paid": None})},
        {'{"id":1}': "default"},
    )
    lines = made(tmp_path, given, "shop.public.customers").splitlines()
    begin = lines.index("[parse]")
    assert lines[begin : begin + 8] == [
        "[parse]",
        'format = "debezium"',
        "",
        "[parse.columns]",
        'id_2 = { type = "bigint", from = "id" }  # in 2 of 3',
        'name = "string"  # in 1 of 3',
        'paid = "double"  # in 1 of 3',
        'op = { type = "string", from = "__op" }',
    ]
    sink = lines.index("[[sink]]")
    assert lines[sink - 1] == (
        "# A table that follows the database's has keys, and delete_when = \"op = 'd'\"."
    )


@pytest.mark.parametrize("name", ['a "b" \\ c', "$x", "ä ö", "\n\t", "Stream", "FIELDS", "a.b"])
def test_whatever_fields_and_streams_are_called_the_file_is_valid(
    tmp_path: Path, name: str
) -> None:
    made(tmp_path, entries({name: "1", name.upper(): "2", "other": "3"}), name, f"stream:{name}2")
    parse = load(tmp_path / "made.toml", {}).parse
    assert parse is not None
    origins = [column.origin for column in parse.columns]
    assert origins == list(dict.fromkeys((name, name.upper(), "other")))


@pytest.mark.parametrize(
    ("output", "kind"), [("lake/x", "parquet"), ("stream:t", "stream"), ("delta:d", "delta")]
)
def test_rows_go_where_they_are_wanted(tmp_path: Path, output: str, kind: str) -> None:
    made(tmp_path, entries({"a": "1"}), output=output)
    (sink,) = load(tmp_path / "made.toml", {}).sinks
    assert sink.kind == kind


def test_a_script_gets_a_file_and_never_loses_one(
    penstock: Penstock, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    penstock.client.xadd("orders", {"item": "ink"})
    given = ("new", "--url", penstock.url, "--stream", "orders", "--output", "lake")
    assert command(*given) == (
        0,
        "orders.toml: 1 column from 1 entry of 'orders'\n"
        "Now look at its rows: penstock-pipeline preview orders.toml\n",
        "",
    )
    before = Path("orders.toml").read_text()
    status, _, err = command(*given)
    assert status == 1
    assert err == "'orders.toml' is there already, and stays as it is: name another file\n"
    assert Path("orders.toml").read_text() == before
    assert command(*given[:1], "other.toml", *given[1:])[0] == 0


def test_a_password_is_not_written_down(tmp_path: Path, command: Command) -> None:
    with PenstockThread(requirepass="hush") as server:
        url = f"redis://:hush@127.0.0.1:{server.port}"
        with redis.Redis.from_url(url) as client:
            client.xadd("s", {"a": 1})
        file = tmp_path / "s.toml"
        status, out, _ = command("new", file, "--url", url, "--stream", "s", "--output", "lake")
    assert status == 0
    assert "hush" not in file.read_text() + out
    assert 'url = "${REDIS_URL}"' in file.read_text()
    assert "reads it from the variable REDIS_URL" in out


def test_nothing_is_written_without_entries(
    penstock: Penstock, tmp_path: Path, command: Command
) -> None:
    file = tmp_path / "s.toml"
    status, _, err = command(
        "new", file, "--url", penstock.url, "--stream", "s", "--output", "lake"
    )
    assert (status, err) == (1, "stream 's' holds no entry: there is nothing to sample\n")
    assert not file.exists()


def test_without_a_terminal_everything_has_to_be_given(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open(os.devnull) as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        status, _, err = command("new", "--url", "redis://h")
    assert status == 2
    assert err == "give --url, --stream and --output, or run it on a terminal to be asked\n"


def test_a_person_is_asked_for_what_is_missing(penstock: Penstock, tmp_path: Path) -> None:
    penstock.client.xadd("orders", {"item": "ink"})
    penstock.client.xadd("refunds", {"item": "ink"})
    run = pexpect.spawn(
        sys.executable,
        ["-m", "penstock_pipeline", "new", "--output", "lake"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        encoding="utf-8",
        timeout=60,
    )
    run.expect_exact("Server [redis://127.0.0.1:6379]: ")
    run.sendline(penstock.url)
    run.expect_exact("  orders\r\n  refunds\r\nStream [orders]: ")
    run.sendline("refunds")
    run.expect_exact("penstock-pipeline preview refunds.toml")
    run.expect(pexpect.EOF)
    run.close()
    assert run.exitstatus == 0
    assert load(tmp_path / "refunds.toml", {}).source["subscribe"] == '["refunds"]'
