"""``penstock-pipeline run`` as a process: its output, its signals, and kills at any point."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from pipeline_tests.commands import kill, process, write
from pipeline_tests.conftest import SPARK_SETTINGS
from pipeline_tests.once import rows
from source_tests.backends import Backend
from source_tests.driving import contents
from tests.support.wire import wait_until

LIMIT_S = 180
_MORE = os.environ.get("PENSTOCK_PIPELINE_KILLS")
KILLS = {"offsets": int(_MORE or 2), "group": int(_MORE or 1)}
"""Each kill costs the start of another Spark; the variable asks for more of them."""


def text(url: str, source: str = "", sinks: str = "") -> str:
    """A pipeline over the stream ``s``, with a table, a copy, and a table of windows."""
    conf = "".join(f'"{name}" = "{value}"\n' for name, value in SPARK_SETTINGS.items())
    return f"""\
[source]
url = "{url}"
subscribe = "s"
starting_offsets = "earliest"
{source}
[parse.columns]
n = {{ type = "int", required = true }}
at = "timestamp"
[dead_letters]
stream = "dead"
[[sink]]
name = "table"
from = "entries"
path = "table"
[[sink]]
name = "copy"
from = "entries"
type = "stream"
stream = "copied"
{sinks}
[checkpoint]
path = "checkpoint"
[trigger]
every = "200 milliseconds"
[metrics]
file = "metrics.jsonl"
[spark]
master = "local[2]"
[spark.conf]
{conf}"""


WINDOWS = """\
[[transform]]
name = "minutes"
watermark = { column = "at", delay = "1 minute" }
sql = "SELECT window.start AS at, count(*) AS n FROM entries GROUP BY window(at, '1 minute')"
[[sink]]
name = "minutes"
path = "minutes"
[[sink]]
name = "notes"
type = "stream"
stream = "noted"
"""


def fill(client: redis.Redis, begin: int, end: int) -> None:
    """Entries in a second each; of every tenth the number is none."""
    with client.pipeline(transaction=False) as pipeline:
        for number in range(begin, end):
            at = f"2026-01-01T{number // 3600:02d}:{number // 60 % 60:02d}:{number % 60:02d}Z"
            value = number if number % 10 else f"no {number}"
            pipeline.xadd("s", {"n": value, "at": at})
        pipeline.execute()


def batches(folder: Path) -> list[dict[str, Any]]:
    """What the metrics tell of batches so far."""
    file = folder / "metrics.jsonl"
    if not file.exists():
        return []
    records = map(json.loads, file.read_text().splitlines())
    return [record for record in records if record["kind"] == "batch"]


def more_batches(folder: Path, count: int) -> Callable[[], bool]:
    """Whether there are that many more than now."""
    wanted = len(batches(folder)) + count
    return lambda: len(batches(folder)) >= wanted


def numbers(client: redis.Redis, key: str) -> list[int]:
    return sorted(int(fields[b"n"]) for _, fields in contents(client, key))


def test_a_run_ends_after_the_batch_when_it_gets_sigterm(
    server: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(server, 0, 20)
    running = process("run", write(tmp_path, text(url)), "--metrics-port", "0")
    wait_until(lambda: len({b["query"] for b in batches(tmp_path)}) == 3, LIMIT_S)
    fill(server, 20, 40)
    wait_until(lambda: server.xlen("copied") == 36, LIMIT_S)
    assert running.stderr is not None
    watched = re.fullmatch(r"metrics: (http://127.0.0.1:\d+/metrics)\n", running.stderr.readline())
    assert watched is not None
    with urllib.request.urlopen(watched[1]) as response:
        assert b'penstock_pipeline_rows_total{pipeline="p",query="copy"} ' in response.read()
    status = json.loads((tmp_path / "checkpoint/status.json").read_text())
    assert (status["state"], status["pid"]) == ("running", running.pid)
    # To the whole group, as a container's runtime or a terminal may send it.
    os.killpg(running.pid, signal.SIGTERM)
    out, err = running.communicate(timeout=LIMIT_S)
    assert (running.returncode, err) == (0, "")
    lines = out.splitlines()
    assert any(
        line.endswith("entries/s, lag 0") and " copy: batch 0, 18 rows of 20 entries" in line
        for line in lines
    )
    assert "copy: 36 rows of 40 entries in 2 batches" in lines
    assert server.xlen("copied") == 36
    assert server.xlen("dead") == 4
    status = json.loads((tmp_path / "checkpoint/status.json").read_text())
    assert (status["state"], status["queries"]["copy"]["rows"]) == ("ended", 40)
    assert status["dead_letters"] == {"field 'n' is not int": 4}
    # What was planned was also written down: nothing is repeated.
    offsets = {file.name for file in (tmp_path / "checkpoint/copy/offsets").glob("[0-9]")}
    assert {file.name for file in (tmp_path / "checkpoint/copy/commits").glob("[0-9]")} == offsets


@pytest.mark.parametrize("mode", ["offsets", "group"])
def test_every_row_is_there_once_after_kills(
    server: redis.Redis, url: str, tmp_path: Path, mode: str
) -> None:
    total = 1000
    fill(server, 0, total)
    source = "max_offsets_per_trigger = 250\nmin_partitions = 2\n"
    is_group = mode == "group"
    source += 'mode = "group"\ngroup_id = "g"\n' if is_group else ""
    file = write(tmp_path, text(url, source, "" if is_group else WINDOWS))
    choice = random.Random(5)
    for _ in range(KILLS[mode]):
        running = process("run", file)
        wait_until(more_batches(tmp_path, choice.randint(1, 4)), LIMIT_S)
        time.sleep(choice.uniform(0, 0.7))
        kill(running)
    if not is_group:
        # Closes the windows.
        server.xadd("s", {"n": total + 1, "at": "2026-02-01T00:00:00Z"})
    running = process("run", file, "--once", "--json")
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 0, err
    assert all(json.loads(line)["pipeline"] == "p" for line in out.splitlines())
    good = [number for number in range(total) if number % 10] + ([] if is_group else [total + 1])
    assert rows(tmp_path / "table", "n") == [(number,) for number in good]
    if is_group:
        # Rows may come twice, but none is missing.
        assert set(numbers(server, "copied")) == set(good)
        (group,) = server.xinfo_groups("s")
        assert (group["lag"], group["pending"]) == (0, 0)
        return
    assert numbers(server, "copied") == good
    assert server.xlen("dead") == total // 10
    minutes = rows(tmp_path / "minutes", "n")
    assert len(minutes) == -(-total // 60)
    assert sum(n for (n,) in minutes) == total - total // 10
    assert sum(numbers(server, "noted")) == total - total // 10
    assert server.xlen("noted") == len(minutes)


def test_a_run_that_can_t_reach_its_server_says_so(tmp_path: Path) -> None:
    retry = "[retry]\nattempts = 0\n"
    file = write(tmp_path, retry + text("redis://:secret@127.0.0.1:1", "retries = 0"))
    running = process("run", file)
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 1
    (line,) = err.splitlines()
    assert "127.0.0.1:1/0 can't be reached: " in line
    assert "secret" not in out + err


def test_without_java_it_is_named(tmp_path: Path) -> None:
    with Backend(None) as backend:
        file = write(tmp_path, text(backend.url))
        running = process("run", file, JAVA_HOME="/nowhere")
        _, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 1
    assert err.splitlines()[-1].startswith("Spark does not start, for which it needs Java: ")
    assert "/nowhere/bin/java: No such file or directory" in err.splitlines()[-1]


def test_validate_with_spark_tells_the_line_of_bad_sql(tmp_path: Path) -> None:
    transform = '[[transform]]\nname = "t"\nsql = """\nSELECT nothing(id)\nFROM entries"""\n'
    file = write(tmp_path, transform + text("redis://127.0.0.1:1"))
    running = process("validate", file, "--sql")
    _, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 1
    (line,) = err.splitlines()
    message = f"{file}:3: transform[1]: transform 't': [UNRESOLVED_ROUTINE]"
    assert line.startswith(message)


def test_a_wrong_password_ends_a_run_before_spark_is_started(tmp_path: Path) -> None:
    with Backend(None, "--requirepass", "right") as backend:
        wrong = backend.url.replace("//", "//:secret@")
        running = process("run", write(tmp_path, text(wrong)), "--json", JAVA_HOME="/nowhere")
        out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 1
    (record,) = map(json.loads, out.splitlines())
    assert (record["kind"], record["query"], record["retry"]) == ("failure", None, False)
    assert "refuses: WRONGPASS" in record["message"]
    assert err.rstrip("\n") == record["message"]
    assert "secret" not in out + err


def test_a_run_whose_java_has_no_memory_left_ends_with_a_sentence(
    backend: Backend, tmp_path: Path
) -> None:
    (tmp_path / "greedy.py").write_text(
        "def write(frame, batch, options):\n"
        "    arrays = frame.sparkSession._jvm.java.util.Arrays\n"
        "    arrays.copyOf(bytearray(1), 2_000_000_000)\n"
    )
    sink = '[[sink]]\nname = "greedy"\ntype = "python"\nfunction = "greedy:write"\n'
    with backend.client() as client:
        client.flushall()
        client.xadd("s", {"n": 1})
    source, _, rest = text(backend.url).partition("[parse.columns]")
    file = write(tmp_path, f"{source}{sink}[checkpoint]{rest.partition('[checkpoint]')[2]}")
    running = process("run", file, "--once", "--json")
    out, err = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 1
    said = err.splitlines()[-1]
    assert said == (
        "Spark's Java process has run out of memory (700m): raise 'spark.driver.memory' in "
        "[spark.conf], so that the batch fits, and set max_bytes_per_trigger in [source] to keep "
        "later ones smaller; start the pipeline again, it goes on from its checkpoint"
    )
    assert err.splitlines() == [said]
    assert [json.loads(line)["message"] for line in out.splitlines()] == [said]
