"""Commands about the server as a whole: its life, its clock, its memory, and what it has none of.

Functions, modules, replicas and the cluster don't exist here. Clients that ask for them
are told so in the words of a Redis that has none.
"""

from __future__ import annotations

import re
import time
from typing import Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import EMPTY_ARRAY, NO_REPLY, OK, Reply
from server.arguments import integer, integer_between, timeout_end
from server.blocking import Block
from server.clock import LATEST_MS, Clock
from server.commands.spec import Arguments, KeySpec, command, container
from server.help import help_lines, help_reply
from server.persistence import PersistenceError
from server.phase import Phase
from server.session import Session
from storage.stream import Stream

KEY_OVERHEAD: Final = 150
"""What a key takes besides its name and value, in bytes: its places in the tables of a database."""

_EVERYWHERE: Final = ("request_policy:all_shards", "response_policy:all_succeeded")
_FLUSH_MODES: Final = (b"SYNC", b"ASYNC")
_NUMBER: Final = re.compile(rb"\s*[+-]?(?:\d+\.?\d*|\.\d+)")


# --- time and life ---------------------------------------------------------------------------


@command(
    "TIME",
    1,
    flags="loading stale fast",
    group="server",
    since="2.6.0",
    summary="Tells the server's time.",
    tips=["nondeterministic_output"],
)
def time_(session: Session, args: Arguments) -> Reply:
    """Unix seconds, and the microseconds of the second."""
    now = session.db.keyspace.now_ms
    return [str(now // 1000), str(now % 1000 * 1000)]


@command(
    "WAIT",
    3,
    flags="blocking",
    group="generic",
    since="3.0.0",
    categories="-keyspace connection",
    summary="Waits until replicas have got the writes so far; there are never any replicas.",
    syntax="numreplicas timeout",
    tips=["request_policy:all_shards", "response_policy:agg_min"],
)
def wait(session: Session, args: Arguments) -> Reply | Block:
    """The number of replicas that have the writes: none, however long one waits."""
    replicas = integer(args[1])
    now = session.db.keyspace.now_ms
    end = timeout_end(args[2], now)
    if replicas <= 0:
        return 0
    block = Block([], end if end > now else None, lambda: block, needs_key=False, on_timeout=0)
    return block


@command(
    "SHUTDOWN",
    -1,
    flags="admin noscript loading stale no_multi allow_busy",
    group="server",
    since="1.0.0",
    summary="Ends the server.",
    syntax="[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    history=[("7.0.0", "The modifiers `NOW`, `FORCE` and `ABORT`.")],
)
def shutdown(session: Session, args: Arguments) -> Reply:
    """Ends the server, without a reply. Nobody is asked to wait, so there is nothing to abort."""
    words = [arg.upper() for arg in args[1:]]
    given = set(words)
    if not given <= {b"NOSAVE", b"SAVE", b"NOW", b"FORCE", b"ABORT"}:
        raise CommandError(errors.SYNTAX)
    if given >= {b"NOSAVE", b"SAVE"} or (b"ABORT" in given and len(given) > 1):
        raise CommandError(errors.SYNTAX)
    if given == {b"ABORT"}:
        raise CommandError(errors.NO_SHUTDOWN)
    if session.server.scripting.busy and b"NOSAVE" not in given:
        raise CommandError(errors.BUSY)
    if not _is_safe_to_end(session, save=b"SAVE" in given) and not given & {b"NOSAVE", b"FORCE"}:
        raise CommandError(errors.SHUTDOWN_FAILED)
    session.closing = True
    session.server.stopping.set()
    return NO_REPLY


def _is_safe_to_end(session: Session, save: bool) -> bool:
    """Writes what is to be written before the server ends; whether that went well."""
    persistence = session.server.persistence
    if session.server.phase is not Phase.SERVING:  # What there is so far must replace nothing.
        return True
    if save:
        try:
            persistence.save()
        except PersistenceError as error:
            session.server.log.warning(f"SHUTDOWN: the data could not be saved: {error}")
            return False
    return persistence.make_safe()


# --- DEBUG -----------------------------------------------------------------------------------

_DEBUG_HELP: Final = [
    ("CLOCK ADVANCE <milliseconds>", "Moves the server's time forward; what is due happens now."),
    ("CLOCK SET <unix-time-milliseconds>", "Sets the server's time, which runs on from there."),
    ("CLOCK RESET", "Goes back to the real time."),
    ("LOADAOF", "Makes all data anew from the append-only file."),
    ("LOG <message>", "Writes the message to the server's log."),
    ("RELOAD", "Makes all data anew from what a new base would hold."),
    ("SET-ACTIVE-EXPIRE <0|1>", "Stops and starts the removal of expired keys that nobody uses."),
    ("SLEEP <seconds>", "Stops the server for that long; fractions are allowed."),
]


@command(
    "DEBUG",
    -2,
    flags="admin noscript loading stale",
    group="server",
    since="1.0.0",
    summary="Commands for testing.",
    complexity="Depends on subcommand.",
    syntax="<SLEEP seconds | SET-ACTIVE-EXPIRE enabled | LOG message | LOADAOF | RELOAD"
    " | CLOCK <ADVANCE milliseconds | SET unix-time-milliseconds | RESET> | HELP>",
    protected=True,
)
def debug(session: Session, args: Arguments) -> Reply:
    """Does what tests need: sleeps, logs, turns the clock, or leaves expired keys alone."""
    subcommand = args[1].upper()
    if subcommand == b"HELP" and len(args) == 2:
        return help_lines("debug", _DEBUG_HELP)
    if subcommand == b"SLEEP" and len(args) == 3:
        time.sleep(max(0.0, _leading_number(args[2])))
    elif subcommand == b"SET-ACTIVE-EXPIRE" and len(args) == 3:
        session.server.active_expiry = _leading_number(args[2]) != 0
    elif subcommand == b"CLOCK" and len(args) in (3, 4):
        _turn_clock(session, args)
    elif subcommand == b"LOADAOF" and len(args) == 2:
        _load_again(session)
    elif subcommand == b"RELOAD" and len(args) == 2:
        _reload(session)
    elif subcommand == b"LOG" and len(args) == 3:
        session.server.log.warning(f"DEBUG LOG: {errors.shown(args[2])}")
    else:
        raise CommandError(errors.bad_subcommand("debug", args[1]))
    return OK


def _turn_clock(session: Session, args: Arguments) -> None:
    """DEBUG CLOCK. Not within a transaction: what falls due would happen in the middle of it."""
    by_ms = _turn(session.server.timekeeper, args)
    if session.executing:
        raise CommandError(errors.NOT_INSIDE_MULTI)
    if session.server.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)
    session.server.turn_clock(by_ms)
    # The client is not idle, whatever time it is now.
    session.seen_ms = session.server.clock()


def _turn(clock: Clock, args: Arguments) -> int:
    """By how many milliseconds the arguments turn the clock; raises :class:`CommandError`."""
    way = args[2].upper()
    if way == b"RESET" and len(args) == 3:
        return -clock.offset_ms
    now = clock.read()
    if way == b"ADVANCE" and len(args) == 4:
        return integer_between(args[3], 0, LATEST_MS - now)
    if way == b"SET" and len(args) == 4:
        return integer_between(args[3], 0, LATEST_MS) - now
    raise CommandError(errors.bad_subcommand("debug", args[1]))


def _load_again(session: Session) -> None:
    persistence = session.server.persistence
    if not persistence.on or persistence.appender.provisional:
        raise CommandError(errors.NOTHING_TO_LOAD)
    try:
        persistence.load_again()
    except PersistenceError as error:
        raise CommandError(errors.load_failed(str(error))) from None


def _reload(session: Session) -> None:
    if session.server.phase is not Phase.SERVING:
        raise CommandError(errors.LOADING)
    try:
        session.server.persistence.reload()
    except PersistenceError as error:
        raise CommandError(errors.save_failed(str(error))) from None


def _leading_number(text: bytes) -> float:
    """The number that the text begins with, 0 if there is none: DEBUG takes anything."""
    found = _NUMBER.match(text)
    return float(found[0]) if found is not None else 0.0


# --- MEMORY ----------------------------------------------------------------------------------

container(
    "MEMORY",
    group="server",
    since="4.0.0",
    summary="Commands about the memory that is used.",
)


@command(
    "MEMORY USAGE",
    -3,
    flags="readonly",
    group="server",
    since="4.0.0",
    summary="Estimates the memory that a key takes.",
    complexity="O(N) in the number of blocks, groups and consumers of a stream.",
    syntax="key [SAMPLES count]",
    keys=[KeySpec("RO", index=2)],
)
def memory_usage(session: Session, args: Arguments) -> Reply:
    """The bytes that a key with its value takes. All of it is measured, whatever SAMPLES says."""
    for at in range(3, len(args), 2):
        if args[at].upper() != b"SAMPLES" or at + 1 == len(args):
            raise CommandError(errors.SYNTAX)
        if integer(args[at + 1]) < 0:
            raise CommandError(errors.SYNTAX)
    value = session.db.get(args[2])
    if value is None:
        return None
    size = value.memory_usage() if isinstance(value, Stream) else len(value)
    return KEY_OVERHEAD + len(args[2]) + size


@command(
    "MEMORY HELP",
    2,
    flags="loading stale",
    group="server",
    since="4.0.0",
    summary="Describes the subcommands.",
)
def memory_help(session: Session, args: Arguments) -> Reply:
    """The subcommands, two lines each."""
    return help_reply(session, "memory")


# --- modules, functions, cluster -------------------------------------------------------------

container("MODULE", group="server", since="4.0.0", summary="Commands about modules.")


@command(
    "MODULE LIST",
    2,
    flags="admin noscript",
    group="server",
    since="4.0.0",
    summary="Lists the modules that are loaded: none.",
    tips=["nondeterministic_output_order"],
)
def module_list(session: Session, args: Arguments) -> Reply:
    """An empty list."""
    return EMPTY_ARRAY


@command(
    "MODULE HELP",
    2,
    flags="loading stale",
    group="server",
    since="5.0.0",
    summary="Describes the subcommands.",
)
def module_help(session: Session, args: Arguments) -> Reply:
    """The subcommands, two lines each."""
    return help_reply(session, "module")


container(
    "FUNCTION",
    group="scripting",
    since="7.0.0",
    summary="Commands about stored functions.",
)


@command(
    "FUNCTION LIST",
    -2,
    flags="noscript",
    group="scripting",
    since="7.0.0",
    summary="Lists the libraries of functions: none.",
    syntax="[LIBRARYNAME library-name-pattern] [WITHCODE]",
    tips=["nondeterministic_output_order"],
)
def function_list(session: Session, args: Arguments) -> Reply:
    """An empty list."""
    allowed = {b"LIBRARYNAME", b"WITHCODE"}
    words = iter(args[2:])
    for word in words:
        option = word.upper()
        if option not in allowed:
            raise CommandError(errors.unknown_function_argument(word))
        allowed.remove(option)
        if option == b"LIBRARYNAME" and next(words, None) is None:
            raise CommandError(errors.FUNCTION_LIBRARY_MISSING)
    return EMPTY_ARRAY


@command(
    "FUNCTION FLUSH",
    -2,
    flags="write noscript",
    group="scripting",
    since="7.0.0",
    summary="Removes every library of functions.",
    syntax="[ASYNC | SYNC]",
    tips=_EVERYWHERE,
)
def function_flush(session: Session, args: Arguments) -> Reply:
    """Nothing, there being no functions."""
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("function", args[1]))
    if len(args) == 3 and args[2].upper() not in _FLUSH_MODES:
        raise CommandError(errors.FUNCTION_FLUSH_MODE)
    return OK


@command(
    "FUNCTION HELP",
    2,
    flags="loading stale",
    group="scripting",
    since="7.0.0",
    summary="Describes the subcommands.",
)
def function_help(session: Session, args: Arguments) -> Reply:
    """The subcommands, two lines each."""
    return help_reply(session, "function")


container("CLUSTER", group="cluster", since="3.0.0", summary="Commands of Redis Cluster.")


@command(
    "CLUSTER INFO",
    2,
    flags="stale",
    group="cluster",
    since="3.0.0",
    summary="Describes the cluster that the server is a node of; it is none.",
    tips=["nondeterministic_output"],
)
def cluster_info(session: Session, args: Arguments) -> Reply:
    """The error of a server outside a cluster."""
    raise CommandError(errors.CLUSTER_DISABLED)


@command(
    "CLUSTER HELP",
    2,
    flags="loading stale",
    group="cluster",
    since="5.0.0",
    summary="Describes the subcommands.",
)
def cluster_help(session: Session, args: Arguments) -> Reply:
    """The same error: there is nothing to describe."""
    raise CommandError(errors.CLUSTER_DISABLED)
