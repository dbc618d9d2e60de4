"""Runs a history: ``python -m pipeline_tests.histories --mode group --seconds 600 --seed 7``.

With ``--kills`` nothing happens but kills, the sink is a stream, and what came of it is a row of
benchmarks/results/reliability.md.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from pipeline_tests.histories.history import KILLS, WEIGHTS, History
from pipeline_tests.histories.plan import APPENDED, KEYED
from pipeline_tests.histories.servers import world
from source_tests.conftest import PROGRAMS
from tests.support import logs
from tests.support.process import ROOT

PAGE = ROOT / "benchmarks" / "results" / "reliability.md"
BEGIN = "<!-- This table is written by `make pipeline-histories`. -->"
END = "<!-- The end of what `make pipeline-histories` writes. -->"
HEAD = (
    "| server | mode | seconds | entries | dead letters | batches | kills: driver | worker | server"
    " | missing | twice |\n|---|---|" + "---:|" * 9
)


def row(history: History, seconds: float) -> str:
    """What came of a history, as a row of a table."""
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


def record(history: History, server: str, seconds: float, problems: dict[str, list[str]]) -> None:
    """Replaces the row of a server and mode in benchmarks/results/reliability.md."""
    head, _, rest = PAGE.read_text().partition(BEGIN)
    table, _, tail = rest.partition(END)
    begin = f"| {server} | `{history.world.plan.mode}` |"
    found = "\n".join(problem for each in problems.values() for problem in each)
    wrong = [len(re.findall(sign, found, re.MULTILINE)) for sign in (r"^missing:", r"^\d+ times:")]
    cells = [round(seconds), *history.figures(), *wrong]
    row = " ".join([begin, *(f"{cell:,} |" for cell in cells)])
    old = [line for line in table.splitlines() if re.match(r"\| \w+-?[\d.]* \| `", line)]
    rows = sorted([row, *(line for line in old if not line.startswith(begin))])
    PAGE.write_text("\n".join([f"{head}{BEGIN}\n", HEAD, *rows, f"\n{END}{tail}"]))


def main() -> int:
    """Runs a history with the sinks that are asked for; 1 if a table is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__)
    sinks = (*APPENDED, *KEYED)
    parser.add_argument("--mode", choices=("offsets", "group"), default="offsets")
    parser.add_argument("--sink", choices=sinks, action="append", help="may be repeated")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", choices=PROGRAMS, default="penstock", help="of both streams")
    parser.add_argument("--kills", action="store_true", help="of processes only, with a stream")
    given = parser.parse_args()
    # So that all processes end with this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="penstock-history-"))
    chosen = given.sink or (["stream"] if given.kills else sinks)
    with world(folder, given.mode, chosen, PROGRAMS[given.server]) as made:
        disturbances = KILLS if given.kills else WEIGHTS
        history = History(made, given.seed, lambda line: print(line, flush=True), disturbances)
        history.run(given.seconds)
        problems = history.problems()
        if errors := logs.take():
            problems["logs of servers"] = errors
    print(json.dumps(dict(sorted(history.done.items())), indent=1))
    print(row(history, given.seconds))
    if given.kills:
        record(history, given.server, given.seconds, problems)
    for name, found in problems.items():
        print(f"{name}: {len(found)} problems", *found[:8], sep="\n  ")
    if problems:
        print(f"files are in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
