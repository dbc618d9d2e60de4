"""The table of commands: a description of each, from which everything else follows.

Arity checks, COMMAND, access control, transactions and the documentation all read this table. A
handler is registered in it, with its :class:`Definition`, by its decorator (in
:mod:`server.commands.declare`). All servers share the definitions; each counts calls on commands of
its own, made by :func:`new_table`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from server.core.outcomes import Outcome
from server.runtime.arguments import parse_integer
from server.runtime.histogram import HdrHistogram

Arguments = list[bytes]
"""A whole request: the command's name (and subcommand's), then its arguments."""

KeyFinder = Callable[[Arguments], "list[bytes] | None"]
"""Finds the keys of a request with the command's own parser; ``None`` if that refuses it."""

KeyFlags = Callable[[Arguments], str]
"""Tells what a request does to its keys, in words of :data:`KEY_FLAGS`."""

READ: Final = 1
WRITE: Final = 2
"""The rights to keys. A command that only asks whether a key is there needs any of them: 0."""

Handler = Callable[[Any, Any, Arguments], Outcome]
"""Runs a command; this is how the dispatcher sees it. It is given the services of the server and
the client's session, which both stand above this module, and the request; the decorator of handlers
knows their types."""

COMMAND_FLAGS: Final = (
    "write",
    "readonly",
    "denyoom",
    "module",
    "admin",
    "pubsub",
    "noscript",
    "blocking",
    "loading",
    "stale",
    "skip_monitor",
    "skip_slowlog",
    "asking",
    "fast",
    "no_async_loading",
    "no_auth",
    "no_multi",
    "allow_busy",
    "no_mandatory_keys",
    "movablekeys",
)
"""Every flag of a command, in the order in which COMMAND INFO lists them."""

REPLICATED: Final = frozenset({"pfcount", "publish", "spublish"})
"""Commands without the flag ``write`` that replicas hear of: a pause of writes holds them back, and
scripts that only read may not call them."""

KEY_FLAGS: Final = (
    "RO",
    "RW",
    "OW",
    "RM",
    "access",
    "update",
    "insert",
    "delete",
    "not_key",
    "incomplete",
    "variable_flags",
)
"""Every flag of a key specification, in the order in which COMMAND INFO lists them."""

CATEGORIES: Final = (
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
)
"""Every ACL category, in the order in which they are listed."""


def _sorted(names: Iterable[str], order: tuple[str, ...]) -> list[str]:
    """The names once each, in their canonical order; an unknown name is a mistake."""
    return sorted(set(names), key=order.index)


def _rights(flags: list[str]) -> int:
    """The rights that are needed to do to a key what the flags say."""
    writes = "insert" in flags or "update" in flags or "delete" in flags
    return (READ if "access" in flags else 0) | (WRITE if writes else 0)


