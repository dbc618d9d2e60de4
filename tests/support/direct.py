"""A server without sockets: requests go straight to the dispatcher, and time is what the test says.

::

    direct = Direct()
    client = direct.client()
    assert client.send("XADD", "k", "1-1", "f", "v") == b"$3\\r\\n1-1\\r\\n"

A command that waits returns ``None``; its reply is ``client.reply_when_woken`` later::

    assert client.send("XREAD", "BLOCK", 50, "STREAMS", "k", "$") is None
    direct.advance(50)
    assert client.reply_when_woken == b"*-1\\r\\n"

Everything works in plain tests and in ``async`` ones.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from hiredis import Reader

from server.app import Server
from server.config.registry import Config
from server.net.admission import farewell
from server.runtime.clock import Clock
from server.services import Services
from server.state.server_state import Phase
from server.state.session import Parked, Session
from tests.support.folders import folder_of

START_MS = 1_700_000_000_000
"""The Unix time in milliseconds at which a :class:`Direct` begins."""

ENDLESS_NS = 10**18
"""A share of time that no client uses up, however busy the machine is."""

_of_thread = threading.local()

T = TypeVar("T")
Argument = bytes | str | int


class _Clock:
    """Unix milliseconds that stand still until they are set."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def unhurried(services: Services) -> None:
    """Lets no command and no client's requests go on later because their time is over, however busy
    the machine is: what a client sends at once is one round."""
    services.stepped.nanoseconds = lambda: 0
    services.traffic.turns._full_share_ns = services.traffic.turns.share_ns = ENDLESS_NS


