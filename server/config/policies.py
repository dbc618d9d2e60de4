"""The policies that a stream or a consumer group may have: names, values, and lines of settings.

A value is kept as the text that was given, and a policy that is not there is off. What turns one
off by itself (``0``, ``no``, nothing) is a value like others: with it a stream or a group goes its
own way where a line of the configuration says otherwise. What each does is in docs/delivery.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from protocol.errors import shown
from protocol.inline import split_words
from server.config.quoting import quoted_word
from server.config.types import INT32_MAX, BadSetting, Lines, parse_memory
from server.runtime.arguments import parse_integer
from storage.keyspace.glob import matcher

Settings = dict[bytes, bytes]
"""Policies by name, with their values as text."""

MOST_STEPS: Final = 100
"""How many delays ``backoff`` may have."""

LATEST_MS: Final = 2**53
"""No time that is given in milliseconds is longer."""


class BadPolicy(Exception):
    """A policy cannot be; the text says which, why, and what is allowed."""


def _number(low: int, high: int) -> Callable[[bytes], str]:
    def check(value: bytes) -> str:
        number = parse_integer(value)
        fits = number is not None and low <= number <= high
        return "" if fits else f"a number from {low} to {high}"

    return check


def _one_of(*words: str) -> Callable[[bytes], str]:
    def check(value: bytes) -> str:
        return "" if shown(value) in words else " or ".join(words)

    return check


def _bytes(value: bytes) -> str:
    return "" if value and parse_memory(shown(value)) is not None else "a size such as 512mb"


def _anything(value: bytes) -> str:
    return ""


def _condition(value: bytes) -> str:
    return "" if not value or value.find(b"=") > 0 else "FIELD=VALUE"


def _delays(value: bytes) -> str:
    delays = [parse_integer(each) for each in value.split(b",")] if value else []
    fits = all(each is not None and 0 < each <= LATEST_MS for each in delays)
    return "" if fits and len(delays) <= MOST_STEPS else "milliseconds, such as 1000,5000,30000"


_count = _number(0, INT32_MAX)
_milliseconds = _number(0, LATEST_MS)

GROUP: Final[dict[bytes, Callable[[bytes], str]]] = {
    b"ack-wait": _milliseconds,
    b"backoff": _delays,
    b"consumer-ttl": _milliseconds,
    b"dead-letter": _anything,
    b"dead-letter-maxlen": _count,
    b"delay-field": _anything,
    b"max-deliveries": _count,
    b"max-pending": _count,
    b"max-pending-consumer": _count,
    b"only": _condition,
    b"order-by": _anything,
    b"paused": _one_of("yes", "no"),
}
"""The policies of a group, each with what says which values it may have, if a given one is not."""

STREAM: Final[dict[bytes, Callable[[bytes], str]]] = {
    b"auto-group": _one_of("0", "$", "no"),
    b"delete": _one_of("acked", "no"),
    b"delete-grace": _milliseconds,
    b"retention": _milliseconds,
    b"retention-bytes": _bytes,
    b"retention-unread": _one_of("keep", "drop"),
}
"""The same of a stream, which may have those of a group as well, for all groups."""

ALL: Final = {**GROUP, **STREAM}


def check(name: bytes, value: bytes, known: dict[bytes, Callable[[bytes], str]] = ALL) -> None:
    """Raises :class:`BadPolicy` if there is no such policy, or not with this value."""
    if name not in known:
        if name in ALL:
            raise BadPolicy(f"the policy '{shown(name)}' is one of streams, not of groups")
        raise BadPolicy(f"unknown policy '{shown(name)}', expected one of: {_names(known)}")
    allowed = known[name](value)
    if allowed:
        raise BadPolicy(f"{shown(name)}: '{shown(value)}' is not {allowed}")


def _names(names: Iterable[bytes]) -> str:
    return ", ".join(sorted(map(shown, names)))


def check_together(settings: Settings) -> None:
    """Raises :class:`BadPolicy` for policies that mean nothing without others."""
    if is_on(settings, b"max-deliveries") and not settings.get(b"dead-letter"):
        raise BadPolicy("max-deliveries: dead-letter must name a stream for them")
    if is_on(settings, b"dead-letter-maxlen") and not settings.get(b"dead-letter"):
        raise BadPolicy("dead-letter-maxlen: means nothing without dead-letter")
    if is_on(settings, b"delete-grace") and settings.get(b"delete") != b"acked":
        raise BadPolicy("delete-grace: means nothing without delete acked")


def is_on(settings: Settings, name: bytes) -> bool:
    """Whether a policy whose value is a number is there and not 0."""
    return settings.get(name, b"0") != b"0"


# --- lines of the configuration --------------------------------------------------------------


class Line(NamedTuple):
    """``stream-policy pattern group-pattern name value ...``."""

    key: bytes
    group: bytes
    settings: Settings

    @property
    def literal_group(self) -> bytes | None:
        """The one group that the line is for, ``None`` if there may be others."""
        return None if set(self.group) & set(b"*?[\\") else self.group

    def fits_key(self, key: bytes) -> bool:
        """Whether the line is for streams of this name."""
        return matcher(self.key)(key)

    def fits_group(self, group: bytes) -> bool:
        """Whether it is for groups of this name."""
        return matcher(self.group)(group)

    def has(self, known: dict[bytes, Callable[[bytes], str]]) -> bool:
        """Whether it says anything of these policies."""
        return any(name in known for name in self.settings)


def read_line(words: Sequence[bytes]) -> Line:
    """The line of these words; raises :class:`BadPolicy`."""
    if len(words) < len(("key", "group", "name", "value")) or len(words) % 2:
        raise BadPolicy("expected: pattern group name value [name value ...]")
    settings = read_settings(words[2:], ALL)
    line = Line(words[0], words[1], settings)
    if line.group != b"*":
        of_stream = [name for name in settings if name in STREAM and name != b"auto-group"]
        if of_stream:
            raise BadPolicy(f"{shown(of_stream[0])}: is of the whole stream: the group must be *")
    check_together(settings)
    return line


def read_settings(words: Sequence[bytes], known: dict[bytes, Callable[[bytes], str]]) -> Settings:
    """Names and values in turn; raises :class:`BadPolicy`."""
    settings: Settings = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        check(name.lower(), value, known)
        if name.lower() in settings:
            raise BadPolicy(f"the policy '{shown(name)}' is given twice")
        settings[name.lower()] = value
    return settings


def settings_of_group(lines: Sequence[Line], key: bytes, group: bytes) -> Settings:
    """What the first line says that fits and says something of groups."""
    for line in lines:
        if line.has(GROUP) and line.fits_key(key) and line.fits_group(group):
            return {name: value for name, value in line.settings.items() if name in GROUP}
    return {}


def settings_of_stream(lines: Sequence[Line], key: bytes) -> Settings:
    """What the first line says that fits, is for all groups, and says something of streams."""
    for line in lines:
        if line.group == b"*" and line.has(STREAM) and line.fits_key(key):
            return {name: value for name, value in line.settings.items() if name in STREAM}
    return {}


def auto_group(lines: Sequence[Line], key: bytes, group: bytes) -> bytes | None:
    """Where a group begins that is made because somebody reads as it; ``None`` if it is not."""
    for line in lines:
        if b"auto-group" in line.settings and line.fits_key(key) and line.fits_group(group):
            return line.settings[b"auto-group"]
    return None


def groups_to_make(lines: Sequence[Line], key: bytes) -> Iterator[bytes]:
    """The groups that a stream of this name has from its first entry on."""
    for line in lines:
        name = line.literal_group
        if name is not None and b"auto-group" in line.settings and line.fits_key(key):
            yield name


def circle(
    start: bytes, onward: Iterable[bytes], targets: Callable[[bytes], Iterable[bytes]]
) -> list[bytes]:
    """The streams through which dead letters of ``start`` would come back to it, if they went
    ``onward`` and then wherever ``targets`` says; empty if they do not."""
    before = dict.fromkeys(onward, start)
    found = list(before)
    for at in found:  # Which grows meanwhile.
        if at == start:
            way = [start, before[start]]
            while way[-1] != start:
                way.append(before[way[-1]])
            return way[::-1]
        for each in targets(at):
            if each not in before:
                before[each] = at
                found.append(each)
    return []


def circle_text(way: Iterable[bytes]) -> str:
    """Say that dead letters would come back to the stream that they were in, and how."""
    return f"dead-letter: dead letters would come back: {' -> '.join(map(shown, way))}"


def targets_of(lines: Iterable[Line], key: bytes) -> list[bytes]:
    """Where lines send dead letters of a stream. One that names a stream that it fits is not for
    that stream."""
    found = (line.settings.get(b"dead-letter") for line in lines if line.fits_key(key))
    return [target for target in found if target and target != key]


class StreamPolicies(Lines):
    """Lines of policies, any number of them."""

    def parse(self, text: str) -> tuple[Line, ...]:
        """One line, or several with line breaks between them."""
        lines: list[Line] = []
        for each in text.split("\n") if text else []:
            words = split_words(each.encode("utf-8", "surrogateescape"))
            if words is None:
                raise BadSetting("unbalanced quotes")
            try:
                lines.append(read_line(words))
            except BadPolicy as error:
                raise BadSetting(str(error)) from None
        return tuple(lines)

    def merge(self, current: tuple[Line, ...], given: tuple[Line, ...]) -> tuple[Line, ...]:
        """Lines add up; dead letters must not go round in a circle."""
        lines = current + given
        onward = partial(targets_of, lines)
        for line in given:
            target = line.settings.get(b"dead-letter")
            way = circle(target, onward(target), onward) if target else []
            if way:
                raise BadSetting(circle_text(way))
        return lines

    def show(self, value: tuple[Line, ...]) -> str:
        """The lines, with line breaks between them."""
        return "\n".join(map(_show_line, value))


def _show_line(line: Line) -> str:
    words = [line.key, line.group, *(word for pair in line.settings.items() for word in pair)]
    return " ".join(quoted_word(shown(word)) for word in words)
