"""Scripts and functions: running them, the cache of scripts, and the libraries of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from protocol import errors
from protocol.errors import CommandError
from protocol.replies import OK, Bulk, Map, Reply, Set, Simple
from server.commands.declare import Handler, command, container, help_command
from server.core.table import Arguments, KeySpec
from server.runtime.arguments import integer
from server.scripting import errors as script_errors
from server.scripting.functions import Function, Library
from server.services import Services
from server.state.session import Session
from storage.keyspace.glob import matches

if TYPE_CHECKING:
    from server.core.outcomes import Wait

_FLAGS: Final = "noscript stale skip_monitor no_mandatory_keys"
_UNKNOWN: Final = "What becomes of the keys is unknown."
_WRITING: Final = "write denyoom noscript"
_FLUSH_MODES: Final = (b"SYNC", b"ASYNC")
_POLICIES: Final = (b"FLUSH", b"APPEND", b"REPLACE")
_ON_ALL_NODES: Final = ("request_policy:all_nodes", "response_policy:all_succeeded")
_ON_ALL_SHARDS: Final = ("request_policy:all_shards", "response_policy:all_succeeded")
_ON_ONE_SHARD: Final = ("request_policy:all_shards", "response_policy:one_succeeded")

# --- running ---------------------------------------------------------------------------------


def _runs(
    name: str, what: str, *, since: str, summary: str, read_only: str, notes: str = ""
) -> Callable[[Handler], Handler]:
    """Declares the handler as a command that runs what its first argument names, and as the form of
    it that may not write, which ``read_only`` describes."""
    syntax = f"{what} numkeys [key [key ...]] [arg [arg ...]]"
    complexity = f"Depends on the {'function' if what == 'function' else 'script'}."

    def declare(handler: Handler) -> Handler:
        command(
            f"{name}_RO",
            flags=f"{_FLAGS} readonly",
            since="7.0.0",
            categories="-read",
            summary=read_only,
            complexity=complexity,
            syntax=syntax,
            keys=[KeySpec("RO access", index=2, counted=True, notes=notes)],
        )(handler)
        return command(
            name,
            flags=_FLAGS,
            since=since,
            summary=summary,
            complexity=complexity,
            syntax=syntax,
            keys=[KeySpec("RW access update", index=2, counted=True, notes=notes)],
        )(handler)

    return declare


def _keys_and_arguments(
    args: Arguments, error: str = errors.NOT_AN_INTEGER
) -> tuple[Arguments, Arguments]:
    count = integer(args[2], error)
    if count > len(args) - 3:
        raise CommandError(script_errors.TOO_MANY_KEYS)
    if count < 0:
        raise CommandError(script_errors.NEGATIVE_KEYS)
    return args[3 : 3 + count], args[3 + count :]


@_runs(
    "EVAL",
    "script",
    since="2.6.0",
    summary="Runs a Lua script.",
    read_only="Runs a Lua script that may not write.",
    notes=_UNKNOWN,
)
def eval_(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """What the script returns; a command that would write fails in the ``RO`` form."""
    server.state.timings.announce_script(session, args)
    keys, arguments = _keys_and_arguments(args)
    script = server.scripting.from_source(args[1])
    return server.scripting.run(session, script, args, keys, arguments)


@_runs(
    "EVALSHA",
    "sha1",
    since="2.6.0",
    summary="Runs a cached Lua script, named by its SHA1.",
    read_only="Runs a cached Lua script that may not write.",
)
def evalsha(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """What the script returns; a command that would write fails in the ``RO`` form."""
    server.state.timings.announce_script(session, args)
    keys, arguments = _keys_and_arguments(args)
    script = server.scripting.cached(args[1])
    return server.scripting.run(session, script, args, keys, arguments)


# --- SCRIPT ----------------------------------------------------------------------------------

container("SCRIPT", summary="Commands about cached scripts.", since="2.6.0", flags="noscript")


@command(
    "SCRIPT LOAD",
    flags="noscript stale",
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
    summary="Tells which scripts are in the cache.",
    complexity="O(N) in the number of scripts asked for.",
    syntax="sha1 [sha1 ...]",
    tips=["request_policy:all_shards", "response_policy:agg_logical_and"],
)
def script_exists(server: Services, session: Session, args: Arguments) -> Reply:
    """1 for each script that is there, 0 for the others."""
    return [int(server.scripting.knows(sha1)) for sha1 in args[2:]]


@command(
    "SCRIPT FLUSH",
    summary="Empties the cache of scripts.",
    complexity="O(N) in the number of cached scripts.",
    syntax="[ASYNC | SYNC]",
    tips=_ON_ALL_NODES,
    history=[("6.2.0", "The modes `ASYNC` and `SYNC`.")],
)
def script_flush(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; every script is forgotten at once in either mode."""
    if len(args) > 3 or (len(args) == 3 and args[2].upper() not in _FLUSH_MODES):
        raise CommandError(script_errors.SCRIPT_FLUSH_MODE)
    server.scripting.flush()
    return OK


