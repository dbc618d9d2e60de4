"""The command line: help, plans, messages, and what is never shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline_tests.commands import Command, write
from pipeline_tests.conftest import ROOT
from pipeline_tests.test_load import LEAST, WHOLE
from tests.support.missing import check_extra
from tests.support.process import brings


def test_a_plan_tells_everything_and_nothing_secret(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "hush")
    file = write(tmp_path, WHOLE)
    assert "\n".join(command.out("plan", file)) == PLAN.replace("FOLDER", str(tmp_path))


PLAN = """\
Pipeline shop (FOLDER/p.toml)

Source
  server               host:7000/2
  subscribe            ["a,b", "c"]
  starting_offsets     {"a,b": "5-0", "c": "earliest"}
  group_id             g
  fail_on_data_loss    false
  max_offsets_per_trigger 500
  redis.client_name    me

Table entries: plain fields; no value: '', 'NA'; also stream, id, timestamp
  item                 string
  qty                  int, required
  at                   timestamp, from 'time', as yyyy/MM/dd

Table fresh
  rows of entries may be 1 hour late by 'at'
  rows of entries are one by item
  SELECT * FROM entries

Table sums
  SELECT item, sum(qty) FROM fresh GROUP BY item, window(at, '1 day')

Sink sums
  rows                 sums
  to                   parquet s3a://lake/sums
  partitioned by       item
  guarantee            each row once

Sink copy
  rows                 entries
  to                   stream copied of other:6379/0
  output mode          update
  guarantee            each row once

Sink base
  rows                 sums
  to                   table t of jdbc:postgresql://db/x
  guarantee            each row once

Dead letters
  rows                 entries that do not parse
  to                   stream bad of host:7000/2
  guarantee            each row once

A query for each: sums, copy, base, dead-letters
  checkpoint           FOLDER/check
  a batch every        5 minutes
  after a failure      7 attempts, 60 s apart
  metrics              FOLDER/m.jsonl"""


def test_a_plan_shows_no_password_wherever_it_stands(command: Command, tmp_path: Path) -> None:
    text = LEAST.replace("[source]\n", '[source]\n"redis.ssl_password" = "hush"\n')
    text += '[[sink]]\nname = "b"\ntype = "jdbc"\ntable = "t"\nurl = "jdbc:mysql://u:hush@h/db"\n'
    status, out, _ = command("plan", str(write(tmp_path, text)))
    assert status == 0
    assert "table t of jdbc:mysql:***@h/db" in out
    assert "hush" not in out


def test_a_plan_of_mode_group_has_one_query(command: Command, tmp_path: Path) -> None:
    text = LEAST.replace('"orders"', '"orders"\nmode = "group"\ngroup_id = "g"', 1)
    lines = command.out("plan", write(tmp_path, text))
    assert "One query writes all outputs of a batch, and then acknowledges it" in lines
    promise = "each row once, if no other consumer claims entries of a batch"
    assert f"  guarantee            {promise}" in lines
    assert "  server               127.0.0.1:6379/0" in lines


def test_a_good_file_is_valid(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path, LEAST)
    assert command.out("validate", file) == [f"{file}: no problems"]


def test_a_bad_file_is_told_with_lines(command: Command, tmp_path: Path) -> None:
    file = write(tmp_path, LEAST.replace("path", "pth"))
    assert command.error("validate", file).splitlines() == [
        f"{file}:4: sink[1]: 'path' is missing: the folder of the table",
        f"{file}:5: sink[1].pth: unknown; did you mean 'path'?",
        f"{file}:7: checkpoint: 'path' is missing: the folder where queries keep their positions "
        "and state",
        f"{file}:8: checkpoint.pth: unknown; did you mean 'path'?",
    ]


def test_a_file_is_checked_without_starting_java_or_rich(tmp_path: Path) -> None:
    code = (
        "import sys; from penstock_pipeline.cli import main; "
        f"assert main(['validate', {str(write(tmp_path, LEAST))!r}]) == 0; "
        "from pyspark import SparkContext; "
        "assert SparkContext._gateway is None; assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize(
    "module", ["penstock_pipeline.decode.frame", "penstock_pipeline.static_tables"]
)
def test_a_python_process_of_spark_starts_without_pandas(module: str) -> None:
    assert not brings(module, "pandas")


def without_pyspark(*args: str) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.modules['pyspark'] = None; from penstock_pipeline.cli import main; "
        f"sys.exit(main({list(args)!r}))"
    )
    return subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True
    )


@pytest.mark.parametrize("args", [["run"], ["validate", "--sql"]], ids=["run", "validate"])
def test_without_the_extra_it_is_named(tmp_path: Path, args: list[str]) -> None:
    done = without_pyspark(*args, str(write(tmp_path, LEAST)))
    assert done.returncode == 1
    check_extra(done.stderr, "penstock-pipeline", "spark", "pyspark", ROOT)


@pytest.mark.parametrize("name", ["validate", "plan"])
def test_a_file_is_checked_and_described_without_the_extra(tmp_path: Path, name: str) -> None:
    done = without_pyspark(name, str(write(tmp_path, LEAST)))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_line_that_makes_no_sense_is_told(command: Command) -> None:
    status, _, err = command("rum")
    assert status == 2
    assert "invalid choice: 'rum'" in err
    status, _, err = command("redrive", "redis://me:secret@h")
    assert status == 2
    assert "redis://***@h" in err
    assert "secret" not in err


def test_help_names_every_command(command: Command) -> None:
    status, out, _ = command("--help")
    assert status == 0
    for name in ("run", "validate", "plan", "redrive"):
        assert f"\n    {name} " in out
