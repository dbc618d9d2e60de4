"""The names of orders, as reports print them and ``--explore`` takes them.

Each worker has a letter, its first one, if these differ; else its whole name stands there. An order
is then ``abba``, a long one ``a12b3a``, or ``w1.w2*2.w1``; ``+`` is the passing of time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

TIME: Final = "+"
"""The step in which time passes."""

LONGEST_PLAIN: Final = 20
"""How many steps an order has at most in which each of them has a letter of its own."""


def schedule_id(choices: Sequence[str], workers: Iterable[str]) -> str:
    """Return the name of an order of these workers."""
    letters = _letters(workers)
    if letters and len(choices) <= LONGEST_PLAIN:
        return "".join(letters[name] for name in choices)
    runs = [(name, len(list(steps))) for name, steps in groupby(choices)]
    if letters:
        return "".join(letters[name] + (str(n) if n > 1 else "") for name, n in runs)
    return ".".join(name + (f"*{n}" if n > 1 else "") for name, n in runs)


def parsed_schedule(text: str, workers: Iterable[str]) -> list[str]:
    """Return the steps that the name of an order stands for; raises :class:`ValueError`."""
    workers = list(workers)
    letters = _letters(workers)
    if letters:
        names = {letter: name for name, letter in letters.items()}
        parts = re.findall(r"(\D)(\d*)", text)
        understood = "".join(map("".join, parts)) == text
    else:
        names = {name: name for name in (*workers, TIME)}
        parts = [(part.partition("*")[0], part.partition("*")[2]) for part in text.split(".")]
        understood = all(number.isdigit() for _, number in parts if number)
    if not understood or any(name not in names for name, _ in parts):
        raise ValueError(f"{text!r} is no order of the workers {', '.join(workers)}")
    return [names[name] for name, number in parts for _ in range(int(number or 1))]


def _letters(workers: Iterable[str]) -> dict[str, str]:
    """Return a letter for each worker; empty if their first ones do not tell them apart."""
    letters = {name: name[0] for name in workers}
    if len(set(letters.values())) < len(letters) or any(
        not letter.isalpha() for letter in letters.values()
    ):
        return {}
    return {**letters, TIME: TIME}
