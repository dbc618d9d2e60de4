"""The kinds of settings: how each is written, what it may be, and how it is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Final


class BadSetting(Exception):
    """A setting cannot have a value: ``name`` is its name, ``reason`` says what is allowed."""

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.name = name


INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1

NOT_AN_INTEGER: Final = "argument couldn't be parsed into an integer"

_INTEGER: Final = re.compile("0|-?[1-9][0-9]{0,18}")
_DIGITS: Final = re.compile("[0-9]{1,9}")
_DECIMAL: Final = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.I
)

_MEMORY_UNITS: Final = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1024,
    "m": 1000**2,
    "mb": 1024**2,
    "g": 1000**3,
    "gb": 1024**3,
}


def parse_memory(text: str) -> int | None:
    """A number of bytes such as ``512mb``, or ``None`` if the text is none; no digits are 0."""
    digits = text.rstrip("bBkKmMgG")
    unit = _MEMORY_UNITS.get(text[len(digits) :].lower())
    if unit is None or re.fullmatch("[0-9]*", digits) is None:
        return None
    return int(digits or "0") * unit


class Setting:
    """A setting that is any text.

    ``mutable`` says whether it may change while the server runs, ``guarded`` that clients may not
    change it though the server could; ``many`` that a configuration file gives it several words.
    """

    many = False
    repeated = False
    """Whether each line of a file adds to those before it."""
    read_again = False
    """Whether setting the value that it has already means something: a file is read anew."""
    unused = ""
    """Why no value has an effect here, if none has."""
    unsupported = ""
    """Why only the default can be kept, if so, and what to do instead of setting another value."""

    def __init__(
        self, name: str, default: Any, *, mutable: bool = True, guarded: bool = False
    ) -> None:
        self.name = name
        self.default = default
        self.mutable = mutable
        self.guarded = guarded

    def parse(self, text: str) -> Any:
        """The value of ``text``; raises :class:`BadSetting`."""
        return text

    def join(self, words: Sequence[str]) -> str:
        """The text of the words that a line gives it."""
        return " ".join(words)

    def add_line(self, before: str, text: str) -> str:
        """The text after a further line of a file, which here replaces what was before it."""
        return text

    def merge(self, current: Any, given: Any) -> Any:
        """The value after ``given`` was set on top of ``current``."""
        return given

    def show(self, value: Any) -> str:
        """The text of a value."""
        return str(value)


class Words(Setting):
    """Several words, with blanks between them."""

    many = True

    def parse(self, text: str) -> str:
        """The words with one blank between them."""
        return " ".join(text.split())


class Upstream(Words):
    """The server to follow, by host and port; ``no one`` is none."""

    def parse(self, text: str) -> str:
        """The host and the port, or nothing."""
        words = text.split()
        if words and len(words) != 2:
            raise BadSetting("wrong number of arguments")
        return "" if [word.lower() for word in words] == ["no", "one"] else " ".join(words)


class Lines(Setting):
    """Lines that a file may have any number of, and that CONFIG GET shows only by name."""

    many = True
    repeated = True

    def __init__(self, name: str) -> None:
        super().__init__(name, (), mutable=False)

    def join(self, words: Sequence[str]) -> str:
        """The words of a line, in quotes where they need them."""
        return " ".join(map(quoted_word, words))

    def parse(self, text: str) -> tuple[Any, ...]:
        """The lines, without a look at what is in them."""
        return tuple(text.split("\n")) if text else ()

    def merge(self, current: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
        """Lines add up."""
        return current + given

    def show(self, value: tuple[Any, ...]) -> str:
        """The lines, with line breaks between them."""
        return "\n".join(value)


class Directory(Setting):
    """A folder; a relative path counts from the folder that the process is in when it is set."""

    def parse(self, text: str) -> str:
        """The absolute path."""
        return os.path.abspath(text)

    def show(self, value: str) -> str:
        """The absolute path, of the default, too."""
        return os.path.abspath(value)


class ReadFile(Setting):
    """The path of a file or folder that is read when the setting is set, each time anew."""

    read_again = True

    def __init__(self, name: str) -> None:
        super().__init__(name, "")


class Integer(Setting):
    """A whole number within bounds; what is above ``clip`` or below one is brought within."""

    def __init__(
        self,
        name: str,
        default: int,
        low: int,
        high: int,
        *,
        mutable: bool = True,
        clip: int | None = None,
    ) -> None:
        super().__init__(name, default, mutable=mutable)
        self.low = low
        self.high = high
        self.clip = clip

    def parse(self, text: str) -> int:
        """The number; it has one spelling, without zeros in front and without a plus sign."""
        if _INTEGER.fullmatch(text) is None:
            raise BadSetting(NOT_AN_INTEGER)
        value = int(text)
        check_bounds(value, self.low, self.high)
        return value if self.clip is None else max(1, min(value, self.clip))


class Octal(Setting):
    """The permission bits of a file, in octal digits."""

    def parse(self, text: str) -> int:
        """The bits of ``text``."""
        if re.fullmatch("[0-7]{1,4}", text) is None:
            raise BadSetting(NOT_AN_INTEGER)
        value = int(text, 8)
        check_bounds(value, 0, 0o777)
        return value

    def show(self, value: int) -> str:
        """The octal digits."""
        return f"{value:o}"


class Memory(Setting):
    """A number of bytes, with an optional unit (``kb`` is 1024, ``k`` is 1000)."""

    def __init__(self, name: str, default: int, low: int = 0) -> None:
        super().__init__(name, default)
        self.low = low

    def parse(self, text: str) -> int:
        """The number of bytes."""
        value = parse_memory(text)
        if value is None:
            raise BadSetting("argument must be a memory value")
        check_bounds(value, self.low, INT64_MAX)
        return value


class Share(Setting):
    """A number of bytes, or a percentage: a pair of both, one of which is 0."""

    def parse(self, text: str) -> tuple[int, int]:
        """The bytes and the percentage."""
        if text.endswith("%") and _DIGITS.fullmatch(text[:-1]):
            if int(text[:-1]) > 100:
                raise BadSetting("percentage argument must be less or equal to 100")
            return 0, int(text[:-1])
        value = parse_memory(text)
        if value is None:
            raise BadSetting("argument must be a memory or percent value")
        check_bounds(value, 0, INT64_MAX)
        return value, 0

    def show(self, value: tuple[int, int]) -> str:
        """The percentage if there is one, else the number of bytes."""
        size, percent = value
        return f"{percent}%" if percent else str(size)


class PerUser(Setting):
    """A number for every user, and ``user=number`` for single ones; 0 is no limit.

    The value has the numbers by the names of users, and that of all others for an empty name."""

    many = True

    EVERYONE: Final = ""
    NO_LIMIT: Final[dict[str, int]] = {"": 0}

    def __init__(self, name: str) -> None:
        super().__init__(name, self.NO_LIMIT)

    def parse(self, text: str) -> dict[str, int]:
        """The numbers; that for every user comes first."""
        words = text.split()
        numbers = {self.EVERYONE: words.pop(0) if words and "=" not in words[0] else ""}
        for word in words:
            user, equals, number = word.rpartition("=")
            if not equals or not user or set(user) & set("\"'\\"):
                raise BadSetting(f"'{word}' is not a limit of a user such as ann=10")
            if user in numbers:
                raise BadSetting(f"user '{user}' has two limits")
            numbers[user] = number
        return {user: self._limit(number) for user, number in numbers.items()}

    def _limit(self, text: str) -> int:
        if _INTEGER.fullmatch(text) is None:
            raise BadSetting("argument must be a number, followed by user=number for single users")
        check_bounds(int(text), 0, INT32_MAX)
        return int(text)

    def show(self, value: dict[str, int]) -> str:
        """The number for every user, then the others as they were given."""
        single = [f"{user}={number}" for user, number in value.items() if user]
        return " ".join([str(value[self.EVERYONE]), *single])


def check_bounds(value: int, low: int, high: int) -> None:
    """Raises :class:`BadSetting` unless ``value`` lies between the bounds."""
    if not low <= value <= high:
        raise BadSetting(f"argument must be between {low} and {high} inclusive")


class Choice(Setting):
    """A word of several, written in any case."""

    def __init__(
        self, name: str, default: str, words: tuple[str, ...], *, mutable: bool = True
    ) -> None:
        super().__init__(name, default, mutable=mutable)
        self.words = words

    def parse(self, text: str) -> str:
        """The word as it is listed."""
        for word in self.words:
            if text.lower() == word.lower():
                return word
        words = ", ".join(self.words)
        raise BadSetting(f"argument(s) must be one of the following: {words}")


class Switch(Setting):
    """``yes`` or ``no``."""

    def __init__(self, name: str, default: str, *, mutable: bool = True) -> None:
        super().__init__(name, default == "yes", mutable=mutable)

    def parse(self, text: str) -> bool:
        """Whether it is on."""
        if text.lower() not in ("yes", "no"):
            raise BadSetting("argument must be 'yes' or 'no'")
        return text.lower() == "yes"

    def show(self, value: bool) -> str:
        """The word."""
        return "yes" if value else "no"


class Percentiles(Setting):
    """Percentages, with a blank between them."""

    many = True

    def parse(self, text: str) -> tuple[float, ...]:
        """The numbers."""
        words = text.split(" ") if text else []
        if not all(map(_DECIMAL.fullmatch, words)):
            raise BadSetting(f"Invalid {self.name} parameters")
        found = tuple(map(float, words))
        if not all(0 <= value <= 100 for value in found):
            raise BadSetting(f"{self.name} parameters should sit between [0.0,100.0]")
        return found

    def show(self, value: tuple[float, ...]) -> str:
        """The numbers, with at most six decimals."""
        return " ".join(map(percentage, value))


def percentage(value: float) -> str:
    """A number with at most six decimals, and no zeros at its end."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


