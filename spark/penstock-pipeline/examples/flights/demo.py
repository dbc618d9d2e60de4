"""The whole story: a server, a year of flights, a pipeline that is killed, and the proof.

``python -m flights.demo [--master URL] [--plot FILE] [--out FOLDER] [--flights N]``
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import redis

from flights.compare import compare
from flights.data import flights
from flights.plot import plot
from flights.publish import publish, publish_end
from penstock.testing import PenstockServer

HERE: Final = Path(__file__).parent
PACE: Final = 6000
"""Flights a second while the pipeline runs, which is a year in a minute."""

PATIENCE_S: Final = 240


class Running:
    """``penstock-pipeline run`` as a process, in a group of its own with its Java process."""

    def __init__(self, url: str, out: Path, *options: str) -> None:
        self._metrics = out / "progress.jsonl"
        environment = {**os.environ, "FLIGHTS_URL": url, "FLIGHTS_OUT": str(out)}
        run = [sys.executable, "-m", "penstock_pipeline", "run"]
        command = [*run, str(HERE / "flights.toml"), *options]
        self.process = subprocess.Popen(command, env=environment, start_new_session=True)

    def done(self) -> int:
        """How many flights are in the table of delays; raises SystemExit if it has ended."""
        if self.process.poll() is not None:
            raise SystemExit("the pipeline has ended by itself")
        if not self._metrics.exists():
            return 0
        records = map(json.loads, self._metrics.read_text().splitlines())
        batches = (record for record in records if record["kind"] == "batch")
        return sum(batch["rows"] for batch in batches if batch["query"] == "delays")

    def wait_for(self, flights: int) -> None:
        """Returns when so many are done; raises SystemExit if that takes too long."""
        deadline = time.monotonic() + PATIENCE_S
        while self.done() < flights:
            if time.monotonic() > deadline:
                raise SystemExit("the pipeline does not get on")
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends it as a failure of power does, with all its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def demo(out: Path, picture: Path, master: Sequence[str], most: int | None) -> None:
    """Runs everything; raises AssertionError if a table differs by a row."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:5.1f} s] {text}", flush=True)

    year = flights()[:most]
    half, most_of_it = len(year) // 2, len(year) * 3 // 4
    with (
        PenstockServer(folder=out) as server,
        redis.Redis.from_url(server.url) as client,
    ):
        say(f"Penstock listens at {server.url}")
        publish(client, year[:half])
        say(f"{half:,} of {len(year):,} flights published; the pipeline starts")
        first = Running(server.url, out, *master)
        try:
            first.wait_for(half)
            say("these are done; more follow while it runs")
            publish(client, year[half:most_of_it], PACE)
            done = first.done()
        finally:
            first.kill()
        say(f"killed when {most_of_it:,} flights were published and {done:,} done")
        publish(client, year[most_of_it:])
        publish_end(client)
        say("all flights published; the pipeline goes on from its checkpoint")
        again = Running(server.url, out, "--once", *master)
        if again.process.wait() != 0:
            raise SystemExit("the pipeline failed")
        say("the pipeline is done")
        for line in compare(out, client, most):
            say(line)
    plot(out / "delays", picture)
    say(f"plotted to {picture}")


def main(args: Sequence[str]) -> int:
    """Reads the options and runs the demo."""
    parser = argparse.ArgumentParser(prog="python -m flights.demo", allow_abbrev=False)
    parser.add_argument("--master", metavar="URL", help="where Spark runs (default: here)")
    parser.add_argument("--out", type=Path, default=Path("build/flights"), help="what is written")
    parser.add_argument("--plot", type=Path, default=Path("build/flights/flights.png"))
    parser.add_argument("--flights", metavar="N", type=int, help="only the first N of the year")
    given = parser.parse_args(args)
    master = ["--master", given.master] if given.master else []
    demo(given.out.resolve(), given.plot.resolve(), master, given.flights)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
