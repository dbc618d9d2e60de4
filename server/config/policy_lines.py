"""Lines of the configuration that set policies of streams and groups, by patterns of their names.

A policy is given by the first line that fits and says anything of its kind; what a stream or a
group has of its own counts before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from protocol.errors import shown
from protocol.inline import split_words
from server.config.policies import (
    ALL,
    AUTO_GROUP,
    DEAD_LETTER,
    GROUP,
    STREAM,
    BadPolicy,
    Settings,
    Table,
    check_together,
    read_settings,
)
from server.config.types import BadSetting, Lines, quoted_word
from storage.keyspace.glob import matcher

FARTHEST: Final = 10_000
"""How many groups are looked at to find out whether dead letters come back."""


class PolicyLine(NamedTuple):
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

    def has(self, known: Table) -> bool:
        """Whether it says anything of these policies."""
        return any(name in known for name in self.settings)


def read_line(words: Sequence[bytes]) -> PolicyLine:
    """The line of these words; raises :class:`BadPolicy`."""
    if len(words) < len(("key", "group", "name", "value")) or len(words) % 2:
        raise BadPolicy("expected: pattern group name value [name value ...]")
    settings = read_settings(words[2:], ALL)
    line = PolicyLine(words[0], words[1], settings)
    if line.group != b"*":
        of_stream = [name for name in settings if name in STREAM and name != AUTO_GROUP.name]
        if of_stream:
            raise BadPolicy(f"{shown(of_stream[0])}: is of the whole stream: the group must be *")
    check_together(settings)
    return line


def settings_of_group(lines: Sequence[PolicyLine], key: bytes, group: bytes) -> Settings:
    """Returns the policies of the first line that fits and has some of groups."""
    for line in lines:
        if line.has(GROUP) and line.fits_key(key) and line.fits_group(group):
            return {name: value for name, value in line.settings.items() if name in GROUP}
    return {}


def settings_of_stream(lines: Sequence[PolicyLine], key: bytes) -> Settings:
    """Returns the policies of the first line that fits, is for all groups, and has some of
    streams."""
    for line in lines:
        if line.group == b"*" and line.has(STREAM) and line.fits_key(key):
            return {name: value for name, value in line.settings.items() if name in STREAM}
    return {}


def auto_group(lines: Sequence[PolicyLine], key: bytes, group: bytes) -> bytes | None:
    """Where a group begins that is made because somebody reads as it; ``None`` if it is not."""
    for line in lines:
        if AUTO_GROUP.name in line.settings and line.fits_key(key) and line.fits_group(group):
            return line.settings[AUTO_GROUP.name]
    return None


def groups_to_make(lines: Sequence[PolicyLine], key: bytes) -> Iterator[bytes]:
    """The groups that a stream of this name has from its first entry on."""
    for line in lines:
        name = line.literal_group
        if name is not None and AUTO_GROUP.name in line.settings and line.fits_key(key):
            yield name


def circle(
    start: bytes, onward: Iterable[bytes], targets: Callable[[bytes], Iterable[bytes]]
) -> list[bytes]:
    """The streams through which dead letters of ``start`` would come back to it, if they went
    ``onward`` and then wherever ``targets`` says; empty if they do not, as far as that is followed
    (:data:`FARTHEST`). An empty target is none."""
    before: dict[bytes, bytes] = {}
    found = [start]  # Which grows meanwhile.
    steps = ((at, each) for at in found for each in (onward if at == start else targets(at)))
    for at, each in islice(steps, FARTHEST):
        if each == start:
            way = [start, at]
            while way[-1] != start:
                way.append(before[way[-1]])
            return way[::-1]
        if each and each not in before:
            before[each] = at
            found.append(each)
    return []


def circle_text(way: Iterable[bytes]) -> str:
    """Say that dead letters would come back to the stream that they were in, and how."""
    return f"dead-letter: dead letters would come back: {' -> '.join(map(shown, way))}"


def targets_of(lines: Iterable[PolicyLine], key: bytes) -> list[bytes]:
    """Where lines send dead letters of a stream. One that names a stream that it fits is not for
    that stream."""
    found = (line.settings.get(DEAD_LETTER.name) for line in lines if line.fits_key(key))
    return [target for target in found if target and target != key]


class StreamPolicies(Lines):
    """Lines of policies, any number of them."""

    def parse(self, text: str) -> tuple[PolicyLine, ...]:
        """Reads a line, or several with line breaks between them."""
        lines: list[PolicyLine] = []
        for each in text.split("\n") if text else []:
            words = split_words(each.encode("utf-8", "surrogateescape"))
            if words is None:
                raise BadSetting("unbalanced quotes")
            try:
                lines.append(read_line(words))
            except BadPolicy as error:
                raise BadSetting(error.reason) from None
        return tuple(lines)

    def merge(
        self, current: tuple[PolicyLine, ...], given: tuple[PolicyLine, ...]
    ) -> tuple[PolicyLine, ...]:
        """Lines add up; dead letters must not go round in a circle."""
        lines = current + given
        onward = partial(targets_of, lines)
        for line in given:
            target = line.settings.get(DEAD_LETTER.name)
            way = circle(target, onward(target), onward) if target else []
            if way:
                raise BadSetting(circle_text(way))
        return lines

    def show(self, value: tuple[PolicyLine, ...]) -> str:
        """The lines, with line breaks between them."""
        return "\n".join(map(_show_line, value))


def _show_line(line: PolicyLine) -> str:
    words = [line.key, line.group, *(word for pair in line.settings.items() for word in pair)]
    return " ".join(quoted_word(shown(word)) for word in words)
