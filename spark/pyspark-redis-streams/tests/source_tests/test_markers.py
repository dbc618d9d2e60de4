"""Markers of what a batch has written, on real servers that have no idempotent IDs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis.crc import key_slot

from pyspark_redis_streams.errors import CheckpointError, RedisStreamsError, ServerError
from pyspark_redis_streams.settings import write_settings
from pyspark_redis_streams.write import idempotence
from pyspark_redis_streams.write.idempotence import MOST_WORDS, marker_of
from pyspark_redis_streams.write.writer import Entry, TaskWrite
from source_tests.backends import Backend
from source_tests.conftest import PROGRAMS
from source_tests.driving import knows_idempotence, url_of
from source_tests.test_writer import named, numbers, rows, write

MARKER = b"s:written-by:query:{s}"
OTHERS = [name for name in PROGRAMS if name != "penstock"]


@pytest.fixture
def unaware(on_each: redis.Redis) -> redis.Redis:
    """A client of a server without idempotent IDs."""
    if knows_idempotence(url_of(on_each)):
        pytest.skip("this server has idempotent IDs")
    return on_each


def attempt(
    client: redis.Redis,
    entries: Sequence[Entry],
    batch: int = 0,
    partition: int = 0,
    parts: str = "",
    sent: int | None = None,
    end: str = "",
) -> None:
    """An attempt of a task, which breaks off when it has sent so many portions of three rows."""
    given = write_settings({"url": url_of(client), "writeCount": "3"})
    task = TaskWrite(given, "query", partition, str(batch), parts, end=end)

    def broken() -> Iterator[Entry]:
        yield from entries if sent is None else islice(entries, 3 * sent)
        if sent is not None:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        task.write(broken())


@settings(max_examples=60, deadline=None)
@given(
    key=st.one_of(st.binary(max_size=12), st.text(alphabet="a{}", max_size=8).map(str.encode)),
    query=st.text(max_size=12),
)
def test_a_marker_is_a_key_of_its_own_in_the_slot_of_its_stream(key: bytes, query: str) -> None:
    marker = marker_of(key, query)
    assert key_slot(marker) == key_slot(key)
    assert marker.startswith(key + b":written-by:")


def test_a_marker_has_the_batch_and_how_much_of_each_part_is_there(unaware: redis.Redis) -> None:
    write(unaware, [*rows(5), *rows(2, b"t")], batch="7", partition=1)
    write(unaware, rows(4), batch="7", partition=12)
    assert sorted(unaware.keys()) == [b"s", MARKER, b"t", b"t:written-by:query:{t}"]
    kept = {b"batch": b"7", b"parts": b"", b"end": b"", b"part 1": b"5", b"part 12": b"4"}
    assert unaware.hgetall(MARKER) == kept
    write(unaware, rows(1), batch="8")
    begun = {b"batch": b"8", b"parts": b"", b"end": b"", b"part 0": b"1"}
    assert unaware.hgetall(MARKER) == begun


def test_a_marker_stays_for_as_long_as_the_option_says(unaware: redis.Redis) -> None:
    write(unaware, rows(1))
    assert 86_000 < unaware.ttl(MARKER) <= 86_400
    write(unaware, rows(1), idempotenceSeconds="500")
    assert 400 < unaware.ttl(MARKER) <= 500


STEPS = st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 4))), max_size=8)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(STEPS, min_size=1, max_size=3), has_names=st.booleans())
def test_rows_are_there_once_and_in_their_order_whatever_attempts_there_are(
    unaware: redis.Redis, batches: list[list[tuple[int, int | None]]], has_names: bool
) -> None:
    """Attempts of three tasks break off anywhere; of the last batch too many come too late."""
    unaware.flushall()
    expected: list[int] = []
    for batch, steps in enumerate(batches):
        first = 1000 * batch
        tasks = [[*range(first + 100 * part, first + 100 * part + 10)] for part in range(3)]
        for part, sent in [*steps, (0, None), (1, None), (2, None), *steps]:
            entries = [Entry(b"s", None, [b"n", b"%d" % n]) for n in tasks[part]]
            attempt(unaware, named(*tasks[part]) if has_names else entries, batch, part, "", sent)
        expected += [n for task in tasks for n in task]
    found = numbers(unaware)
    assert sorted(found) == expected
    for part in range(3):
        of_part = [n for n in found if n % 1000 // 100 == part]
        assert of_part == sorted(of_part)


def test_an_attempt_that_was_overtaken_adds_nothing(unaware: redis.Redis) -> None:
    write(unaware, rows(2), batch="9")
    write(unaware, rows(3), batch="10")
    kept = unaware.hgetall(MARKER)
    text = (
        "stream 's' has batch 10 of this query, and this is batch 9: the checkpoint is an older "
        "copy, or another run went on meanwhile. Nothing was written there. "
    )
    with pytest.raises(CheckpointError, match=f"^{re.escape(text)}"):
        write(unaware, rows(5), batch="9")
    assert (numbers(unaware), unaware.hgetall(MARKER)) == ([0, 1, 0, 1, 2], kept)


FIFTH, NINTH = "0000000a o up to 5-0", "0000000b o up to 9-0"


def test_another_batch_in_the_place_of_one_that_is_there_adds_nothing(
    unaware: redis.Redis,
) -> None:
    for _ in range(2):
        attempt(unaware, rows(2), batch=3, end=FIFTH)
    text = (
        "stream 's' has batch 3 (o up to 5-0) of this query, and this is batch 3 (o up to 9-0): "
        "the checkpoint is an older copy"
    )
    with pytest.raises(CheckpointError, match=f"^{re.escape(text)}"):
        attempt(unaware, rows(3), batch=3, end=NINTH)
    assert numbers(unaware) == [0, 1]
    attempt(unaware, rows(1), batch=4, end=NINTH)
    assert numbers(unaware) == [0, 1, 0]


def test_a_marker_that_has_no_end_goes_on(unaware: redis.Redis) -> None:
    attempt(unaware, rows(2), batch=3)
    unaware.hdel(MARKER, "end")
    attempt(unaware, rows(3), batch=3, end=NINTH)
    assert numbers(unaware) == [0, 1, 2]
    attempt(unaware, rows(1), batch=4, end=NINTH)
    assert unaware.hget(MARKER, "end") == NINTH.encode()


def test_a_batch_that_comes_back_in_other_partitions_is_refused(unaware: redis.Redis) -> None:
    attempt(unaware, rows(9), batch=3, parts="2", sent=1)
    text = "batch 3, whose number of partitions was 2 then and is 3 now, so nobody knows which are"
    with pytest.raises(RedisStreamsError, match=text):
        attempt(unaware, rows(6), batch=3, parts="3")
    assert numbers(unaware) == [0, 1, 2]
    attempt(unaware, rows(9), batch=3, parts="2")
    attempt(unaware, rows(1), batch=4, parts="3")
    assert numbers(unaware) == [*range(9), 0], "the next batch may have as many as it likes"


def test_a_marker_that_is_lost_with_its_stream_is_begun_anew(unaware: redis.Redis) -> None:
    write(unaware, rows(5))
    unaware.flushall()
    write(unaware, rows(5))
    assert numbers(unaware) == [0, 1, 2, 3, 4]


def test_rows_with_ids_and_without_keep_their_order(unaware: redis.Redis) -> None:
    mixed = [
        *rows(2),
        Entry(b"s", "9000000000000-1", [b"n", b"2"]),
        *rows(1, b"t"),
        Entry(b"s", None, [b"n", b"3"]),
    ]
    for _ in range(2):
        write(unaware, mixed)
    assert numbers(unaware) == [0, 1, 2, 3]
    assert numbers(unaware, "t") == [0]


def test_much_is_added_in_several_steps(
    unaware: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotence, "MOST_BYTES", 25)
    before = unaware.info("commandstats").get("cmdstat_eval", {"calls": 0})["calls"]
    write(unaware, [Entry(b"s", None, [b"n", b"%010d" % n]) for n in range(10)])
    assert unaware.info("commandstats")["cmdstat_eval"]["calls"] - before == 4
    assert numbers(unaware) == [*range(10)]


def test_a_row_may_have_as_many_fields_as_a_script_passes_on(unaware: redis.Redis) -> None:
    most = MOST_WORDS // 2 - 2
    wide = Entry(b"s", None, [b"n", b"1"] * most)
    for _ in range(2):
        write(unaware, [*rows(1), wide], maxlen="1000000")
    assert numbers(unaware) == [0, 1]
    with pytest.raises(RedisStreamsError, match="stream 's': a row has more than 3,950 fields, wh"):
        write(unaware, [*rows(1), wide._replace(fields=[b"n", b"1"] * 4000)], batch="1")
    assert numbers(unaware) == [0, 1]


@pytest.fixture(params=OTHERS or [""])
def without_scripts(request: pytest.FixtureRequest) -> Iterator[redis.Redis]:
    """A client of a server that lets nobody run scripts."""
    program = PROGRAMS.get(request.param)
    if program is None:
        pytest.skip("no real server (see PENSTOCK_REFERENCE_SERVERS)")
    with Backend(program, "--rename-command", "EVAL", "") as backend, backend.client() as client:
        yield client


def test_a_server_without_scripts_gets_rows_again_unless_that_is_not_wanted(
    without_scripts: redis.Redis,
) -> None:
    for _ in range(2):
        write(without_scripts, rows(2))
    assert numbers(without_scripts) == [0, 1, 0, 1]
    with pytest.raises(ServerError, match=r"knows neither idempotent IDs \(XADD IDMP, Redis 8.6"):
        write(without_scripts, rows(2), idempotence="required")
    assert without_scripts.xlen("s") == 4


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("has_names", [False, True])
def test_rows_are_there_once_though_the_server_is_killed_while_they_are_written(
    name: str, has_names: bool
) -> None:
    """The task sends again what it has no reply to; then there is another attempt."""
    entries = named(*range(900)) if has_names else rows(900)
    kept = ("--appendonly", "yes", "--appendfsync", "always")
    with Backend(PROGRAMS[name], *kept) as backend, backend.client() as client:
        given = write_settings({"url": backend.url, "writeCount": "5", "retries": "30"})

        def disturbed() -> Iterator[Entry]:
            for number, entry in enumerate(entries):
                if number % 300 == 200:
                    # The next portions are on their way when it goes.
                    killer.submit(backend.kill).add_done_callback(lambda _: backend.restart())
                yield entry

        with ThreadPoolExecutor(1) as killer:
            TaskWrite(given, "query", 0, "0").write(disturbed())
        TaskWrite(given, "query", 0, "0").write(entries)
        assert numbers(client) == [*range(900)]
