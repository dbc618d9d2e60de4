"""Elements at random: what HRANDFIELD, SRANDMEMBER and ZRANDMEMBER have in common."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator

from protocol import errors
from protocol.encoder import bulk
from protocol.errors import CommandError
from server.commands.declare import Handler
from server.commands.keys.long_work import in_steps
from server.core.outcomes import AT_ONCE, Outcome, Steps, write_each
from server.core.table import Arguments
from server.runtime.arguments import INT64_MAX, integer_between
from server.services import Services
from server.state.session import Session
from storage.types.collection import Members, drawn
from storage.types.hash import Hash
from storage.types.set import SetValue


def index_first(
    handler: Handler,
    server: Services,
    session: Session,
    args: Arguments,
    value: Hash | SetValue,
    count: int,
    *,
    writes: bool = False,
) -> Steps | None:
    """The reply of a handler that runs again behind work that makes the index which so many picks
    need (any, if the number is negative); ``None`` if they need none, or it is there."""
    members = value.members
    if not members.needs_index or count < -AT_ONCE or members.are_listed_for(count):
        return None

    def pick(_: None) -> Outcome:
        return handler(server, session, args)

    return in_steps(server, session, _indexing(value), pick, writes=writes)


def _indexing(value: Hash | SetValue) -> Generator[None, None, None]:
    """The value is held meanwhile, or its tables would be freed with its key."""
    yield from value.members.indexing()


class PickCount:
    """How many elements are asked for: different ones, or any if the number is negative; and
    whether each comes with what belongs to it, which the word ``with_more`` asks for."""

    __slots__ = ("count", "has_more")

    def __init__(self, args: Arguments, with_more: bytes = b"") -> None:
        self.count = integer_between(args[2], -INT64_MAX, INT64_MAX)
        self.has_more = len(args) == 4 and args[3].upper() == with_more != b""
        if len(args) > 3 and not self.has_more:
            raise CommandError(errors.SYNTAX)
        if self.has_more and abs(self.count) > INT64_MAX // 2:
            raise CommandError(errors.OUT_OF_RANGE)

    @property
    def is_long(self) -> bool:
        """Whether the reply is written in steps: what belongs to names has to be kept for it."""
        return abs(self.count) > AT_ONCE

    def reply(self, members: Members, more: Callable[[bytes], bytes], resp3: bool) -> Outcome:
        """The names that are picked; ``more`` returns what belongs to one, encoded."""
        total, names = self._picks(members)
        if not self.has_more:
            return write_each(b"*%d\r\n" % total, map(bulk, names), total)
        begin = b"*2\r\n" if resp3 else b""
        pairs = (b"%b%b%b" % (begin, bulk(name), more(name)) for name in names)
        return write_each(b"*%d\r\n" % (total if resp3 else 2 * total), pairs, total)

    def _picks(self, members: Members) -> tuple[int, Iterator[bytes]]:
        times = -self.count
        if 0 < times <= AT_ONCE:
            return times, iter([members.pick() for _ in range(times)])
        if times > 0:
            names = list(members.names)
            return times, (random.choice(names) for _ in range(times))
        if self.is_long and self.count < len(members.names) and members.are_listed_for(self.count):
            return self.count, drawn(list(members.names), self.count)
        found = members.picks(self.count)
        return len(found), iter(found)
