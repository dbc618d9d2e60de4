# Compiled by mypyc.
"""The options of XADD, and those of them that XTRIM takes too: parsed here, applied elsewhere."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from server.commands.streams import errors as stream_errors
from server.road.table import Arguments
from server.runtime.arguments import integer
from storage.engine import ids
from storage.engine.limits import StreamLimits
from storage.engine.trimming import ACKED, DELREF, KEEPREF, Trim

POLICIES: Final = {b"KEEPREF": KEEPREF, b"DELREF": DELREF, b"ACKED": ACKED}


class TrimOptions:
    """Collects trimming options word by word; :meth:`order` makes a trimming of them."""

    __slots__ = ("_approximate", "_by_length", "_limit", "_policy", "_threshold")

    def __init__(self) -> None:
        self._by_length: bool | None = None
        self._threshold = 0
        self._approximate = False
        self._limit: int | None = None
        self._policy: str | None = None

    def take(self, args: Arguments, at: int) -> int:
        """Reads the option at ``at``; returns the place behind it, or ``at`` if it is none of
        these.

        Raises :class:`CommandError` for a bad value.
        """
        word = args[at].upper()
        more = len(args) - 1 - at
        if word in (b"MAXLEN", b"MINID") and more:
            return self._take_threshold(args, at, word == b"MAXLEN")
        if word == b"LIMIT" and more:
            self._limit = integer(args[at + 1])
            if self._limit < 0:
                raise CommandError(stream_errors.LIMIT_NEGATIVE)
            return at + 2
        if word in POLICIES:
            if self._policy is not None:
                raise CommandError(errors.SYNTAX)
            self._policy = POLICIES[word]
            return at + 1
        return at

    def _take_threshold(self, args: Arguments, at: int, by_length: bool) -> int:
        if self._by_length is not None:
            raise CommandError(stream_errors.TRIM_STRATEGY_TWICE)
        self._by_length = by_length
        at += 1
        if len(args) - at >= 2 and args[at] in (b"~", b"="):
            self._approximate = args[at] == b"~"
            at += 1
        if by_length:
            self._threshold = integer(args[at])
            if self._threshold < 0:
                raise CommandError(stream_errors.MAXLEN_NEGATIVE)
        else:
            self._threshold = ids.parse(args[at])
        return at + 1

    def order(self, default_limit: int) -> Trim | None:
        """The trimming asked for, or ``None``; raises :class:`CommandError` if options clash.

        ``default_limit`` bounds an approximate trimming that names no limit.
        """
        self._refuse_limit_alone()
        self._refuse_limit_of_exact()
        if self._by_length is None:
            return None
        return self._order(self._by_length, default_limit)

    def required_order(self, default_limit: int) -> Trim:
        """The same where there must be a trimming."""
        self._refuse_limit_alone()
        if self._by_length is None:
            raise CommandError(stream_errors.TRIM_STRATEGY_MISSING)
        self._refuse_limit_of_exact()
        return self._order(self._by_length, default_limit)

    def _refuse_limit_alone(self) -> None:
        if self._limit and self._by_length is None:
            raise CommandError(stream_errors.LIMIT_WITHOUT_STRATEGY)

    def _refuse_limit_of_exact(self) -> None:
        if self._limit is not None and not self._approximate:
            raise CommandError(stream_errors.LIMIT_WITHOUT_TILDE)

    def _order(self, by_length: bool, default_limit: int) -> Trim:
        limit = default_limit if self._limit is None else self._limit
        return Trim(by_length, self._threshold, self._approximate, limit, self._policy or KEEPREF)


class IdempotencyOption:
    """``IDMP pid iid`` or ``IDMPAUTO pid``; ``iid`` is ``None`` where the content makes it."""

    __slots__ = ("iid", "producer")

    def __init__(self, producer: bytes, iid: bytes | None) -> None:
        self.producer = producer
        self.iid = iid

    @classmethod
    def take(cls, args: Arguments, at: int) -> IdempotencyOption | None:
        """The option at ``at``, ``None`` if arguments lack; raises :class:`CommandError`."""
        automatic = args[at].upper() == b"IDMPAUTO"
        if len(args) - at < (2 if automatic else 3):
            return None
        producer = args[at + 1]
        if not producer:
            empty = (
                stream_errors.IDMPAUTO_EMPTY_PRODUCER
                if automatic
                else stream_errors.IDMP_EMPTY_PRODUCER
            )
            raise CommandError(empty)
        if not automatic and not args[at + 2]:
            raise CommandError(stream_errors.IDMP_EMPTY_ID)
        return cls(producer, None if automatic else args[at + 2])


class Addition:
    """The arguments of an XADD: its options, its ID (``None`` for ``*``), and where that stands."""

    __slots__ = ("at", "idempotency", "identity", "make", "trim")

    def __init__(self, args: Arguments, default_limit: int) -> None:
        self.make = True
        self.identity: tuple[int, bool] | None = None
        self.trim: Trim | None = None
        self.idempotency: IdempotencyOption | None = None
        self.at = 2
        if args[2] != b"*":
            self._scan(args, default_limit)
        if len(args) - self.at < 3 or (len(args) - self.at) % 2 == 0:
            raise CommandError(errors.wrong_arity("xadd"))

    def _scan(self, args: Arguments, default_limit: int) -> None:
        """Reads options until one is none: that is the ID."""
        options = TrimOptions()
        at = 2
        while at < len(args) and args[at] != b"*":
            following = self._take(args, at, options)
            if following == at:
                self.identity = ids.parse_new(args[at])
                break
            at = following
        self.at = at
        self.trim = options.order(default_limit)
        if self.idempotency is not None and at < len(args) and args[at] != b"*":
            raise CommandError(stream_errors.IDMP_NEEDS_AUTO_ID)

    def _take(self, args: Arguments, at: int, options: TrimOptions) -> int:
        if args[at][:1].isdigit():
            return at
        word = args[at].upper()
        if word == b"NOMKSTREAM":
            self.make = False
            return at + 1
        if word in (b"IDMP", b"IDMPAUTO"):
            if self.idempotency is not None:
                raise CommandError(stream_errors.IDMP_TWICE)
            self.idempotency = IdempotencyOption.take(args, at)
            return at + (3 if word == b"IDMP" else 2) if self.idempotency else at
        return options.take(args, at)


PLAIN: Final = Addition([b"XADD", b"key", b"*", b"field", b"value"], 0)
"""An XADD without options and with an ID made by the server, as most are: ``*`` is argument 2, and
the number of all arguments is odd."""


def addition_of(args: Arguments, limits: StreamLimits) -> Addition:
    """The arguments of an XADD; trimming options before ``*`` are remembered.

    A producer sends the same ones over and over, and parsing them took as long as adding.
    """
    if len(args) > _FEWEST_TRIMMING and args[2] in _THRESHOLDS:
        at = 5 if args[5] == b"*" else 4
        complete = args[at] == b"*" and (len(args) - at) % 2
        if complete and len(args[3]) + len(args[at - 1]) <= _LONGEST_THRESHOLD:
            return _remembered(tuple(args[2:at]), limits.approximate_limit)
    return Addition(args, limits.approximate_limit)


@lru_cache(maxsize=256)
def _remembered(options: tuple[bytes, ...], default_limit: int) -> Addition:
    return Addition([b"XADD", b"key", *options, b"*", b"field", b"value"], default_limit)


_THRESHOLDS: Final = (b"MAXLEN", b"maxlen", b"MINID", b"minid")
_LONGEST_THRESHOLD: Final = 64
_FEWEST_TRIMMING: Final = 6
