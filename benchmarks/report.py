"""The results as pages of Markdown, one for each question, and the files of all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from benchmarks.curves import FLAT
from benchmarks.durability import KEEPING
from benchmarks.fast_way import MOST_TIMES
from benchmarks.instructions import DEAREST
from benchmarks.loading import LOADING
from benchmarks.loads import ClientMemory, EntryMemory, PendingMemory
from benchmarks.pauses import MOST_MS, TIMES_REDIS
from benchmarks.replication import REPLICATING
from benchmarks.results_json import as_json
from benchmarks.runner import Measurements
from benchmarks.servers import FLOOR, NAMES
from benchmarks.summary import (
    JUDGE,
    REFERENCES,
    SUBJECT,
    Ratio,
    Results,
    Verdict,
    fast_ways,
    growths,
    heights,
    instructions_of,
    keepings,
    medians,
    mixes,
    multiples,
    verdicts,
    waits,
)
from benchmarks.varied import COMMANDS
from benchmarks.workloads import (
    EACH_RUN,
    MOST_MIXED,
    MOST_OF_ONE_SHAPE,
    TIMES_FAKEREDIS,
    Workload,
)

TITLES: Final = {
    "penstock": "Penstock",
    "redis": "Redis",
    "valkey": "Valkey",
}

MOST_NAMED: Final = 8
"""How many functions the page names of a workload."""

# --- Markdown --------------------------------------------------------------------------------


class _Judged(Protocol):
    @property
    def met(self) -> bool | None: ...


class Page(NamedTuple):
    """A page of the figures: what it answers, what writes its parts, of which one with nothing to
    tell is empty, and what may miss a target there."""

    question: str
    parts: tuple[Callable[[Results], str], ...]
    judged: Callable[[Results], Iterable[_Judged]] = lambda _: ()


def as_markdown(results: Results) -> dict[str, str]:
    """The pages by the names of their files, the one of the questions first; a page of which
    nothing was measured is left out."""
    pages = {}
    for name, page in PAGES.items():
        if parts := [text for part in page.parts if (text := part(results))]:
            head = f"# {page.question}\n\n[Measurements]({INDEX}) says how these were made.\n"
            pages[name] = "\n".join([head, *parts])
    return {INDEX: _head(results) + _questions(results, pages), **pages}


def _questions(results: Results, pages: Iterable[str]) -> str:
    """The questions that were measured, and how many targets are met, then those of programs that
    are run for themselves."""
    rows = []
    for name in pages:
        verdicts = [one.met for one in PAGES[name].judged(results) if one.met is not None]
        told = f"{sum(verdicts)} of {len(verdicts)}" if verdicts else "-"
        rows.append([f"[{PAGES[name].question}]({name})", told])
    rows += [[f"[{question}]({name})", "-"] for name, question in ELSEWHERE.items()]
    return f"\n{_table(['question', 'targets met'], rows)}"


def _head(results: Results) -> str:
    machine = results.machine
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    rounds = f"{results.rounds} round{'s' if results.rounds != 1 else ''}"
    scale = "" if results.factor == 1 else f", scaled by {results.factor:g}"
    missing = "".join(f"\n- {line}" for line in results.missing)
    return f"""\
# Measurements

Made by `make bench`. A ratio is Penstock's value divided by that of the other server, measured
right before or after; the median of the rounds is given, with the lowest and the highest behind it.
Below 1 Penstock takes less. Cost is the CPU time, user and system, that the server process took for
a command. The absolute figures hold for this machine and this hour only.

Ratios depend on the machine as well: on what a system call costs, which is most of a command
without a pipeline; on whether server and client share a core; and on how the interpreter was built,
since compiled modules call into it. Instructions are those in user space, counted by callgrind in a
run of their own; other work on the machine does not move them.

