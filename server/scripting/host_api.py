# Compiled by mypyc.
"""What a script can ask of the server: commands above all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from protocol import errors
from protocol.encoder import error_line
from server.acl import errors as acl_errors
from server.clients.access import IN_SCRIPT, AccessControl, denial_text
from server.road.dispatcher import Dispatcher
from server.road.session import Session
from server.road.state import ServerState
from server.road.table import Arguments, Command, find
from server.runtime.version import REDIS_VERSION
from server.scripting import errors as script_errors
from server.scripting import structs
from server.scripting.interpreter import PER_VALUE, Interpreter
from server.scripting.long_running import FIRST_STEPS
from server.scripting.numbers import number_text, operate

LOG_LEVELS: Final = ("debug", "verbose", "notice", "warning")

GROWTH: Final = 8
"""How many times its own size a reply may take as tables, which the memory must have room for."""

Register = Callable[[bytes, object, "bytes | bool", bytes], "bytes | None"]
"""Takes a function of a library that is loaded: its name, the function of Lua, its description if
it has one, its flags. Returns the text of an error if there is one."""

_MAJOR, _MINOR, _PATCH = map(int, REDIS_VERSION.split("."))


class HostApi:
    """Runs the commands of scripts, in a session of their own.

    With ``register`` they are functions of libraries. ``wrote`` tells whether the script that runs
    has called anything that writes. ``crash`` is an exception that no command should raise; it ends
    what the script's client is doing.
    """

    def __init__(
        self,
        state: ServerState,
        access: AccessControl,
        dispatcher: Dispatcher,
        tick: Callable[..., int],
        limit: int,
        register: Register | None = None,
    ) -> None:
        self._state = state
        self._access = access
        self._dispatcher = dispatcher
        self._session = self._caller = state.new_session(0)
        self._session.executing = True
        self._read_only = False
        self._frugal = False
        """Whether nothing may be called that takes memory, before something has been written."""
        self.wrote = False
        self.crash: Exception | None = None
        self._gathered: list[object] = []
        """Arguments of the next call, which are too many to be passed with it."""
        natives: dict[str, object] = {
            "call": self.call,
            "gather": self.gather,
            "may_call": self._guarded(self.may_call),
            "speak": self.speak,
            "log": self._guarded(self.log),
            "sha1": lambda text: hashlib.sha1(text).hexdigest().encode(),
            "number": self._guarded(number_text),
            "bit": self._guarded(operate),
            "struct": self._guarded(self.struct),
            "tick": tick,
            "first_steps": FIRST_STEPS,
            "version": REDIS_VERSION.encode(),
            "version_number": _MAJOR << 16 | _MINOR << 8 | _PATCH,
        }
        if register is not None:
            natives["register"] = self._guarded(register)
        self.interpreter = Interpreter(natives, limit)

    def begin(self, caller: Session, read_only: bool, allow_oom: bool) -> None:
        """From now on a script of ``caller`` runs."""
        session = self._session
        self._caller = caller
        session.db = caller.db
        session.account = caller.account
        session.tracking = caller.tracking
        session.resp3 = False
        self._read_only = read_only
        self._frugal = not allow_oom and self._state.memory.exceeded
        self.wrote = False
        self.crash = None

    def _guarded(self, function: Callable[..., object]) -> Callable[..., object]:
        """The function without exceptions, which would be objects of Python in a script's hands."""

        def guarded(*arguments: object) -> object:
            try:
                return function(*(arguments or self._take_gathered()))
            except Exception as error:
                self.crash = error
                return None

        return guarded

    # --- what scripts call ----------------------------------------------------------------

    def gather(self, *values: object) -> None:
        """Takes some of the arguments of the next call."""
        self._gathered += values

    def _take_gathered(self) -> list[Any]:
        gathered, self._gathered = self._gathered, []
        return gathered

    def call(self, *arguments: bytes) -> bytes:
        """The reply to a command in RESP."""
        args = list(arguments) or self._take_gathered()
        command = find(self._state.table, args)
        refusal = self._refusal(command, args)
        if refusal is not None:
            return self._refuse(command, refusal)
        assert command is not None
        reply = self._run(command, args)
        if not self.interpreter.has_room(GROWTH * len(reply) + PER_VALUE):
            return error_line(script_errors.SCRIPT_MEMORY)
        return reply

    def _run(self, command: Command, args: Arguments) -> bytes:
        if command.writes:
            self.wrote = True
        self._session.command = command
        try:
            reply = self._dispatcher.run(self._session, command, args)
        except Exception as error:
            self.crash = error
            return error_line(script_errors.SCRIPT_CRASHED)
        assert reply is not None, "a script never waits"
        return reply

    def _refusal(self, command: Command | None, args: Arguments) -> str | None:
        if command is None or (command.subcommands and len(args) > 1):
            return script_errors.SCRIPT_UNKNOWN_COMMAND
        if not command.fits(len(args)):
            return script_errors.SCRIPT_WRONG_ARITY
        if "noscript" in command.flags:
            return script_errors.SCRIPT_NOT_ALLOWED
        if self._session.account.limited and (text := self._denial(command, args)) is not None:
            return text
        if command.writes:
            return self._refusal_to_write(command)
        return None

    def _denial(self, command: Command, args: Arguments) -> str | None:
        """Why the user who runs the script may not run the command."""
        session = self._session
        denial = self._access.check(session, self._caller, command, args, IN_SCRIPT)
        return None if denial is None else acl_errors.IN_SCRIPT + denial_text(session, denial)

    def _refusal_to_write(self, command: Command) -> str | None:
        if self._read_only:
            return script_errors.SCRIPT_READ_ONLY
        if (reason := self._state.disk_error) is not None:
            return errors.disk_error(reason)
        if self._state.save_failed:
            return errors.SAVE_POINT_FAILED
        if self._state.short_of_replicas:
            return errors.TOO_FEW_REPLICAS
        if self._frugal and not self.wrote and "denyoom" in command.flags:
            return errors.OUT_OF_MEMORY
        return None

    def _refuse(self, command: Command | None, text: str) -> bytes:
        if command is not None:
            command.rejected += 1
        self._state.stats.count_error(text)
        return error_line(text)

    def may_call(self, *arguments: bytes) -> bool | None:
        """Whether the caller's user may run a command; ``None`` if there is no such command."""
        args = list(arguments)
        command = find(self._state.table, args)
        if command is None:
            return None
        return self._session.account.denial(command, args) is None

    def speak(self, resp3: bool) -> None:
        """Lets commands answer the script in RESP3, or in RESP2."""
        self._session.resp3 = resp3

    def log(self, level: float, message: bytes) -> None:
        """Writes to the server's log."""
        self._state.log.write(LOG_LEVELS[int(level)], errors.shown(message))

    def struct(self, name: bytes, *arguments: object) -> object:
        """A function of the library ``struct``; a table says what was wrong with the call."""
        try:
            return structs.call(name, self.interpreter.room, *arguments)
        except structs.Misuse as misuse:
            self.interpreter.exhausted |= misuse.reason == structs.TOO_LARGE
            table: dict[bytes, object] = {b"reason": misuse.reason.encode("latin-1")}
            if misuse.place:
                table[b"place"] = misuse.place
            return self.interpreter.table(table)
