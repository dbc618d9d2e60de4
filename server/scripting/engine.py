"""Scripts as the rest of the server sees them: the cache, running, ending, and what INFO says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from protocol.encoder import array
from protocol.errors import CommandError
from protocol.replies import Reply
from server.clients.blocking import BlockedClients
from server.core.outcomes import Wait
from server.core.table import Arguments, Command
from server.dispatch.dispatcher import Dispatcher
from server.dispatch.reactions import Reactions
from server.scripting import errors as script_errors
from server.scripting import first_line
from server.scripting.functions import Functions
from server.scripting.running import Runner, ScriptJob
from server.state.server_state import ServerState
from server.state.session import Session

if TYPE_CHECKING:
    from server.scripting.host_api import HostApi

EVALUATED: Final = 500
"""So many scripts are kept that EVAL brought; those of SCRIPT LOAD are kept until SCRIPT FLUSH."""

SCRIPT_OVERHEAD: Final = 200
"""What a script takes in the cache besides its text, in bytes."""


class CachedScript:
    """A script in the cache."""

    __slots__ = ("function", "header", "sha1", "source")

    def __init__(self, source: bytes, header: first_line.Header, function: Any) -> None:
        self.source = source
        self.sha1 = hashlib.sha1(source).hexdigest().encode()
        self.header = header
        self.function = function


class Scripting:
    """The scripts of a server. Lua is started when the first one comes."""

    def __init__(
        self,
        state: ServerState,
        dispatcher: Dispatcher,
        blocking: BlockedClients,
        reactions: Reactions,
    ) -> None:
        self._calls: HostApi | None = None
        self._runner = Runner(state, dispatcher, blocking, reactions)
        self.functions = Functions(state.keyspace, self._runner)
        self._by_source: dict[bytes, CachedScript] = {}
        self._by_sha1: dict[bytes, CachedScript] = {}
        self._evaluated: dict[CachedScript, None] = {}
        self.evicted = 0
        """How many scripts have left the cache by themselves."""
        state.config.listen("script-memory-limit", self._limit_memory)

    def _limit_memory(self, limit: int) -> None:
        if self._calls is not None:
            self._calls.interpreter.limit_memory(limit)
        self.functions.limit_memory(limit)

    def _lua(self) -> HostApi:
        """Lua, started if need be; raises :class:`CommandError` if it is not installed."""
        if self._calls is None:
            self._calls = self._runner.start_lua()
        return self._calls

    # --- the cache ------------------------------------------------------------------------

    def load(self, source: bytes) -> bytes:
        """Keeps a script until SCRIPT FLUSH; returns its SHA1. Raises :class:`CommandError`."""
        script = self._by_source.get(source) or self._add(source)
        self._evaluated.pop(script, None)
        return script.sha1

    def _add(self, source: bytes) -> CachedScript:
        header = first_line.read(source)
        script = CachedScript(source, header, self._lua().interpreter.compile(header.body))
        self._by_source[source] = self._by_sha1[script.sha1] = script
        return script

    def knows(self, sha1: bytes) -> bool:
        """Whether the script is in the cache."""
        return sha1.lower() in self._by_sha1

    def flush(self) -> None:
        """Forgets every script, and begins with a new interpreter."""
        self._by_source.clear()
        self._by_sha1.clear()
        self._evaluated.clear()
        self._calls = None

    def from_source(self, source: bytes) -> CachedScript:
        """The script of a text, from the cache or put there; raises :class:`CommandError`."""
        self._lua()
        script = self._by_source.get(source)
        if script is None:
            script = self._add(source)
        elif script not in self._evaluated:
            return script
        else:
            del self._evaluated[script]
        self._evaluated[script] = None
        if len(self._evaluated) > EVALUATED:
            self._evict(next(iter(self._evaluated)))
        return script

    def cached(self, sha1: bytes) -> CachedScript:
        """The script in the cache that has this SHA1; raises :class:`CommandError`."""
        self._lua()
        script = self._by_sha1.get(sha1) or self._by_sha1.get(sha1.lower())
        if script is None:
            raise CommandError(script_errors.NO_SCRIPT)
        return script

    def _evict(self, script: CachedScript) -> None:
        del self._evaluated[script], self._by_source[script.source], self._by_sha1[script.sha1]
        self.evicted += 1

    def may_write(self, source: bytes) -> bool:
        """Whether a script is not marked as one that does not write."""
        try:
            return not first_line.read(source).no_writes
        except CommandError:
            return True

    def cached_may_write(self, sha1: bytes) -> bool:
        """Tell whether a script in the cache may write; one that is not there may be anything."""
        script = self._by_sha1.get(sha1.lower())
        return script is None or not script.header.no_writes

    # --- running --------------------------------------------------------------------------

    def run(
        self,
        session: Session,
        script: CachedScript,
        command: Arguments,
        keys: Arguments,
        arguments: Arguments,
    ) -> Reply | Wait:
        """Runs a script for EVAL and its kin; raises :class:`CommandError`."""
        body, name, header = script.function, script.sha1, script.header
        job = ScriptJob(
            self._lua(), body, name, header, command, keys, arguments, is_function=False
        )
        return self._runner.run(session, job)

    def transaction(
        self,
        session: Session,
        queue: Sequence[tuple[Command, Arguments]],
        run: Callable[[], list[bytes]],
    ) -> Reply | Wait:
        """Runs a transaction; if it has scripts, it may take long as a whole."""
        if not any(entry.about.group == "scripting" for entry, _ in queue) or not self._is_ready():
            return array(run())
        return self._runner.clock.work(session, lambda: array(run()))

    def _is_ready(self) -> bool:
        """Whether scripts can be run at all."""
        try:
            self._lua()
        except CommandError:
            return False
        return True

    # --- scripts that take long -----------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Whether a script takes long, so that others are refused."""
        return self._runner.busy

    def kill(self) -> None:
        """Ends the script that takes long; raises :class:`CommandError` if that cannot be done."""
        self._runner.kill(function=False)

    def reset(self) -> None:
        """Ends what takes long, and forgets every script and every library."""
        self._runner.end()
        self.flush()
        self.evicted = 0
        if self.functions.libraries:
            self.functions.flush(0)

    def close(self) -> None:
        """Ends what is under way; nothing is run any more."""
        self._runner.close()

    # --- figures --------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """How many scripts are in the cache."""
        return len(self._by_sha1)

    @property
    def cache_memory(self) -> int:
        """Bytes that the cache takes."""
        return sum(len(source) + SCRIPT_OVERHEAD for source in self._by_source)

    @property
    def lua_memory(self) -> int:
        """Bytes that the interpreter takes."""
        return 0 if self._calls is None else self._calls.interpreter.memory
