"""The texts of explorations that have found something."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from penstock.explore.results import CrashOutcome, ExplorationResult, Life, OrderOutcome
from penstock.explore.scenarios import PlannedFault, Scenario
from penstock.explore.traces import Call, Divergence

CALLS_BEFORE: Final = 3
"""How many commands before a fault are shown."""

CALLS_OF_LAST_LIFE: Final = 12
"""How many commands of the last life are shown."""

LINES_OF_WRONG: Final = 6
"""How many lines are shown of what an invariant says."""

OTHERS: Final = 20
"""How many other orders are named."""

_ORDINALS: Final = ("first", "second", "third")


def without_fault(wrong: str, life: Life) -> str:
    """Return the text for a worker that is wrong without any fault."""
    lines = ["without any fault it ends wrong:", *_indented(wrong.splitlines()[:LINES_OF_WRONG])]
    return "\n".join([*lines, "  the worker:", *_calls_at_end(life)])


def crash_report(exploration: ExplorationResult, found: Sequence[CrashOutcome], again: str) -> str:
    """Return the text for scenarios that end wrong, with the first one; ``again`` runs one."""
    first = found[0]
    lines = [
        f"{len(found)} of {_tried(exploration)} {_end(len(found))} wrong. The first: {first.id}",
        *_indented(first.wrong.splitlines()[:LINES_OF_WRONG]),
        *_lives(first),
        *_diverged(exploration, first.diverged),
        *_others(outcome.scenario for outcome in found[1:]),
        f"  this one alone: {again} {first.id}",
    ]
    return "\n".join(lines)


def _end(number: int) -> str:
    return "ends" if number == 1 else "end"


def _tried(exploration: ExplorationResult) -> str:
    """Return how many there are, of which so many were wrong: ``24 scenarios``."""
    unit = exploration.unit[:-1] if exploration.explored == 1 else exploration.unit
    tried = f"{exploration.explored} {unit}"
    if exploration.of is None or exploration.of == exploration.explored:
        return tried
    return f"{tried} ({exploration.summary})"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _lives(outcome: CrashOutcome) -> Iterator[str]:
    """Return the lives that a fault struck, around it, and the last one."""
    for number, life in enumerate(outcome.lives):
        if life.faults:
            ordinal = _ORDINALS[number] if number < len(_ORDINALS) else f"{number + 1}th"
            yield f"  the {ordinal} life of the worker:"
            yield from _around(life)
    last = outcome.lives[-1]
    if not last.faults:
        yield "  the last life:"
        yield from _calls_at_end(last)


def _around(life: Life) -> Iterator[str]:
    begin = max(0, life.faults[0].k - CALLS_BEFORE)
    end = life.faults[-1].k + 2
    for k, call in list(enumerate(life.calls))[begin:end]:
        yield _line(k, call, next((fault for fault in life.faults if fault.k == k), None))
    if life.error:
        yield f"      {life.error}"


def _line(k: int, call: Call, fault: PlannedFault | None = None) -> str:
    if fault is None:
        return f"    {k:5} {call}"
    return f"  > {k:5} {call}      {fault.meaning}"


def _calls_at_end(life: Life) -> Iterator[str]:
    for k, call in list(enumerate(life.calls))[:CALLS_OF_LAST_LIFE]:
        yield _line(k, call)
    if len(life.calls) > CALLS_OF_LAST_LIFE:
        yield f"          and {len(life.calls) - CALLS_OF_LAST_LIFE} more"
    if not life.calls:
        yield "          no command"
    if life.error:
        yield f"      {life.error}"


def _diverged(exploration: ExplorationResult, here: str) -> Iterator[str]:
    if here:
        yield f"  diverged: {here}"
    if len(exploration.diverged) > bool(here):
        yield f"  {len(exploration.diverged)} of all diverged, first: {exploration.diverged[0]}"


def _others(scenarios: Iterable[Scenario]) -> Iterator[str]:
    """Yield one line, or none: ``others: crash-before@3,6,9 crash-after@5,8``."""
    groups: dict[str, list[str]] = {}
    for scenario in scenarios:
        start, _, k = str(scenario).rpartition("@")
        groups.setdefault(start, []).append(k)
    if groups:
        told = " ".join(f"{start}@{','.join(numbers)}" for start, numbers in groups.items())
        yield f"  others: {told}"


def told_of_two_clean_runs(difference: Divergence) -> str:
    """Return the text for a worker that does not repeat itself without any fault."""
    return f"two runs without any fault differ: {difference}"


# --- orders -----------------------------------------------------------------------------------


def order_report(
    exploration: ExplorationResult, found: Sequence[OrderOutcome], how: str, again: str
) -> str:
    """Return the text for orders that end wrong, with the first one, which ``again`` runs; ``how``
    says which ones were tried, such as ``with at most 1 preemption``."""
    first = found[0]
    width = max((len(name) for name, _ in first.lanes), default=0)
    others = [outcome.id for outcome in found[1:]]
    more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
    tried = _tried(exploration) + (f" {how}" if how else "")
    lines = [
        f"{len(found)} of {tried} {_end(len(found))} wrong. The first: {first.id}",
        *_indented(first.wrong.splitlines()[:LINES_OF_WRONG]),
        *(f"    {name:{width}}  {text}" for name, text in first.lanes),
        *_diverged(exploration, ""),
        *([f"  others: {' '.join(others[:OTHERS])}{more}"] if others else []),
        f"  this one alone: {again} {first.id}",
    ]
    return "\n".join(lines)


def bound_text(preemptions: int | None) -> str:
    """Return the text for a bound on preemptions; empty for none."""
    if preemptions is None:
        return ""
    return f"with at most {preemptions} {'preemption' if preemptions == 1 else 'preemptions'}"
