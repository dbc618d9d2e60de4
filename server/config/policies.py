"""The policies that a stream or a consumer group may have: one table, from which all else follows.

A row says how a policy is called, which values it may have, and what it means. Reading a value, the
errors of the commands and of the settings, what the page shows, and the tables of
docs/delivery-policies.md come from there; :class:`GroupRules` and :class:`StreamRules` hold the
values as they are used.

A value is kept as the text that was given, times in milliseconds whatever their unit was, and a
policy that is not there is off. What turns one off by itself (``0``, ``no``, nothing) is a value
like others: with it a stream or a group goes its own way where a line of the configuration says
otherwise.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from protocol.errors import CommandError, shown
from server.config.types import INT32_MAX, parse_memory
from server.runtime.arguments import parse_integer
from storage.engine.fields import Condition, Field

Settings = dict[bytes, bytes]
"""Policies by name, with their values as text."""

LOOKED_AHEAD: Final = 10_000
"""How many entries are kept back for their turn unless ``look-ahead`` says how many."""

MOST_STEPS: Final = 100
"""How many delays ``backoff`` may have."""

LATEST_MS: Final = 2**53
"""No time that is given in milliseconds is longer."""


class BadPolicy(CommandError):
    """A policy cannot be; ``reason`` says which, why, and what is allowed."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"ERR {reason}")
        self.reason = reason


# --- times ---------------------------------------------------------------------------------

_TIME: Final = re.compile(rb"(0|[1-9][0-9]{0,15})(ms|s|m|h|d|)")
_GROWING: Final = re.compile(rb"exponential:([^:]*):([^:]*)(?::(0|[1-9][0-9]?|100)%)?")
_UNITS: Final = {
    b"": 1,
    b"ms": 1,
    b"s": 1000,
    b"m": 60_000,
    b"h": 3_600_000,
    b"d": 86_400_000,
}


def parse_time(text: bytes) -> int | None:
    """Return the milliseconds of a length of time such as ``500``, ``30s``, ``5m``, ``2h`` or
    ``1d``, ``None`` if it is none or longer than :data:`LATEST_MS`."""
    found = _TIME.fullmatch(text)
    milliseconds = LATEST_MS + 1 if found is None else int(found[1]) * _UNITS[found[2]]
    return milliseconds if milliseconds <= LATEST_MS else None


# --- kinds -----------------------------------------------------------------------------------

ValueT = TypeVar("ValueT")


class Policy(Generic[ValueT]):
    """A policy. ``values`` tells in the documentation which values there are, ``allowed`` does so
    where one is refused, and ``help`` says what the policy does. ``off`` is the text that stands
    for a policy that is not there."""

    def __init__(self, name: bytes, values: str, allowed: str, off: bytes, help: str) -> None:
        self.name = name
        self.values = values
        self.allowed = allowed
        self.off = off
        self.help = help

    def read(self, text: bytes) -> ValueT:
        """Return the value of a text; raises :class:`BadPolicy` if the policy cannot have it."""
        raise NotImplementedError

    def plain(self, text: bytes) -> bytes:
        """Return the text by which a value is kept; raises :class:`BadPolicy` as :meth:`read`."""
        self.read(text)
        return text

    def of(self, settings: Settings) -> ValueT:
        """Return the value among the policies that something has."""
        return self.read(settings.get(self.name, self.off))

    def is_on(self, settings: Settings) -> bool:
        """Whether the policy is there and not turned off."""
        return settings.get(self.name, self.off) != self.off

    def refusal(self, text: bytes) -> BadPolicy:
        """Return the error for a text that is no value."""
        return BadPolicy(f"{shown(self.name)}: '{shown(text)}' is not {self.allowed}")


class Number(Policy[int]):
    """A number from 0 to ``high``, where 0 is off."""

    def __init__(self, name: bytes, help: str, high: int = INT32_MAX) -> None:
        super().__init__(name, "a number", f"a number from 0 to {high}", b"0", help)
        self.high = high

    def read(self, text: bytes) -> int:
        """Return the number."""
        number = parse_integer(text)
        if number is None or not 0 <= number <= self.high:
            raise self.refusal(text)
        return number


