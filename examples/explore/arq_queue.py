"""arq: a worker of its queue, as its page shows it.

https://arq-docs.helpmanual.io/ has the function, the worker and how a job is sent. arq asks for an
older redis-py, so its worker has an environment of its own, which ``make`` installs. With arq
0.28.0.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.explore import shop

if TYPE_CHECKING:
    from penstock.testing import Penstock

PACKAGE = "arq"

MODULE = "examples.explore.arq_queue"

ROOT = Path(__file__).parents[2]

FOLDER = Path(f"{os.environ.get('PENSTOCK_CLIENTS') or ROOT / 'build' / 'clients'}-arq")

PATH = [str(path) for path in FOLDER.glob("lib/python*/site-packages")]
"""Where it is installed."""

if not PATH:
    raise ModuleNotFoundError(f"arq is not installed in {FOLDER}, which make does")

COMMAND = (str(FOLDER / "bin" / "python"), "-m", MODULE)


async def pack(context: dict[str, Any], item: str) -> None:
    """Packs what was ordered."""
    shop.pack(item)


async def send(settings: Any, items: list[str]) -> None:
    """Sends a job for each item, named after it."""
    from arq import create_pool

    pool = await create_pool(settings)
    for item in items:
        await pool.enqueue_job("pack", item, _job_id=item)
    await pool.aclose()


def fill(client: Any) -> None:
    """Has arq send a job for each order."""
    url = {"REDIS_URL": os.environ[shop.URL]}
    subprocess.run([*COMMAND, *shop.ITEMS], check=True, cwd=ROOT, env={**os.environ, **url})


def is_done(client: Any) -> bool:
    """Whether no job is queued; one that is under way is."""
    return not client.exists("arq:queue")


def queued(client: Any) -> list[bytes]:
    """Return the names of the jobs that are queued."""
    found: list[bytes] = client.zrange("arq:queue", 0, -1)
    return found


def test_queue(penstock: Penstock) -> None:
    """arq."""
    worker = penstock.explore.process(*COMMAND, cwd=str(ROOT))
    shop.explore(penstock, worker, queued, prepare=fill, done=is_done)


if __name__ == "__main__":
    from arq import run_worker
    from arq.connections import RedisSettings

    class WorkerSettings:
        """What ``arq arq_queue.WorkerSettings`` would read."""

        functions = (pack,)
        # Several jobs, or a job and a health check, would come in another order each time.
        max_jobs = 1
        health_check_interval = 10**10
        redis_settings = RedisSettings.from_dsn(os.environ["REDIS_URL"])

    shop.follow_the_server()
    if sys.argv[1:]:
        asyncio.run(send(WorkerSettings.redis_settings, sys.argv[1:]))
    else:
        run_worker(WorkerSettings)  # type: ignore[arg-type]
