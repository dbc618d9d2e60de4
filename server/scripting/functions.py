"""Functions: libraries of them, which are part of the data, and running them.

The code of a library is kept by the keyspace, and so by the append-only file; what Lua makes of it
is kept here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol.errors import CommandError
from protocol.replies import Reply
from server.core.outcomes import Wait
from server.core.table import Arguments
from server.scripting import errors as script_errors
from server.scripting import first_line
from server.scripting.running import Runner, ScriptJob
from server.state.session import Session
from storage.keyspace.databases import Keyspace
from storage.rdb.read import OtherType, WrongFooter, restore_libraries
from storage.rdb.source import DamagedRDB
from storage.rdb.write import dump_libraries

if TYPE_CHECKING:
    from server.scripting.host_api import HostApi

LOAD_TIMEOUT_S: Final = 0.5
"""How long a library may take to register its functions."""
LOAD_STEPS: Final = 1000
"""After how many steps it looks whether that is over."""
OVERHEAD: Final = 200
"""What a library takes besides its code, in bytes."""

_NAME: Final = re.compile(rb"\w+", re.ASCII)


class Function(NamedTuple):
    """A function: ``body`` is the one of Lua."""

    name: bytes
    body: object
    description: bytes | None
    flags: list[str]
    library: bytes


class Library(NamedTuple):
    """A library with its functions."""

    name: bytes
    code: bytes
    functions: dict[bytes, Function]


class Functions:
    """The libraries of a server, by their names. Lua is started when the first one comes."""

    def __init__(self, keyspace: Keyspace, runner: Runner) -> None:
        self._keyspace = keyspace
        self._runner = runner
        self._calls: HostApi | None = None
        self.libraries: dict[bytes, Library] = {}
        self._by_name: dict[bytes, Function] = {}
        self._loading: Library | None = None
        self._deadline = 0.0

    # --- loading --------------------------------------------------------------------------

    def load(self, db: int, code: bytes, replace: bool) -> bytes:
        """Loads a library for a client of database ``db``; its name.

        Raises :class:`CommandError`, and nothing has changed then."""
        name = first_line.name_of(code)
        if name in self.libraries and not replace:
            raise CommandError(script_errors.library_exists(name))
        library = self._compile(name, code)
        self._check_conflicts([library], leaving={name})
        self._keep(db, library)
        return name

    def _compile(self, name: bytes, code: bytes) -> Library:
        """Lets the library register its functions."""
        if self._calls is None:
            self._calls = self._runner.start_lua(self._register, self._tick)
        self._loading = library = Library(name, code, {})
        self._deadline = self._runner.clock.seconds() + LOAD_TIMEOUT_S
        try:
            # The end of the first line stays, so that lines keep their numbers.
            self._calls.interpreter.load_library(code[code.index(b"\n") :])
        finally:
            self._loading = None
        if self._calls.crash is not None:
            raise self._calls.crash
        if not library.functions:
            raise CommandError(script_errors.LIBRARY_EMPTY)
        return library

    def _tick(self, takes_much: bool = False) -> int:
        if self._loading is None:
            return self._runner.clock.tick(takes_much)
        return 0 if self._runner.clock.seconds() >= self._deadline else LOAD_STEPS

    def _register(
        self, name: bytes, body: object, description: bytes | bool, flags: bytes
    ) -> bytes | None:
        library = self._loading
        assert library is not None
        if _NAME.fullmatch(name) is None:
            return script_errors.LIBRARY_NAME_INVALID.encode()
        if name.lower() in library.functions:
            return script_errors.FUNCTION_EXISTS_IN_LIBRARY.encode()
        told = description if isinstance(description, bytes) else None
        given = flags.decode().split()
        words = [flag for flag in first_line.FLAGS if flag in given]
        library.functions[name.lower()] = Function(name, body, told, words, library.name)
        return None

    def _check_conflicts(self, libraries: Sequence[Library], leaving: set[bytes]) -> None:
        """Raises :class:`CommandError` if a name of a function would stand for two."""
        taken = {
            name for name, function in self._by_name.items() if function.library not in leaving
        }
        for library in libraries:
            for name, function in library.functions.items():
                if name in taken:
                    raise CommandError(script_errors.function_exists(function.name))
                taken.add(name)

    def _keep(self, db: int, library: Library) -> None:
        if library.name in self.libraries:
            self._forget(library.name)
        self.libraries[library.name] = library
        self._by_name.update(library.functions)
        self._keyspace.keep_library(db, library.name, library.code)

    # --- removing -------------------------------------------------------------------------

    def delete(self, db: int, name: bytes) -> None:
        """Removes a library; raises :class:`CommandError` if it is not there."""
        if name not in self.libraries:
            raise CommandError(script_errors.LIBRARY_NOT_FOUND)
        self._forget(name)
        self._keyspace.drop_library(db, name)

    def _forget(self, name: bytes) -> None:
        for function in self.libraries.pop(name).functions:
            del self._by_name[function]

    def flush(self, db: int) -> None:
        """Removes every library, and begins with a new Lua."""
        self.forget()
        self._keyspace.drop_libraries(db)

    def forget(self) -> None:
        """Removes every library, of which nobody is told: they come back from the file."""
        self.libraries.clear()
        self._by_name.clear()
        self._keyspace.libraries.clear()
        self._calls = None

    # --- from server to server ------------------------------------------------------------

    def dump(self) -> bytes:
        """All libraries as FUNCTION DUMP gives them."""
        return dump_libraries(library.code for library in self.libraries.values())

    def restore(self, db: int, data: bytes, policy: bytes) -> None:
        """Loads what FUNCTION DUMP gave, ``FLUSH``, ``APPEND`` or ``REPLACE`` as ``policy`` says.

        Raises :class:`CommandError`, and nothing has changed then."""
        codes = _codes(data)
        libraries: dict[bytes, Library] = {}
        for code in codes:
            name = first_line.name_of(code)
            if name in libraries or (policy == b"APPEND" and name in self.libraries):
                raise CommandError(script_errors.restored_library_exists(name))
            libraries[name] = self._compile(name, code)
        leaving = set(self.libraries) if policy == b"FLUSH" else set(libraries)
        self._check_conflicts(list(libraries.values()), leaving)
        for name in leaving & self.libraries.keys():
            self.delete(db, name)
        for library in libraries.values():
            self._keep(db, library)

    # --- running --------------------------------------------------------------------------

    def find(self, name: bytes) -> Function:
        """The function of this name; raises :class:`CommandError` if there is none."""
        function = self._by_name.get(name.lower())
        if function is None:
            raise CommandError(script_errors.FUNCTION_NOT_FOUND)
        return function

    def may_write(self, name: bytes) -> bool:
        """Whether a function is not marked as one that does not write."""
        function = self._by_name.get(name.lower())
        return function is None or "no-writes" not in function.flags

    def call(
        self,
        session: Session,
        function: Function,
        command: Arguments,
        keys: Arguments,
        arguments: Arguments,
    ) -> Reply | Wait:
        """Runs FCALL, or FCALL_RO; raises :class:`CommandError`."""
        assert self._calls is not None
        flags = function.flags
        header = first_line.Header(True, "no-writes" in flags, "allow-oom" in flags, b"")
        body, name = function.body, function.name
        job = ScriptJob(self._calls, body, name, header, command, keys, arguments, is_function=True)
        return self._runner.run(session, job)

    def running(self) -> tuple[ScriptJob, int] | None:
        """The function that takes long, and for how many milliseconds already.

        Raises :class:`CommandError` if it is a script that takes long."""
        self._runner.check_kind(function=True)
        return self._runner.running

    def kill(self) -> None:
        """Ends the function that takes long; raises :class:`CommandError` if it cannot."""
        self._runner.kill(function=True)

    # --- figures --------------------------------------------------------------------------

    def limit_memory(self, limit: int) -> None:
        """Allows Lua so many bytes from now on."""
        if self._calls is not None:
            self._calls.interpreter.limit_memory(limit)

    @property
    def count(self) -> int:
        """How many functions there are."""
        return len(self._by_name)

    @property
    def memory(self) -> int:
        """Bytes that the libraries take."""
        return sum(len(library.code) + OVERHEAD for library in self.libraries.values())

    @property
    def lua_memory(self) -> int:
        """Bytes that Lua takes for them."""
        return 0 if self._calls is None else self._calls.interpreter.memory


def _codes(data: bytes) -> list[bytes]:
    """The libraries of a payload; raises :class:`CommandError`."""
    try:
        return restore_libraries(data)
    except WrongFooter:
        raise CommandError(script_errors.PAYLOAD_WRONG) from None
    except OtherType:
        raise CommandError(script_errors.PAYLOAD_NO_FUNCTION) from None
    except DamagedRDB:
        raise CommandError(script_errors.PAYLOAD_UNREADABLE) from None
