"""A selector: one set of commands, keys and channels that a user may use together.

A selector is what rules have made of it, in two forms. One is what it shows: the rules in their
normal form. The other is what a check asks: a set of commands, and for each key seen lately which
rights to it there are.
"""

from __future__ import annotations

import re
from typing import Final

from server.core.table import READ, SPREAD, WRITE, Arguments, Command, Table, every
from storage.keyspace.glob import Matcher, matcher

READ_WRITE: Final = READ | WRITE

ANY_KEY: Final = b"*"

_GRANTS: Final = {READ: 0b0011, WRITE: 0b0101, READ_WRITE: 0b1111}
"""Which needs a pattern meets, a bit for each of 0 (any right), READ, WRITE and both. A key that is
read and written needs one pattern with both rights."""
_EVERYTHING: Final = 0b1111

_PREFIXES: Final = {READ: b"%R~", WRITE: b"%W~", READ_WRITE: b"~"}

_SPECIAL: Final = re.compile(rb"[\"']|\)\Z")
"""What a word between parentheses cannot have without quotes: quotes, and an end like theirs."""

_MOST_KEYS: Final = 1024
_LONGEST_KEY: Final = 256
"""How many keys are remembered with the rights to them, and how long they may be."""


def _quoted(word: bytes) -> bytes:
    if _SPECIAL.search(word) is None:
        return word
    return b'"' + word.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


class Denial:
    """Why a request is not allowed: ``kind`` is ``command``, ``key`` or ``channel``, and
    ``subject`` the command, key or channel. ``progress`` tells how far the check got."""

    __slots__ = ("kind", "progress", "subject")

    def __init__(self, kind: str, subject: bytes, progress: tuple[int, int]) -> None:
        self.kind = kind
        self.subject = subject
        self.progress = progress