class Milliseconds(Policy[int]):
    """A length of time, where 0 is off."""

    def __init__(self, name: bytes, help: str) -> None:
        allowed = f"a time such as 500, 30s, 5m or 1d, up to {LATEST_MS} milliseconds"
        super().__init__(name, "a time", allowed, b"0", help)

    def read(self, text: bytes) -> int:
        """Return the milliseconds."""
        milliseconds = parse_time(text)
        if milliseconds is None:
            raise self.refusal(text)
        return milliseconds

    def plain(self, text: bytes) -> bytes:
        """Return the milliseconds as text."""
        return b"%d" % self.read(text)


class Backoff(NamedTuple):
    """Delays after the first, second, ... delivery, in milliseconds, of which the last counts for
    all that follow, and how many percent less they may be at random."""

    delays: list[int]
    jitter: int


class Delays(Policy[Backoff]):
    """Lengths of time with commas between them, or ``exponential:first:longest:jitter``; nothing is
    off."""

    def __init__(self, name: bytes, help: str) -> None:
        allowed = "times such as 1s,5s,30s, or exponential:1s:5m:20% (first, longest, jitter)"
        super().__init__(name, "times, with commas, or `exponential:1s:5m:20%`", allowed, b"", help)

    def read(self, text: bytes) -> Backoff:
        """Return the delays; those of an exponential one, each twice the one before, are all
        there."""
        growing = self._growing(text)
        if growing is None:
            return Backoff(self._times(text), 0)
        delay, longest, jitter = growing
        delays = [delay]
        while delay < longest:
            delay = min(2 * delay, longest)
            delays.append(delay)
        return Backoff(delays, jitter)

    def plain(self, text: bytes) -> bytes:
        """Return the same with all times in milliseconds."""
        growing = self._growing(text)
        if growing is None:
            return b",".join([b"%d" % time for time in self._times(text)])
        return b"exponential:%d:%d:%d%%" % growing

    def _times(self, text: bytes) -> list[int]:
        words = text.split(b",") if text else []
        if len(words) > MOST_STEPS:
            raise self.refusal(text)
        return [self._delay(word, text) for word in words]

    def _delay(self, word: bytes, text: bytes) -> int:
        """Return the milliseconds of a delay, which is a ``word`` of the ``text``."""
        delay = parse_time(word)
        if not delay:
            raise self.refusal(text)
        return delay

    def _growing(self, text: bytes) -> tuple[int, int, int] | None:
        """Return the first delay, the longest and the jitter, which may be left out, of an
        exponential one; ``None`` for one that is none."""
        if not text.startswith(b"exponential"):
            return None
        words = _GROWING.fullmatch(text)
        if words is None:
            raise self.refusal(text)
        first, longest = self._delay(words[1], text), self._delay(words[2], text)
        if first > longest:
            raise self.refusal(text)
        return first, longest, int(words[3] or 0)


class Rate(NamedTuple):
    """So many entries in so many milliseconds."""

    limit: int
    period_ms: int


class AtMost(Policy["Rate | None"]):
    """A number of entries and a length of time; nothing is off."""

    def __init__(self, name: bytes, help: str) -> None:
        allowed = "a number of entries and a time, such as 100/1s"
        super().__init__(name, "`NUMBER/TIME`", allowed, b"", help)

    def read(self, text: bytes) -> Rate | None:
        """Return the rate, ``None`` for off."""
        if not text:
            return None
        number, _, length = text.partition(b"/")
        limit, period_ms = parse_integer(number), parse_time(length)
        if limit is None or not 0 < limit <= INT32_MAX or not period_ms:
            raise self.refusal(text)
        return Rate(limit, period_ms)

    def plain(self, text: bytes) -> bytes:
        """Return the same with the time in milliseconds."""
        rate = self.read(text)
        return b"" if rate is None else b"%d/%d" % rate


class Size(Policy[int]):
    """A number of bytes, with a unit or without, where 0 is off."""

    def __init__(self, name: bytes, help: str) -> None:
        super().__init__(name, "a size, `512mb`", "a size such as 512mb", b"0", help)

    def read(self, text: bytes) -> int:
        """Return the number of bytes."""
        size = parse_memory(shown(text)) if text else None
        if size is None:
            raise self.refusal(text)
        return size


class WordPolicy(Policy[bytes]):
    """A word of several, of which the last is off."""

    def __init__(self, name: bytes, words: Sequence[str], help: str) -> None:
        values = ", ".join(f"`{word}`" for word in words)
        super().__init__(name, values, " or ".join(words), words[-1].encode(), help)
        self._words = words

    def read(self, text: bytes) -> bytes:
        """Return the word."""
        if shown(text) not in self._words:
            raise self.refusal(text)
        return text