class KeySpec:
    """Where a command's keys are, in the terms of COMMAND INFO's key specifications.

    The search begins at argument ``index``, or behind the word ``keyword`` looked for from argument
    ``index``; from there ``last`` counts to the last key (negative: from the end of the arguments),
    every ``step``-th argument is a key, and ``limit`` of 2 takes the first half of what is left.
    Where the keys are ``counted``, argument ``index`` is their number and they follow it, every
    ``step``-th argument one.
    ``notes`` is what a reader should know of the flags.

    Those are the terms in which clients look for keys. Where a request can be written so that they
    would find others than the command uses, ``find`` is the command's own parser; and where the
    flags depend on the request, ``vary`` tells them. Keys that only that parser finds are
    ``anywhere``.
    """

    def __init__(
        self,
        flags: str,
        index: int = 1,
        last: int = 0,
        step: int = 1,
        keyword: str | None = None,
        limit: int = 0,
        *,
        counted: bool = False,
        notes: str = "",
        find: KeyFinder | None = None,
        vary: KeyFlags | None = None,
        anywhere: bool = False,
    ) -> None:
        self.counted = counted
        self.anywhere = anywhere
        self.find = find
        self.vary = vary
        self.flags = _sorted(flags.split(), KEY_FLAGS)
        self.need = _rights(self.flags)
        self.names_keys = "not_key" not in self.flags
        """Whether what is found are keys, and not channels that are spread like keys."""
        self.index = index
        self.last = last
        self.step = step
        self.keyword = keyword
        self.limit = limit
        self.notes = notes

    def extract(self, args: Arguments) -> list[bytes]:
        """The keys among ``args``; empty where the keyword is missing, or their number wrong."""
        if self.find is not None and (keys := self.find(args)) is not None:
            return keys
        if self.counted:
            return self._counted_keys(args)
        first = self.index
        if self.keyword is not None:
            word = self.keyword.encode()
            found = [i for i in range(self.index, len(args)) if args[i].upper() == word]
            if not found:
                return []
            first = found[0] + 1
        last = first + self.last if self.last >= 0 else len(args) + self.last
        if self.limit > 1:
            last = first + (len(args) - first) // self.limit - 1
        return args[first : last + 1 : self.step]

    def _counted_keys(self, args: Arguments) -> list[bytes]:
        if self.index >= len(args):
            return []
        first = self.index + 1
        count = parse_integer(args[self.index]) or 0
        last = first + self.step * count
        return args[first : last : self.step] if first < last <= len(args) else []

    def flags_in(self, args: Arguments) -> list[str]:
        """Return what the request does to these keys."""
        if self.vary is None:
            return self.flags
        return _sorted(self.vary(args).split(), KEY_FLAGS)

    def need_in(self, args: Arguments) -> int:
        """Which rights to these keys the request needs: of READ and WRITE, 0 for any."""
        return self.need if self.vary is None else _rights(self.flags_in(args))

    @property
    def moves(self) -> bool:
        """Whether only the request tells where the keys are."""
        return self.counted or self.anywhere or self.keyword is not None


HAS_CHANNELS: Final = -1
"""In place of where a command's key is: some of its arguments are channels."""
SPREAD: Final = -2
"""In place of where a command's key is: it may have more of them, or only a request tells where."""


class Channels:
    """Which arguments are channels: from ``first`` on, one or ``many``; or they are ``patterns``
    of channels."""

    def __init__(self, first: int = 1, *, many: bool = False, patterns: bool = False) -> None:
        self.first = first
        self.many = many
        self.patterns = patterns

    def names(self, args: Arguments) -> list[bytes]:
        """The channels or patterns among ``args``."""
        return args[self.first :] if self.many else args[self.first : self.first + 1]


def _one_key(keys: list[KeySpec], channels: Channels | None) -> tuple[int, int]:
    """Where the one key of a command is, and which rights to it are needed."""
    specs = [spec for spec in keys if spec.names_keys]
    if channels is not None:
        return HAS_CHANNELS, 0
    if not specs:
        return 0, 0
    spec = specs[0]
    if len(specs) > 1 or spec.find is not None or spec.last != 0 or spec.moves:
        return SPREAD, 0
    return spec.index, 1 << (spec.need if spec.vary is None else READ | WRITE)


# --- arity -----------------------------------------------------------------------------------

_WORDS: Final = re.compile(r"\.\.\.|[\[\]<>|]|[^\s\[\]<>|]+")
"""The words, brackets and bars of a syntax, see :mod:`server.core.command_syntax`."""


@cache
def arity_of(syntax: str, words: int) -> int:
    """Return how many words a request has, ``words`` of which are the name of its command; the
    least number, negated, where it may have more. Raises :class:`ValueError` for nonsense.

    This is quicker than :func:`server.core.command_syntax.parse`, for which a start has no time.
    """
    least, varies = _word_count(iter(_WORDS.findall(syntax)), "")
    return -(words + least) if varies else words + least


def _word_count(pieces: Iterator[str], end: str) -> tuple[int, bool]:
    """Count the words before the closing bracket ``end``: the least, and whether it varies."""
    counts = [0]
    varies = False
    for piece in pieces:
        if piece == end:
            break
        if piece == "|":
            counts.append(0)
        elif piece == "[":
            _word_count(pieces, "]")
            varies = True
        elif piece == "<":
            least, more = _word_count(pieces, ">")
            counts[-1] += least
            varies = varies or more
        else:
            counts[-1] += 1
    return min(counts), varies or len(set(counts)) > 1


# --- the table -------------------------------------------------------------------------------

NEVER_QUEUED: Final = frozenset({"exec", "discard", "multi", "watch", "quit", "reset"})
"""The commands that run at once inside MULTI."""


