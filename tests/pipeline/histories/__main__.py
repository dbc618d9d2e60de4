"""Runs a history: ``python -m tests.pipeline.histories --mode group --seconds 600 --seed 7``."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.pipeline.histories.history import History
from tests.pipeline.histories.plan import APPENDED, KEYED
from tests.pipeline.histories.servers import world


def row(history: History, seconds: float) -> str:
    """A line of the table in docs/pipeline-operations.md."""
    plan, done = history.world.plan, history.done
    groups = sum(count for name, count in done.items() if name.startswith("XGROUP"))
    servers = done["kill of the source's server"] + done["kill of the target's server"]
    most = {
        what: max((done[f"{what} in {name}"] for name in plan.sinks if name in APPENDED), default=0)
        for what in ("lacking", "again")
    }
    cells = [
        *(plan.mode, ", ".join(plan.sinks), f"{seconds:.0f}", f"{done['entries']:,}"),
        *(done["batches"], done["kill of the driver"], done["kill of a worker"], servers),
        *(done["failover"], done["trim"] + done["trim of what was read"], done["XDEL"], groups),
        *(done["rival"], most["lacking"], most["again"]),
    ]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> int:
    """Runs a history with the sinks that are asked for; 1 if a table is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    sinks = (*APPENDED, *KEYED)
    parser.add_argument("--mode", choices=("offsets", "group"), default="offsets")
    parser.add_argument("--sink", choices=sinks, action="append", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # So that all processes end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="penstock-history-"))
    with world(folder, given.mode, given.sink or sinks) as made:
        history = History(made, given.seed, lambda line: print(line, flush=True))
        history.run(given.seconds)
        problems = history.problems()
    print(json.dumps(dict(sorted(history.done.items())), indent=1))
    print(row(history, given.seconds))
    for name, found in problems.items():
        print(f"{name}: {len(found)} problems", *found[:8], sep="\n  ")
    if problems:
        print(f"files are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
