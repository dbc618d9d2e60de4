"""What a task writes, on each server."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pyarrow as pa
import pytest
import redis
from pyspark.sql.types import StringType, StructField, StructType

from pyspark_redis_streams.batches import BatchMark
from pyspark_redis_streams.errors import (
    CheckpointError,
    OptionError,
    RedisStreamsError,
    SchemaError,
    ServerError,
)
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.write.idempotence import note_batch
from pyspark_redis_streams.write.writer import Entry, Rows, TaskWrite
from source_tests.driving import contents, url_of


def write(
    client: redis.Redis, rows: Sequence[Entry], batch: str = "0", partition: int = 0, **more: str
) -> None:
    """One attempt of a task."""
    settings = write_settings({"url": url_of(client), **more})
    TaskWrite(settings, "query", partition, batch).write(rows)


def rows(count: int, key: bytes = b"s") -> list[Entry]:
    return [Entry(key, None, [b"n", b"%d" % number]) for number in range(count)]


def numbers(client: redis.Redis, key: str = "s") -> list[int]:
    return [int(fields[b"n"]) for _, fields in contents(client, key)]


def test_rows_are_added_in_their_order(on_each: redis.Redis) -> None:
    write(on_each, rows(25), writeCount="10")
    assert numbers(on_each) == list(range(25))


def test_names_and_values_may_be_any_bytes(on_each: redis.Redis) -> None:
    write(on_each, [Entry(b"\xff\r\n", "5-1", [b"\xfe", b"\x00", b"\xfe", b""])])
    reply = on_each.execute_command("XRANGE", b"\xff\r\n", "-", "+")
    assert reply == [(b"5-1", {b"\xfe": b""})], "redis-py shows the last of two values"


def test_writes_trim_the_stream(on_each: redis.Redis) -> None:
    write(on_each, rows(20), maxlen="5", approximate="false")
    assert numbers(on_each) == [15, 16, 17, 18, 19]
    last = on_each.xinfo_stream("s")["last-generated-id"].decode()
    write(on_each, rows(2), batch="1", minid=last, approximate="false")
    assert numbers(on_each) == [19, 0, 1]


def test_a_repeated_batch_adds_nothing(on_each: redis.Redis) -> None:
    write(on_each, rows(250))
    write(on_each, rows(250))
    assert numbers(on_each) == list(range(250))


def test_a_batch_that_broke_off_is_completed(on_each: redis.Redis) -> None:
    write(on_each, rows(130))
    write(on_each, rows(250))
    assert numbers(on_each) == list(range(250))


def test_other_batches_partitions_streams_and_queries_do_not_count_as_repeated(
    on_each: redis.Redis,
) -> None:
    write(on_each, rows(3))
    write(on_each, rows(3), partition=1)
    write(on_each, rows(3, b"t"))
    settings = write_settings({"url": url_of(on_each)})
    TaskWrite(settings, "other", 0, "0").write(rows(3))
    write(on_each, rows(3), batch="1")
    assert (on_each.xlen("s"), on_each.xlen("t")) == (12, 3)


def test_a_stream_remembers_for_as_long_as_the_option_says(server: redis.Redis) -> None:
    write(server, rows(1), idempotenceSeconds="500")
    assert server.xinfo_stream("s")["idmp-duration"] == 500
    write(server, rows(1), idempotenceSeconds="300")
    assert server.xinfo_stream("s")["idmp-duration"] == 500, "it is only ever raised"


def test_preparing_a_stream_leaves_no_trace(server: redis.Redis) -> None:
    write(server, rows(1))
    info = server.xinfo_stream("s")
    assert (info["groups"], info["length"], info["entries-added"]) == (0, 1, 1)


def test_beside_a_stream_with_idempotent_ids_is_noted_which_batch_it_gets(
    server: redis.Redis,
) -> None:
    given = write_settings({"url": url_of(server), "idempotenceSeconds": "500"})
    this = BatchMark(3, "0000000a o up to 5-0")
    for _ in range(2):
        note_batch(given, b"s", "query", this)
    (key,) = server.keys()
    assert (key, server.get(key)) == (b"s:written-by:query:{s}", b"3 0000000a o up to 5-0")
    assert 400 < server.ttl(key) <= 500
    for other in (BatchMark(3, "0000000b o up to 9-0"), BatchMark(2, this.end)):
        with pytest.raises(CheckpointError, match=r"^stream 's' has batch 3 \(o up to 5-0\) of"):
            note_batch(given, b"s", "query", other)
    note_batch(given, b"s", "query", BatchMark(4))
    assert server.get(key) == b"4 "


def test_tasks_that_begin_at_once_do_not_forget_each_others_rows(on_each: redis.Redis) -> None:
    """There are two attempts of each at the same time, and then another one."""
    for attempts in (2, 1):
        tasks = [
            threading.Thread(
                target=write, args=(on_each, rows(150)), kwargs={"partition": p, "writeCount": "7"}
            )
            for p in [*range(6)] * attempts
        ]
        for task in tasks:
            task.start()
        for task in tasks:
            task.join()
    assert sorted(numbers(on_each)) == sorted([*range(150)] * 6)


def test_idempotence_can_be_turned_off(on_each: redis.Redis) -> None:
    write(on_each, rows(2), idempotence="off")
    write(on_each, rows(2), idempotence="off")
    assert numbers(on_each) == [0, 1, 0, 1]
    assert on_each.keys() == [b"s"]
    assert on_each.xinfo_stream("s").get("idmp-duration", 100) == 100


def test_idempotence_can_be_required(on_each: redis.Redis) -> None:
    write(on_each, rows(2), idempotence="required")
    write(on_each, rows(2), idempotence="required")
    assert numbers(on_each) == [0, 1]


def test_rows_with_ids_of_their_own_are_added_once_on_every_server(on_each: redis.Redis) -> None:
    some = [Entry(b"s", f"{number}", [b"n", b"%d" % number]) for number in range(1, 30)]
    write(on_each, some[:20], writeCount="7")
    write(on_each, some, writeCount="7")
    assert numbers(on_each) == list(range(1, 30))
    assert on_each.xinfo_stream("s")["last-generated-id"] == b"29-0"


def test_a_repeated_task_passes_over_what_its_own_trimming_removed(on_each: redis.Redis) -> None:
    some = [Entry(b"s", f"{number}", [b"n", b"%d" % number]) for number in range(1, 30)]
    for _ in range(2):
        write(on_each, some, maxlen="10", approximate="false")
        assert numbers(on_each) == list(range(20, 30))
    with pytest.raises(RedisStreamsError, match="refuses the entry with ID '1'"):
        write(on_each, some)


@pytest.mark.parametrize("other", [[b"n", b"8"], [b"m", b"9"]])
def test_an_id_that_is_taken_by_another_entry_is_refused(
    on_each: redis.Redis, other: list[bytes]
) -> None:
    write(on_each, [Entry(b"s", "9-1", [b"n", b"9"])])
    with pytest.raises(RedisStreamsError, match="stream 's' refuses the entry with ID '9-1': The"):
        write(on_each, [Entry(b"s", "9-1", other)])
    with pytest.raises(RedisStreamsError, match="must come in the order of these, so write each"):
        write(on_each, [Entry(b"s", "5-1", other)])


def test_a_key_that_is_no_stream_is_named(on_each: redis.Redis) -> None:
    on_each.set("s", "text")
    with pytest.raises(ServerError, match=r"key 's' can't be written as a stream: WRONGTYPE"):
        write(on_each, rows(1))
    assert on_each.keys() == [b"s"]


def named(*numbers: int) -> list[Entry]:
    return [Entry(b"s", None, [b"n", b"%d" % n], b"orders/%d-0" % n) for n in numbers]


def test_rows_with_names_are_added_once_whatever_else_a_batch_holds(on_each: redis.Redis) -> None:
    write(on_each, named(*range(300)), partition=0)
    write(on_each, named(*range(150, 400, 2)), partition=1)
    assert sorted(numbers(on_each)) == [*range(300), *range(300, 400, 2)]


def test_idempotent_ids_remember_names_over_batches(server: redis.Redis) -> None:
    write(server, named(*range(300)))
    write(server, named(*range(150, 400, 2)), partition=1, batch="7")
    assert sorted(numbers(server)) == [*range(300), *range(300, 400, 2)]


def test_names_are_those_of_one_query(on_each: redis.Redis) -> None:
    write(on_each, named(1))
    settings = write_settings({"url": url_of(on_each)})
    TaskWrite(settings, "other", 0, "0").write(named(1))
    assert numbers(on_each) == [1, 1]


def test_two_rows_of_one_name_are_refused(on_each: redis.Redis) -> None:
    with pytest.raises(RedisStreamsError, match="two rows of a batch have 'orders/5-0' in their"):
        write(on_each, named(5, 6, 5))
    assert on_each.xlen("s") == 0


def test_more_rows_than_a_stream_remembers_are_refused(
    server: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark_redis_streams.write.idempotence.BUCKETS", 1)
    write(server, named(*range(100)))
    with pytest.raises(RedisStreamsError, match="more rows than the stream remembers"):
        write(server, named(*range(101)))


def test_columns_may_name_a_row_and_are_not_written() -> None:
    schema = StructType([StructField(name, StringType()) for name in ("stream", "id", "n")])
    given = {"stream": "t", "idempotenceColumns": "stream,id"}
    batch = pa.record_batch({"stream": ["s"], "id": ["5-1"], "n": ["x"]})
    (entry,) = Rows(write_settings(given), schema).entries(batch)
    assert entry == Entry(b"t", None, [b"n", b"x"], b"s/5-1")
    with pytest.raises(SchemaError, match="'idempotenceColumns' names 'no', and there is no such"):
        Rows(write_settings({**given, "idempotenceColumns": "no"}), schema)
    missing = pa.record_batch({"stream": ["s"], "id": pa.array([None], pa.string()), "n": ["x"]})
    with pytest.raises(RedisStreamsError, match="a row has null in the column 'id' of 'idempote"):
        [*Rows(write_settings(given), schema).entries(missing)]
    with pytest.raises(OptionError, match="option 'idempotenceColumns' is 'id'; allowed: not with"):
        write_settings({"idempotenceColumns": "id", "idempotence": "off"})
