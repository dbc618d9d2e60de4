"""Explorations as files: JSON, and a page of HTML with the commands as a diagram of lanes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

from penstock.testing.exploring import Exploration

Row = dict[str, Any]
"""An exploration, as JSON has it."""

_STYLE: Final = """\
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
table { border-collapse: collapse; margin: .5em 0 1.5em }
td, th { border: 1px solid #8886; padding: .15em .6em; text-align: left; vertical-align: top }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere }
.wrong { color: #b00020 } .right { color: #1b6e3c }
pre { white-space: pre-wrap }
"""


def row(test: str, exploration: Exploration) -> Row:
    """Return the table of an exploration of a test; the commands of those that ended wrong, each
    with who sent it, and with the fault that struck it, if one did."""
    return {
        "test": test,
        "summary": exploration.summary,
        "explored": exploration.explored,
        "of": exploration.of,
        "complete": exploration.complete,
        "diverged": list(exploration.diverged),
        "outcomes": [
            {
                "id": outcome.id,
                "wrong": outcome.wrong,
                **({"commands": _commands(outcome)} if outcome.wrong else {}),
            }
            for outcome in exploration.outcomes
        ],
    }


def _commands(outcome: Any) -> list[list[str]]:
    marks = getattr(outcome, "marks", {})
    return [
        [*pair, marks[place]] if place in marks else [*pair]
        for place, pair in enumerate(outcome.lanes)
    ]


def as_json(rows: Sequence[Row]) -> str:
    """Return the text of a JSON file."""
    return json.dumps({"explorations": rows}, indent=2) + "\n"


def as_html(rows: Sequence[Row]) -> str:
    """Return the text of a page that needs no other file."""
    parts = ["<!DOCTYPE html>", '<html lang="en"><meta charset="utf-8">']
    parts += ["<title>What was explored</title>", f"<style>\n{_STYLE}</style>"]
    parts += ["<h1>What was explored</h1>", *_overview(rows)]
    for each in rows:
        parts += _section(each)
    return "\n".join([*parts, "</html>", ""])


def _overview(rows: Iterable[Row]) -> Iterator[str]:
    yield "<table><tr><th>test<th>tried<th>wrong<th>diverged"
    for each in rows:
        wrong = len(_wrong(each))
        mark = "wrong" if wrong else "right"
        yield (
            f"<tr><td><code>{escape(each['test'])}</code><td>{escape(each['summary'])}"
            f'<td class="{mark}">{wrong}<td>{len(each["diverged"])}'
        )
    yield "</table>"


def _wrong(each: Row) -> list[Row]:
    return [outcome for outcome in each["outcomes"] if outcome["wrong"]]


def _section(each: Row) -> Iterator[str]:
    yield f"<h2><code>{escape(each['test'])}</code></h2><p>{escape(each['summary'])}</p>"
    if each["diverged"]:
        lines = "\n".join(each["diverged"])
        yield f"<details><summary>diverged</summary><pre>{escape(lines)}</pre></details>"
    for number, outcome in enumerate(_wrong(each)):
        state = "" if number else " open"
        yield f"<details{state}><summary><code>{escape(outcome['id'])}</code></summary>"
        yield f'<pre class="wrong">{escape(outcome["wrong"])}</pre>'
        yield from _lanes(outcome["commands"])
        yield "</details>"


def _lanes(commands: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return a column for each worker or life, a line for each command."""
    names = list(dict.fromkeys(command[0] for command in commands))
    yield "<table><tr>" + "".join(f"<th>{escape(name)}" for name in names)
    for name, command, *marks in commands:
        before = "<td>" * names.index(name)
        after = "<td>" * (len(names) - names.index(name) - 1)
        struck = "".join(f'<br><span class="wrong">{escape(mark)}</span>' for mark in marks)
        yield f"<tr>{before}<td><code>{escape(command)}</code>{struck}{after}"
    yield "</table>"
