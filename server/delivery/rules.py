# Compiled by mypyc.
"""The policies of a group or a stream, as values that are quick to use."""

from __future__ import annotations

from typing import Final

from protocol.encoder import bulk
from server.config.policies import Settings
from server.config.types import parse_memory

NEVER: Final = 2**62
"""A time that does not come."""


class GroupRules:
    """What the policies of a consumer group say; 0 or nothing where there is none.

    ``ack_wait``, ``consumer_ttl`` and the delays of ``backoff`` are milliseconds."""

    __slots__ = (
        "ack_wait",
        "backoff",
        "consumer_ttl",
        "dead_letter",
        "dead_letter_maxlen",
        "delay_field",
        "earliest_retry",
        "max_deliveries",
        "max_pending",
        "max_pending_consumer",
        "only",
        "order_by",
        "paused",
        "retries",
        "selects",
        "settings",
    )

    def __init__(self, settings: Settings, key: bytes) -> None:
        self.settings = settings
        self.max_deliveries = _number(settings, b"max-deliveries")
        self.dead_letter = settings.get(b"dead-letter", b"")
        self.dead_letter_maxlen = _number(settings, b"dead-letter-maxlen")
        self.ack_wait = _number(settings, b"ack-wait")
        steps = settings.get(b"backoff", b"")
        self.backoff = [int(step) for step in steps.split(b",")] if steps else []
        self.consumer_ttl = _number(settings, b"consumer-ttl")
        self.max_pending = _number(settings, b"max-pending")
        self.max_pending_consumer = _number(settings, b"max-pending-consumer")
        self.order_by = _field(settings.get(b"order-by", b""))
        self.delay_field = _field(settings.get(b"delay-field", b""))
        self.only = _condition(settings.get(b"only", b""))
        self.paused = settings.get(b"paused") == b"yes"
        if self.dead_letter == key or not self.dead_letter:
            self.dead_letter = b""
            self.max_deliveries = 0
        self.retries = self.ack_wait > 0 or len(self.backoff) > 0
        self.earliest_retry = min(self.backoff) if self.backoff else self.ack_wait
        self.selects = (
            self.only is not None or self.order_by is not None or self.delay_field is not None
        )
        """Whether it depends on an entry's fields if it is delivered now."""

    def delay(self, deliveries: int) -> int:
        """How long after its n-th delivery an entry may be delivered again; ``backoff`` counts
        before ``ack-wait``, and its last delay for all deliveries that follow."""
        if self.backoff:
            return self.backoff[min(max(deliveries, 1), len(self.backoff)) - 1]
        return self.ack_wait

    def delay_of_released(self, deliveries: int) -> int:
        """The same for an entry that was given back."""
        return self.delay(deliveries) if self.backoff and deliveries > 0 else 0

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
            or self.selects
            or self.paused
        )

    @property
    def bounds_pending(self) -> bool:
        """Whether there are limits to how many entries may be in flight."""
        return self.max_pending > 0 or self.max_pending_consumer > 0


class StreamRules:
    """What the policies of a stream say; 0 or nothing where there is none. ``grace`` and
    ``retention`` are milliseconds, ``retention_bytes`` counts what nodes of Redis would take."""

    __slots__ = ("delete_acked", "grace", "keep_unread", "retention", "retention_bytes", "settings")

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.delete_acked = settings.get(b"delete") == b"acked"
        self.grace = _number(settings, b"delete-grace") if self.delete_acked else 0
        self.retention = _number(settings, b"retention")
        self.retention_bytes = parse_memory(settings.get(b"retention-bytes", b"0").decode()) or 0
        self.keep_unread = settings.get(b"retention-unread") == b"keep"

    @property
    def trims(self) -> bool:
        """Whether entries go by themselves."""
        return self.retention > 0 or self.retention_bytes > 0


class Field:
    """A field of entries, found in their RESP form without taking that apart: this is done for
    every entry that a group comes to."""

    __slots__ = ("_mark", "_size", "name")

    def __init__(self, name: bytes) -> None:
        self.name = name
        self._mark: bytes = bulk(name)
        self._size = len(self._mark)

    def place_in(self, payload: bytes) -> int:
        """Where the value of the first field of this name begins, as a bulk string; -1 without one.
        ``payload`` is the RESP form of the entry."""
        mark, size = self._mark, self._size
        at = _next_line(payload, bulk_end(payload, _ID_AT))
        end = len(payload)
        while at < end:
            value = bulk_end(payload, at)
            if value - at == size and payload[at:value] == mark:
                return value
            at = bulk_end(payload, value)
        return -1

    def value_in(self, payload: bytes) -> bytes | None:
        """That value, ``None`` without one."""
        at = self.place_in(payload)
        if at < 0:
            return None
        return payload[_next_line(payload, at) : bulk_end(payload, at) - _LINE_END]

    def time_in(self, payload: bytes) -> int:
        """The time in Unix milliseconds that the field holds; 0 if it holds none."""
        value = self.value_in(payload)
        if value is None or not value.isdigit() or len(value) > _LONGEST_TIME:
            return 0
        return int(value)


_LONGEST_TIME: Final = 16


_LINE_END: Final = 2


def _next_line(data: bytes, at: int) -> int:
    while data[at] != _LF:
        at += 1
    return at + 1


def bulk_end(data: bytes, at: int) -> int:
    """Where the bulk string at ``at`` ends, with the line break behind it."""
    length = 0
    at += 1
    digit = data[at]
    while digit != _CR:
        length = length * 10 + digit - _ZERO
        at += 1
        digit = data[at]
    return at + _LINE_END + length + _LINE_END


_CR: Final = 0x0D
_LF: Final = 0x0A
_ID_AT: Final = 4
_ZERO: Final = 0x30


class Condition:
    """A field and the value that it must have."""

    __slots__ = ("_field", "_size", "_value")

    def __init__(self, name: bytes, value: bytes) -> None:
        self._field = Field(name)
        self._value: bytes = bulk(value)
        self._size = len(self._value)

    def holds(self, payload: bytes) -> bool:
        """Whether the entry has the field with the value."""
        at = self._field.place_in(payload)
        return at >= 0 and payload[at : at + self._size] == self._value


def _number(settings: Settings, name: bytes) -> int:
    return int(settings.get(name, b"0"))


def _field(name: bytes) -> Field | None:
    return Field(name) if name else None


def _condition(text: bytes) -> Condition | None:
    name, _, value = text.partition(b"=")
    return Condition(name, value) if name else None