def in_loop(function: Callable[[], T]) -> T:
    """Calls the function where an event loop is running."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _own_loop().run_until_complete(_call(function))
    return function()


def _own_loop() -> asyncio.AbstractEventLoop:
    """One event loop for all servers of the thread, as each has descriptors of its own."""
    loop: asyncio.AbstractEventLoop | None = getattr(_of_thread, "loop", None)
    if loop is None:
        loop = _of_thread.loop = asyncio.new_event_loop()
        atexit.register(loop.close)
    return loop


def _call(function: Callable[[], T]) -> Coroutine[Any, Any, T]:
    async def call() -> T:
        return function()

    return call()


async def reply_of(parked: Parked) -> bytes:
    """The reply to a parked command, as soon as it is there."""
    if parked.result is None:
        answered = asyncio.Event()
        parked.add_done_callback(answered.set)
        await answered.wait()
    assert parked.result is not None
    return b"".join(parked.result)


class LooseWire:
    """What a session writes to in place of a connection."""

    def __init__(
        self,
        send: Callable[[bytes], None] = lambda data: None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.send = send
        self.close = close
        self.buffers: dict[str, int] = {}

    def traffic(self) -> dict[str, int]:
        """Return what it was told to."""
        return self.buffers

    def waiting_bytes(self) -> tuple[int, int]:
        """Return that nothing waits."""
        return 0, 0


class DirectClient:
    """A client whose requests need no socket."""

    def __init__(self, server: Server, session: Session) -> None:
        self.session = session
        self.pushed: list[bytes] = []
        """What was sent to the client without being a reply."""
        self.closed = False
        """Whether the server has cut the connection."""
        self.server = server
        self._sent = 0
        self._parked: Parked | None = None
        self.wire = LooseWire(self.pushed.append, self._close)
        session.link.wire = self.wire

    def send(self, *arguments: Argument) -> bytes | None:
        """The raw reply to a request, or ``None`` if the client has been parked."""
        request = [_to_bytes(argument) for argument in arguments]
        return in_loop(lambda: self._execute(request))

    def ask(self, *arguments: Argument) -> Any:
        """The reply to a request that does not wait, as hiredis reads it."""
        return parsed(self.send(*arguments))

    def _execute(self, request: list[bytes]) -> bytes | None:
        assert self.session.parked is None, "a parked client is not read from"
        self.session.seen_ms = self.server.state.stopwatch.begin()
        reply = self.server.services.dispatcher.execute(self.session, request)
        self._check()
        if reply is None:
            self._parked = self.session.parked
            assert self._parked is not None
        return reply

    def _check(self) -> None:
        """Checks what the server notes of its clients and streams: after every command, or after
        every second one where there are a hundred of these, and so on."""
        self._sent += 1
        services = self.server.services
        rarely = (
            1
            + (len(services.state.sessions) + sum(map(len, services.policies._known.values())))
            // 100
        )
        if (self.session.id + self._sent) % rarely == 0:
            services.check()

    @property
    def parked(self) -> bool:
        """Whether the client waits for the reply of its last command."""
        return self.session.parked is not None

    @property
    def reply_when_woken(self) -> bytes | None:
        """The reply to the command that was parked last; ``None`` while it waits."""
        assert self._parked is not None, "no command of this client was ever parked"
        reply = self._parked.result
        return None if reply is None else b"".join(reply)

    def take_pushed(self) -> bytes:
        """What has been pushed since the last call, in one piece."""
        data = b"".join(self.pushed)
        self.pushed.clear()
        return data

    def disconnect(self) -> None:
        """Goes away, as a client does whose connection is lost."""
        farewell(self.server.services, self.session)

    def _close(self) -> None:
        self.closed = True
        self.disconnect()


class Direct:
    """A server, its clock, and as many clients as a test wants. Settings are those of Config."""

    def __init__(self, *, now_ms: int = START_MS, **settings: Any) -> None:
        self._clock = _Clock(now_ms)
        self._clients = 0
        if "dir" not in settings:
            settings["dir"] = folder_of(self._clock)  # Which the server keeps.
        self.server = Server(Config(**settings), clock=self._clock)
        self.server.state.enter(Phase.SERVING)
        self.now_ms = now_ms
        # Policies act when the test lets time pass, not when the machine's clock says so.
        still = Clock(self._clock)
        still.freeze()
        self.server.services.policies.due._deadlines._alarm._clock = still
        unhurried(self.server.services)
        self.server.services.cron.freeing.nanoseconds = lambda: 0

    @property
    def now_ms(self) -> int:
        """Unix time in milliseconds; setting it moves nothing but the clock."""
        return self._clock.now_ms

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        self._clock.now_ms = now_ms
        # It counts as a clock that was put to this time.
        clock = self.server.state.timekeeper
        clock.put_ms = clock.read()

    def client(self, resp3: bool = False) -> DirectClient:
        """A client that has just connected."""
        self._clients += 1
        session = self.server.state.new_session(self._clients, "127.0.0.1:50000", "127.0.0.1:6379")
        session.resp3 = resp3
        self.server.state.sessions[session.id] = session
        return DirectClient(self.server, session)

    def advance(self, milliseconds: int) -> None:
        """Lets time pass: waits whose deadline comes are ended, and policies act."""
        self.now_ms += milliseconds
        in_loop(self._let_time_pass)

    def run_on(self, milliseconds: int) -> None:
        """Lets time pass as it does by itself: a time is due when its millisecond is over."""
        self._clock.now_ms += milliseconds
        in_loop(self._let_time_pass)

    def _let_time_pass(self) -> None:
        self.server.services.due_work.finish()
        self.server.services.reactions.pass_time(self.server.state.timekeeper.due())

    def run_slice(self) -> bool:
        """Lets policies do one slice of what is due; whether they may have more to do."""
        return in_loop(self.server.services.due_work.run_slice)

    def cron(self) -> None:
        """Lets the server do one round of its periodic work."""
        in_loop(self.server.cron)


def parsed(reply: bytes | None, encoding: str | None = None) -> Any:
    """A reply as hiredis reads it."""
    assert reply is not None
    reader = Reader(encoding=encoding)
    reader.feed(reply)
    return reader.gets()


def _to_bytes(argument: Argument) -> bytes:
    return argument if isinstance(argument, bytes) else str(argument).encode()
