"""``redis-benchmark`` as the client: it is in C, so that what is slow is the server."""

from __future__ import annotations

import csv
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.driver import LIMIT_S, TOO_SLOW, Address, LoadError
from benchmarks.servers import find_program

RANDOM: Final = "__rand_int__"
"""What redis-benchmark replaces by a random number of twelve digits, in every command anew."""


@dataclass(frozen=True)
class Timings:
    """What a client saw; it may have been too quick for the client to say how quick."""

    per_second: float | None
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True)
class RedisBenchmark:
    """The program at a path."""

    path: str

    def version(self) -> str:
        """What the program calls itself."""
        found = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    def flood(
        self,
        address: Address,
        command: Sequence[str],
        commands: int,
        clients: int,
        pipeline: int,
        numbers: int,
    ) -> Timings:
        """Sends a command so many times, with random numbers below ``numbers`` in it.

        Raises :class:`LoadError` on the first error reply, or when it takes too long.
        """
        host, port = address
        options = f"-h {host} -p {port} -n {commands} -c {clients} -P {pipeline} --csv".split()
        if numbers:
            options += ["-r", str(numbers)]
        try:
            done = subprocess.run(
                [self.path, *options, *command],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LoadError(TOO_SLOW) from None
        return _read(done)


def _read(done: subprocess.CompletedProcess[str]) -> Timings:
    rows = list(csv.DictReader(done.stdout.splitlines()))
    if done.returncode or not rows:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        raise LoadError(lines[0] if lines else "redis-benchmark said nothing")
    row = rows[0]
    per_second = float(row["rps"])
    return Timings(
        per_second if math.isfinite(per_second) else None,
        float(row["p50_latency_ms"]),
        float(row["p99_latency_ms"]),
    )


def find() -> RedisBenchmark | None:
    """The program, if it is there."""
    path = find_program("redis-benchmark")
    return RedisBenchmark(path) if path else None
