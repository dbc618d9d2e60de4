"""A TOML file as tables whose keys are declared: names, kinds, defaults, and what they are for.

Each part of a file is a tuple of :class:`Key`, from which a table is read and what is wrong with it
is told. Every problem has the line of its key, which the standard library's parser does not keep.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from penstock_pipeline.errors import InvalidFile, PipelineError, Problem
from penstock_pipeline.toml_advice import advice

# --- Lines of keys -------------------------------------------------------------------------------

# The text has been parsed before, so it is valid: it is enough to follow headers, keys at the
# beginning of a line, and values over several lines.

KeyPath = tuple[str | int, ...]
"""Keys and, for tables of an array, their numbers from 0: ``("sink", 1, "path")``."""

_PART: Final = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_KEY: Final = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER: Final = re.compile(rf"\s*(\[\[?)\s*({_KEY})\s*\]")
_ASSIGNMENT: Final = re.compile(rf"\s*({_KEY})\s*=")
_TOKEN: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*|[\[\]{}\n]|[^\"'\#\[\]{}\n]+",
    re.DOTALL,
)


def locate(text: str) -> dict[KeyPath, int]:
    """The line, from 1, of every key and table that has one of its own.

    Keys within an inline table have none; :func:`line_of` returns that of the table.
    """
    lines: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, statement in _statements(text):
        header = _HEADER.match(statement)
        if header:
            table = _table_path(header, counts)
            for depth in range(1, len(table) + 1):
                lines.setdefault(table[:depth], number)
        elif assignment := _ASSIGNMENT.match(statement):
            keys = _parts(assignment[1])
            for depth in range(1, len(keys) + 1):
                lines.setdefault((*table, *keys[:depth]), number)
    return lines


def line_of(lines: dict[KeyPath, int], path: KeyPath) -> int:
    """The line of a path, or of the innermost table around it that has one; else 1."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return 1


def _table_path(header: re.Match[str], counts: dict[KeyPath, int]) -> KeyPath:
    path: KeyPath = ()
    keys = _parts(header[2])
    for depth, key in enumerate(keys):
        path = (*path, key)
        is_new = depth == len(keys) - 1 and header[1] == "[["
        if is_new:
            counts[path] = counts.get(path, 0) + 1
        if path in counts:
            path = (*path, counts[path] - 1)
    return path


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, key))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with its first line; line ends within values do not end it."""
    line = begin = 1
    depth = 0
    parts: list[str] = []
    for token in _TOKEN.findall(text.replace("\r\n", "\n")):
        # Brackets may also be open because of a header.
        if token == "\n" and not (depth and _ASSIGNMENT.match("".join(parts))):
            yield begin, "".join(parts)
            parts, depth, begin = [], 0, line + 1
        else:
            parts.append(token)
            depth += (token in ("[", "{")) - (token in ("]", "}"))
        line += token.count("\n")
    yield begin, "".join(parts)


# --- Values --------------------------------------------------------------------------------------


_REFERENCE: Final = re.compile(r"\$\$|\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?)?\}?")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """The text with each reference replaced; ``$$`` is a dollar sign.

    Raises ValueError for a variable that is not set and has no default, and for a bad reference.
    """

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        if found[1] is None or not found[0].endswith("}"):
            raise ValueError(
                f"'{found[0]}' is no reference; allowed: ${{NAME}}, ${{NAME:-default}}"
            )
        given = environment.get(found[1], found[2])
        if given is None:
            raise ValueError(f"the environment variable {found[1]} is not set")
        return given

    return _REFERENCE.sub(value, text)


SECONDS: Final = {
    "millisecond": 0.001,
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86400,
    "week": 604800,
}
_LENGTH: Final = re.compile(rf"(\d+)\s*({'|'.join(SECONDS)})s?", re.IGNORECASE)


def duration(text: str) -> float:
    """The seconds of a length of time; raises ValueError with what is allowed."""
    if not re.fullmatch(rf"\s*({_LENGTH.pattern}\s*)+", text, re.IGNORECASE):
        raise ValueError(f"is '{text}'; allowed: a number with {', '.join(SECONDS)}(s)")
    return float(sum(int(n) * SECONDS[unit.lower()] for n, unit in _LENGTH.findall(text)))


BYTES: Final = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def size(text: str) -> int:
    """The bytes of a size; raises ValueError with what is allowed."""
    found = re.fullmatch(rf"\s*(\d+)\s*({'|'.join(BYTES)})\s*", text, re.IGNORECASE)
    count = int(found[1]) * BYTES[found[2].upper()] if found else 0
    if not count:
        raise ValueError(f"is '{text}'; allowed: a number with KB, MB or GB, as '128 MB'")
    return count


def resolve(path: str, folder: Path) -> str:
    """The absolute path, unless it is a URL, which Spark's file systems know."""
    if not path or re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path):
        return path
    return str((folder / path).resolve())