class Target(Policy[bytes]):
    """The name of a stream; an empty one is off."""

    def __init__(self, name: bytes, help: str) -> None:
        super().__init__(name, "a stream", "", b"", help)

    def read(self, text: bytes) -> bytes:
        """Return the name."""
        return text


class OfField(Policy["Field | None"]):
    """The name of a field of entries; an empty one is off."""

    def __init__(self, name: bytes, help: str) -> None:
        super().__init__(name, "a field", "", b"", help)

    def read(self, text: bytes) -> Field | None:
        """Return what finds the field, ``None`` for off."""
        return Field(text) if text else None


class OfValue(Policy["Condition | None"]):
    """A field of entries and the value that it must have; nothing is off."""

    def __init__(self, name: bytes, help: str) -> None:
        super().__init__(name, "`FIELD=VALUE`", "FIELD=VALUE", b"", help)

    def read(self, text: bytes) -> Condition | None:
        """Return what tells whether an entry has it, ``None`` for off."""
        name, _, value = text.partition(b"=")
        if text and (not name or len(name) == len(text)):
            raise self.refusal(text)
        return Condition(name, value) if text else None


# --- the table -------------------------------------------------------------------------------

ACK_WAIT: Final = Milliseconds(
    b"ack-wait",
    "An entry that was not acknowledged for so long is delivered again by `XREADGROUP ... >`, to"
    " whoever reads first; who waits is woken.",
)
BACKOFF: Final = Delays(
    b"backoff",
    "How long after the first, second, ... delivery an entry may be delivered again; the last one"
    " counts for all that follow. `exponential:1s:5m:20%` doubles from a second to five minutes,"
    " each up to 20 percent less at random. It takes the place of `ack-wait`, and holds for entries"
    " that XNACK gave back as well.",
)
MAX_DELIVERIES: Final = Number(
    b"max-deliveries",
    "An entry that would be delivered once more than this becomes a dead letter. Needs"
    " `dead-letter`.",
)
DEAD_LETTER: Final = Target(
    b"dead-letter",
    "Where dead letters go; it is made if it is not there. XNACK FATAL sends an entry there at"
    " once.",
)
DEAD_LETTER_MAXLEN: Final = Number(
    b"dead-letter-maxlen", "How many entries that stream keeps; the oldest go."
)
CONSUMER_TTL: Final = Milliseconds(
    b"consumer-ttl",
    "A consumer that was not seen for so long gives its entries back (that delivery does not"
    " count) and is removed. One that waits in a blocking read is seen.",
)
RATE_LIMIT: Final = AtMost(
    b"rate-limit",
    "The group is given no more entries than this, new ones and again: with `100/1s` a hundred at"
    " once after a pause, then one in 10 milliseconds. Readers wait for the rest.",
)
MAX_PENDING: Final = Number(
    b"max-pending", "No more entries than this are in flight in the group; other readers wait."
)
MAX_PENDING_CONSUMER: Final = Number(b"max-pending-consumer", "The same for each consumer.")
ORDER_BY: Final = OfField(
    b"order-by",
    "Of the entries with the same value of the field, the next is delivered when the one before it"
    " is acknowledged (or dead). Entries without the field are in no order.",
)
PRIORITY_FIELD: Final = OfField(
    b"priority-field",
    "Of the entries that may be delivered, new ones and again, the one with the highest number in"
    " the field comes first; no number counts as 0, equal numbers are in the order of their IDs.",
)
LOOK_AHEAD: Final = Number(
    b"look-ahead",
    "How many entries `order-by` keeps back for their turn and `priority-field` compares, by"
    " default 10,000; a read looks no further.",
)
ONLY: Final = OfValue(
    b"only",
    "The group is given these entries alone; the others count as read.",
)
DELAY_FIELD: Final = OfField(
    b"delay-field",
    "An entry is not delivered before the time in the field, in Unix milliseconds, or seconds below"
    " 100,000,000,000. One whose field holds no time is delivered at once, and counted in"
    " `penstock_stream_group_bad_delays_total`.",
)
PAUSED: Final = WordPolicy(b"paused", ("yes", "no"), "Readers of the group wait.")
REASONS: Final = WordPolicy(
    b"reasons",
    ("yes", "no"),
    "How each delivery ended is kept with its entry, and the reason that `PENSTOCK NACK` gives.",
)

