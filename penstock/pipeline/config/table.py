"""One table of the file. Keys are taken out one by one; those that remain are unknown."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from penstock.pipeline.config.env_vars import expand
from penstock.pipeline.config.toml_lines import Path, line_of
from penstock.pipeline.errors import Problem

T = TypeVar("T")

_KINDS: Final = {
    str: "text in quotes",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}


class Findings:
    """The problems found so far, and the lines of keys."""

    def __init__(self, lines: dict[Path, int], environment: Mapping[str, str]) -> None:
        self.problems: list[Problem] = []
        self.environment = environment
        self._lines = lines

    def add(self, path: Path, text: str) -> None:
        """Reports a problem with the value at the path."""
        self.problems.append(Problem(self.line(path), shown(path), text))

    def line(self, path: Path) -> int:
        """The line of the value at the path, or of the table around it."""
        return line_of(self._lines, path)


def shown(path: Path) -> str:
    """A path as people write it, with numbers from 1: ``sink[2].path``."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


class Table:
    """A table, its path, and the keys that have not been read."""

    def __init__(self, values: Mapping[str, Any], path: Path, findings: Findings) -> None:
        self._values = dict(values)
        self.path = path
        self.findings = findings
        self._known: list[str] = []

    def wrong(self, key: str, text: str) -> None:
        """Reports a problem with a key, or with the table itself if the key is empty."""
        self.findings.add((*self.path, key) if key else self.path, text)

    def has(self, key: str) -> bool:
        """Whether the key is there and has not been read."""
        return key in self._values

    def take(self, key: str, kind: type[T]) -> T | None:
        """The value of a key; None, and a problem, if it has another type."""
        self._known.append(key)
        value = self._values.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.wrong(key, f"is {_quoted(value)}; allowed: {_KINDS[kind]}")
            return None
        return value

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text that is not empty, with references to the environment replaced."""
        given = self.take(key, str)
        if given is None:
            return default
        value = self.expanded(key, given)
        if value is not None and not value.strip():
            self.wrong(key, "is empty")
            return default
        return value

    def needed(self, key: str, what: str) -> str:
        """A required text; without it a problem that says what the text is for."""
        there = self.has(key)
        value = self.text(key)
        if value is None and not there:
            self.wrong("" if self.path else key, f"'{key}' is missing: {what}")
        return value or ""

    def choice(self, key: str, default: str, *allowed: str) -> str:
        """One of some words."""
        value = self.text(key, default) or default
        if value not in allowed:
            close = difflib.get_close_matches(value, allowed, 1)
            hint = f"; did you mean '{close[0]}'?" if close else ""
            self.wrong(key, f"is '{value}'; allowed: {', '.join(allowed)}{hint}")
            return default
        return value

    def whole(self, key: str, default: int | None, lowest: int) -> int | None:
        """A whole number from ``lowest`` on."""
        value = self.take(key, int)
        if value is None:
            return default
        if value < lowest:
            self.wrong(key, f"is {value}; allowed: a whole number from {lowest}")
            return default
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.take(key, bool)
        return default if value is None else value

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts, each once."""
        given = self.take(key, list) or []
        if not all(isinstance(name, str) for name in given):
            self.wrong(key, f"is {_quoted(given)}; allowed: a list of texts")
            return ()
        return tuple(dict.fromkeys(given))

    def parsed(self, key: str, parse: Callable[[str], T], default: T) -> T:
        """A text through a function that raises ValueError with what is wrong."""
        value = self.text(key)
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError as error:
            self.wrong(key, str(error))
            return default

    def table(self, key: str) -> Table | None:
        """The table at a key; None if there is none."""
        value = self.take(key, dict)
        return None if value is None else Table(value, (*self.path, key), self.findings)

    def tables(self, key: str) -> list[Table]:
        """The tables of an array, as ``[[sink]]`` makes one."""
        given = self.take(key, list) or []
        if not all(isinstance(entry, dict) for entry in given):
            self.wrong(key, f"is {_quoted(given)}; allowed: tables, each as [[{key}]]")
            return []
        return [Table(v, (*self.path, key, i), self.findings) for i, v in enumerate(given)]

    def line(self, key: str) -> int:
        """The line of a key."""
        return self.findings.line((*self.path, key))

    def note_if_bad(self, key: str, check: Callable[[], object]) -> None:
        """Reports the ValueError of a check as a problem with a key."""
        try:
            check()
        except ValueError as error:
            self.wrong(key, str(error))

    def rest(self) -> dict[str, Any]:
        """All keys that have not been read."""
        values, self._values = self._values, {}
        return values

    def expanded(self, key: str, text: str) -> str | None:
        """The text with references to the environment replaced; None, and a problem, on failure."""
        try:
            return expand(text, self.findings.environment)
        except ValueError as error:
            self.wrong(key, str(error))
            return None

    def end(self) -> None:
        """Reports each key that has not been read as unknown."""
        for key in self.rest():
            close = difflib.get_close_matches(key, self._known, 1, 0.6)
            known = ", ".join(self._known)
            self.wrong(
                key, f"unknown; {f'did you mean {close[0]!r}?' if close else f'allowed: {known}'}"
            )


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
