"""The sampler: what it finds, in which order, and what it remembers."""

from __future__ import annotations

import asyncio
import io

import pytest

from server.runtime.clockwork import Slice
from server.runtime.log import Log
from server.web.page import sampling
from server.web.page.group_screen import consumer_of
from server.web.page.sampling import Row, Sampler, in_trouble, lag_of, ordered
from server.web.page.traces import COLUMNS, CONSUMER, TIERS, History, StreamTrace, Window
from server.web.survey import STEP_NS, stream_at
from storage.engine.stream import Stream
from tests.support.direct import START_MS, Direct, DirectClient

MINUTE_MS = 60_000


def row(**values: object) -> Row:
    plain = Row(0, b"k", b"g", 0, 0, 0, None, 0, None, 0, (), False)
    return plain._replace(**values)  # type: ignore[arg-type]


def sampler_of(direct: Direct) -> Sampler:
    return Sampler(direct.server.services)


async def test_a_look_finds_groups_and_streams_without_any(
    direct: Direct, client: DirectClient
) -> None:
    client.send("XADD", "alone", "1-1", "f", "v")
    client.send("SET", "string", "x")
    for at in range(1, 5):
        client.send("XADD", "s", f"{START_MS - at * -1}-0", "f", "v")
    client.send("XGROUP", "CREATE", "s", "g", "0")
    client.send("XREADGROUP", "GROUP", "g", "c", "COUNT", 3, "STREAMS", "s", ">")
    client.send("XADD", "expired", "1-1", "f", "v")
    client.send("PEXPIRE", "expired", 10)
    direct.now_ms += 1000
    sampler = sampler_of(direct)
    await sampler.look()
    found = {each.name: each for each in sampler.rows}
    assert set(found) == {(0, b"alone", b""), (0, b"s", b"g")}
    assert found[0, b"alone", b""].group is None
    group = found[0, b"s", b"g"]
    assert group[3:11] == (4, 4, 1, START_MS + 4, 3, START_MS, 1, (0, 3, 0, 0, 0, 0, 0, 0, 0))
    assert group[11:] == (False, 0, 0, False, b"", 0, 0.0, 0, 0, 1, None)
    assert sampler.index == found
    assert (sampler.number, sampler.taken_ms) == (1, START_MS + 1000)


async def test_rows_are_put_in_order_whatever_their_number() -> None:
    rows = [row(key=b"%d" % (at * 7919 % 3000), lag=at * 7919 % 3000) for at in range(3000)]
    found = [each.lag async for each in ordered(rows, in_trouble(0), Slice(STEP_NS))]
    assert found == list(range(2999, -1, -1))


async def test_there_are_only_so_many_rows_and_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_ROWS", 3)
    monkeypatch.setattr(sampling, "MOST_TRACES", 2)
    direct = Direct()
    client = direct.client()
    for name in ("a", "b", "c"):
        client.send("XGROUP", "CREATE", name, "g", "0", "MKSTREAM")
        client.send("XGROUP", "CREATE", name, "h", "0")
    client.send("XADD", "d", "1-1", "f", "v")
    sampler = sampler_of(direct)
    await sampler.look()
    assert (len(sampler.rows), len(sampler.traces), sampler.left_out) == (3, 2, 4)


