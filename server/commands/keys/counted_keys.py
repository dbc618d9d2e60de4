"""Keys of which an argument before them is the number, in commands for collections."""

from __future__ import annotations

from protocol.errors import CommandError
from server.commands.keys import errors as key_errors
from server.core.table import Arguments
from server.runtime.arguments import parse_integer


class CountedKeys:
    """The keys, whose number is the argument ``first``; ``end`` is the place of what follows them.
    Raises :class:`CommandError`, with the text ``too_many`` where there are fewer arguments."""

    __slots__ = ("end", "keys")

    def __init__(
        self, args: Arguments, first: int, too_many: str = key_errors.TOO_MANY_KEYS
    ) -> None:
        count = parse_integer(args[first])
        if count is None or count <= 0:
            raise CommandError(key_errors.TOO_FEW_KEYS)
        self.end = first + 1 + count
        if self.end > len(args):
            raise CommandError(too_many)
        self.keys = args[first + 1 : self.end]
