"""The processes of a history: two servers, the pipeline, and the Python workers of Spark."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pipeline_tests.conftest import ROOT
from pipeline_tests.histories.plan import Plan, copy_of
from source_tests.backends import Backend
from source_tests.processes import kill_python_worker
from tests.support.process import PYTHON_PATH

KEPT = ("--appendonly", "yes", "--appendfsync", "always")
LIMIT_S = 600


class Driver:
    """A run of the pipeline in a group of processes of its own."""

    def __init__(self, plan: Plan, on_loss: str, *options: str) -> None:
        self.on_loss = on_loss
        self._errors = plan.folder / "errors.txt"
        self._begin = self._errors.stat().st_size if self._errors.exists() else 0
        run = ["-m", "penstock_pipeline", "run", str(plan.folder / "p.toml"), *options]
        with self._errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *run],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": PYTHON_PATH, "ON_DATA_LOSS": on_loss},
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    def said(self) -> str:
        """What this run has said on standard error."""
        with self._errors.open("rb") as errors:
            errors.seek(self._begin)
            return errors.read().decode()

    def kill(self) -> None:
        """Ends it, Java and the workers as a crash does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_worker(self, choice: random.Random) -> bool:
        """Kills one of its Python workers, whatever it does; whether there was one."""
        return kill_python_worker(self.process.pid, choice)


class World:
    """The source's server, the server of streams that are written, and the pipeline."""

    def __init__(self, plan: Plan, source: Backend, target: Backend) -> None:
        self.plan = plan
        self.source = source
        self.target = target
        self.copy = plan.folder / "copy-of-source"
        self._metrics = plan.folder / "metrics.jsonl"

    def batches(self) -> list[dict[str, Any]]:
        """The batches so far; a kill may have torn a line."""
        found = []
        if self._metrics.exists():
            for line in self._metrics.read_text().splitlines():
                with contextlib.suppress(json.JSONDecodeError):
                    found.append(json.loads(line))
        return [record for record in found if record["kind"] == "batch"]

    def wait_for_batches(self, driver: Driver, count: int, limit_s: float) -> None:
        """Returns when there are that many more, when the run has ended, or after a while."""
        wanted = len(self.batches()) + count
        deadline = time.monotonic() + limit_s
        while driver.process.poll() is None and time.monotonic() < deadline:
            if len(self.batches()) >= wanted:
                return
            time.sleep(0.1)

    def keep_copy(self) -> None:
        """Keeps what the source's server has now, as a replica might."""
        self.source.process.send_signal(signal.SIGSTOP)
        try:
            copy_of(self.source.folder, self.copy)
        finally:
            self.source.process.send_signal(signal.SIGCONT)

    def fail_over(self) -> None:
        """The server comes back with what :meth:`keep_copy` has kept."""
        self.source.kill()
        copy_of(self.copy, self.source.folder)
        self.source.restart()


def error_text(folder: Path) -> str:
    """What all runs have said."""
    return (folder / "errors.txt").read_text()