def beside(url: str, folder: Path) -> str:
    """The URL of a database, with the file of SQLite as an absolute path."""
    prefix, found, file = url.partition("sqlite:")
    return prefix + found + resolve(file, folder) if found else url


# --- Tables --------------------------------------------------------------------------------------


T = TypeVar("T")

_KINDS: Final = {
    str: "text in quotes",
    int: "a whole number",
    bool: "true or false",
    dict: "a table",
    list: "a list",
}


class Findings:
    """The problems found so far, the lines of keys, and the folder of the file."""

    def __init__(
        self, lines: dict[KeyPath, int], environment: Mapping[str, str], folder: Path
    ) -> None:
        self.problems: list[Problem] = []
        self.environment = environment
        self.folder = folder
        self._lines = lines

    def add(self, path: KeyPath, text: str) -> None:
        """Reports a problem with the value at the path."""
        self.problems.append(Problem(self.line(path), shown(path), text))

    def line(self, path: KeyPath) -> int:
        """The line of the value at the path, or of the table around it."""
        return line_of(self._lines, path)


def shown(path: KeyPath) -> str:
    """A path as people write it, with numbers from 1: ``sink[2].path``."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


class Table:
    """A table, its path, and the keys that have not been read."""

    def __init__(self, values: Mapping[str, Any], path: KeyPath, findings: Findings) -> None:
        self._given = values
        self._values = dict(values)
        self.path = path
        self.findings = findings
        self._known: list[str] = []

    def wrong(self, key: str, text: str) -> None:
        """Reports a problem with a key, or with the table itself if the key is empty."""
        self.findings.add((*self.path, key) if key else self.path, text)

    def has(self, key: str) -> bool:
        """Whether the file gives the key."""
        return key in self._given

    def read(self, keys: Iterable[Key]) -> dict[str, Any]:
        """The values of some keys by their names; what is wrong with one is reported."""
        return {key.name: key.read(self) for key in keys}

    def section(self, keys: Iterable[Key]) -> dict[str, Any]:
        """The values of all keys that are left; reports those that are not declared."""
        found = self.read(keys)
        self.end()
        return found

    def part(self, key: str, keys: Iterable[Key]) -> dict[str, Any]:
        """Return the values of the table at a key; the defaults if there is none."""
        table = self.table(key)
        return {key.name: key.default for key in keys} if table is None else table.section(keys)

    def take(self, key: str, kind: type[T]) -> T | None:
        """The value of a key; None, and a problem, if it has another type."""
        self._known.append(key)
        value = self._values.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            as_list = f", as [{_quoted(value)}]" if kind is list and isinstance(value, str) else ""
            self.wrong(key, f"is {_quoted(value)}; allowed: {_KINDS[kind]}{as_list}")
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

    def table(self, key: str) -> Table | None:
        """The table at a key; None if there is none."""
        value = self.take(key, dict)
        return None if value is None else Table(value, (*self.path, key), self.findings)

    def tables(self, key: str) -> list[Table]:
        """The tables of an array, as ``[[sink]]`` makes one."""
        if isinstance(self._values.get(key), dict):
            self.take(key, dict)
            self.wrong(key, f"is one table, of which there may be several: write [[{key}]]")
            return []
        given = self.take(key, list) or []
        if not all(isinstance(entry, dict) for entry in given):
            self.wrong(key, f"is {_quoted(given)}; allowed: tables, each as [[{key}]]")
            return []
        return [Table(v, (*self.path, key, i), self.findings) for i, v in enumerate(given)]

    def line(self, key: str) -> int:
        """The line of a key."""
        return self.findings.line((*self.path, key))

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


_TOML_ERROR: Final = re.compile(r"(.+) \(at (?:line (\d+), column \d+|end of document)\)")


def read_toml(file: Path, environment: Mapping[str, str]) -> Table:
    """The table that a file is; raises PipelineError, and InvalidFile for a syntax error."""
    text = read_text(file)
    return Table(
        _parsed(str(file), text), (), Findings(locate(text), environment, file.resolve().parent)
    )


def _parsed(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _TOML_ERROR.fullmatch(str(error))
        last = len(text.splitlines())
        line = int(found[2] or last) if found else 1
        reason = found[1] if found else str(error)
        more = advice(text.splitlines()[line - 1], reason) if last else ""
        said = f"not TOML: {reason}{'; ' if more else ''}{more}"
        raise InvalidFile(file, [Problem(line, "", said)]) from None


def read_text(file: Path) -> str:
    """The text of a file; raises PipelineError."""
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"can't read '{file}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise PipelineError(f"'{file}' is not text in UTF-8") from None


# --- Keys ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Key:
    """A key that holds a text. With ``what``, which says what it is for, it has to be there.

    ``check`` finds nothing wrong with the text, or else raises ValueError. Other kinds are
    subclasses, which differ in what they read, and report as wrong.
    """

    name: str
    default: Any = None
    what: str = ""
    check: Callable[[str], object] = str

    def read(self, table: Table) -> Any:
        """Read the value, or the default, also where a problem with it has been reported."""
        value = table.needed(self.name, self.what) if self.what else table.text(self.name)
        try:
            if value:
                self.check(value)
        except ValueError as error:
            table.wrong(self.name, str(error))
        return self.default if value is None else value


class Raw(Key):
    """A text in which nothing is replaced, as SQL."""

    kind: ClassVar[type] = str

    def read(self, table: Table) -> Any:
        """Read the value as it is."""
        value = table.take(self.name, self.kind)
        return self.default if value is None else value


class Place(Key):
    """A file or folder, of which relative ones are beside the file."""

    def read(self, table: Table) -> Any:
        """The absolute path, or the URL."""
        return resolve(super().read(table), table.findings.folder)


class Flag(Raw):
    """True or false."""

    kind = bool


class Names(Key):
    """A list of texts."""

    def read(self, table: Table) -> Any:
        """The texts, each once."""
        given = table.take(self.name, list) or []
        if not all(isinstance(name, str) for name in given):
            table.wrong(self.name, f"is {_quoted(given)}; allowed: a list of texts")
            return ()
        return tuple(dict.fromkeys(given))


@dataclass(frozen=True)
class Choice(Key):
    """A text that is one of some words."""

    allowed: Sequence[str] = ()

    def read(self, table: Table) -> Any:
        """The word."""
        value = table.text(self.name, self.default)
        if value is None or value in self.allowed:
            return value
        close = difflib.get_close_matches(value, self.allowed, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        table.wrong(self.name, f"is '{value}'; allowed: {', '.join(self.allowed)}{hint}")
        return self.default


@dataclass(frozen=True)
class Whole(Key):
    """A whole number from ``lowest`` on."""

    lowest: int = 0

    def read(self, table: Table) -> Any:
        """The number."""
        value = table.take(self.name, int)
        if value is None or value >= self.lowest:
            return self.default if value is None else value
        table.wrong(self.name, f"is {value}; allowed: a whole number from {self.lowest}")
        return self.default


@dataclass(frozen=True)
class Parsed(Key):
    """A text for a function that raises ValueError with what is wrong."""

    parse: Callable[[str], Any] = str

    def read(self, table: Table) -> Any:
        """The result of the function."""
        value = table.text(self.name)
        try:
            return self.default if value is None else self.parse(value)
        except ValueError as error:
            table.wrong(self.name, str(error))
            return self.default


def matching(pattern: str, allowed: str) -> Callable[[str], object]:
    """Return a check for :class:`Key` that raises ValueError for texts of another form."""

    def check(text: str) -> None:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"is '{text}'; allowed: {allowed}")

    return check


class File(Key):
    """A file beside this one, whose text is wanted."""

    def read(self, table: Table) -> Any:
        """The text of the file; None, and a problem, if it can't be read."""
        name = table.text(self.name)
        if name is None:
            return None
        path = table.findings.folder / name
        try:
            return self.content(path)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
            table.wrong(self.name, f"can't read '{path}': {why}")
            return None

    def content(self, path: Path) -> Any:
        """Read the file; raises OSError and UnicodeDecodeError."""
        return path.read_text(encoding="utf-8")