RETENTION: Final = Milliseconds(
    b"retention", "Entries go when the time in their ID is so long ago, within 10 milliseconds."
)
RETENTION_BYTES: Final = Size(
    b"retention-bytes",
    "The oldest entries go when all of them are larger, counted as Redis's nodes, within 100"
    " milliseconds.",
)
RETENTION_UNREAD: Final = WordPolicy(
    b"retention-unread",
    ("keep", "drop"),
    "With `keep` entries stay that a group has to read or to acknowledge. They go soon after it"
    " has, within a second at most.",
)
DELETE: Final = WordPolicy(
    b"delete",
    ("acked", "no"),
    "An entry that every group has acknowledged is deleted at that XACK.",
)
DELETE_GRACE: Final = Milliseconds(
    b"delete-grace",
    "It is kept until the time in its ID is so long ago, for groups that come later.",
)
AUTO_GROUP: Final = WordPolicy(
    b"auto-group",
    ("0", "$", "no"),
    "XREADGROUP makes the stream and the group, which begins at the first entry or behind the last."
    " The reader needs the right to XGROUP CREATE. In a line with the name of a group, XADD makes"
    " that group as well, whoever adds.",
)

Table = dict[bytes, Policy[Any]]
"""Policies by name."""


def _table(*policies: Policy[Any]) -> Table:
    return {policy.name: policy for policy in policies}


GROUP: Final = _table(
    ACK_WAIT,
    BACKOFF,
    MAX_DELIVERIES,
    DEAD_LETTER,
    DEAD_LETTER_MAXLEN,
    CONSUMER_TTL,
    RATE_LIMIT,
    MAX_PENDING,
    MAX_PENDING_CONSUMER,
    ORDER_BY,
    PRIORITY_FIELD,
    LOOK_AHEAD,
    ONLY,
    DELAY_FIELD,
    PAUSED,
    REASONS,
)
"""The policies of a group."""

STREAM: Final = _table(
    RETENTION, RETENTION_BYTES, RETENTION_UNREAD, DELETE, DELETE_GRACE, AUTO_GROUP
)
"""The policies of a stream, which may have those of a group as well, for all groups."""

ALL: Final[Table] = {**GROUP, **STREAM}

TIMES: Final = frozenset(
    name for name, policy in ALL.items() if isinstance(policy, Milliseconds | Delays)
)
"""The policies whose values are milliseconds."""

NEEDS: Final[tuple[tuple[Policy[Any], Policy[Any], str], ...]] = (
    (MAX_DELIVERIES, DEAD_LETTER, "dead-letter must name a stream for them"),
    (DEAD_LETTER_MAXLEN, DEAD_LETTER, "means nothing without dead-letter"),
    (DELETE_GRACE, DELETE, "means nothing without delete acked"),
)
"""Policies that mean nothing without another one, and what is said of that."""


# --- reading ---------------------------------------------------------------------------------


def read_settings(words: Sequence[bytes], known: Table) -> Settings:
    """Return the policies of names and values in turn; raises :class:`BadPolicy`."""
    settings: Settings = {}
    for name, value in zip(words[::2], words[1::2], strict=True):
        plain = _policy(name.lower(), known).plain(value)
        if name.lower() in settings:
            raise BadPolicy(f"the policy '{shown(name)}' is given twice")
        settings[name.lower()] = plain
    return settings


def _policy(name: bytes, known: Table) -> Policy[Any]:
    if name in known:
        return known[name]
    if name in ALL:
        raise BadPolicy(f"the policy '{shown(name)}' is one of streams, not of groups")
    raise BadPolicy(f"unknown policy '{shown(name)}', expected one of: {_names(known)}")


def _names(names: Iterable[bytes]) -> str:
    return ", ".join(sorted([shown(name) for name in names]))


def check_together(settings: Settings) -> None:
    """Raises :class:`BadPolicy` for policies that mean nothing without others."""
    for policy, other, reason in NEEDS:
        if policy.is_on(settings) and not other.is_on(settings):
            raise BadPolicy(f"{shown(policy.name)}: {reason}")


# --- as they are used ------------------------------------------------------------------------


