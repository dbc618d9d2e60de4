"""Do what a script can ask of the server: commands above all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from protocol import errors
from protocol.encoder import error_line
from server.core.reasons import FRUGAL, READING
from server.core.table import Arguments, Command, find
from server.dispatch.dispatcher import Dispatcher
from server.runtime.version import REDIS_VERSION
from server.scripting import errors as script_errors
from server.scripting import structs
from server.scripting.interpreter import PER_VALUE, Interpreter
from server.scripting.long_running import FIRST_STEPS
from server.scripting.numbers import number_text, operate
from server.state.server_state import ServerState
from server.state.session import SCRIPT, Script, Session

LOG_LEVELS: Final = ("debug", "verbose", "notice", "warning")

GROWTH: Final = 8
"""How many times its own size a reply may take as tables, which the memory must have room for."""

Register = Callable[[bytes, object, "bytes | bool", bytes], "bytes | None"]
"""Takes a function of a library that is loaded: its name, the function of Lua, its description if
it has one, its flags. Returns the text of an error if there is one."""

_MAJOR, _MINOR, _PATCH = map(int, REDIS_VERSION.split("."))


class HostApi:
    """Runs the commands of scripts, in a session of their own.

    With ``register`` they are functions of libraries. ``script`` is the one that runs. ``crash`` is
    an exception that no command should raise; it ends what the script's client is doing.
    """

    def __init__(
        self,
        state: ServerState,
        dispatcher: Dispatcher,
        tick: Callable[..., int],
        limit: int,
        register: Register | None = None,
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._refusals = dispatcher.refusals
        self._session = state.new_session(0)
        self._session.caller = SCRIPT
        self.script = Script(self._session)
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
        session.db = caller.db
        session.account = caller.account
        session.tracking = caller.tracking
        session.resp3 = False
        is_frugal = not allow_oom and self._state.memory.exceeded
        why = (READING if read_only else 0) | (FRUGAL if is_frugal else 0)
        self.script = session.script = Script(caller, why)
        session.update_reasons()
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
        command, refusal = self._refusals.resolve(self._session, args)
        if command is None or refusal is not None:
            return self._refuse(command, refusal or errors.SCRIPT_UNKNOWN_COMMAND)
        reply = self._run(command, args)
        if not self.interpreter.has_room(GROWTH * len(reply) + PER_VALUE):
            return error_line(script_errors.SCRIPT_MEMORY)
        return reply

    def _run(self, command: Command, args: Arguments) -> bytes:
        if command.writes:
            self.script.wrote = True
        self._session.command = command
        try:
            reply = self._dispatcher.run(self._session, command, args)
        except Exception as error:
            self.crash = error
            return error_line(script_errors.SCRIPT_CRASHED)
        assert reply is not None, "a script never waits"
        return reply

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
