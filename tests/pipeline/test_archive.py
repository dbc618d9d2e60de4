"""``archive`` and ``replay``: streams to Parquet and back, exactly, whatever happens between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.pipeline.archive import (
    StreamArchive,
    day_of,
    escape,
    keys,
    locked,
    read,
    to_table,
)
from tests.pipeline.commands import Command

DAY = 86_400_000


def archive(command: Command, url: str, folder: Path, *more: Any) -> list[str]:
    return command.out("archive", folder, "--url", url, *more)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def raw(client: redis.Redis, key: str | bytes) -> list[tuple[bytes, list[bytes]]]:
    """Entries with all their fields in order."""
    reply: Any = client.execute_command("XRANGE", key, "-", "+", NEVER_DECODE=True)
    return [(id, fields) for id, fields in reply]


@pytest.fixture
def client(server: redis.Redis) -> redis.Redis:
    """A client that leaves the replies to XRANGE alone."""
    server.response_callbacks.pop("XRANGE")
    return server


def add(client: redis.Redis, key: str | bytes, *entries: tuple[str, list[bytes]]) -> None:
    for id, fields in entries:
        client.execute_command("XADD", key, id, *fields)


def test_entries_go_to_files_by_stream_and_day(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "a b", (f"{DAY - 1}-0", [b"x", b"1"]), (f"{DAY}-0", [b"x", b"2"]))
    add(client, "a b", (f"{DAY}-1", [b"x", b"3"]))
    add(client, "c", ("5-5", [b"\xff", b"\x00", b"\xff", b"y"]))
    lines = archive(command, url, tmp_path, "--stream", "a b", "--stream", "c")
    assert lines == ["a b: 3 entries archived", "c: 1 entries archived"]
    assert names(tmp_path) == [
        f"stream=a%20b/day=1970-01-01/{DAY - 1}-0_{DAY - 1}-0.parquet",
        f"stream=a%20b/day=1970-01-02/{DAY}-0_{DAY}-1.parquet",
        "stream=c/day=1970-01-01/5-5_5-5.parquet",
    ]
    table = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
    rows = {(row["stream"], row["id"]): row for row in table.to_pylist()}
    assert rows["c", "5-5"]["fields"] == [
        {"name": b"\xff", "value": b"\x00"},
        {"name": b"\xff", "value": b"y"},
    ]
    assert rows["a b", f"{DAY}-1"]["day"] == "1970-01-02"
    assert rows["a b", f"{DAY}-1"]["timestamp"].isoformat() == "1970-01-02T00:00:00+00:00"


def test_it_goes_on_where_it_was(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", *((f"{n}-0", [b"n", b"%d" % n]) for n in range(1, 8)))
    assert archive(command, url, tmp_path, "--pattern", "s*", "--file-rows", "3") == [
        "s: 7 entries archived"
    ]
    assert archive(command, url, tmp_path, "--stream", "s") == ["s: 0 entries archived"]
    add(client, "s", ("8-0", [b"n", b"8"]))
    assert archive(command, url, tmp_path, "--stream", "s") == ["s: 1 entries archived"]
    folder = "stream=s/day=1970-01-01"
    assert names(tmp_path) == [
        f"{folder}/{name}.parquet" for name in ("1-0_3-0", "4-0_6-0", "7-0_7-0", "8-0_8-0")
    ]


def test_an_unfinished_file_is_written_again(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", ("1-0", [b"n", b"1"]))
    folder = tmp_path / "stream=s" / "day=1970-01-01"
    folder.mkdir(parents=True)
    (folder / "_unfinished").write_bytes(b"half")
    archive(command, url, tmp_path, "--stream", "s")
    (file,) = StreamArchive(tmp_path, b"s").files()
    assert list(read(file)) == [[(b"1-0", [b"n", b"1"])]]
    assert not (folder / "_unfinished").exists()


def test_entries_removed_before_they_were_archived_are_counted(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", *((f"{n}-0", [b"n", b"1"]) for n in range(1, 6)))
    client.xtrim("s", minid="3", approximate=False)
    assert archive(command, url, tmp_path, "--stream", "s") == ["s: 3 entries archived"]
    add(client, "s", *((f"{n}-0", [b"n", b"1"]) for n in range(6, 10)))
    client.xtrim("s", minid="8", approximate=False)
    status, out, _ = command("archive", tmp_path, "--url", url, "--stream", "s")
    assert status == 1
    assert out.splitlines() == [
        "s: 2 entries archived",
        "s: 2 entries were removed before being archived",
    ]
    assert archive(command, url, tmp_path, "--stream", "s") == ["s: 0 entries archived"]


def test_a_stream_that_was_deleted_is_not_mixed_with_the_new_one(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", ("9-0", [b"n", b"1"]))
    archive(command, url, tmp_path, "--stream", "s")
    client.delete("s")
    add(client, "s", ("5-0", [b"n", b"1"]))
    assert command.error("archive", tmp_path, "--url", url, "--stream", "s") == (
        "stream 's' ends at 5-0, but is archived up to 9-0: it was deleted meanwhile; archive the "
        "new one into another folder"
    )


def test_what_is_archived_is_trimmed(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", *((f"{n}-0", [b"n", b"1"]) for n in range(1, 6)))
    lines = archive(command, url, tmp_path, "--stream", "s", "--trim")
    assert lines == ["s: 5 entries archived", "s: 5 trimmed"]
    assert client.xlen("s") == 0
    assert archive(command, url, tmp_path, "--stream", "s", "--trim")[1] == "s: 0 trimmed"
    message = command.error("archive", tmp_path, "--url", url, "--stream", "none", "--trim")
    assert message.startswith("there is no stream 'none' on ")


def test_what_a_group_still_needs_is_not_trimmed(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", *((f"{n}-0", [b"n", b"1"]) for n in range(1, 10)))
    client.xgroup_create("s", "behind", "7-0")
    client.xgroup_create("s", "pending", "0")
    client.xreadgroup("pending", "c", {"s": ">"})
    client.xack("s", "pending", *(f"{n}-0" for n in range(1, 10) if n not in (4, 6)))
    assert archive(command, url, tmp_path, "--stream", "s", "--trim")[1] == "s: 3 trimmed"
    assert raw(client, "s")[0][0] == b"4-0"
    client.xack("s", "pending", "4-0", "6-0")
    assert archive(command, url, tmp_path, "--stream", "s", "--trim")[1] == "s: 4 trimmed"
    assert raw(client, "s")[0][0] == b"8-0"
    client.xgroup_setid("s", "behind", "9-0")
    assert archive(command, url, tmp_path, "--stream", "s", "--trim")[1] == "s: 2 trimmed"


def test_a_name_that_is_too_long_for_a_folder_is_told(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s" * 300, ("1-0", [b"n", b"1"]))
    message = command.error("archive", tmp_path, "--url", url, "--stream", "s" * 300)
    assert message.startswith("[Errno 36] File name too long: ")


def test_two_archives_at_once_are_refused(
    command: Command, server: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(server, "s", ("1-0", [b"n", b"1"]))
    with locked(tmp_path):
        message = command.error("archive", tmp_path, "--url", url, "--stream", "s")
    assert message == f"'{tmp_path}' is being written by another process"


def test_an_archive_takes_streams_from_a_pipeline_file(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s1", ("1-0", [b"n", b"1"]))
    file = tmp_path / "p.toml"
    file.write_text(
        f'[source]\nurl = "{url}"\nsubscribe_pattern = "s*"\n'
        '[[sink]]\ntype = "console"\n[checkpoint]\npath = "c"\n'
    )
    lines = command.out("archive", tmp_path / "archive", "--file", file)
    assert lines == ["s1: 1 entries archived"]


def test_a_replay_gives_the_same_stream(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    entries = [(f"{n * DAY}-{n}", [b"n", b"%d" % n, b"n", b"\xff"]) for n in range(1, 30)]
    add(client, "s", *entries)
    archive(command, url, tmp_path, "--stream", "s", "--file-rows", "4")
    lines = command.out("replay", tmp_path, "--url", url, "--stream", "s", "--to", "t")
    assert lines == ["t: 29 entries added, 0 were there"]
    assert raw(client, "t") == raw(client, "s")
    lines = command.out("replay", tmp_path, "--url", url, "--stream", "s")
    assert lines == ["s: 0 entries added, 29 were there"]


def test_a_replay_goes_on_where_it_was_interrupted(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    entries = [(f"{n}-0", [b"n", b"%d" % n]) for n in range(1, 30)]
    add(client, "s", *entries)
    archive(command, url, tmp_path, "--stream", "s")
    add(client, "t", *entries[:11])
    lines = command.out("replay", tmp_path, "--url", url, "--stream", "s", "--to", "t")
    assert lines == ["t: 18 entries added, 11 were there"]
    assert raw(client, "t") == raw(client, "s")


def test_a_replay_may_be_of_a_part(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", *((f"{n * DAY}-0", [b"n", b"1"]) for n in range(1, 9)))
    archive(command, url, tmp_path, "--stream", "s")
    base = ("replay", tmp_path, "--url", url, "--stream", "s")
    command.out(*base, "--to", "a", "--since", f"{3 * DAY}-0", "--until", f"{5 * DAY}-0")
    assert [id for id, _ in raw(client, "a")] == [b"%d-0" % (n * DAY) for n in (3, 4, 5)]
    times = ("--since", "1970-01-04T00:00:00Z", "--until", "1970-01-06T00:00:00Z")
    command.out(*base, "--to", "b", *times)
    assert [id for id, _ in raw(client, "b")] == [b"%d-0" % (n * DAY) for n in (3, 4)]


def test_a_replay_does_not_mix_with_other_entries(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", ("1-0", [b"n", b"1"]), ("2-0", [b"n", b"2"]))
    archive(command, url, tmp_path, "--stream", "s", "--trim")
    assert command.error("replay", tmp_path, "--url", url, "--stream", "s") == (
        "stream 's' ends at 2-0 and does not hold the archived entries from 1-0 to 2-0: replay "
        "into a stream that is not there yet (--to)"
    )


def test_a_replay_of_nothing_tells_what_there_is(
    command: Command, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "s", ("1-0", [b"n", b"1"]))
    archive(command, url, tmp_path, "--stream", "s")
    assert command.error("replay", tmp_path, "--url", url, "--stream", "t") == (
        f"'{tmp_path}' has no such entries of 't'; it holds: s"
    )
    assert command.error("replay", tmp_path, "--stream", "s", "--since", "noon") == (
        "--since is 'noon'; allowed: an ID as 1700000000000-0, Unix milliseconds, or an ISO 8601 "
        "time with its offset from UTC"
    )


def test_times_after_the_year_9999_have_no_day() -> None:
    assert day_of(253_402_300_799_999 << 64) == "9999-12-31"
    assert day_of(253_402_300_800_000 << 64) == "__HIVE_DEFAULT_PARTITION__"
    table = to_table([(b"18446744073709551615-1", [b"a", b"b"])])
    assert table.column("timestamp").to_pylist() == [None]


@given(st.binary(min_size=1, max_size=20))
def test_a_folder_names_its_stream(key: bytes) -> None:
    name = escape(key)
    assert "/" not in name
    assert "\0" not in name


KEYS = st.one_of(st.text(min_size=1, max_size=8).map(str.encode), st.binary(min_size=1, max_size=8))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(KEYS, min_size=1, max_size=4))
def test_the_streams_of_an_archive_are_found_again(
    tmp_path_factory: pytest.TempPathFactory, found: set[bytes]
) -> None:
    root = tmp_path_factory.mktemp("archive")
    for key in found:
        StreamArchive(root, key).write([(b"1-1", [b"a", b"b"])], 1)
    assert keys(root) == sorted(found)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.binary(max_size=6), min_size=2, max_size=6).filter(lambda f: len(f) % 2 == 0),
        min_size=1,
        max_size=8,
    )
)
def test_entries_come_back_exactly(
    tmp_path_factory: pytest.TempPathFactory, fields: list[list[bytes]]
) -> None:
    archived = StreamArchive(tmp_path_factory.mktemp("archive"), b"s")
    entries = [(b"%d-1" % number, each) for number, each in enumerate(fields, 1)]
    file = archived.write(entries, 77)
    assert [entry for page in read(file) for entry in page] == entries
    assert archived.position() == (len(entries) << 64 | 1, 77)
    assert pq.read_metadata(file.path).num_rows == len(entries)
