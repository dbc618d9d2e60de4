"""``penstock import`` of an RDB file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client.urls import parse
from penstock.migration.cli import parse_arguments
from penstock.migration.runner import MigrationOptions
from storage.rdb.write import raw
from tests.conformance.reference import RealServer
from tests.migration.running import Ended, migrate
from tests.migration.streams import RICH, Client, everything
from tests.storage.rdb.builders import a_stream, rdb_file, sample
from tests.support.redis_files import find_old_server
from tests.support.servers import PenstockThread


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """The file of a Redis 8.0 with keys of every type."""
    path = tmp_path / "dump.rdb"
    path.write_bytes(sample("redis-8.0"))
    return path


def load(path: Path, target: Client, *options: str) -> Ended:
    return migrate(str(path), "--to", f"redis://127.0.0.1:{target.port}", *options)


def test_streams_are_copied_and_the_rest_is_named(dump: Path, target: Client) -> None:
    ended = load(dump, target)
    assert (ended.status, ended.err) == (0, "")
    assert sorted(target.send("KEYS *")) == [b"stream"]
    assert target.send("XRANGE stream - +") == [
        [b"1-1", [b"name", b"tea", b"price", b"340"]],
        [b"3-1", [b"other", b"x" * 100]],
    ]
    assert target.send("XPENDING stream kitchen") == [1, b"1-1", b"1-1", [[b"ann", b"1"]]]
    assert ended.results == {"stream": "equal"}
    for line in (
        "left out: 4 hash keys (--values copies them): ",
        "left out: 3 set keys (--values copies them): ",
        "left out: 4 string keys (--strings copies them): ",
        "left out: 1 key of database 3 (--db 3 copies them)",
        "left out: libraries of functions (FUNCTION LOAD takes their code)",
    ):
        assert line in ended.out


def test_it_may_be_run_again(dump: Path, target: Client) -> None:
    load(dump, target)
    ended = load(dump, target)
    assert (ended.status, ended.results) == (0, {"stream": "equal: there already"})


def test_strings_and_all_databases_are_copied_if_that_is_said(dump: Path, target: Client) -> None:
    ended = load(dump, target, "--strings", "--db", "all")
    assert ended.status == 0
    assert ended.results == {"0: stream": "equal"}
    assert "4 strings: 4 there" in ended.out
    assert "1 string: 1 there" in ended.out
    assert target.send("GET number") == b"-70000"
    assert target.send("PEXPIRETIME expiring") == 4102444800000
    target.send("SELECT 3")
    assert target.send("GET elsewhere") == b"1"


def test_values_of_all_types_are_copied_if_that_is_said(dump: Path, target: Client) -> None:
    ended = load(dump, target, "--values", "--match", "hash*", "--match", "set", "--match", "list")
    assert "4 values: 4 there" in ended.out
    assert target.send("HGETALL hash-expiring") == [b"a", b"b", b"c", b"d"]
    assert target.send("HPEXPIRETIME hash-expiring FIELDS 2 a c") == [4102444800000, -1]
    assert target.send("TYPE set") == b"set"
    assert target.send("TYPE list") == b"list"


def test_only_keys_that_match_are_copied(dump: Path, target: Client) -> None:
    ended = load(dump, target, "--match", "number", "--match", "h*", "--strings", "--db", "0")
    assert sorted(target.send("KEYS *")) == [b"number"]
    assert "left out: 2 hash keys (--values copies them): " in ended.out
    assert "set keys" not in ended.out


def test_what_is_in_the_way_is_replaced_only_if_that_is_said(dump: Path, target: Client) -> None:
    target.script("SET stream x\nSET number 5\n")
    ended = load(dump, target, "--strings")
    assert ended.status == 1
    refusal = "the target has something else there; --replace puts the file's in its place"
    assert ended.results == {"stream": f"refused: {refusal}"}
    assert f"number: {refusal}" in ended.out
    assert target.send("GET stream") == b"x"
    ended = load(dump, target, "--strings", "--replace")
    assert (ended.status, ended.results) == (0, {"stream": "equal"})
    assert target.send("XLEN stream") == 2


def test_a_dry_run_changes_nothing(dump: Path, target: Client) -> None:
    ended = load(dump, target, "--dry-run", "--strings")
    assert (ended.status, ended.results) == (0, {"stream": "planned: would be copied"})
    assert "4 strings: 4 to be copied" in ended.out
    assert target.send("KEYS *") == []


def test_nothing_of_a_damaged_file_is_copied(dump: Path, target: Client) -> None:
    dump.write_bytes(sample("redis-8.0")[:-1])
    ended = load(dump, target)
    assert (ended.status, ended.out) == (1, "")
    place = len(sample("redis-8.0")) - 1
    assert ended.err == (
        f"penstock import: {dump}: damaged at byte {place}: it ends early; nothing was copied\n"
    )
    assert target.send("KEYS *") == []


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    ended = migrate(str(tmp_path / "no.rdb"))
    assert ended.status == 1
    assert ended.err == f"penstock import: {tmp_path}/no.rdb: No such file or directory\n"


def test_what_the_target_refuses_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    stream = a_stream(entries=0, last=(5, 5))
    path.write_bytes(rdb_file(stream[:1] + raw(b"s") + stream[1:]))
    with PenstockThread() as thread, Client(thread.port) as client:
        client.script("ACL SETUSER ann on >pw ~* +@all -restore\n")
        ended = migrate(str(path), "--to", f"redis://ann:pw@127.0.0.1:{thread.port}")
    assert ended.status == 1
    assert "User ann has no permissions to run the 'restore' command" in ended.results["s"]


def test_options_are_understood() -> None:
    local = parse("redis://127.0.0.1:6379/0")
    assert parse_arguments(["x.rdb"], "import") == MigrationOptions("x.rdb", local)
    args = "x.rdb --match a* --db 3 --replace --strings --dry-run --to redis://far"
    assert parse_arguments(args.split(), "import") == MigrationOptions(
        "x.rdb", parse("redis://far"), (b"a*",), (3,), True, True, dry_run=True
    )
    ended = migrate("x.rdb", "--to", "redis://far/1", "--db", "3")
    assert "a database may be named by --db or in a URL, not in both ways" in ended.err


@pytest.fixture
def old() -> Iterator[Client]:
    """A client of a Redis 7.0."""
    with RealServer(find_old_server()) as server, Client(server.port) as client:
        yield client


@pytest.mark.reference
def test_an_older_redis_may_be_the_target(dump: Path, old: Client) -> None:
    assert load(dump, old).results == {"stream": "equal"}
    assert old.send("XLEN stream") == 2


def test_what_penstock_saved_is_imported_as_it_was(tmp_path: Path, target: Client) -> None:
    settings = {"dir": tmp_path, "dbfilename": "own.rdb"}
    with PenstockThread(**settings) as thread, Client(thread.port) as source:
        source.script(RICH)
        source.send("SAVE")
        wanted = everything(source)
    assert load(tmp_path / "own.rdb", target).status == 0
    assert everything(target) == wanted


def test_a_cluster_is_no_target_of_a_file(tmp_path: Path) -> None:
    ended = migrate(str(tmp_path / "dump.rdb"), "--to", "redis+cluster://127.0.0.1:1")
    assert ended.status == 2
    assert "an RDB file can be copied to one server, not to a cluster" in ended.err