class GroupRules:
    """The values of the policies of a consumer group; 0 or nothing where one is off.

    ``ack_wait``, ``consumer_ttl`` and the delays of ``backoff`` are milliseconds. What is at random
    about them follows from ``seed``, from the entry and from how often it was delivered: a delay is
    the same whenever it is asked for."""

    def __init__(self, settings: Settings, key: bytes, seed: int = 0) -> None:
        self.settings = settings
        self._seed = seed
        self.ack_wait = ACK_WAIT.of(settings)
        self.backoff, self._jitter = BACKOFF.of(settings)
        self.max_deliveries = MAX_DELIVERIES.of(settings)
        self.dead_letter = DEAD_LETTER.of(settings)
        self.dead_letter_maxlen = DEAD_LETTER_MAXLEN.of(settings)
        self.consumer_ttl = CONSUMER_TTL.of(settings)
        self.max_pending = MAX_PENDING.of(settings)
        self.max_pending_consumer = MAX_PENDING_CONSUMER.of(settings)
        self.rate = RATE_LIMIT.of(settings)
        self.order_by = ORDER_BY.of(settings)
        self.priority = PRIORITY_FIELD.of(settings)
        self.look_ahead = LOOK_AHEAD.of(settings) or LOOKED_AHEAD
        self.only = ONLY.of(settings)
        self.delay_field = DELAY_FIELD.of(settings)
        self.paused = PAUSED.is_on(settings)
        self.reasons = REASONS.is_on(settings)
        if self.dead_letter == key or not self.dead_letter:
            self.dead_letter = b""
            self.max_deliveries = 0
        self.retries = self.ack_wait > 0 or len(self.backoff) > 0
        delays = self.backoff or [self.ack_wait]
        self.earliest_retry = min(map(self._shortened, delays))
        self.selects = (
            self.only is not None
            or self.order_by is not None
            or self.priority is not None
            or self.delay_field is not None
        )
        """Whether it depends on an entry's fields if it is delivered now."""

    def delay(self, deliveries: int, entry_id: int) -> int:
        """Return how long after its n-th delivery an entry may be delivered again; ``backoff``
        counts before ``ack-wait``, and its last delay for all deliveries that follow."""
        delay = self._whole_delay(deliveries)
        if self._jitter:
            drawn = zlib.crc32(b"%d %d %d" % (self._seed, entry_id, deliveries))
            delay -= delay * self._jitter * drawn // (100 << 32)
        return delay

    def shortest_delay(self, deliveries: int) -> int:
        """Return how long after its n-th delivery any entry may be delivered again at the
        earliest."""
        return self._shortened(self._whole_delay(deliveries))

    def _whole_delay(self, deliveries: int) -> int:
        if self.backoff:
            return self.backoff[min(max(deliveries, 1), len(self.backoff)) - 1]
        return self.ack_wait

    def _shortened(self, delay: int) -> int:
        return delay - delay * self._jitter // 100

    def delay_of_released(self, deliveries: int, entry_id: int) -> int:
        """Return how long an entry waits that was given back after so many deliveries."""
        return self.delay(deliveries, entry_id) if self.backoff and deliveries > 0 else 0

    def is_exhausted(self, deliveries: int) -> bool:
        """Whether an entry that was delivered so often is not to be delivered once more."""
        return 0 < self.max_deliveries <= deliveries

    @property
    def anything(self) -> bool:
        """Whether any policy is on."""
        return (
            self.dead_letter != b""
            or self.retries
            or self.consumer_ttl > 0
            or self.bounds_pending
            or self.rate is not None
            or self.selects
            or self.paused
            or self.reasons
        )

    @property
    def bounds_pending(self) -> bool:
        """Whether there are limits to how many entries may be in flight."""
        return self.max_pending > 0 or self.max_pending_consumer > 0


class StreamRules:
    """The values of the policies of a stream; 0 or nothing where one is off. ``grace`` and
    ``retention`` are milliseconds, ``retention_bytes`` counts what nodes of Redis would take."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.delete_acked = DELETE.is_on(settings)
        self.grace = DELETE_GRACE.of(settings) if self.delete_acked else 0
        self.retention = RETENTION.of(settings)
        self.retention_bytes = RETENTION_BYTES.of(settings)
        self.keep_unread = RETENTION_UNREAD.is_on(settings)

    @property
    def trims(self) -> bool:
        """Whether entries go by themselves."""
        return self.retention > 0 or self.retention_bytes > 0