class Definition:
    """The declaration of a command or subcommand, the same in all servers.

    ``syntax`` describes the arguments as the command pages do, e.g. ``key [COUNT count]``; the
    ``arity`` follows from it, unless it is given. It counts the name (and the container's);
    negative: a minimum. ``categories`` names ACL categories beyond those that flags and group
    imply, or with a minus sign one that they imply wrongly; ``deprecated`` is the version since
    which it is, and what to use instead; a ``protected`` command runs only where the configuration
    allows it; ``channels`` tells which arguments are channels that a user needs a right to. A
    subcommand that is Penstock's ``own`` is not described with a command that Redis has: clients
    may know what that looks like.
    """

    def __init__(
        self,
        name: str,
        *,
        since: str = "",
        summary: str,
        syntax: str = "",
        arity: int | None = None,
        flags: str = "",
        group: str = "",
        categories: str = "",
        complexity: str = "O(1)",
        keys: Iterable[KeySpec] = (),
        channels: Channels | None = None,
        tips: Iterable[str] = (),
        history: Iterable[tuple[str, str]] = (),
        deprecated: tuple[str, str] | None = None,
        protected: bool = False,
    ) -> None:
        self.name = name.lower()
        self.fullname = self.name.replace(" ", "|")
        self.since = since
        self.summary = summary
        self.syntax = syntax
        self.arity = arity_of(syntax, len(name.split())) if arity is None else arity
        self.keys = list(keys)
        self.flags = _flags(flags, self.keys)
        self.group = group
        self.categories = categories.split()
        self.complexity = complexity
        self.channels = channels
        self.one_key = _one_key(self.keys, channels)
        self.tips = list(tips)
        self.history = list(history)
        self.deprecated = deprecated
        self.protected = protected
        self.handler: Handler

    def __call__(self, handler: Handler) -> Handler:
        """Declares the decorated handler, as :mod:`server.commands.declare` does."""
        # It stands here, too, as compiled objects that can be called begin in another way than
        # others, and so a class and those below it must agree on that.
        raise NotImplementedError

    def register(self, handler: Handler, group: str) -> None:
        """Adds the command to :data:`TABLE`, in which its container has to be already; ``group`` is
        the group of the command unless it was declared with another one."""
        self.handler = handler
        self.group = self.group or group
        self.categories = _categories(self.flags, self.group, self.categories)
        first, _, rest = self.name.partition(" ")
        label = (rest or first).encode()
        where = TABLE
        if rest:
            container = TABLE[first.encode()]
            container.special = True
            container.about.group = container.about.group or self.group
            where = container.subcommands
        assert label not in where, f"{self.name} is defined twice"
        where[label] = where[label.upper()] = Command(self)


class Command:
    """A command or subcommand in one server, which counts its calls.

    The counters are those of INFO commandstats, and ``durations`` those of latencystats.
    ``special`` marks what the dispatcher has to look at more closely: commands with subcommands,
    and those that a setting must allow (``protected``). ``queues`` tells whether it simply waits
    for EXEC inside MULTI. What else is declared of it is in ``about``.

    ``key_at`` is the place of the one key of a command that has one in a fixed place, and
    ``key_need`` has the bit of the rights to it that it needs at most, counted from 1 for any right
    (``1 << rights``). The place is 0 for a command without keys and
    channels, ``HAS_CHANNELS``, or ``SPREAD`` where :meth:`key_uses` has to look. ``channels`` tells
    which of its arguments are channels.
    """

    def __init__(self, about: Definition) -> None:
        self.about = about
        self.name = about.name
        self.fullname = about.fullname
        self.arity = about.arity
        self.handler = about.handler
        self.keys = about.keys
        self.key_at, self.key_need = about.one_key
        self.channels = about.channels
        self.flags = about.flags
        self.categories = about.categories
        self.writes = "write" in about.flags
        self.queues = self.name not in NEVER_QUEUED and "no_multi" not in about.flags
        self.protected = self.special = about.protected
        self.subcommands: dict[bytes, Command] = {}
        self.forget_calls()

    def forget_calls(self) -> None:
        """Sets the counters to zero."""
        self.calls = 0
        self.nanoseconds = 0
        self.rejected = 0
        self.failed = 0
        self.slow_count = 0
        self.slow_sum_ns = 0
        self.slow_max_ns = 0
        self.durations = HdrHistogram()

    @property
    def is_subcommand(self) -> bool:
        """Whether it belongs to a container."""
        return "|" in self.fullname

    def fits(self, count: int) -> bool:
        """Whether the command takes ``count`` arguments, its name included."""
        return count == self.arity or (self.arity < 0 and count >= -self.arity)

    def key_uses(self, args: Arguments) -> list[tuple[bytes, int]]:
        """The keys that a request uses, each with the rights to it that it needs."""
        uses: list[tuple[bytes, int]] = []
        for spec in self.keys:
            if spec.names_keys:
                need = spec.need_in(args)
                uses += [(key, need) for key in spec.extract(args)]
        return uses

    @property
    def key_range(self) -> tuple[int, int, int]:
        """First key, last key and step as COMMAND INFO gives them; zeros where keys move."""
        return _key_range(self.keys)


