"""Running scripts and functions: one at a time, as a whole, and what others are told meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module, invalidate_caches
from typing import TYPE_CHECKING, Final, NamedTuple

from protocol import errors
from protocol.errors import CommandError, shown
from protocol.replies import Encoded, Reply
from server.clients.blocking import BlockedClients
from server.core.outcomes import Wait
from server.core.table import Arguments
from server.dispatch.dispatcher import Dispatcher
from server.dispatch.reactions import Reactions
from server.scripting import errors as script_errors
from server.scripting.first_line import Header
from server.state.server_state import ServerState
from server.state.session import Session

if TYPE_CHECKING:
    from server.scripting.host_api import HostApi, Register
    from server.scripting.long_running import LongRunning


PACKAGES: Final = ("lupa", "greenlet")


class ScriptJob(NamedTuple):
    """A script or a function that is to run: in which Lua, which of its functions and under which
    name, what the first line promises, and for which command with which keys and arguments."""

    calls: HostApi
    body: object
    name: bytes
    header: Header
    command: Arguments
    keys: Arguments
    arguments: Arguments
    is_function: bool
    """Whether it is a function of a library, and not a script."""

    @property
    def read_only(self) -> bool:
        """Whether the command is one that may not write."""
        return self.command[0][-3:].upper() == b"_RO"


class Runner:
    """Runs the scripts and the functions of a server."""

    def __init__(
        self,
        state: ServerState,
        dispatcher: Dispatcher,
        blocking: BlockedClients,
        reactions: Reactions,
    ) -> None:
        self._state = state
        self._dispatcher = dispatcher
        self._blocking = blocking
        self._reactions = reactions
        self._busy: LongRunning | None = None
        self._job: ScriptJob | None = None
        self._began = 0.0

    def start_lua(
        self, register: Register | None = None, tick: Callable[..., int] | None = None
    ) -> HostApi:
        """A new Lua: one for functions with ``register``, else one for scripts.

        Raises :class:`CommandError` if Lua is not installed."""
        # The packages may have been installed since the server started.
        invalidate_caches()
        try:
            for package in PACKAGES:
                import_module(package)
            from server.scripting.host_api import HostApi

            limit = self._state.config.script_memory_limit
            state, dispatcher = self._state, self._dispatcher
            return HostApi(state, dispatcher, tick or self.clock.tick, limit, register)
        except ImportError:
            from server.runtime.packages import packages_missing

            raise CommandError(f"ERR {packages_missing('a script', *PACKAGES)}") from None

    @property
    def clock(self) -> LongRunning:
        """Return what lets scripts give way; raises :class:`ImportError` without greenlet."""
        if self._busy is None:
            from server.scripting.long_running import LongRunning

            self._busy = LongRunning(
                self._state, self._blocking, self._reactions, lambda: self.refusal
            )
        return self._busy

    # --- running --------------------------------------------------------------------------

    def run(self, session: Session, job: ScriptJob) -> Reply | Wait:
        """Runs a script or a function; raises :class:`CommandError` if it may not run, and for the
        error that it ends with."""
        header = job.header
        if header.present:
            self._check_memory(header.no_writes or header.allow_oom)
            if job.read_only and not header.no_writes:
                raise CommandError(script_errors.SCRIPT_MAY_WRITE)
        return self.clock.work(session, lambda: self._execute(session, job))

    def _check_memory(self, allowed: bool) -> None:
        """Raises :class:`CommandError` if memory is full, unless the script is allowed to run."""
        memory = self._state.memory
        if not allowed and memory.exceeded and memory.check():
            raise CommandError(errors.OUT_OF_MEMORY)

    def _execute(self, session: Session, job: ScriptJob) -> Encoded:
        """Runs the script; what it changes counts as a whole or not at all."""
        calls, header = job.calls, job.header
        self._job, self._began = job, self.clock.seconds()
        self.clock.begin()
        calls.begin(session, job.read_only or header.no_writes, header.allow_oom)
        self._reactions.begin_unit()
        try:
            outcome = calls.interpreter.run(
                job.body, job.name, session.resp3, job.keys, job.arguments
            )
        finally:
            self._job = None
            if calls.script.wrote:
                self._reactions.note_author(session)
            self._reactions.end_unit()
        if calls.crash is not None:
            raise calls.crash
        if outcome.reply.startswith(b"-"):
            text = shown(outcome.reply[1:].rstrip(b"\r\n"))
            raise CommandError(text, counted=outcome.counted)
        return Encoded(outcome.reply)

    # --- what takes long ------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether something takes long, so that others are refused."""
        return self._busy is not None and self._busy.active

    @property
    def refusal(self) -> str:
        """Return the error for others while something takes long."""
        job = self._job
        return script_errors.BUSY_FUNCTION if job is not None and job.is_function else errors.BUSY

    @property
    def running(self) -> tuple[ScriptJob, int] | None:
        """Return what takes long, and for how many milliseconds already."""
        if not self.busy or self._job is None:
            return None
        return self._job, int((self.clock.seconds() - self._began) * 1000)

    def check_kind(self, function: bool) -> None:
        """Raises :class:`CommandError` if what takes long is of the other kind."""
        if self.busy and self._job is not None and self._job.is_function != function:
            raise CommandError(self.refusal)

    def kill(self, function: bool) -> None:
        """Ends what takes long; raises :class:`CommandError` if that cannot be done."""
        self.check_kind(function)
        if self._busy is None:
            raise CommandError(script_errors.NOT_BUSY)
        self._busy.kill(self._job is not None and self._job.calls.script.wrote)

    def end(self) -> None:
        """Ends what takes long, if anything does, whatever it has done."""
        if self._busy is not None:
            self._busy.end()

    def close(self) -> None:
        """Ends what is under way; nothing is run any more."""
        if self._busy is not None:
            self._busy.close()