async def test_what_was_is_remembered_while_the_group_is_there(
    direct: Direct, client: DirectClient
) -> None:
    client.send("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    sampler = sampler_of(direct)
    for _ in range(3):
        client.send("XADD", "s", "*", "f", "v")
        await sampler.look()
        direct.now_ms += 10_000
    trace = sampler.traces[0, b"s", b"g"]
    assert list(trace.column("lag")) == [1, 2, 3]
    assert list(trace.column("added")) == [1, 2, 3]
    assert list(trace.column("times")) == [START_MS, START_MS + 10_000, START_MS + 20_000]
    client.send("DEL", "s")
    await sampler.look()
    assert sampler.traces == {}


def test_a_rate_is_that_of_the_last_minute() -> None:
    trace = History()
    assert trace.rate() is None
    for at in range(200):
        trace.note(*row(added=max(0, at - 190) * 50).values(at * 10_000))
    assert [len(each) for each in trace.tiers] == [TIERS[0].kept, 34, 4]
    assert trace.rate() == 5.0
    still = History()
    still.note(*row().values(5))
    still.note(*row().values(5))
    assert still.rate() is None


def test_a_peak_is_kept_in_its_bucket_however_old_it_is() -> None:
    trace = History()
    for at in range(3 * 60 * 60 // 2):
        trace.note(*row(lag=900 if at == 100 else at % 7).values(at * 2000))
    day = Window(trace, 24 * 60 * MINUTE_MS)
    assert (day.width, len(day), max(day.column("lag"))) == (10 * MINUTE_MS, 18, 900)
    assert day.column("lag")[0] == 900
    hour = Window(trace, 60 * MINUTE_MS)
    assert (hour.width, len(hour), max(hour.column("lag"))) == (MINUTE_MS, 61, 6)


def test_looking_more_often_does_not_shorten_what_is_kept() -> None:
    seldom, often = History(), History()
    for at in range(0, 20 * MINUTE_MS, 5000):
        seldom.note(*row(added=at).values(at))
    for at in range(0, 20 * MINUTE_MS, 500):
        often.note(*row(added=at).values(at))
    assert len(seldom) == len(often) == TIERS[0].kept
    assert [each // 5000 for each in often.column("times")] == [
        each // 5000 for each in seldom.column("times")
    ]


def test_a_bucket_has_the_same_borders_at_each_look() -> None:
    trace = History()
    drawn: dict[int, int] = {}
    for at in range(0, 10 * MINUTE_MS, 2000):
        trace.note(*row(lag=at * 7919 % 1000).values(at + 1234))
        window = Window(trace, 5 * MINUTE_MS)
        for time, lag in list(zip(window.column("times"), window.column("lag"), strict=True))[:-1]:
            assert drawn.setdefault(time // 5000, lag) == lag


def test_of_a_stream_what_all_groups_acknowledge_is_added_up() -> None:
    long, short, new = History(), History(), History()
    for at in range(4):
        long.note(*row(added=at * 10, acked=at * 5).values(at * 10_000))
        if at >= 2:
            short.note(*row(added=at * 10, acked=at * 10).values(at * 10_000))
    new.note(*row(added=30, acked=7).values(30_000))
    windows = [Window(each, 15 * MINUTE_MS) for each in (short, long, new)]
    stream = StreamTrace(windows)
    assert (len(stream), stream.rates("added")) == (4, [1.0, 1.0, 1.0])
    assert stream.rates("acked") == [0.5, 0.5, 1.5]
    assert (stream.rate("added"), stream.rate("acked")) == (1.0, 1.5)
    assert StreamTrace(windows[2:]).rate("acked") is None


async def test_the_past_of_consumers_is_kept_of_the_first_of_each_group(
    direct: Direct, client: DirectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.send("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    client.send("XADD", "alone", "1-1", "f", "v")
    for name in ("ann", "bob", "cleo"):
        client.send("XGROUP", "CREATECONSUMER", "s", "g", name)
    for at in range(1, 5):
        client.send("XADD", "s", f"{at}-1", "f", "v")
    monkeypatch.setattr(sampling, "MOST_CONSUMERS", 2)
    seconds = [0.0]
    sampler = Sampler(direct.server.services, lambda: seconds[0])
    await sampler.look()
    assert sampler.consumers == {}, "nobody has opened the page"
    sampler.watch()
    seconds[0] = sampling.REMEMBERED_FOR_S - 1
    await sampler.look()
    client.send("XREADGROUP", "GROUP", "g", "ann", "COUNT", 3, "STREAMS", "s", ">")
    client.send("XACK", "s", "g", "1-1")
    direct.now_ms += 5000
    await sampler.look()
    group = (0, b"s", b"g")
    assert set(sampler.consumers) == {(group, b"ann"), (group, b"bob")}
    columns = [list(sampler.consumers[group, b"ann"].column(name)) for name in CONSUMER]
    assert columns == [[direct.now_ms - 5000, direct.now_ms], [0, 3], [0, 1], [0, 2]]
    monkeypatch.setattr(sampling, "MOST_TRACES", 1)
    await sampler.look()
    assert len(sampler.consumers) == 1
    client.send("XGROUP", "DELCONSUMER", "s", "g", "ann")
    await sampler.look()
    assert set(sampler.consumers) == {(group, b"bob")}
    seconds[0] += 1
    await sampler.look()
    assert sampler.consumers == {}


@pytest.mark.parametrize(
    ("lags", "grows"),
    [
        ([at * 30 for at in range(13)], 3.0),
        ([at * 30 for at in range(12)], 0.0),
        (list(range(13)), 0.0),
        ([*range(0, 360, 30), 5], 0.0),
        ([0, 30, 60, 90, 90, 90, 90, 210, 240, 270, 300, 330, 360], 0.0),
        ([], 0.0),
    ],
)  # fmt: skip
def test_a_lag_that_grows_for_two_minutes_is_told(lags: list[int], grows: float) -> None:
    trace = History()
    for at, lag in enumerate(lags):
        trace.note(*row(lag=lag).values(at * 10_000))
    assert trace.growth() == grows


async def test_policies_and_what_is_kept_back_are_in_the_row_and_in_the_past(
    direct: Direct, client: DirectClient
) -> None:
    client.send("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    words = ("delay-field", "at", "paused", "no", "dead-letter", "d", "max-deliveries", 3)
    client.send("PENSTOCK", "POLICY", "SET", "s", "GROUP", "g", *words)
    client.send("XADD", "s", "1-1", "at", direct.now_ms + 60_000)
    client.send("XADD", "s", "1-2", "f", "v")
    client.send("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    sampler = sampler_of(direct)
    await sampler.look()
    found = sampler.index[0, b"s", b"g"]
    assert (found.pending, found.kept, found.target, found.tries) == (1, 1, b"d", 3)
    client.send("XACK", "s", "g", "1-2")
    client.send("PENSTOCK", "POLICY", "SET", "s", "GROUP", "g", "paused", "yes")
    direct.now_ms += 10_000
    await sampler.look()
    assert sampler.index[0, b"s", b"g"].state(direct.now_ms) == "paused"
    for trace in (sampler.traces[0, b"s", b"g"], sampler.whole):
        assert [list(trace.column(name)) for name in ("acked", "pending", "kept")] == [
            [0, 1], [1, 0], [1, 1],
        ]  # fmt: skip
        assert Window(trace, 15 * MINUTE_MS).rates("acked") == [0.1]


async def test_what_all_streams_are_together_is_remembered(
    direct: Direct, client: DirectClient
) -> None:
    client.send("XADD", "s", "1-1", "f", "v")
    for name in ("g", "h"):
        client.send("XGROUP", "CREATE", "s", name, "0")
    client.send("XADD", "d", "1-1", "dead-letter-stream", "s", "dead-letter-reason", "r", "f", "v")
    client.send("XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">")
    sampler = sampler_of(direct)
    direct.now_ms += 500
    await sampler.look()
    assert sampler.letters == {(0, b"d"): 1}
    last = [sampler.whole.column(name)[-1] for name in COLUMNS]
    assert last == [direct.now_ms, 2, 0, 1, 1, 0, 500, 1]


async def test_lag_that_counters_cannot_tell_is_counted(
    direct: Direct, client: DirectClient
) -> None:
    client.send("CONFIG", "SET", "stream-node-max-entries", 2)
    for at in range(1, 1501):
        client.send("XADD", "s", f"{at}-0", "f", "v")
    client.send("XGROUP", "CREATE", "s", "g", "100-0")
    client.send("XDEL", "s", "700-0")
    stream = stream_at(direct.server.state.keyspace.databases[0], b"s", direct.now_ms)
    assert stream is not None
    assert stream.lag(stream.groups[b"g"]) is None
    assert await lag_of(stream, stream.groups[b"g"], Slice(STEP_NS, lambda: 0)) == 1399


def test_only_streams_that_are_there_are_seen(direct: Direct, client: DirectClient) -> None:
    client.send("SET", "string", "x")
    client.send("XADD", "s", "1-1", "f", "v")
    client.send("PEXPIRE", "s", 5)
    database = direct.server.state.keyspace.databases[0]
    assert stream_at(database, b"string", direct.now_ms) is None
    assert stream_at(database, b"nothing", direct.now_ms) is None
    assert isinstance(stream_at(database, b"s", direct.now_ms + 5), Stream)
    assert stream_at(database, b"s", direct.now_ms + 6) is None


def test_as_whom_a_reader_waits(direct: Direct) -> None:
    direct.client().send("XGROUP", "CREATE", "s", "group", "0", "MKSTREAM")
    for name, words in (
        ("c", ("GROUP", "group", "c", "BLOCK", 0)),
        ("group", ("BLOCK", 0, "group", "group", "group")),
    ):
        client = direct.client()
        client.send("XREADGROUP", *words, "STREAMS", "s", ">")
        waiter = client.session.waiter
        assert waiter is not None
        assert consumer_of(waiter) == name.encode()
    client = direct.client()
    client.send("XREAD", "BLOCK", 0, "STREAMS", "s", "$")
    assert client.session.waiter is not None
    assert consumer_of(client.session.waiter) is None


# --- when ------------------------------------------------------------------------------------


async def looks(sampler: Sampler, number: int) -> None:
    """Waits until there have been so many looks."""
    while sampler.number < number:
        await sampler.next.wait()


async def test_looks_come_sooner_while_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WATCHED_S", 0.0)
    sampler = sampler_of(Direct())
    sampler.start()
    async with asyncio.timeout(10):
        await looks(sampler, 1)
        await asyncio.sleep(0)
        assert not sampler._is_watched()
        sampler.watch()
        assert sampler._is_watched()
        sampler.watch()
        await looks(sampler, 3)
    following = sampler.next
    await sampler.stop()
    assert following.is_set()
    assert sampler.closing


async def test_looks_go_on_while_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "WATCHED_S", 0.0)
    monkeypatch.setattr(sampling, "IDLE_S", 0.0)
    sampler = sampler_of(Direct())
    sampler.start()
    async with asyncio.timeout(10):
        await looks(sampler, 3)
    await sampler.stop()
    assert not sampler._is_watched()


@pytest.mark.logs("ZeroDivisionError")
async def test_a_look_that_fails_is_told_and_the_next_one_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.StringIO()
    sampler = sampler_of(Direct())
    sampler._server.state.log = Log(written)
    monkeypatch.setattr(sampling, "holds_letters", lambda stream: 1 // 0)
    sampler._server.state.keyspace.databases[0].make_stream(b"s")
    await sampler._try()
    assert sampler.number == 0
    told = " # Unexpected error: the page could not look at all streams: ZeroDivisionError"
    assert told in written.getvalue()
    monkeypatch.undo()
    await sampler._try()
    assert sampler.number == 1


async def test_nobody_looks_where_there_is_no_page() -> None:
    direct = Direct(web_page=False)
    sampler = sampler_of(direct)
    await sampler._try()
    assert sampler.number == 0
