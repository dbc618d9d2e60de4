"""How a run is doing: its state as plain data, the status file, and what ``status`` tells of it.

:func:`watched` puts a run under watch: with the status file, and HTTP if it is asked for.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_pipeline.client import ClientError, RetryingClient, readable
from penstock_pipeline.dead_letters import LAST, PIPELINE
from penstock_pipeline.errors import Failure, PipelineError
from penstock_pipeline.model import Pipeline
from penstock_pipeline.report import FinishedBatch, ago, iso, seconds
from penstock_pipeline.servers import single
from penstock_pipeline.status_http import served
from penstock_pipeline.terminal import shown, shown_lines
from pyspark_redis_streams.ids import format_id
from pyspark_redis_streams.streams import key_of

# --- The state -----------------------------------------------------------------------------------


VERSION: Final = 1
RATE_S: Final = 60.0
"""Over how long a rate is taken."""


class _Query:
    """The totals, the last batch and the failures of a query in this run."""

    def __init__(self) -> None:
        self.totals = dict.fromkeys(("batches", "rows", "late_rows", "unexpected_rows"), 0)
        self.last: FinishedBatch | None = None
        self.last_at: float | None = None
        self.failures: Counter[tuple[str, bool]] = Counter()
        self.last_failure: Failure | None = None
        self._recent: deque[tuple[float, int]] = deque()

    def batch(self, batch: FinishedBatch, now: float) -> None:
        self.totals["batches"] += 1
        self.totals["rows"] += batch.rows
        self.totals["late_rows"] += batch.late_rows
        self.totals["unexpected_rows"] += sum(batch.unexpected.values())
        self.last, self.last_at = batch, now
        self._recent.append((now, batch.rows))

    def rate(self, now: float, since: float) -> float:
        """Rows a second over the last minute, or over the run if it is younger."""
        while self._recent and self._recent[0][0] <= now - RATE_S:
            self._recent.popleft()
        seconds = min(RATE_S, max(now - since, 1.0))
        return round(sum(rows for _, rows in self._recent) / seconds, 2)

    def plain(self, now: float, since: float) -> dict[str, Any]:
        last = self.last
        return {
            **self.totals,
            "rate": self.rate(now, since),
            "batch": last.number if last else None,
            "batch_at": iso(self.last_at) if self.last_at else None,
            "batch_rows": last.rows if last else 0,
            "duration_ms": last.duration_ms if last else 0,
            "rows_per_second": last.rows_per_second if last else 0.0,
            "lag": last.lag if last else None,
            "lags": dict(last.lags) if last else {},
            "watermark": last.watermark if last else None,
            "state_rows": last.state_rows if last else 0,
            "failures": [[*key, count] for key, count in sorted(self.failures.items())],
            "last_failure": asdict(self.last_failure) if self.last_failure else None,
        }


class RunState:
    """Hears of batches and failures, from one thread, and is read from others.

    ``letters`` gives the dead letters by reason; ``clock`` gives Unix time in seconds.
    """

    def __init__(
        self,
        pipeline: str,
        queries: Sequence[str],
        letters: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pipeline = pipeline
        self._letters = letters
        self._clock = clock
        self._started = clock()
        self._queries = {name: _Query() for name in queries}
        self._state = "running"
        self._error: str | None = None
        self._lock = threading.Lock()

    def batch(self, batch: FinishedBatch) -> None:
        """Notes a finished batch."""
        with self._lock:
            self._queries[batch.query].batch(batch, self._clock())

    def failure(self, failure: Failure) -> None:
        """Notes a failed attempt of a query; that of a run is told by :meth:`end`."""
        if failure.query is None:
            return
        with self._lock:
            query = self._queries[failure.query]
            query.failures[failure.error, failure.retry] += 1
            query.last_failure = failure

    def end(self, error: str | None) -> None:
        """Notes the end of the run, and why if it did not end as it should."""
        with self._lock:
            self._state = "ended" if error is None else "failed"
            self._error = error

    def snapshot(self) -> dict[str, Any]:
        """Everything, as JSON may hold it."""
        letters = dict(self._letters())
        with self._lock:
            now = self._clock()
            return {
                "v": VERSION,
                "pipeline": self._pipeline,
                "state": self._state,
                "error": self._error,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "started": iso(self._started),
                "updated": iso(now),
                "queries": {
                    name: query.plain(now, self._started) for name, query in self._queries.items()
                },
                "dead_letters": letters,
            }


# --- Dead letters by reason ----------------------------------------------------------------------


MOST_REASONS: Final = 50
OTHERS: Final = "other reasons"
"""Where the letters count whose reason is none of the first :data:`MOST_REASONS`."""

_CHUNK: Final = 500
_CHUNKS: Final = 20
_VALUE: Final = re.compile(r" is '.*?', not (?=[\w(),<>: ]+(?:;|$))", re.DOTALL)


def kind_of(reason: str) -> str:
    """A reason without the values in it: ``field 'qty' is not int``."""
    return _VALUE.sub(" is not ", reason)


class LetterCounts:
    """The letters that were added since the first :meth:`poll`, except those of other pipelines."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._name = pipeline.name.encode()
        self._counts: Counter[str] = Counter()
        self._after: str | None = None
        self._client: RetryingClient | None = None
        self._key = key_of(pipeline.letters or "")
        if pipeline.letters:
            dead = pipeline.dead_letters
            options = {**(dead.options if dead else pipeline.source), "retries": "0"}
            self._client = RetryingClient(single(options)[0])

    def counts(self) -> Mapping[str, int]:
        """The letters by reason, as of the last :meth:`poll`."""
        return self._counts.copy()

    def poll(self) -> None:
        """Counts what is new; a server that is away is asked again the next time."""
        if self._client is None:
            return
        with contextlib.suppress(ClientError), readable(self._client):
            if self._after is None:
                self._after = format_id(self._client.info(self._key).last)
                return
            for _ in range(_CHUNKS):
                if self._count_some(self._client, self._after) < _CHUNK:
                    return

    def close(self) -> None:
        """Disconnects."""
        if self._client is not None:
            self._client.close()

    def _count_some(self, client: RetryingClient, after: str) -> int:
        found = client.call("XRANGE", self._key, f"({after}", "+", "COUNT", _CHUNK)
        for id, fields in found:
            self._after = id.decode()
            self._count(dict(zip(fields[::2], fields[1::2], strict=True)))
        return len(found)

    def _count(self, fields: Mapping[bytes, bytes]) -> None:
        if LAST not in fields or fields.get(PIPELINE, self._name) != self._name:
            return
        kind = kind_of(fields[LAST].decode("utf-8", "replace"))
        is_known = kind in self._counts or len(self._counts) < MOST_REASONS
        self._counts[kind if is_known else OTHERS] += 1


