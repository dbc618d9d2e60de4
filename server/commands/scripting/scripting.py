"""Scripts: EVAL and its variants, and the cache of scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Reply
from server.commands.declare import command, container, help_command
from server.road.session import Session
from server.road.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.scripting import errors as script_errors
from server.services import Services

if TYPE_CHECKING:
    from server.road.outcomes import Wait

_FLAGS: Final = "noscript stale skip_monitor no_mandatory_keys"
_SYNTAX: Final = "numkeys [key [key ...]] [arg [arg ...]]"
_COMPLEXITY: Final = "Depends on the script."
_WRITING: Final = "RW access update"
_READING: Final = "RO access"
_FLUSH_MODES: Final = (b"SYNC", b"ASYNC")
_ON_ALL_NODES: Final = ("request_policy:all_nodes", "response_policy:all_succeeded")


def _keys_and_arguments(args: Arguments) -> tuple[Arguments, Arguments]:
    count = integer(args[2])
    if count > len(args) - 3:
        raise CommandError(script_errors.TOO_MANY_KEYS)
    if count < 0:
        raise CommandError(script_errors.NEGATIVE_KEYS)
    return args[3 : 3 + count], args[3 + count :]


@command(
    "EVAL",
    flags=_FLAGS,
    since="2.6.0",
    summary="Runs a Lua script.",
    complexity=_COMPLEXITY,
    syntax=f"script {_SYNTAX}",
    keys=[KeySpec(_WRITING, index=2, counted=True, notes="What becomes of the keys is unknown.")],
)
@command(
    "EVAL_RO",
    flags=f"{_FLAGS} readonly",
    since="7.0.0",
    categories="-read",
    summary="Runs a Lua script that may not write.",
    complexity=_COMPLEXITY,
    syntax=f"script {_SYNTAX}",
    keys=[KeySpec(_READING, index=2, counted=True, notes="What becomes of the keys is unknown.")],
)
def eval_(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """Answer with what the script returns; a command that would write fails in the ``RO`` form."""
    server.state.timings.announce_script(session, args)
    keys, arguments = _keys_and_arguments(args)
    return server.scripting.evaluate(session, args, keys, arguments)


@command(
    "EVALSHA",
    flags=_FLAGS,
    since="2.6.0",
    summary="Runs a cached Lua script, named by its SHA1.",
    complexity=_COMPLEXITY,
    syntax=f"sha1 {_SYNTAX}",
    keys=[KeySpec(_WRITING, index=2, counted=True)],
)
@command(
    "EVALSHA_RO",
    flags=f"{_FLAGS} readonly",
    since="7.0.0",
    categories="-read",
    summary="Runs a cached Lua script that may not write.",
    complexity=_COMPLEXITY,
    syntax=f"sha1 {_SYNTAX}",
    keys=[KeySpec(_READING, index=2, counted=True)],
)
def evalsha(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """Answer with what the script returns; a command that would write fails in the ``RO`` form."""
    server.state.timings.announce_script(session, args)
    keys, arguments = _keys_and_arguments(args)
    return server.scripting.evaluate_cached(session, args, keys, arguments)


# --- SCRIPT ----------------------------------------------------------------------------------

container("SCRIPT", since="2.6.0", summary="Commands about cached scripts.")


@command(
    "SCRIPT LOAD",
    flags="noscript stale",
    since="2.6.0",
    summary="Puts a script into the cache.",
    complexity="O(N) in the length of the script.",
    syntax="script",
    tips=_ON_ALL_NODES,
)
def script_load(server: Services, session: Session, args: Arguments) -> Reply:
    """The script's SHA1."""
    return Bulk(server.scripting.load(args[2]))


@command(
    "SCRIPT EXISTS",
    flags="noscript",
    since="2.6.0",
    summary="Tells which scripts are in the cache.",
    complexity="O(N) in the number of scripts asked for.",
    syntax="sha1 [sha1 ...]",
    tips=["request_policy:all_shards", "response_policy:agg_logical_and"],
)
def script_exists(server: Services, session: Session, args: Arguments) -> Reply:
    """Answer one for each script that is there, zero for the others."""
    return [int(server.scripting.knows(sha1)) for sha1 in args[2:]]


@command(
    "SCRIPT FLUSH",
    flags="noscript",
    since="2.6.0",
    summary="Empties the cache of scripts.",
    complexity="O(N) in the number of cached scripts.",
    syntax="[ASYNC | SYNC]",
    tips=_ON_ALL_NODES,
    history=[("6.2.0", "The modes `ASYNC` and `SYNC`.")],
)
def script_flush(server: Services, session: Session, args: Arguments) -> Reply:
    """Forgets every script, at once in either mode."""
    if len(args) > 3 or (len(args) == 3 and args[2].upper() not in _FLUSH_MODES):
        raise CommandError(script_errors.SCRIPT_FLUSH_MODE)
    server.scripting.flush()
    return OK


@command(
    "SCRIPT KILL",
    flags="noscript allow_busy",
    since="2.6.0",
    summary="Ends the script that takes long, unless it has written.",
    tips=["request_policy:all_shards", "response_policy:one_succeeded"],
)
def script_kill(server: Services, session: Session, args: Arguments) -> Reply:
    """The client of the script gets an error."""
    server.scripting.kill()
    return OK


@command(
    "SCRIPT DEBUG",
    flags="noscript",
    since="3.2.0",
    summary="Turns debugging of scripts on or off; there is no debugger to turn on.",
    syntax="<YES | SYNC | NO>",
)
def script_debug(server: Services, session: Session, args: Arguments) -> Reply:
    """An error, unless it is to be off."""
    mode = args[2].upper()
    if mode == b"NO":
        return OK
    if mode in (b"YES", b"SYNC"):
        raise CommandError(script_errors.NO_DEBUGGER)
    raise CommandError(script_errors.SCRIPT_DEBUG_MODE)


_HELP: Final = """\
DEBUG (YES|SYNC|NO)
    Set the debug mode for subsequent scripts executed.
EXISTS <sha1> [<sha1> ...]
    Return information about the existence of the scripts in the script cache.
FLUSH [ASYNC|SYNC]
    Flush the Lua scripts cache. Very dangerous on replicas.
    When called without the optional mode argument, the behavior is determined by the
    lazyfree-lazy-user-flush configuration directive. Valid modes are:
    * ASYNC: Asynchronously flush the scripts cache.
    * SYNC: Synchronously flush the scripts cache.
KILL
    Kill the currently executing Lua script.
LOAD <script>
    Load a script into the scripts cache without executing it.
"""

help_command("SCRIPT", since="5.0.0", text=_HELP)
