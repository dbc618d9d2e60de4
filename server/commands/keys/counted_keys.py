"""Keys of which an argument before them is the number, in commands for collections."""

from __future__ import annotations

from protocol import errors
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


class PopOptions(CountedKeys):
    """What LMPOP and ZMPOP have behind their keys: one of two ``ends``, of which ``is_first`` tells
    whether it is the first, and how many elements. Raises :class:`CommandError`."""

    __slots__ = ("count", "is_first")

    def __init__(self, args: Arguments, first: int, ends: tuple[bytes, bytes]) -> None:
        super().__init__(args, first, too_many=errors.SYNTAX)
        end, *words = args[self.end :] or [b""]
        if end.upper() not in ends:
            raise CommandError(errors.SYNTAX)
        self.is_first = end.upper() == ends[0]
        self.count = 1
        if not words:
            return
        if len(words) != 2 or words[0].upper() != b"COUNT":
            raise CommandError(errors.SYNTAX)
        count = parse_integer(words[1])
        if count is None or count <= 0:
            raise CommandError(key_errors.COUNT_TOO_SMALL)
        self.count = count


def limit_of(args: Arguments, at: int, flag: bytes = b"") -> int:
    """The LIMIT behind the keys; 0 for none. There may be a ``flag``, a word of its own. Raises
    :class:`CommandError`."""
    most = 0
    words = iter(args[at:])
    for word in words:
        if flag and word.upper() == flag:
            continue
        text = next(words, None)
        if word.upper() != b"LIMIT" or text is None:
            raise CommandError(errors.SYNTAX)
        limit = parse_integer(text)
        if limit is None or limit < 0:
            raise CommandError(key_errors.NEGATIVE_LIMIT)
        most = limit
    return most