class Bytes(File):
    """A file beside this one, whose bytes are wanted."""

    def content(self, path: Path) -> Any:
        """The bytes."""
        return path.read_bytes()


@dataclass(frozen=True)
class Texts(Key):
    """A table whose keys another program knows, as the options of a storage."""

    fractions: bool = False

    def read(self, table: Table) -> Any:
        """The values by their keys, as texts."""
        return texts(table.table(self.name), self.fractions)


def texts(table: Table | None, fractions: bool = False) -> dict[str, str]:
    """All keys of a table with their values as texts; values of other kinds are problems.

    Tables inside it are names with dots: ``s3.region`` may be written without quotes.
    """
    found: dict[str, str] = {}
    number, kinds = ("number", (int, float)) if fractions else ("whole number", (int,))
    for key, value in (table.rest() if table else {}).items():
        assert table is not None
        if isinstance(value, dict):
            inner = texts(Table(value, (*table.path, key), table.findings), fractions)
            found |= {f"{key}.{name}": text for name, text in inner.items()}
        elif isinstance(value, str):
            found[key] = table.expanded(key, value) or ""
        elif isinstance(value, kinds):
            found[key] = str(value).lower()
        else:
            table.wrong(key, f"is {value!r}; allowed: text in quotes, a {number}, true, false")
    return found
