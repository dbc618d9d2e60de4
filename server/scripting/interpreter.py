"""Lua itself: one interpreter, what it is given, how much memory it may take.

Nothing of Python is within a script's reach. The chunks of ``lua/`` hold the functions that they
were given as locals; those never raise, and return numbers, texts, booleans and tables only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final, NamedTuple

from protocol.encoder import error_line
from protocol.errors import CommandError, shown
from server.runtime.process import give_memory_back
from server.scripting import errors as script_errors
from server.scripting.bytecode import TooComplex, hardened

ROOM: Final = 1024 * 1024
"""What is kept free at least for the server's own use of the interpreter, which must not fail."""

GARBAGE: Final = 32 * 1024 * 1024
"""When a script leaves so many bytes more than there were, they are looked through at once."""

STEP_KB: Final = 256
"""How much is looked through in a step, about."""

PER_VALUE: Final = 64
"""More than Lua takes for a text or a place in a table besides its bytes."""

FEW: Final = 100
"""Up to so many arguments are passed one by one, which is faster; more in a table."""

CHUNKS: Final = ("cjson", "cmsgpack", "functions", "guards", "libraries", "redis", "replies")

Script = Any
"""A compiled script: a function of Lua."""


class ScriptOutcome(NamedTuple):
    """A script's reply in RESP, and whether it is an error that a command has been counted for."""

    reply: bytes
    counted: bool


def _hard_limit(limit: int) -> int:
    """Return the limit that Lua refuses to exceed, for one that is looked at from time to time. A
    new text may make Lua double its table of texts, which is less than half of the memory. When the
    server puts one in there is nobody to catch an error, so there has to be room for that."""
    return limit + limit // 2 + ROOM


def _refuse(subject: object, name: object, setting: bool) -> object:
    raise AttributeError("scripts have no access to this")


@cache
def _source(name: str) -> bytes:
    return files("server.scripting").joinpath("lua", f"{name}.lua").read_bytes()


def _rewrite(code: bytes) -> bytes | tuple[None, int]:
    """The bytecode that may run in place of what Lua's compiler made, or the line at fault."""
    try:
        return hardened(code)
    except TooComplex as error:
        return None, error.line


def _first_line(error: Exception) -> str:
    """Return the first line of an error outside the script itself; Lua says nothing of a lack of
    memory."""
    text = str(error).partition("\n")[0]
    return f"ERR {text}" if text else script_errors.SCRIPT_MEMORY


class Interpreter:
    """An interpreter whose scripts can call the functions in ``natives``.

    With ``register`` among them it is one for functions, else one for scripts. ``limit`` is the
    memory that it may take, in bytes. Raises :class:`ImportError` without lupa.
    """

    def __init__(self, natives: Mapping[str, object], limit: int) -> None:
        lua = import_module("lupa.lua51")
        self._failure: type[Exception] = lua.LuaError
        self._runtime = lua.LuaRuntime(
            encoding=None,
            attribute_filter=_refuse,
            register_eval=False,
            register_builtins=False,
            unpack_returned_tuples=True,
            max_memory=_hard_limit(limit),
        )
        self._limit = limit
        self._state = self._runtime.table_from({b"resp3": False, b"limit": limit / 1024})
        self._load, self._run, self._run_few = self._prepare(natives)
        self._collect: Callable[..., Any] = self._runtime.globals()[b"collectgarbage"]
        self._tick: Any = natives["tick"]
        self._settled = self.memory
        self.exhausted = False
        """Whether something for a script was given up halfway, for it took too much memory."""

    def _prepare(self, natives: Mapping[str, object]) -> tuple[Callable[..., Any], ...]:
        given = {name.encode(): value for name, value in natives.items()}
        extra = {b"state": self._state, b"rewrite": _rewrite}
        table = self._runtime.table_from({**given, **extra})
        parts = self._runtime.table_from({name.encode(): self._chunk(name) for name in CHUNKS})
        functions: tuple[Callable[..., Any], ...] = self._chunk("sandbox")(table, parts)
        return functions

    def _chunk(self, name: str) -> Callable[..., Any]:
        lua = self._runtime.globals()
        load, dump = lua[b"loadstring"], lua[b"string"][b"dump"]
        code = dump(load(_source(name), f"=penstock:{name}".encode()))
        loaded: Callable[..., Any] = load(hardened(code))
        return loaded

    # --- memory ---------------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """Bytes in use, garbage included."""
        return int(self._runtime.get_memory_used())

    def limit_memory(self, limit: int) -> None:
        """Allows so many bytes from now on; never less than what is in use."""
        self._limit = limit
        self._state[b"limit"] = limit / 1024
        self._runtime.set_max_memory(_hard_limit(limit))

    @property
    def room(self) -> int:
        """How many bytes more may be put in."""
        return self._limit - int(self._runtime.get_memory_used())

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may be put in."""
        return self.room >= size

    def _make_room(self, size: int) -> None:
        if not self.has_room(size):
            self._runtime.gccollect()
            if not self.has_room(size):
                raise CommandError(script_errors.SCRIPT_MEMORY)

    def _clean_up(self) -> None:
        """Collects garbage in steps, between which others have their turn, and gives the memory
        back to the system.

        Lua halves its table of texts in each round at most, so it takes several."""
        before = 0
        while self.memory != before:
            before = self.memory
            while not self._collect(b"step", STEP_KB):
                self._tick()
        self._settled = before
        self.exhausted = False
        give_memory_back()

    def table(self, values: Mapping[bytes, object]) -> object:
        """The values as a table."""
        return self._runtime.table_from(values)

    # --- scripts --------------------------------------------------------------------------

    def compile(self, source: bytes) -> Script:
        """The script of a source text; raises :class:`CommandError` if it is none."""
        self._make_room(PER_VALUE * len(source))
        try:
            script = self._load(source)
        except self._failure as error:
            raise CommandError(script_errors.not_compiled(str(error))) from None
        if isinstance(script, tuple):
            raise CommandError(script_errors.not_compiled(shown(script[1])))
        return script

    def load_library(self, source: bytes) -> None:
        """Lets a library register its functions; raises :class:`CommandError` if it cannot."""
        self._make_room(PER_VALUE * len(source))
        try:
            uncompiled, failed = self._load(source)
        except self._failure as error:
            uncompiled, failed = None, _first_line(error).encode()
        if uncompiled is not None:
            raise CommandError(script_errors.library_not_compiled(shown(uncompiled)))
        if failed is not None:
            raise CommandError(script_errors.library_not_run(shown(failed)))

    def run(
        self,
        script: Script,
        name: bytes,
        resp3: bool,
        keys: Sequence[bytes],
        arguments: Sequence[bytes],
    ) -> ScriptOutcome:
        """Runs a script or a function, named in errors; ``resp3`` is the protocol of the reply."""
        values = [*keys, *arguments]
        self._make_room(sum(map(len, values)) + PER_VALUE * (len(values) + 1))
        try:
            if len(values) <= FEW:
                result = self._run_few(script, name, resp3, len(keys), *values)
            else:
                table = self._runtime.table_from
                result = self._run(script, name, resp3, table(keys), table(arguments))
        except (self._failure, MemoryError) as error:
            result = error_line(_first_line(error)), False
        # Where Lua gave nothing for the second, nothing has been counted.
        reply, counted = result if isinstance(result, tuple) else (result, False)
        reply = reply if isinstance(reply, bytes) else b"".join(reply.values())
        if self.exhausted or self.memory > self._settled + GARBAGE:
            self._clean_up()
        return ScriptOutcome(reply, bool(counted))