class Filename(Setting):
    """The name of a file or a folder, without a path."""

    def parse(self, text: str) -> str:
        """The name."""
        if not text:
            raise BadSetting(f"{self.name} can't be empty")
        if "/" in text:
            raise BadSetting(f"{self.name} can't be a path, just a name")
        return text


class FilenameOrNone(Filename):
    """The name of a file or a folder without a path, or nothing."""

    def parse(self, text: str) -> str:
        """The name, which may be empty."""
        return super().parse(text) if text else ""


class SavePoints(Setting):
    """When snapshots are taken: pairs of seconds and a number of changes."""

    many = True

    def __init__(self, name: str) -> None:
        super().__init__(name, ())

    def add_line(self, before: str, text: str) -> str:
        """Lines add up; an empty one forgets those before it."""
        return f"{before} {text}".strip() if text else ""

    def parse(self, text: str) -> tuple[tuple[int, int], ...]:
        """The pairs."""
        words = text.split()
        well_formed = bool(words) or not text
        if not well_formed or len(words) % 2 or not all(map(_DIGITS.fullmatch, words)):
            raise BadSetting("Invalid save parameters")
        if not all(map(int, words[::2])):
            raise BadSetting("Invalid save parameters")
        return tuple(zip(map(int, words[::2]), map(int, words[1::2]), strict=True))

    def show(self, value: tuple[tuple[int, int], ...]) -> str:
        """The numbers with one blank between them."""
        return " ".join(f"{seconds} {changes}" for seconds, changes in value)