_GROUP_CATEGORIES: Final = {
    "generic": "keyspace",
    "sorted-set": "sortedset",
    "transactions": "transaction",
}


def _categories(flags: list[str], group: str, more: list[str]) -> list[str]:
    """ACL categories: from the flags, the group, and what is named; ``-name`` takes one away."""
    names: set[str] = {flag for flag in ("write", "admin", "pubsub", "blocking") if flag in flags}
    if "readonly" in flags:
        names.add("read")
    if "admin" in flags:
        names.add("dangerous")
    names.add("fast" if "fast" in flags else "slow")
    names |= {_GROUP_CATEGORIES.get(group, group)} & set(CATEGORIES)
    for name in more:
        if name.startswith("-"):
            names.discard(name[1:])
        else:
            names.add(name)
    return _sorted(names, CATEGORIES)


def _flags(flags: str, keys: list[KeySpec]) -> list[str]:
    """The flags that are named, with ``movablekeys`` where the keys are behind a keyword."""
    names = flags.replace("-", "_").split()
    if any(spec.moves for spec in keys):
        names.append("movablekeys")
    return _sorted(names, COMMAND_FLAGS)


def _key_range(keys: list[KeySpec]) -> tuple[int, int, int]:
    fixed = [spec for spec in keys if not spec.moves]
    if not fixed:
        return 0, 0, 0
    last = fixed[-1]
    return fixed[0].index, last.last if last.last < 0 else last.index + last.last, last.step


Table = dict[bytes, Command]

TABLE: Final[Table] = {}
"""The definition of every command by its name, in lower case and in upper case."""


def new_table() -> Table:
    """A copy of every definition, with counters of its own."""
    return _copied(TABLE)


def _copied(table: Table) -> Table:
    copies = {entry: Command(entry.about) for entry in dict.fromkeys(table.values())}
    for entry, its_copy in copies.items():
        its_copy.special = entry.special
        if entry.subcommands:  # As few have.
            its_copy.subcommands = _copied(entry.subcommands)
    return {label: copies[entry] for label, entry in table.items()}


def find(table: Table, args: Arguments) -> Command | None:
    """The command that ``args`` name, or ``None``; with an unknown subcommand, its container."""
    found = table.get(args[0]) or table.get(args[0].lower())
    if found is not None and found.subcommands and len(args) > 1:
        subcommands = found.subcommands
        return subcommands.get(args[1]) or subcommands.get(args[1].lower()) or found
    return found


def find_by_name(table: Table, name: bytes) -> Command | None:
    """The command called ``name``, a subcommand as ``xgroup|create``."""
    first, bar, rest = name.lower().partition(b"|")
    found = table.get(first)
    return found.subcommands.get(rest) if found is not None and bar else found


def commands(table: Table = TABLE) -> list[Command]:
    """Every command once, without subcommands, in the order of registration."""
    return list(dict.fromkeys(table.values()))


def subcommands(container: Command) -> list[Command]:
    """The container's subcommands once each."""
    return list(dict.fromkeys(container.subcommands.values()))


def every(table: Table = TABLE) -> Iterator[Command]:
    """Every command, each followed by its subcommands."""
    for entry in commands(table):
        yield entry
        if entry.subcommands:
            yield from subcommands(entry)
