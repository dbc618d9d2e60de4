"""Replies of a server as tables, and what becomes of all that is none."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
import redis

from pyspark_redis_streams.errors import ServerError
from pyspark_redis_streams.ids import parse_id
from pyspark_redis_streams.read import replies, task
from pyspark_redis_streams.read.columns import default_schema
from pyspark_redis_streams.read.ranges import Partition, Range
from pyspark_redis_streams.read.replies import take_tables
from pyspark_redis_streams.read.tables import Table
from pyspark_redis_streams.servers import Servers
from pyspark_redis_streams.settings import read_settings
from pyspark_redis_streams.streams import Stream
from source_tests.driving import add, url_of
from source_tests.hostile import encoded
from source_tests.test_loss import numbers
from tests.support.process import PYTHON_PATH

PLAIN = [[b"%d-1" % number, [b"item", b"pen", b"qty", b"%d" % number]] for number in range(1, 500)]
MIXED = [[b"1-1", [b"a", b"1"]], [b"1-2", [b"b", b"2", b"c", b"3"]], [b"1-3", [b"d", b"4"]]]
FEWER = [[b"1-1", [b"a", b"1", b"b", b"1"]], [b"1-2", [b"a", b"1"]]]
BROKEN = [[b"1-1", [b"a", b"\r\n"]], [b"1-2", [b"a", b"*2\r\n"]]]

Answer = Callable[[socket.socket], None]


@pytest.fixture
def asked() -> Iterator[Callable[..., Any]]:
    """Asks a server whose connections answer XRANGE in turn with these functions."""
    listener = socket.create_server(("127.0.0.1", 0))
    waiting: list[Answer] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while data := connection.recv(65536):
                    if b"XRANGE" not in data:
                        connection.sendall(b"+OK\r\n" * data.count(b"*"))
                        continue
                    answer = waiting.pop(0)
                    answer(connection)
                    if answer is hang_up:
                        break

    threading.Thread(target=serve, daemon=True).start()
    url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
    given = {"url": url, "subscribe": "s", "redis.socket_timeout": "0.4", "retries": "1"}
    settings = read_settings(given, streaming=True)
    with Servers(settings.servers, take_tables) as servers:

        def ask(*answers: Answer) -> Any:
            waiting[:] = answers
            return servers.call(0, "XRANGE", "s", "-", "+")

        yield ask
    listener.close()


def sent(reply: Any, *ends: int, pause_s: float = 0.0) -> Answer:
    """An answer that comes in parts, with pauses between them."""
    raw = reply if isinstance(reply, bytes) else encoded(reply)

    def answer(connection: socket.socket) -> None:
        for begin, end in pairwise([0, *ends, len(raw)]):
            connection.sendall(raw[begin:end])
            time.sleep(pause_s)

    return answer


def hang_up(connection: socket.socket) -> None:
    """Sends half an answer, and ends the connection."""
    connection.sendall(encoded(PLAIN)[:500])


def test_entries_of_one_shape_are_a_table(asked: Callable[..., Any]) -> None:
    found = asked(sent(PLAIN))
    assert isinstance(found, Table)
    assert (len(found), found.last_id, found.names) == (499, b"499-1", (b"item", b"qty"))


@pytest.mark.parametrize("reply", [MIXED, FEWER, BROKEN, []])
@pytest.mark.parametrize("pause_s", [0.0, 0.02])
def test_all_else_is_what_redis_py_makes_of_it(
    asked: Callable[..., Any], reply: list[Any], pause_s: float
) -> None:
    ends = (1, 4, 5, len(encoded(reply)) - 3) if reply else ()
    assert asked(sent(reply, *ends, pause_s=pause_s)) == reply


@pytest.mark.parametrize("back", range(-3, 40))
def test_a_reply_may_come_in_parts(asked: Callable[..., Any], back: int) -> None:
    place = encoded(PLAIN).index(b"*2\r\n", 3000)
    assert isinstance(asked(sent(PLAIN, 2, 4, 30, 31, place - back, pause_s=0.005)), Table)


def test_a_part_that_could_be_all_is_not_waited_for_without_end(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "IDLE_S", 0.01)
    place = encoded(PLAIN).index(b"*2\r\n", 3000)
    assert asked(sent(PLAIN, place, pause_s=0.1)) == PLAIN


def test_a_whole_reply_of_fewer_lines_is_not_waited_for(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "IDLE_S", 1000.0)
    for reply in (FEWER, MIXED, [*PLAIN, *FEWER], [*PLAIN, [b"600-1", [b"item", b"pen"]]]):
        assert asked(sent(reply)) == reply


def test_an_error_is_one_that_redis_py_raises(asked: Callable[..., Any]) -> None:
    with pytest.raises(redis.ResponseError, match="WRONGTYPE no stream"):
        asked(sent(b"-WRONGTYPE no stream\r\n"))


def test_a_lost_connection_is_tried_again(asked: Callable[..., Any]) -> None:
    assert isinstance(asked(hang_up, sent(PLAIN)), Table)
    with pytest.raises(ServerError, match="can't be reached after 2 tries"):
        asked(hang_up, hang_up)


def test_a_server_that_says_nothing_or_stops_in_the_middle_is_given_up(
    asked: Callable[..., Any],
) -> None:
    for silent in (sent(b""), sent(encoded(PLAIN)[:501]), sent(encoded(MIXED)[:-1])):
        with pytest.raises(ServerError, match="can't be reached after 2 tries"):
            asked(silent, silent)


def test_a_stream_of_several_shapes_is_tried_less_and_less_often(
    asked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []
    usual = replies._Replies._table

    def noted(self: Any, source: Any) -> Any:
        tried[-1] = True
        return usual(self, source)

    monkeypatch.setattr(replies._Replies, "_table", noted)
    for _ in range(200):
        tried.append(False)
        assert asked(sent(FEWER)) == FEWER
    found = [number for number, was in enumerate(tried) if was]
    assert found == [0, 1, 3, 7, 15, 31, 63, 127, 191]
    assert found[-1] - found[-2] == replies.MOST_SKIPPED
    for _ in range(60):
        last = asked(sent(PLAIN))
    assert isinstance(last, Table)


# --- Both ways -----------------------------------------------------------------------------------


def read(client: redis.Redis, **options: str) -> list[dict[str, Any]]:
    given = {"url": url_of(client), "subscribe": "s", **options}
    settings = read_settings(given, streaming=True)
    info: Any = client.xinfo_stream("s")
    last, added = parse_id(info["last-generated-id"]), client.xlen("s")
    part = Partition([Range(Stream(0, b"s"), 0, last, 0, added, added)])
    found = task.read_partition(settings, default_schema("array"), part)
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.parametrize("options", [{}, {"fetchCount": "7"}, {"fetchBytes": "300"}])
def test_both_ways_read_the_same_of_a_stream_that_changes_its_shape(
    on_each: redis.Redis, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    fill = on_each.pipeline(transaction=False)
    for number in range(1, 700):
        fields: dict[Any, Any] = {"item": f"pen {number}", "qty": number}
        if number % 97 == 0:
            fields = {"item": b"\r\n$1\r\nx", b"\xff": b"\0" * (number % 5 * 30_000)}
        elif number > 400:
            fields["more"] = b"\xfe" * (number % 40)
        fill.xadd("s", fields, id=f"{number}-1")
    fill.execute()
    tables = read(on_each, **options)
    assert len(tables) == 699
    monkeypatch.setattr(task, "take_tables", lambda connection: None)
    assert read(on_each, **options) == tables


def test_a_task_that_reads_entries_of_one_shape_needs_no_pandas(server: redis.Redis) -> None:
    add(server, "s", *numbers(1, 300))
    program = f"""
import sys
from pyspark.sql.types import *
from pyspark_redis_streams.source import RedisStreamsSource
from pyspark_redis_streams.read.columns import default_schema
own = StructType([StructField(name, kind) for name, kind in
    dict(id=StringType(), f=DoubleType(), g=DecimalType(9, 2), ms=LongType()).items()])
for schema in (default_schema("map"), default_schema("array", True), own):
    options = {{"url": {url_of(server)!r}, "subscribe": "s", "idColumns": "true"}}
    reader = RedisStreamsSource(options).reader(schema)
    for partition in reader.partitions():
        rows = sum(batch.num_rows for batch in reader.read(partition))
        assert rows == 300, rows
assert "pandas" not in sys.modules
"""
    environment = {"PYTHONPATH": PYTHON_PATH}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def test_what_follows_the_last_entry_of_a_table_is_asked_for(server: redis.Redis) -> None:
    add(server, "s", *numbers(1, 300))
    assert parse_id(read(server, fetchCount="16")[-1]["id"]) == parse_id("300-0")