- {machine.when}, {rounds}{scale}
- {versions}
- {machine.python}; client: {machine.client}; {machine.placement}
- {machine.processor}, {machine.cores} cores, {machine.memory_gib} GiB, {machine.system}{missing}
"""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table, of which the first columns are words and the others are right-aligned."""
    lines = [columns, ["---"] * words + ["---:"] * (len(columns) - words), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _is_kept(workload: Workload) -> bool:
    """Whether the server keeps its data, or another one follows it."""
    return any(workload.name == one.name for one in (*KEEPING, *LOADING, *REPLICATING))


def _is_memory(workload: Workload) -> bool:
    return isinstance(workload.load, EntryMemory | PendingMemory | ClientMemory)


def _is_work(workload: Workload) -> bool:
    return not (_is_kept(workload) or _is_memory(workload))


def _of(results: Results, wanted: Callable[[Workload], bool]) -> list[Verdict]:
    """The targets of the workloads that are wanted."""
    return [verdict for verdict in verdicts(results) if wanted(verdict.workload)]


def _targets(results: Results, wanted: Callable[[Workload], bool]) -> str:
    rows, missed = [], []
    for verdict in _of(results, wanted):
        ratios = [_ratio(verdict.ratios.get(name)) for name in REFERENCES]
        counts = instructions_of(results, verdict)
        cells = [_thousands(counts.get(name)) for name in (verdict.target.subject, JUDGE)]
        rows.append(
            [verdict.title, f"<= {verdict.target.most:g}", *ratios, *cells, _met(verdict.met)]
        )
        if verdict.met is False:
            missed.append((verdict.target.why, verdict.title))
    if not rows:
        return ""
    columns = ["load", "target", *(f"to {TITLES[name]}" for name in REFERENCES)]
    columns += ["instructions, thousands", f"{TITLES[JUDGE]}'s", "verdict"]
    return (
        f"## Targets\n\nThey refer to {TITLES[JUDGE]}.\n\n{_table(columns, rows)}{_reasons(missed)}"
    )


def _reasons(reasons: Iterable[tuple[str, str]]) -> str:
    """Why targets are missed, each reason once, with what misses by it; none is an empty text."""
    missed: dict[str, list[str]] = {}
    for why, title in reasons:
        if why:
            missed.setdefault(why, []).append(title)
    lines = [f"- {why}: **{'**, **'.join(titles)}**\n" for why, titles in missed.items()]
    return "\nWhy targets are missed:\n\n" + "".join(lines) if lines else ""


def _profiles(results: Results) -> str:
    """Where Penstock spends its instructions in each workload that misses a target."""
    if not results.instructions:
        return ""
    missed = {one.workload.name: one.workload for one in verdicts(results) if one.met is False}
    rows = [
        [missed[counts.name].title, *_dearest(counts.functions.get(SUBJECT, {}))]
        for counts in results.instructions
        if counts.name in missed
    ]
    columns = ["load", "dearest functions, instructions"]
    return f"""\
## Where targets are missed

The functions of Penstock, of the interpreter and of libraries that take most instructions of a
command, without those that they call. `python -m benchmarks.instructions` has {DEAREST} of them.

{_table(columns, rows, words=2)}"""


def _dearest(functions: dict[str, float]) -> list[str]:
    """The first functions in one cell."""
    first = islice(functions.items(), MOST_NAMED)
    return [", ".join(f"`{name}` {cost:,.0f}" for name, cost in first)]


def _thousands(count: float | None) -> str:
    return "-" if count is None else f"{count / 1000:,.1f}"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    extremes = f" ({ratio.low:.2f}-{ratio.high:.2f})" if ratio.low != ratio.high else ""
    return f"{ratio.median:.2f}{extremes}"


def _met(met: bool | None) -> str:
    return {True: "met", False: "**missed**", None: "not measured"}[met]


def _mixes(results: Results) -> str:
    """The mixes of XADD as a table of their own: streams downwards, lists of fields across."""
    if not mixes(results):
        return ""
    cells: dict[int, dict[int, str]] = {}
    for mix in mixes(results):
        times = "-" if mix.times is None else f"{mix.times:.2f}"
        text = f"{_ratio(mix.ratio)}, {times}"
        cells.setdefault(mix.load.streams, {})[mix.load.lists] = (
            f"**{text}**" if mix.met is False else text
        )
    lists = sorted({count for row in cells.values() for count in row})
    rows = [
        [f"{streams:,}", *(row.get(count, "-") for count in lists)]
        for streams, row in cells.items()
    ]
    columns = ["streams", *(f"{count} list{'s' * (count > 1)} of fields" for count in lists)]
    missed = [
        (EACH_RUN, f"{mix.load.streams} by {mix.load.lists}")
        for mix in mixes(results)
        if mix.met is False
    ]
    return f"""\
## Mixes of XADD

Entries of two fields in pipelines of 100, in any order: the cost to that in {TITLES[JUDGE]}, which
should be {MOST_MIXED:g} at most, and to one list of fields and one stream in Penstock, which should
be {MOST_OF_ONE_SHAPE:g} at most. What misses one of them is bold.

{_table(columns, rows)}{_reasons(missed)}"""


def _fast_way(results: Results) -> str:
    if not fast_ways(results):
        return ""
    rows = [
        [
            one.workload.title,
            *(f"{cost:,.4g}" for cost in one.costs),
            _ratio(one.ratio),
            *(_thousands(count) for count in one.instructions),
            _met(one.met),
        ]
        for one in fast_ways(results)
    ]
    columns = ["load", "on it", "off it", "ratio"]
    columns += ["instructions on it, thousands", "off it, thousands", "verdict"]
    return f"""\
## The fast path for XADD

CPU µs for an XADD on the fast path and off it, where a slow log wants to see each one by itself.
The fast path should never cost more: {MOST_TIMES:g} times as much at most.

{_table(columns, rows)}"""


def _floor(results: Results) -> str:
    if not heights(results):
        return ""
    servers = (SUBJECT, FLOOR.name, JUDGE)
    rows = [
        [
            height.title,
            *(f"{height.values[name]:,.4g}" if name in height.values else "-" for name in servers),
            f"{height.values[SUBJECT] / height.values[FLOOR.name]:.2f}"
            if SUBJECT in height.values
            else "-",
            *(_thousands(height.instructions.get(name)) for name in servers),
        ]
        for height in heights(results)
    ]
    names = (TITLES[SUBJECT], "the floor", TITLES[JUDGE])
    columns = ["load", *names, "Penstock to it", *(f"{name}: instructions" for name in names)]
    return f"""\
## The floor

{FLOOR.title.capitalize()}: what reading and writing alone take a server in Python. CPU µs for a
command, or ms where the wall clock is meant; instructions in thousands.

{_table(columns, rows)}"""


UNITS: Final = {
    "cpu_us": "CPU µs",
    "p50_ms": "p50, ms",
    "p99_ms": "p99, ms",
    "bytes": "bytes",
    "cold_bytes": "bytes, cold",
    "idle_us": "CPU µs a second",
    **dict.fromkeys(COMMANDS, "CPU µs"),
}
"""What the values are that have targets; everything else that was measured is in the JSON."""


def _absolute(results: Results) -> str:
    if not results.workloads:
        return ""
    rows = [
        [workload.title, workload.load.unit, *row]
        for workload, measurements in results.workloads
        for row in _absolute_rows(measurements, [one.value for one in workload.targets])
    ]
    columns = ["load", "by", "value", *NAMES, "Penstock, a second"]
    return f"## Absolute figures\n\n{_table(columns, rows, words=3)}"


def _absolute_rows(measurements: Measurements, targets: Sequence[str]) -> Iterator[list[str]]:
    """A row for each value that has a target, or for the CPU time where none has."""
    found = {name: medians(rounds) for name, rounds in measurements.values.items()}
    for key in dict.fromkeys(targets or ["cpu_us"]):
        cells = [f"{found[name][key]:,.4g}" if name in found else "" for name in NAMES]
        rate = found.get(SUBJECT, {}).get("per_second") if key == "cpu_us" else None
        what = key if key in COMMANDS else ""
        unit = f"{what}, {UNITS[key]}" if what else UNITS[key]
        yield [unit, *cells, "" if rate is None else f"{rate:,.0f}"]


def _keeping(results: Results) -> str:
    if not keepings(results):
        return ""
    rows = [
        [
            one.workload.title,
            *(_ratio(one.ratios.get(name)) for name in REFERENCES),
            f"{one.times:.2f}" if one.times else "-",
        ]
        for one in keepings(results)
    ]
    columns = ["load", *(f"to {TITLES[name]}" for name in REFERENCES), "to itself without"]
    return f"""\
## With an append-only file, a replica, or policies

The cost of the same loads where every server keeps its data, each with the same setting, or is
followed by a Redis 8.0, or where Penstock's group has policies; and how many times what it costs
Penstock without.

{_table(columns, rows)}"""


def _fakeredis(results: Results) -> str:
    if not multiples(results):
        return ""
    rows = [
        [
            one.workload.title,
            f"{one.times:.3g}" if one.times else one.failure,
            _met(one.met),
        ]
        for one in multiples(results)
    ]
    return f"""\
## Requests a second, as a multiple of fakeredis

At least {TIMES_FAKEREDIS} is wanted. fakeredis was given a fiftieth of the data and of the
requests, which favours it. What it did not survive is named.

{_table(["load", "times", "verdict"], rows)}"""


def _curves(results: Results) -> str:
    if not results.curves:
        return ""
    parts = [
        f"## Cost against size\n\nCPU µs; growth is from the first size to the last, and up to "
        f"{FLAT:g} counts as flat or logarithmic.\n"
    ]
    missed = []
    for curve, measurements in results.curves:
        rows, sizes = [], list[int]()
        for growth in growths(measurements):
            sizes = growth.sizes
            for name, costs in growth.costs.items():
                mine = name == SUBJECT and growth.factor is not None
                verdict = [f"{growth.factor:.2f}", _met(growth.met)] if mine else ["", ""]
                rows.append([growth.load, name, *(f"{cost:,.4g}" for cost in costs), *verdict])
            if growth.met is False:
                missed.append((curve.why.get(growth.load, ""), f"{growth.load}, {curve.title}"))
        columns = ["load", "server", *(f"{size:,} {curve.title}" for size in sizes)]
        columns += ["growth", "verdict"]
        parts.append(_table(columns, rows))
    return "\n".join(parts) + _reasons(missed)


def _pauses(results: Results) -> str:
    if not results.pauses:
        return ""
    rows = [
        [
            wait.pause.title,
            *(_wait(wait.values.get(name), "longest_ms") for name in (SUBJECT, *REFERENCES)),
            _wait(wait.values.get(SUBJECT), "loop_ms"),
            _wait(wait.values.get(SUBJECT), "gc_ms"),
            _met(wait.met),
        ]
        for wait in waits(results)
    ]
    servers = (TITLES[name] for name in (SUBJECT, *REFERENCES))
    columns = ["load", *servers, "Penstock's event loop", "Penstock's collector", "verdict"]
    missed = [(wait.pause.why, wait.pause.title) for wait in waits(results) if wait.met is False]
    return f"""\
## The longest wait

The longest that a client which pings every millisecond waited for an answer while the load ran, in
milliseconds; beside it the longest delay of a timer in Penstock's event loop, and the longest pass
of its garbage collector. At most {MOST_MS} is wanted, unless the row says otherwise; for what has
to be one step, since nobody may see a part of it, at most {TIMES_REDIS} times what it takes Redis.

{_table(columns, rows)}{_reasons(missed)}
{_atomic_costs(results)}"""


def _atomic_costs(results: Results) -> str:
    """What each item costs of the commands that have to be one step."""
    rows = []
    for wait in waits(results):
        if wait.pause.atomic:
            costs = {name: values["cpu_us"] for name, values in wait.values.items()}
            cells = [
                f"{costs[name]:.3g}" if name in costs else "-" for name in (SUBJECT, *REFERENCES)
            ]
            times = costs[SUBJECT] / costs[JUDGE] if costs.keys() >= {SUBJECT, JUDGE} else None
            rows.append([wait.pause.title, *cells, f"{times:.2f}" if times else "-"])
    if not rows:
        return ""
    columns = ["load", *(TITLES[name] for name in (SUBJECT, *REFERENCES)), f"to {TITLES[JUDGE]}"]
    return f"""\
What has to be one step, CPU µs for each command, argument, key or entry of it:

{_table(columns, rows)}"""


def _wait(values: dict[str, float] | None, name: str) -> str:
    return f"{values[name]:.1f}" if values is not None and name in values else "-"


def _page_of_targets(
    question: str, wanted: Callable[[Workload], bool], *more: Callable[[Results], str]
) -> Page:
    targets: Callable[[Results], str] = partial(_targets, wanted=wanted)
    return Page(question, (targets, *more), partial(_of, wanted=wanted))


PAGES: Final = {
    "commands.md": _page_of_targets("How fast is a command?", _is_work),
    "adding.md": Page(
        "How fast is XADD, wherever entries go?",
        (_mixes, _fast_way),
        lambda results: [*mixes(results), *fast_ways(results)],
    ),
    "instructions.md": Page("Where does the time go?", (_floor, _profiles)),
    "memory.md": _page_of_targets("How much memory does it take?", _is_memory),
    "waits.md": Page("How long may a client wait?", (_pauses,), waits),
    "growth.md": Page(
        "How does cost grow with size?",
        (_curves,),
        lambda results: [one for _, curve in results.curves for one in growths(curve)],
    ),
    "keeping.md": _page_of_targets(
        "What do a file, a replica and policies cost?", _is_kept, _keeping
    ),
    "fakeredis.md": Page("How much faster than fakeredis is it?", (_fakeredis,), multiples),
    "figures.md": Page("What are the absolute figures?", (_absolute,)),
}
"""The pages by their files, in the order of the questions."""
INDEX: Final = "latest.md"
ELSEWHERE: Final = {
    "reliability.md": "What do attacks, load and faults do?",
    "clients.md": "Which clients work?",
    "explored.md": "What does a crash of a worker do to its work?",
    "policies.md": "What does each policy cost?",
    "startup.md": "How soon does a server answer?",
    "spark.md": "How fast does Spark read streams?",
}
"""Pages that other programs write, and what they answer."""


def write(results: Results, folder: Path) -> None:
    """Writes both, as ``latest.json`` and as pages."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(as_json(results), indent=1)
    (folder / "latest.json").write_text(text + "\n")
    write_pages(results, folder)


def write_pages(results: Results, folder: Path) -> None:
    """Writes the pages, and removes those of an earlier run that have nothing to tell now."""
    pages = as_markdown(results)
    for name in PAGES.keys() - pages.keys():
        (folder / name).unlink(missing_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text)


QUOTED: Final = (
    *("varied-p8", "varied", "xadd", "xadd-p16", "xadd-p100", "xreadgroup-1", "xreadgroup-100"),
    *("consumer-loop", "xclaim-1", "wake-up"),
)
"""The workloads whose ratios the README has, in its order."""
_TABLE: Final = re.compile(r"(?<=\|---\|---:\|---:\|\n)(?:\|.*\n)+")


def quote(results: Results, readme: str) -> str:
    """Returns the README with these results in its table, or as it was if one was not measured."""
    found = {verdict.workload.name: verdict for verdict in reversed(verdicts(results))}
    rows = [
        [found[name].title, *(f"{found[name].ratios[other].median:.2f}" for other in REFERENCES)]
        for name in QUOTED
        if name in found and found[name].ratios.keys() >= set(REFERENCES)
    ]
    if len(rows) < len(QUOTED):
        return readme
    head, performance, rest = readme.partition("## Performance\n")
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return head + performance + _TABLE.sub(lambda _: lines, rest, count=1)