class Selector:
    """The permissions of a user, or one more set of them. A new one allows nothing."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.all_keys = False
        self.all_channels = False
        self.patterns: dict[bytes, int] = {}
        """The rights to the keys that fit each pattern."""
        self.channels: dict[bytes, None] = {}
        self.base = b"-@all"
        self.rules: dict[bytes, bytes] = {}
        """The rules about commands after ``base``: a sign by the name of a command or category."""
        self.allowed: set[Command] = set()
        self.first_arguments: dict[Command, set[bytes]] = {}
        """What the first argument of a command must be that is allowed with nothing else."""
        self._matchers: list[tuple[Matcher, int]] = []
        self._known: dict[bytes, int] = {}

    def copy(self) -> Selector:
        """A selector with the same rules."""
        twin = Selector(self.table)
        twin.all_keys, twin.all_channels = self.all_keys, self.all_channels
        twin.patterns = dict(self.patterns)
        twin.channels = dict(self.channels)
        twin.base, twin.rules = self.base, dict(self.rules)
        twin.allowed = set(self.allowed)
        twin.first_arguments = {key: set(words) for key, words in self.first_arguments.items()}
        twin._keys_changed()
        return twin

    # --- rules ----------------------------------------------------------------------------

    def add_pattern(self, pattern: bytes, rights: int) -> None:
        """Gives rights to the keys that fit a pattern."""
        self.patterns[pattern] = self.patterns.get(pattern, 0) | rights
        self._keys_changed()

    def set_all_keys(self, allowed: bool) -> None:
        """Gives all rights to every key, or no rights to any."""
        self.all_keys = allowed
        self.patterns = {ANY_KEY: READ_WRITE} if allowed else {}
        self._keys_changed()

    def _keys_changed(self) -> None:
        self._matchers = [
            (matcher(pattern), _GRANTS[rights]) for pattern, rights in self.patterns.items()
        ]
        self._known = {}

    def set_all_channels(self, allowed: bool) -> None:
        """Allows every channel, or none."""
        self.all_channels = allowed
        self.channels = {}

    def set_all_commands(self, allowed: bool) -> None:
        """Allows every command, or none."""
        self.base = b"+@all" if allowed else b"-@all"
        self.rules = {}
        self.allowed = set(every(self.table)) if allowed else set()
        self.first_arguments = {}

    def set_command(self, command: Command, allowed: bool) -> None:
        """Allows a command with all its subcommands, or forbids it."""
        self._change(command, allowed)
        self.note_command(command.fullname.encode(), allowed)

    def note_command(self, name: bytes, allowed: bool) -> None:
        """Shows the rule about a command from now on, and none about its subcommands before it."""
        for other in [rule for rule in self.rules if rule.startswith(name + b"|")]:
            del self.rules[other]
        self._note(name, allowed)

    def set_category(self, name: bytes, allowed: bool) -> None:
        """Allows or forbids the commands of a category."""
        category = name.decode()
        for command in every(self.table):
            if category in command.categories:
                self._change(command, allowed)
        self._note(b"@" + name, allowed)

    def add_first_argument(self, command: Command, argument: bytes) -> None:
        """Allows a command with a first argument."""
        self.first_arguments.setdefault(command, set()).add(argument)
        self._note(command.fullname.encode() + b"|" + argument, True)

    def _change(self, command: Command, allowed: bool) -> None:
        for each in (command, *command.subcommands.values()):
            self.first_arguments.pop(each, None)
            if allowed:
                self.allowed.add(each)
            else:
                self.allowed.discard(each)

    def _note(self, name: bytes, allowed: bool) -> None:
        """Puts a rule at the end, instead of an earlier one of that name."""
        self.rules.pop(name, None)
        self.rules[name] = b"+" if allowed else b"-"

    # --- what it shows --------------------------------------------------------------------

    def show_keys(self) -> bytes:
        """The patterns of keys, each with its rights."""
        return b" ".join(_PREFIXES[rights] + key for key, rights in self.patterns.items())

    def show_channels(self) -> bytes:
        """The patterns of channels."""
        if self.all_channels:
            return b"&*"
        return b" ".join(b"&" + channel for channel in self.channels)

    def show_commands(self) -> bytes:
        """The rules about commands."""
        return b" ".join([self.base, *(sign + name for name, sign in self.rules.items())])

    def show(self) -> bytes:
        """All rules as one that has none yet would take them."""
        channels = self.show_channels()
        if not self.all_channels:
            channels = b" ".join(filter(None, (b"resetchannels", channels)))
        return b" ".join(filter(None, (self.show_keys(), channels, self.show_commands())))

    def show_in_parentheses(self) -> bytes:
        """Return the selector as a rule for a user; what would be taken for its end or for a quote
        is quoted."""
        return b"(" + b" ".join(map(_quoted, self.show().split(b" "))) + b")"

    # --- checks ---------------------------------------------------------------------------

    @property
    def allows_everything(self) -> bool:
        """Whether there is nothing to check."""
        return (
            self.all_channels
            and self.all_keys
            and len(self.allowed) == sum(1 for _ in every(self.table))
        )

    def permits(self, command: Command, args: Arguments) -> bool:
        """Whether a request is certainly allowed. It is a quick answer for most that are: all but
        those with channels or with a first argument that is allowed by a rule of its own."""
        at = command.key_at
        if command not in self.allowed or at >= len(args):
            return False
        if at <= 0:
            return at == 0 or (at == SPREAD and self._permits_all(command, args))
        if self.all_keys:
            return True
        known = self._known.get(args[at])
        if known is None:
            known = self.grants(args[at])
        return known & command.key_need != 0

    def _permits_all(self, command: Command, args: Arguments) -> bool:
        """Whether all keys may be used, wherever they are."""
        if self.all_keys:
            return True
        for spec in command.keys:
            need = 1 << (spec.need if spec.vary is None else spec.need_in(args))
            for key in spec.extract(args):
                known = self._known.get(key)
                if known is None:
                    known = self.grants(key)
                if not known & need:
                    return False
        return True

    def denial(
        self, command: Command, args: Arguments, uses: list[tuple[bytes, int]]
    ) -> Denial | None:
        """Return what a request lacks that uses these keys, ``None`` if it is allowed."""
        if command not in self.allowed and not self._allows_first(command, args):
            return Denial("command", command.fullname.encode(), (0, 0))
        for place, (key, need) in enumerate(uses):
            if not self.grants(key) & 1 << need:
                return Denial("key", key, (1, place))
        if command.channels is not None and not self.all_channels:
            patterns = command.channels.patterns
            for place, channel in enumerate(command.channels.names(args)):
                if not self.allows_channel(channel, patterns):
                    return Denial("channel", channel, (2, place))
        return None

    def _allows_first(self, command: Command, args: Arguments) -> bool:
        words = self.first_arguments.get(command)
        return words is not None and len(args) > 1 and args[1].lower() in words

    def grants(self, key: bytes) -> int:
        """Which needs of the key are met: a bit for each, see :data:`_GRANTS`."""
        if self.all_keys:
            return _EVERYTHING
        known = self._known.get(key)
        if known is not None:
            return known
        found = 0
        for fits, needs in self._matchers:
            if found | needs != found and fits(key):
                found |= needs
        if len(key) <= _LONGEST_KEY:
            if len(self._known) >= _MOST_KEYS:
                self._known.clear()
            self._known[key] = found
        return found

    def allows_channel(self, channel: bytes, is_pattern: bool) -> bool:
        """Whether a channel may be used; a pattern of channels must be listed as it is."""
        if self.all_channels:
            return True
        if is_pattern:
            return channel in self.channels
        return any(matcher(pattern)(channel) for pattern in self.channels)