# --- The status file -----------------------------------------------------------------------------


EVERY_S: Final = 2.0
"""How often the file is written, which is also the sign of life."""


def default_path(pipeline: Pipeline) -> Path:
    """Beside the checkpoints if these are on this machine, else beside the pipeline's file."""
    if "://" not in pipeline.checkpoint:
        return Path(pipeline.checkpoint.removeprefix("file:")) / "status.json"
    return pipeline.file.with_name(f".{pipeline.name}.status.json")


def write_status(path: Path, snapshot: dict[str, Any]) -> None:
    """Puts a new file into the place of the old one in one step; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(json.dumps(snapshot), encoding="utf-8")
    new.replace(path)


def read_status(path: Path) -> dict[str, Any]:
    """Read the file that a run has written; raises PipelineError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PipelineError(
            f"there is no '{path}': the pipeline has not been run here, or its file says another "
            "checkpoint; --status-file names another place"
        ) from None
    except OSError as error:
        raise PipelineError(f"can't read '{path}': {error.strerror}") from None
    except ValueError:
        raise PipelineError(f"'{path}' is no status file") from None
    if not isinstance(found, dict) or found.get("v") != 1:
        raise PipelineError(f"'{path}' is no status file of this version")
    return found


@contextlib.contextmanager
def kept_up(
    path: Path, snapshot: Callable[[], dict[str, Any]], beat: Callable[[], object]
) -> Iterator[None]:
    """Writes the file now, every two seconds, and at the end; ``beat`` is called as often.

    Raises PipelineError if it can't be written at the start. Later on a full disk only makes it
    old: the pipeline is more important.
    """
    try:
        write_status(path, snapshot())
    except OSError as error:
        raise PipelineError(f"can't write the status to '{path}': {error.strerror}") from None
    over = threading.Event()

    def keep() -> None:
        beat()
        while not over.wait(EVERY_S):
            beat()
            with contextlib.suppress(OSError):
                write_status(path, snapshot())

    thread = threading.Thread(target=keep, name="status", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        beat()
        with contextlib.suppress(OSError):
            write_status(path, snapshot())


# --- What a status file says ---------------------------------------------------------------------


SILENT_S: Final = 30.0
"""Without a sign of life for that long, a run on another machine counts as dead."""

GOOD: Final = ("running", "ended")


def process_is_there(pid: int) -> bool:
    """Whether a process of this machine has that number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def state_of(
    status: Mapping[str, Any],
    now: float,
    is_there: Callable[[int], bool] = process_is_there,
    host: str | None = None,
) -> str:
    """``running``, ``ended``, ``failed``, ``dead`` or ``silent`` (there, but it says nothing)."""
    if status["state"] != "running":
        return str(status["state"])
    is_here = status["host"] == (host or socket.gethostname())
    is_silent = now - seconds(status["updated"]) > SILENT_S
    if is_here and not is_there(int(status["pid"])):
        return "dead"
    if is_silent:
        return "silent" if is_here else "dead"
    return "running"


def show_status(console: Console, status: Mapping[str, Any], now: float) -> bool:
    """Shows all of it; whether the run is as it should be."""
    state = state_of(status, now)
    console.print(Text(_title(status, state, now), style="" if state in GOOD else "red"))
    if status["error"]:
        console.print(Text(f"  {shown_lines(status['error'])}"))
    console.print(_queries(status, now))
    for name, query in status["queries"].items():
        last = query["last_failure"]
        if last is not None:
            message = shown_lines(last["message"])
            console.print(Text(f"last failure of {name}, {ago(last['time'], now)}: {message}"))
    for reason, count in sorted(status["dead_letters"].items(), key=lambda pair: -pair[1]):
        console.print(Text(f"dead letters: {count:,} as {shown(reason)}"))
    return state in GOOD


def _title(status: Mapping[str, Any], state: str, now: float) -> str:
    name, who = status["pipeline"], f"process {status['pid']} on {status['host']}"
    since = f"{ago(status['started'], now).removesuffix(' ago')}"
    if state == "running":
        return f"{name}: running for {since}, {who}"
    last = ago(status["updated"], now)
    if state == "dead":
        return f"{name}: dead; {who} gave its last sign of life {last} and did not end by itself"
    if state == "silent":
        return f"{name}: hangs; {who} is there, and gave its last sign of life {last}"
    return f"{name}: {state} {last}, begun {ago(status['started'], now)}, {who}"


def _queries(status: Mapping[str, Any], now: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for name in ("query", "batches", "entries", "entries/s (last minute)", "lag", "last batch"):
        table.add_column(name, justify="left" if name == "query" else "right")
    for name, query in status["queries"].items():
        lag = "-" if query["lag"] is None else f"{query['lag']:,}"
        table.add_row(
            name,
            f"{query['batches']:,}",
            f"{query['rows']:,}",
            f"{query['rate']:,.1f}",
            lag,
            ago(query["batch_at"], now),
        )
    return table


# --- A run under watch ---------------------------------------------------------------------------


class Watch(NamedTuple):
    """Says where the status goes, and where HTTP is, if anywhere, and under which names beside
    addresses and names without a dot."""

    status_file: Path | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    names: str = ""


@contextmanager
def watched(pipeline: Pipeline, queries: Sequence[str], watch: Watch) -> Iterator[RunState]:
    """The state of a run, which others see until the block ends; raises PipelineError.

    A status file that can't be written is only told, since the pipeline can do without.
    """
    with ExitStack() as stack:
        letters = stack.enter_context(closing(LetterCounts(pipeline)))
        state = RunState(pipeline.name, queries, letters.counts)
        if watch.port is not None:
            where = watch.host, watch.port, watch.names
            url = stack.enter_context(served(state.snapshot, *where))
            print(f"metrics: {url}metrics", file=sys.stderr)
        path = watch.status_file or default_path(pipeline)
        try:
            stack.enter_context(kept_up(path, state.snapshot, letters.poll))
        except PipelineError as error:
            print(f"warning: {error}", file=sys.stderr)
        try:
            yield state
        except BaseException as error:
            state.end(str(error) or type(error).__name__)
            raise
        state.end(None)