@command(
    "SCRIPT KILL",
    flags="noscript allow_busy",
    summary="Ends the script that takes long, unless it has written.",
    tips=_ON_ONE_SHARD,
)
def script_kill(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the client of the script gets an error."""
    server.scripting.kill()
    return OK


@command(
    "SCRIPT DEBUG",
    since="3.2.0",
    summary="Turns debugging of scripts on or off; there is no debugger to turn on.",
    syntax="<YES | SYNC | NO>",
)
def script_debug(server: Services, session: Session, args: Arguments) -> Reply:
    """OK to NO, an error to the others."""
    mode = args[2].upper()
    if mode == b"NO":
        return OK
    if mode in (b"YES", b"SYNC"):
        raise CommandError(script_errors.NO_DEBUGGER)
    raise CommandError(script_errors.SCRIPT_DEBUG_MODE)


_SCRIPT_HELP: Final = """\
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

help_command("SCRIPT", since="5.0.0", text=_SCRIPT_HELP)


# --- FCALL and FUNCTION ----------------------------------------------------------------------


@_runs(
    "FCALL",
    "function",
    since="7.0.0",
    summary="Calls a function.",
    read_only="Calls a function that does not write.",
    notes=_UNKNOWN,
)
def fcall(server: Services, session: Session, args: Arguments) -> Reply | Wait:
    """What the function returns; the ``RO`` form is for those that do not write."""
    server.state.timings.announce_script(session, args)
    functions = server.scripting.functions
    function = functions.find(args[1])
    keys, arguments = _keys_and_arguments(args, script_errors.FUNCTION_BAD_KEYS)
    return functions.call(session, function, args, keys, arguments)


container(
    "FUNCTION", summary="Commands about libraries of functions.", since="7.0.0", flags="noscript"
)


@command(
    "FUNCTION LOAD",
    flags=_WRITING,
    summary="Loads a library.",
    complexity="O(1), besides what the library does while it is loaded.",
    syntax="[REPLACE] function-code",
    tips=_ON_ALL_SHARDS,
)
def function_load(server: Services, session: Session, args: Arguments) -> Reply:
    """The library's name."""
    for word in args[2:-1]:
        if word.upper() != b"REPLACE":
            raise CommandError(script_errors.unknown_load_option(word))
    functions = server.scripting.functions
    return Bulk(functions.load(session.db.index, args[-1], replace=len(args) > 3))


@command(
    "FUNCTION DELETE",
    flags="write noscript",
    summary="Removes a library with its functions.",
    syntax="library-name",
    tips=_ON_ALL_SHARDS,
)
def function_delete(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, unless there is no such library."""
    server.scripting.functions.delete(session.db.index, args[2])
    return OK


@command(
    "FUNCTION LIST",
    summary="Lists the libraries.",
    complexity="O(N) in the number of functions.",
    syntax="[LIBRARYNAME library-name-pattern] [WITHCODE]",
    tips=["nondeterministic_output_order"],
)
def function_list(server: Services, session: Session, args: Arguments) -> Reply:
    """A map for each library, with its functions and, if asked for, its code."""
    allowed = {b"LIBRARYNAME", b"WITHCODE"}
    pattern = b"*"
    words = iter(args[2:])
    for word in words:
        option = word.upper()
        if option not in allowed:
            raise CommandError(script_errors.unknown_function_argument(word))
        allowed.remove(option)
        if option == b"LIBRARYNAME":
            given = next(words, None)
            if given is None:
                raise CommandError(script_errors.FUNCTION_LIBRARY_MISSING)
            pattern = given
    return [
        _described(library, with_code=b"WITHCODE" not in allowed)
        for library in server.scripting.functions.libraries.values()
        if matches(pattern, library.name, ignore_case=True)
    ]


def _described(library: Library, with_code: bool) -> Reply:
    pairs: list[tuple[Reply, Reply]] = [
        ("library_name", Bulk(library.name)),
        ("engine", "LUA"),
        ("functions", [_function(each) for each in library.functions.values()]),
    ]
    if with_code:
        pairs.append(("library_code", Bulk(library.code)))
    return Map(pairs)


def _function(function: Function) -> Reply:
    told = None if function.description is None else Bulk(function.description)
    flags = Set([Simple(flag) for flag in function.flags])
    return Map([("name", Bulk(function.name)), ("description", told), ("flags", flags)])


@command(
    "FUNCTION FLUSH",
    flags="write noscript",
    summary="Removes every library of functions.",
    complexity="O(N) in the number of functions.",
    syntax="[ASYNC | SYNC]",
    tips=_ON_ALL_SHARDS,
)
def function_flush(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; they are removed at once in either mode."""
    if len(args) > 3:
        raise CommandError(errors.bad_subcommand("function", args[1]))
    if len(args) == 3 and args[2].upper() not in _FLUSH_MODES:
        raise CommandError(script_errors.FUNCTION_FLUSH_MODE)
    server.scripting.functions.flush(session.db.index)
    return OK


@command(
    "FUNCTION DUMP",
    summary="Gives all libraries in a form that FUNCTION RESTORE takes.",
    complexity="O(N) in the number of functions.",
)
def function_dump(server: Services, session: Session, args: Arguments) -> Reply:
    """The payload, which Redis restores too."""
    return Bulk(server.scripting.functions.dump())


@command(
    "FUNCTION RESTORE",
    flags=_WRITING,
    summary="Loads the libraries of a payload.",
    complexity="O(N) in the number of functions in the payload.",
    syntax="serialized-value [FLUSH | APPEND | REPLACE]",
    tips=_ON_ALL_SHARDS,
)
def function_restore(server: Services, session: Session, args: Arguments) -> Reply:
    """OK, and all of them are loaded; or an error, and none is."""
    if len(args) > 4:
        raise CommandError(errors.bad_subcommand("function", args[1]))
    policy = args[3].upper() if len(args) == 4 else b"APPEND"
    if policy not in _POLICIES:
        raise CommandError(script_errors.RESTORE_POLICY)
    server.scripting.functions.restore(session.db.index, args[2], policy)
    return OK


@command(
    "FUNCTION STATS",
    flags="noscript allow_busy",
    summary="Tells which function runs, and how many there are.",
    tips=["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
)
def function_stats(server: Services, session: Session, args: Arguments) -> Reply:
    """The function that takes long, if one does, and the counts of the language."""
    functions = server.scripting.functions
    running = functions.running()
    script: Reply = None
    if running is not None:
        job, milliseconds = running
        script = Map(
            [
                ("name", Bulk(job.name)),
                ("command", [Bulk(word) for word in job.command]),
                ("duration_ms", milliseconds),
            ]
        )
    counts = Map(
        [("libraries_count", len(functions.libraries)), ("functions_count", functions.count)]
    )
    return Map([("running_script", script), ("engines", Map([("LUA", counts)]))])


@command(
    "FUNCTION KILL",
    flags="noscript allow_busy",
    summary="Ends the function that takes long, unless it has written.",
    tips=_ON_ONE_SHARD,
)
def function_kill(server: Services, session: Session, args: Arguments) -> Reply:
    """OK; the client of the function gets an error."""
    server.scripting.functions.kill()
    return OK


_FUNCTION_HELP: Final = """\
LOAD [REPLACE] <FUNCTION CODE>
    Create a new library with the given library name and code.
DELETE <LIBRARY NAME>
    Delete the given library.
LIST [LIBRARYNAME PATTERN] [WITHCODE]
    Return general information on all the libraries:
    * Library name
    * The engine used to run the Library
    * Functions list
    * Library code (if WITHCODE is given)
    It also possible to get only function that matches a pattern using LIBRARYNAME argument.
STATS
    Return information about the current function running:
    * Function name
    * Command used to run the function
    * Duration in MS that the function is running
    If no function is running, return nil
    In addition, returns a list of available engines.
KILL
    Kill the current running function.
FLUSH [ASYNC|SYNC]
    Delete all the libraries.
    When called without the optional mode argument, the behavior is determined by the
    lazyfree-lazy-user-flush configuration directive. Valid modes are:
    * ASYNC: Asynchronously flush the libraries.
    * SYNC: Synchronously flush the libraries.
DUMP
    Return a serialized payload representing the current libraries, can be restored \
using FUNCTION RESTORE command
RESTORE <PAYLOAD> [FLUSH|APPEND|REPLACE]
    Restore the libraries represented by the given payload, it is possible to give a restore \
policy to
    control how to handle existing libraries (default APPEND):
    * FLUSH: delete all existing libraries.
    * APPEND: appends the restored libraries to the existing libraries. On collision, abort.
    * REPLACE: appends the restored libraries to the existing libraries, On collision, replace the \
old
      libraries with the new libraries (notice that even on this option there is a chance of failure
      in case of functions name collision with another library).
"""

help_command("FUNCTION", since="7.0.0", text=_FUNCTION_HELP)
