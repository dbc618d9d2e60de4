"""How a run is doing, for others: the status file, and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from penstock.testing import Penstock
from penstock_pipeline import status_http
from penstock_pipeline.errors import Failure, PipelineError
from penstock_pipeline.report import FinishedBatch, ago, iso
from penstock_pipeline.status import (
    MOST_REASONS,
    LetterCounts,
    RunState,
    Watch,
    default_path,
    kind_of,
    read_status,
    state_of,
    watched,
    write_status,
)
from penstock_pipeline.status_http import (
    LONGEST_HEAD,
    MAX_CONNECTIONS,
    answer,
    is_own,
    scrape,
    served,
)
from pipeline_tests.plain.files import Command, pipeline, text, write
from pipeline_tests.plain.test_samples import PARSE

START = 1_800_000_000.0


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def batch(number: int, rows: int, lag: int = 0, query: str = "table") -> FinishedBatch:
    return FinishedBatch(
        time=iso(START),
        query=query,
        number=number,
        rows=rows,
        rows_per_second=100.0,
        lag=lag,
        lags={"orders": lag},
        duration_ms=1500,
        watermark=None,
        state_rows=7,
        late_rows=1,
        unexpected={"warn table: qty > 0": 2, "drop entries: qty > 0": 3},
    )


def failure(query: str | None = "table", retry: bool = True) -> Failure:
    return Failure(iso(START), query, 1, 3, "ServerError", retry, 5.0, "h:1/0 can't be <reached>")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def state(clock: Clock) -> RunState:
    """A run with two queries, of which one has done something."""
    state = RunState("p", ["table", "dead-letters"], lambda: {"field 'q' is not int": 3}, clock)
    clock.now += 10
    state.batch(batch(4, 300, lag=20))
    state.failure(failure())
    return state


def query(state: RunState) -> Mapping[str, Any]:
    found: Mapping[str, Any] = state.snapshot()["queries"]["table"]
    return found


# --- state -------------------------------------------------------------------------------------


def test_the_state_of_a_run_is_plain_data(state: RunState) -> None:
    snapshot = json.loads(json.dumps(state.snapshot()))
    assert snapshot["pipeline"] == "p"
    assert (snapshot["state"], snapshot["error"]) == ("running", None)
    assert (snapshot["started"], snapshot["updated"]) == (iso(START), iso(START + 10))
    assert snapshot["queries"]["table"] | {"last_failure": None} == {
        "batches": 1,
        "rows": 300,
        "late_rows": 1,
        "unexpected_rows": 5,
        "rate": 30.0,
        "batch": 4,
        "batch_at": iso(START + 10),
        "batch_rows": 300,
        "duration_ms": 1500,
        "rows_per_second": 100.0,
        "lag": 20,
        "lags": {"orders": 20},
        "watermark": None,
        "state_rows": 7,
        "failures": [["ServerError", True, 1]],
        "last_failure": None,
    }
    assert snapshot["queries"]["dead-letters"]["lag"] is None
    assert snapshot["dead_letters"] == {"field 'q' is not int": 3}


def test_a_rate_is_that_of_the_last_minute(state: RunState, clock: Clock) -> None:
    clock.now += 50
    state.batch(batch(5, 60))
    assert query(state)["rate"] == 6.0
    clock.now += 30
    assert query(state)["rate"] == 1.0
    clock.now += 60
    assert query(state)["rate"] == 0.0


def test_a_run_ends_well_or_with_an_error(state: RunState) -> None:
    state.end("no luck")
    assert (state.snapshot()["state"], state.snapshot()["error"]) == ("failed", "no luck")
    state.end(None)
    assert state.snapshot()["state"] == "ended"


# --- dead letters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("field 'q' is 'many', not int", "field 'q' is not int"),
        ("field 'q' is 'a', not b', not decimal(8,2)", "field 'q' is not decimal(8,2)"),
        (
            "field 'q' is 'x', not int; field 'r' is missing; field 's' is 'y', not date",
            "field 'q' is not int; field 'r' is missing; field 's' is not date",
        ),
        ("field 'j' is '{\n', not such JSON", "field 'j' is not such JSON"),
        ("delivered more than maxDeliveries times", "delivered more than maxDeliveries times"),
    ],
)
def test_a_reason_loses_the_values_in_it(reason: str, kind: str) -> None:
    assert kind_of(reason) == kind


def letter(server: Penstock, reason: str, **more: str) -> None:
    fields: dict[Any, Any] = {"dead-letter-stream": "s", **more}
    fields |= {"dead-letter-reason": reason, "a": "1"}
    server.client.xadd("dead", fields)


def test_letters_are_counted_from_the_beginning_of_the_run(
    penstock: Penstock, tmp_path: Path
) -> None:
    letter(penstock, "before")
    with closing(LetterCounts(pipeline(tmp_path, penstock.url, more=PARSE))) as letters:
        letters.poll()
        name = {"dead-letter-pipeline": "p"}
        for value in ("x", "y"):
            letter(penstock, f"field 'q' is '{value}', not int", **name)
        letter(penstock, "of another", **{"dead-letter-pipeline": "other"})
        letter(penstock, "delivered too often")
        penstock.client.xadd("dead", {"no": "letter"})
        letters.poll()
        assert letters.counts() == {"field 'q' is not int": 2, "delivered too often": 1}
        letters.poll()
        assert letters.counts() == {"field 'q' is not int": 2, "delivered too often": 1}


def test_there_are_never_more_reasons_than_a_limit(penstock: Penstock, tmp_path: Path) -> None:
    with closing(LetterCounts(pipeline(tmp_path, penstock.url, more=PARSE))) as letters:
        letters.poll()
        for number in range(MOST_REASONS + 5):
            letter(penstock, f"reason {number}")
        letters.poll()
        assert len(letters.counts()) == MOST_REASONS + 1
        assert letters.counts()["other reasons"] == 5


def test_a_server_that_is_away_counts_nothing(tmp_path: Path) -> None:
    with closing(LetterCounts(pipeline(tmp_path, "redis://127.0.0.1:1", more=PARSE))) as letters:
        letters.poll()
        assert letters.counts() == {}


# --- the status file ---------------------------------------------------------------------------


def test_the_status_is_beside_the_checkpoint(tmp_path: Path) -> None:
    found = pipeline(tmp_path, "redis://h")
    assert default_path(found) == tmp_path / "checkpoint/status.json"


def test_of_a_checkpoint_elsewhere_it_is_beside_the_file(tmp_path: Path) -> None:
    content = text("redis://h").replace('path = "checkpoint"', 'path = "s3a://b/c"')
    from penstock_pipeline.file import load

    found = load(write(tmp_path, content))
    assert default_path(found) == tmp_path / ".p.status.json"


def test_a_run_is_seen_while_it_runs_and_when_it_has_ended(
    penstock: Penstock, tmp_path: Path, command: Command
) -> None:
    file = write(tmp_path, text(penstock.url, more=PARSE))
    given = pipeline(tmp_path, penstock.url, more=PARSE)
    with watched(given, ["table"], Watch()) as state:
        state.batch(batch(0, 1234, lag=5))
        write_status(default_path(given), state.snapshot())
        status, out, err = command("status", file)
        assert (status, err) == (0, "")
        title, _, _, row = out.splitlines()
        assert re.fullmatch(
            rf"p: running for \d+ s, process {os.getpid()} on {socket.gethostname()}", title
        )
        assert row.split()[:5] == ["table", "1", "1,234", f"{1234:,.1f}", "5"]
    status, out, _ = command("status", file)
    assert status == 0
    assert re.match(r"p: ended \d+ s ago, begun ", out)
    status, out, _ = command("status", file, "--json")
    assert (status, json.loads(out)["state"]) == (0, "ended")


def test_a_run_that_failed_says_why(penstock: Penstock, tmp_path: Path, command: Command) -> None:
    file = write(tmp_path, text(penstock.url))

    def fail() -> None:
        with watched(pipeline(tmp_path, penstock.url), ["table"], Watch()) as state:
            state.failure(failure(retry=False))
            raise PipelineError("table: no luck")

    with pytest.raises(PipelineError, match="no luck"):
        fail()
    status, out, _ = command("status", file)
    assert status == 1
    assert re.match(r"p: failed \d+ s ago, begun \d+ s ago, process ", out)
    assert "  table: no luck" in out.splitlines()
    assert "last failure of table, " in out
    assert out.splitlines()[-1].endswith(": h:1/0 can't be <reached>")


def test_a_run_that_was_killed_is_told_to_be_dead(
    penstock: Penstock, tmp_path: Path, command: Command
) -> None:
    file = write(tmp_path, text(penstock.url))
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        check=True,
        capture_output=True,
        text=True,
    )
    snapshot = RunState("p", ["table"]).snapshot() | {"pid": int(ended.stdout)}
    write_status(tmp_path / "checkpoint/status.json", snapshot)
    status, out, _ = command("status", file)
    assert status == 1
    assert re.match(r"p: dead; process \d+ on \S+ gave its last sign of life \d+ s ago", out)


@pytest.mark.parametrize(
    ("change", "passed", "is_there", "expected"),
    [
        ({}, 5, True, "running"),
        ({}, 5, False, "dead"),
        ({}, 60, True, "silent"),
        ({"host": "elsewhere"}, 5, False, "running"),
        ({"host": "elsewhere"}, 60, True, "dead"),
        ({"state": "failed"}, 60, False, "failed"),
    ],
)
def test_whether_a_run_lives_is_seen_by_its_process_and_its_signs(
    change: dict[str, Any], passed: float, is_there: bool, expected: str
) -> None:
    status = RunState("p", ["q"], clock=lambda: START).snapshot() | {"host": "here"} | change
    assert state_of(status, START + passed, lambda pid: is_there, "here") == expected


def test_without_a_run_there_is_no_status(tmp_path: Path, command: Command) -> None:
    status, _, err = command("status", write(tmp_path, text("redis://h")))
    assert status == 1
    assert err.startswith(f"there is no '{tmp_path}/checkpoint/status.json': the pipeline has not")


@pytest.mark.parametrize("content", ["", "[]", '{"v": 2}'])
def test_another_file_is_no_status(tmp_path: Path, content: str) -> None:
    (tmp_path / "s").write_text(content)
    with pytest.raises(PipelineError, match="is no status file"):
        read_status(tmp_path / "s")


def test_a_status_that_can_t_be_written_does_not_stop_a_run(
    penstock: Penstock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with watched(pipeline(tmp_path, penstock.url), ["q"], Watch(tmp_path / "file/status")):
        pass
    assert "warning: can't write the status to " in capsys.readouterr().err


def test_ages_are_in_their_largest_unit() -> None:
    ages = [ago(iso(START), START + passed) for passed in (0, 119, 120, 7200, 172_800)]
    assert ages == ["0 s ago", "119 s ago", "2 min ago", "2 h ago", "2 days ago"]
    assert ago(None, START) == "-"


# --- HTTP --------------------------------------------------------------------------------------


def get(url: str, **headers: str) -> tuple[int, str, Mapping[str, str]]:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_series_are_those_of_the_state(state: RunState) -> None:
    with served(state.snapshot, "127.0.0.1", 0) as url:
        status, body, headers = get(f"{url}metrics")
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found = {
        (sample.name.removeprefix("penstock_pipeline_"), *sorted(sample.labels.items())): sample
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }
    run = ("pipeline", "p")
    of = (run, ("query", "table"))
    values = {key: sample.value for key, sample in found.items()}
    assert values["rows_total", *of] == 300
    assert values["batches_total", *of] == 1
    assert values["late_rows_total", *of] == 1
    assert values["unexpected_rows_total", *of] == 5
    assert values["lag_entries", *of] == 20
    assert values["stream_lag_entries", *of, ("stream", "orders")] == 20
    assert values["last_batch_timestamp_seconds", *of] == START + 10
    assert values["last_batch_duration_seconds", *of] == 1.5
    assert values["last_batch_rows_per_second", *of] == 100
    assert values["state_rows", *of] == 7
    assert values["start_timestamp_seconds", run] == START
    assert values["dead_letters_total", run, ("reason", "field 'q' is not int")] == 3
    error = (("error", "ServerError"), run, ("query", "table"), ("retry", "true"))
    assert values["failures_total", *error] == 1
    assert values["last_batch_timestamp_seconds", run, ("query", "dead-letters")] == 0


def test_what_stands_in_a_label_is_read_as_it_was(state: RunState) -> None:
    odd = 'a "b"\\n\\\nc'
    state.batch(batch(5, 1)._replace(lags={odd: 1, "\udcff": 2}))
    families = text_string_to_metric_families(scrape(state.snapshot()))
    (lags,) = [family for family in families if family.name.endswith("_stream_lag_entries")]
    assert [sample.labels["stream"] for sample in lags.samples] == [odd, "\udcff"]
    with served(state.snapshot, "127.0.0.1", 0) as url:
        assert 'stream="?"' in get(f"{url}metrics")[1]


def test_there_are_two_paths_to_ask_for(state: RunState) -> None:
    with served(state.snapshot, "127.0.0.1", 0) as url:
        assert get(f"{url}healthz?a=b")[:2] == (200, "ok\n")
        for path in ("", "static/page.css", "metrics/"):
            assert get(f"{url}{path}")[:2] == (404, "there are /metrics and /healthz\n")


@pytest.mark.parametrize(
    ("request_line", "expected"),
    [
        (b"HEAD /healthz HTTP/1.1", b"200 OK"),
        (b"POST /metrics HTTP/1.1", b"405 Method Not Allowed"),
        (b"GET http://evil.example/metrics HTTP/1.1", b"404 Not Found"),
        (b"GET", b"404 Not Found"),
        (b"\xff\x00", b"405 Method Not Allowed"),
    ],
)
def test_what_is_asked_otherwise_has_an_answer_too(
    state: RunState, request_line: bytes, expected: bytes
) -> None:
    reply = answer(request_line + b"\r\nHost: localhost", state.snapshot, [])
    head, _, body = reply.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + expected + b"\r\n")
    assert bool(body) == (b"HEAD" not in request_line)


@pytest.mark.parametrize("path", ["", "metrics", "healthz", "nothing"])
def test_nothing_is_answered_under_a_foreign_name(state: RunState, path: str) -> None:
    with served(state.snapshot, "127.0.0.1", 0) as url:
        for name in ("evil.example", "evil.example\\@localhost", ""):
            status, body, _ = get(f"{url}{path}", Host=name)
            assert (status, "--metrics-hosts" in body) == (403, True)
        for name in ("localhost:1", "pod"):
            assert get(f"{url}{path}", Host=name)[0] in (200, 404)
    with served(state.snapshot, "127.0.0.1", 0, "own.example Other.example") as url:
        assert get(f"{url}{path}", Host="other.EXAMPLE:9405")[0] in (200, 404)
        assert get(f"{url}{path}", Host="evil.example")[0] == 403


@pytest.mark.parametrize("hosts", [b"", b"Host: h\r\nHost: h", b"Host : h", b" Host: h"])
def test_a_request_has_one_name(state: RunState, hosts: bytes) -> None:
    head = b"GET /healthz HTTP/1.1\r\n" + hosts
    assert answer(head, state.snapshot, []).startswith(b"HTTP/1.1 403 ")
    assert answer(head, state.snapshot, ["*"]).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:1", "10.0.0.1", "[::1]:1", "[fe80::1%25eth0]", "localhost", "My_pod:"],
)
def test_no_stranger_can_make_such_a_name_lead_here(host: str) -> None:
    assert is_own(host, [])


@pytest.mark.parametrize(
    "host",
    [
        *("a.example", "A.EXAMPLE:1", "localhost.a.example", "10.0.0.1.a.example", ".", ":1"),
        *("b.example@localhost", "b.example#localhost", "localhost/", "localhost:1:1", "[::1"),
        *("[::1]b.example", " localhost", "localhost\n", "h\xe4user"),
    ],
)
def test_it_may_be_behind_such_a_name(host: str) -> None:
    assert not is_own(host, ["b.example"])


def connected(url: str) -> socket.socket:
    host, port = url.removeprefix("http://").rstrip("/").split(":")
    return socket.create_connection((host, int(port)), timeout=10)


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side closes it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_client_that_says_nothing_is_left(
    state: RunState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_http, "PATIENCE_S", 0.05)
    with served(state.snapshot, "127.0.0.1", 0) as url, connected(url) as slow:
        slow.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        assert is_closed(slow)


async def test_a_client_that_reads_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_http, "PATIENCE_S", 0.05)
    lost = asyncio.Event()

    class Noting(status_http._Connection):
        def connection_lost(self, error: Exception | None) -> None:
            super().connection_lost(error)
            lost.set()

    ours, theirs = socket.socketpair()
    with theirs:
        connection = Noting(lambda _: bytes(20_000_000), {})
        await asyncio.get_running_loop().connect_accepted_socket(lambda: connection, ours)
        theirs.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        await asyncio.wait_for(lost.wait(), 10)


def test_a_request_without_end_is_given_up(state: RunState) -> None:
    with served(state.snapshot, "127.0.0.1", 0) as url, connected(url) as endless:
        endless.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"a" * LONGEST_HEAD)
        assert is_closed(endless)


def test_one_more_than_there_may_be_closes_the_oldest(state: RunState) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(served(state.snapshot, "127.0.0.1", 0))
        threads = threading.active_count()
        idle = [stack.enter_context(connected(url)) for _ in range(MAX_CONNECTIONS)]
        assert get(f"{url}healthz")[:2] == (200, "ok\n")
        assert is_closed(idle[0])
        assert threading.active_count() == threads
        idle[1].sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\nGET /metrics")
        assert idle[1].makefile("rb").read().endswith(b"close\r\n\r\nok\n")


def test_a_port_that_is_taken_is_told(state: RunState) -> None:
    with (
        served(state.snapshot, "127.0.0.1", 0) as url,
        pytest.raises(
            PipelineError, match=r"can't listen on 127\.0\.0\.1, port .*: Address already"
        ),
        served(state.snapshot, "127.0.0.1", int(url.rstrip("/").rpartition(":")[2])),
    ):
        pass


@pytest.mark.parametrize("port", ["x", "-1", "65536"])
def test_what_is_no_port_is_refused(command: Command, tmp_path: Path, port: str) -> None:
    status, _, err = command("run", write(tmp_path, text("redis://h")), "--metrics-port", port)
    assert status == 2
    assert "--metrics-port" in err