class KeyspaceEvents(Setting):
    """The classes of keyspace events that are published, a character each."""

    ALL: Final = "g$lshzxetd"
    """What ``A`` stands for."""
    NEWER: Final = "oc"
    """Values that are overwritten, and that change their type: not among what ``A`` stands for."""
    OF_FIELDS: Final = "STIV"
    """Channels for the fields of hashes. There are no hashes here, and nothing comes on them."""

    def parse(self, text: str) -> str:
        """The characters in the order that Redis shows, ``A`` for all that it stands for."""
        if not set(text) <= set("AKEmn" + self.NEWER + self.OF_FIELDS + self.ALL):
            raise BadSetting("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")
        given = set(text.replace("A", self.ALL))
        if given.issuperset(self.ALL):
            # `n`, new keys, is not among what `A` stands for, so it is kept beside it.
            classes = "A" + "n" * ("n" in given)
        else:
            classes = "".join(char for char in self.ALL + "n" if char in given)
        return classes + "".join(
            char for char in self.NEWER + "KEm" + self.OF_FIELDS if char in given
        )

    def show(self, value: str) -> str:
        """The characters as Redis shows them: no ``n`` behind ``A``."""
        return value.replace("An", "A")


Limits = tuple[int, int, int]
"""Bytes at once, bytes for a while, and how many seconds that while is; 0 for no limit."""


class OutputLimitsSetting(Setting):
    """How many bytes may wait for a client: class, hard limit, soft limit, seconds; and so on."""

    many = True

    CLASSES: Final = {"normal": "normal", "slave": "slave", "replica": "slave", "pubsub": "pubsub"}

    def parse(self, text: str) -> dict[str, Limits]:
        """The limits of every class that ``text`` names."""
        words = text.split(" ") if text else []
        if len(words) % 4:
            raise BadSetting("Wrong number of arguments in buffer limit configuration.")
        return dict(self._limits(*words[at : at + 4]) for at in range(0, len(words), 4))

    def _limits(self, name: str, hard: str, soft: str, seconds: str) -> tuple[str, Limits]:
        kind = self.CLASSES.get(name.lower())
        if kind is None:
            raise BadSetting("Invalid client class specified in buffer limit configuration.")
        hard_bytes, soft_bytes = parse_memory(hard), parse_memory(soft)
        if hard_bytes is None or soft_bytes is None or not re.fullmatch("[0-9]{1,9}", seconds):
            raise BadSetting(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration."
            )
        return kind, (hard_bytes, soft_bytes, int(seconds))

    def merge(self, current: dict[str, Limits], given: dict[str, Limits]) -> dict[str, Limits]:
        """Classes that are not named keep their limits."""
        return {**current, **given}

    def show(self, value: dict[str, Limits]) -> str:
        """All classes in one line."""
        return " ".join(f"{kind} {' '.join(map(str, limits))}" for kind, limits in value.items())


# --- words of a file -------------------------------------------------------------------------


def quoted_word(word: str) -> str:
    """The word, in quotes if it is empty or has anything in it that a file takes for more."""
    plain = word.isprintable() and word and not set(word) & set("\"'\\ ")
    return word if plain else quoted(word)


def quoted(text: str) -> str:
    """The text in quotes, with escapes for what is not plain text."""
    data = text.encode("utf-8", "surrogateescape")
    return '"' + "".join(map(_quoted_byte, data)) + '"'


def _quoted_byte(byte: int) -> str:
    if byte in b'"\\':
        return "\\" + chr(byte)
    return chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"
