# Compiled by mypyc.
"""What a fault does to a command that it strikes."""

from __future__ import annotations

from binascii import crc_hqx
from collections.abc import Callable
from typing import Final, NamedTuple

from protocol import errors, fault_errors
from server.road.table import Arguments, Command

ERROR: Final = "ERROR"
DELAY: Final = "DELAY"
CLOSE: Final = "CLOSE"
RESET: Final = "RESET"
CUT: Final = "CUT"
DROP: Final = "DROP"
NO_REPLY: Final = "NOREPLY"
READY: Final = "READY"
"""The kinds of actions. READY is an error that Redis gives by itself."""

SLOTS: Final = 16384


class Action(NamedTuple):
    """What happens to a command that a fault strikes.

    ``text`` is that of an ERROR, or the name of a READY one; ``number`` counts the milliseconds of
    a DELAY, or the bytes that are left by CUT."""

    kind: str
    text: str = ""
    number: int = 0


class Request(NamedTuple):
    """What a text may depend on: the command and its words, the key that made the fault match, and
    the address at which the client found the server."""

    command: Command
    args: Arguments
    key: bytes
    address: str


class Ready(NamedTuple):
    """An error that Redis gives by itself: its text, and which commands get it where a fault
    strikes any.

    Where it is ``specific`` it speaks of what the command names, so no other commands can get it.
    Otherwise it is a state of the server, for which EXEC discards its transaction."""

    text: Callable[[Request], str]
    applies: Callable[[Command], bool]
    specific: bool = False


# --- what depends on the request -------------------------------------------------------------

_GROUP_AT: Final = {
    **dict.fromkeys(("xack", "xackdel", "xpending", "xclaim", "xautoclaim", "xnack"), 2),
    **dict.fromkeys(("xgroup|setid", "xgroup|createconsumer", "xgroup|delconsumer"), 3),
    "xinfo|consumers": 3,
}
"""Where the consumer group is named, but by XREADGROUP."""


def names_group(command: Command) -> bool:
    """Whether the command needs a consumer group."""
    return command.fullname in _GROUP_AT or command.name == "xreadgroup"


def has_keys(command: Command) -> bool:
    """Whether the command uses keys."""
    return any(spec.names_keys for spec in command.keys)


def slot_of(key: bytes) -> int:
    """The hash slot of a key in a cluster: that of what is in its first braces, if anything is."""
    _, opened, rest = key.partition(b"{")
    tag, closed, _ = rest.partition(b"}")
    return crc_hqx(tag if opened and closed and tag else key, 0) % SLOTS


def _no_group(request: Request) -> str:
    command, args = request.command, request.args
    if command.name == "xreadgroup":
        return errors.no_group_in_xreadgroup(request.key, _word_behind(b"GROUP", args))
    group = args[_GROUP_AT[command.fullname]]
    if command.is_subcommand:
        return errors.no_group_for_key(group, request.key)
    return errors.no_group(request.key, group)


def _word_behind(word: bytes, args: Arguments) -> bytes:
    """What follows the word, nothing if it is not there: the syntax has not been checked yet."""
    words = iter(args)
    for found in words:
        if found.upper() == word:
            return next(words, b"")
    return b""


def _moved(request: Request) -> str:
    return fault_errors.moved(slot_of(request.key), request.address)


def _always(text: str) -> Callable[[Request], str]:
    return lambda request: text


def _without(flag: str) -> Callable[[Command], bool]:
    return lambda command: flag not in command.flags


READY_NAMES: Final[dict[str, Ready]] = {
    "LOADING": Ready(_always(errors.LOADING), _without("loading")),
    "READONLY": Ready(_always(fault_errors.READ_ONLY), lambda command: command.writes),
    "OOM": Ready(_always(errors.OUT_OF_MEMORY), lambda command: "denyoom" in command.flags),
    "NOGROUP": Ready(_no_group, names_group, specific=True),
    "BUSY": Ready(_always(errors.BUSY), _without("allow_busy")),
    "MOVED": Ready(_moved, has_keys, specific=True),
    "MASTERDOWN": Ready(_always(fault_errors.MASTER_DOWN), _without("stale")),
}
"""The errors that have a name of their own."""
