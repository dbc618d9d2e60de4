"""``penstock pipeline demo``: a server, orders, a pipeline over them, and the tables that it makes.

It needs nothing but what is installed: the orders are made up here, the same each time.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from penstock.pipeline.errors import PipelineError
from penstock.testing import PenstockError, PenstockServer

ORDERS: Final = 2000
BROKEN_EACH: Final = 100
"""Every so many orders, one has a quantity that is none."""

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
ITEMS: Final = ("ink", "pen", "paper")

FILE: Final = """\
# Orders by item and hour. `penstock pipeline demo` has made this file; it is yours to change.
name = "orders"

[source]
url = "${{REDIS_URL:-{url}}}"
subscribe = "orders"
starting_offsets = "earliest"

[parse.columns]
item = {{ type = "string", required = true }}
qty = {{ type = "int", required = true }}
at = "timestamp"

[dead_letters]
stream = "orders-dead"

[[transform]]
name = "hours"
watermark = {{ column = "at", delay = "10 minutes" }}
sql = \"\"\"
SELECT item, window.start AS hour, sum(qty) AS qty
FROM entries
GROUP BY item, window(at, '1 hour')
\"\"\"

[[sink]]
name = "hours"
path = "tables/hours"

[checkpoint]
path = "checkpoint"

[spark]
master = "local[2]"

[spark.conf]
"spark.sql.shuffle.partitions" = 2
"""


def orders() -> Iterator[dict[str, str]]:
    """The fields of each order: one a minute, and a last one that closes all hours before it."""
    for number in range(ORDERS):
        qty = "many" if number % BROKEN_EACH == 0 else str(number % 7 + 1)
        at = BEGIN + timedelta(minutes=number)
        yield {"item": ITEMS[number % 3], "qty": qty, "at": at.isoformat()}
    yield {"item": "end", "qty": "0", "at": (BEGIN + timedelta(days=30)).isoformat()}


def expected() -> Counter[tuple[str, str]]:
    """Compute the table of hours by hand: quantities by item and hour."""
    found: Counter[tuple[str, str]] = Counter()
    for order in list(orders())[:-1]:
        if order["qty"].isdigit():
            found[order["item"], order["at"][:13]] += int(order["qty"])
    return found


def demo(folder: Path, say: Callable[[str], object]) -> None:
    """Runs it in a folder that is not there yet; raises PipelineError if anything goes wrong."""
    try:
        folder.mkdir(parents=True)
        (folder / "server").mkdir()
    except FileExistsError:
        raise PipelineError(f"'{folder}' is there already: name another with --out") from None
    try:
        with PenstockServer(folder=folder / "server") as server:
            _run(folder, server.url, say)
    except PenstockError as error:
        raise PipelineError(f"the server does not start: {error}") from None


def _run(folder: Path, url: str, say: Callable[[str], object]) -> None:
    say(f"A Penstock listens at {url}")
    _publish(url)
    say(
        f"{ORDERS:,} orders are in the stream 'orders', of which {ORDERS // BROKEN_EACH} are broken"
    )
    file = folder / "orders.toml"
    file.write_text(FILE.format(url=url), encoding="utf-8")
    say(f"Running: penstock pipeline run {file} --once")
    command = [sys.executable, "-m", "penstock.pipeline", "run", str(file), "--once"]
    if subprocess.run(command, check=False).returncode != 0:
        raise PipelineError("the pipeline has failed; what it said is above")
    _look(folder, url, say)


def _publish(url: str) -> None:
    import redis

    with redis.Redis.from_url(url) as client, client.pipeline(transaction=False) as pipeline:
        for order in orders():
            fields: dict[Any, Any] = dict(order)
            pipeline.xadd("orders", fields)
        pipeline.execute()


def _look(folder: Path, url: str, say: Callable[[str], object]) -> None:
    """Compares the tables with what they have to be, and shows the beginning of one."""
    import pyarrow.dataset
    import redis

    table = pyarrow.dataset.dataset(folder / "tables/hours", partitioning="hive").to_table()
    rows = sorted(
        (row["hour"].isoformat()[:13], row["item"], row["qty"]) for row in table.to_pylist()
    )
    if {(item, hour): qty for hour, item, qty in rows} != dict(expected()):
        raise PipelineError("the table of hours is not what it has to be")
    with redis.Redis.from_url(url) as client:
        letters = client.xlen("orders-dead")
    if letters != ORDERS // BROKEN_EACH:
        raise PipelineError(f"there are {letters} dead letters, not {ORDERS // BROKEN_EACH}")
    say(f"{folder / 'tables/hours'} has {len(rows)} rows, which is right:")
    for hour, item, qty in rows[:3]:
        say(f"  {hour}:00  {item:<6} {qty:>4}")
    say(f"{letters} dead letters are in the stream 'orders-dead', with the reason in each")
    say(f"The file is {folder / 'orders.toml'}: set REDIS_URL, and run it on a server of yours")
