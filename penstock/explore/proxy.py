"""A proxy before a server that cannot hold the commands of workers: it does that here.

Each worker has a port of this proxy, and each connection that comes by it has one to the server of
its own. It answers DEBUG PORT and DEBUG FAULT as Penstock does, as far as :mod:`.reins` and
:mod:`.bench` ask. Replies pass as they are, and so do commands; only that blocking ones wait for
ever, until others end the wait, or the time of the exploration does.
"""

from __future__ import annotations

import asyncio
import re
import select
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from itertools import count
from math import inf
from time import monotonic
from typing import Any, Final

from hiredis import ProtocolError, PushNotification, Reader, pack_command

from penstock.explore.gate import Request, texts
from penstock.explore.traces import timeout_at
from penstock.testing.control import Ask, PenstockError
from penstock.testing.trace import OWN_ACCOUNT

HOST: Final = "127.0.0.1"

STATES: Final = ("absent", "gone", "busy", "held", "parked", "idle")
"""What a worker does: the first that applies to it or to one of its connections."""

NEVER_HELD: Final = OWN_ACCOUNT | {"DEBUG"}

LOOK_S: Final = 0.002
"""After how long the server is asked again what has become of a command without a reply."""

CHUNK: Final = 65_536

_LEFT: Final = getattr(select, "POLLRDHUP", 0)

_MISSING: Final = object()

_NO_REQUEST: Final = b"-ERR Protocol error: a worker behind a proxy has to send arrays of bulks\r\n"

_UNNUMBERED: Final = ("SUBSCRIBE", "MONITOR", "SYNC")
"""The ends of the names of commands that have no reply, or more than one."""

_TIMEOUT: Final = re.compile(r"\d{1,12}")
_TIMEOUT_S: Final = re.compile(r"\d{1,9}(\.\d{1,9})?")

_pack: Final[Callable[[Request], bytes]] = pack_command  # type: ignore[assignment]


def _checked(request: Any) -> Request:
    """Return a request; raises :class:`ProtocolError`."""
    if isinstance(request, list) and request and all(isinstance(word, bytes) for word in request):
        return tuple(request)
    raise ProtocolError


def without_end(request: Request, words: Sequence[str]) -> tuple[Request, int]:
    """Return a request that waits for ever if it waits at all, and after how many milliseconds its
    wait was to end; -1 for never."""
    at = timeout_at(words)
    in_ms = words[0].startswith("X")
    timeout = words[at] if at is not None and at < len(words) else ""
    wait = float(timeout) if (_TIMEOUT if in_ms else _TIMEOUT_S).fullmatch(timeout) else 0
    if at is None or not wait:
        return request, -1
    return (*request[:at], b"0", *request[at + 1 :]), round(wait if in_ms else wait * 1000)


def _reads_again(words: Sequence[str]) -> bool:
    """Whether a command reads what is pending, and nothing else: some servers count that as a
    change."""
    return words[0] == "XREADGROUP" and ">" not in words


def _nothing() -> asyncio.Future[Any]:
    """Return what is waited for no more."""
    future = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future


class HeldConnection:
    """A connection of a worker, and the one to the server that it has."""

    def __init__(self, proxy: HoldingProxy, name: str, sock: socket.socket) -> None:
        self._proxy = proxy
        self._socket = sock
        self._requests = asyncio.Queue[Request]()
        self._taken = True  # Until there is a connection to the server.
        self._action = self._reply = _nothing()
        self._muted = self._unnumbered = self._leaving = False
        self._words: tuple[str, ...] = ()
        self._parked = False
        self.number = next(proxy.numbers)
        self.name = name
        self.server_id = 0
        """Its number on the server; 0 before anything was held, and when it has left there."""
        self.until = -1
        """When the wait of its command ends by itself."""
        self.closed = False
        self.held_since = 0
        self._task = asyncio.get_running_loop().create_task(self._run())

    # --- both ends ------------------------------------------------------------------------

    async def _run(self) -> None:
        with ExitStack() as stack, suppress(OSError, PenstockError):  # The server may be gone.
            stack.callback(self._note_end)
            reader, self._client = await asyncio.open_connection(sock=self._socket)
            stack.callback(self._client.close)
            replies, self._server = await asyncio.open_connection(*self._proxy.server)
            stack.callback(self._server.close)
            for pump in (self._take_requests(reader), self._take_replies(replies)):
                stack.callback(asyncio.get_running_loop().create_task(pump).cancel)
            await self._serve()

    def _note_end(self) -> None:
        self.closed = True
        self._proxy.changed.set()

    async def _take_requests(self, reader: asyncio.StreamReader) -> None:
        """Reads on while a command is held: else nobody would see that the worker has left."""
        requests = Reader(notEnoughData=_MISSING)
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                self._proxy.changed.set()
                requests.feed(data)
                try:
                    while (request := requests.gets()) is not _MISSING:
                        self._requests.put_nowait(_checked(request))
                except ProtocolError:
                    self._client.write(_NO_REQUEST)
                    break
        self.leave()

    async def _take_replies(self, reader: asyncio.StreamReader) -> None:
        replies = Reader(notEnoughData=_MISSING)
        with suppress(OSError, ProtocolError):
            while data := await reader.read(CHUNK):
                if not self._muted and not self._leaving:
                    self._client.write(data)
                    with suppress(OSError):
                        await self._client.drain()
                replies.feed(data)
                while (reply := replies.gets()) is not _MISSING:
                    if self.is_asked and not isinstance(reply, PushNotification):
                        self._reply.set_result(reply)
        self.end()

    def leave(self) -> None:
        """Lets the worker be gone: what is held never runs, what was released has its reply
        before."""
        self._leaving = True
        with suppress(OSError):  # It may have gone, or not read its last reply.
            self._socket.shutdown(socket.SHUT_RDWR)
        if not self._taken or self.is_held:
            self.end()

    def end(self) -> None:
        """Ends both connections."""
        self._task.cancel()

    # --- requests -------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Lets one request after the other pass, until one ends the connection."""
        action = ""
        while not action and not self._leaving:
            self._taken = False
            self._proxy.changed.set()
            request = await self._requests.get()
            self._taken = True
            self._words = texts(request)
            if self._words[0] not in NEVER_HELD:
                self._action = asyncio.get_running_loop().create_future()
                self.held_since = next(self._proxy.numbers)
                action = await self._action
            if action != "CLOSE":
                await self._pass(request, action == "NOREPLY")

    def release(self, action: str) -> bool:
        """Lets the request pass that is held, or an action happen to it; whether there is one."""
        if not self.is_held or self._has(_LEFT):
            return False
        self._action.set_result(action)
        return True

    async def _pass(self, request: Request, muted: bool) -> None:
        name = self._words[0]
        if name.endswith(_UNNUMBERED) or " ".join(self._words[:2]).upper() == "CLIENT REPLY":
            self._unnumbered = True
        if not self.server_id and name not in NEVER_HELD and not self._unnumbered:
            self._muted = True
            found = await self._exchange((b"CLIENT", b"ID"))
            self.server_id = found if isinstance(found, int) else 0
        self._muted = muted
        request, timeout_ms = without_end(request, self._words)
        self.until = self._proxy.now_ms() + timeout_ms if timeout_ms >= 0 else -1
        with self._proxy.uncounted() if _reads_again(self._words) else nullcontext():
            await self._exchange(request)

    async def _exchange(self, request: Request) -> object:
        """Sends a request, and waits for its reply, if it has one of its own."""
        self._parked = False
        self._server.write(_pack(request))
        if not self._unnumbered:
            self._reply = asyncio.get_running_loop().create_future()
        self._proxy.changed.set()
        return await self._reply

    # --- what it does ---------------------------------------------------------------------

    @property
    def is_held(self) -> bool:
        """Whether a command waits to be released."""
        return not self._action.done()

    @property
    def is_asked(self) -> bool:
        """Whether a command was sent that has no reply."""
        return not self._reply.done()

    @property
    def is_unsure(self) -> bool:
        """Whether only the server knows what it does."""
        return self.server_id > 0 and (self.closed or self.is_asked)

    def note(self, flags: str | None) -> None:
        """Notes how the server lists it, if it does."""
        if self.closed:
            self.server_id = 0 if flags is None else self.server_id
            return
        blocked = "b" in (flags or "")
        self._parked = blocked and self._words[0] not in ("WAIT", "WAITAOF")
        if blocked and self._leaving:
            self.end()

    @property
    def state(self) -> str:
        """Return what it does."""
        if self.closed or self._leaving or self._has(_LEFT):
            return "busy"  # Until all have noticed.
        if self.is_held:
            return "held"
        if self._parked and self.is_asked:
            return "parked"
        busy = self._taken or not self._requests.empty() or self._has(select.POLLIN)
        return "busy" if busy else "idle"

    def _has(self, event: int) -> bool:
        """Whether something has happened to the worker's end that was not read yet."""
        if self._socket.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(self._socket, event)
        return len(poll.poll(0)) > 0

    def described(self) -> dict[str, Any]:
        """Return what DEBUG FAULT HELD and REST tell of it."""
        state = self.state
        return {
            "client": self.number,
            "name": self.name,
            "state": state,
            "until": self.until if state == "parked" else -1,
            "words": list(self._words),
        }


class HoldingPort:
    """A port for the connections of one worker."""

    def __init__(self, proxy: HoldingProxy, name: str) -> None:
        self._proxy = proxy
        self._name = name
        self._socket = socket.create_server((HOST, 0))
        self._socket.setblocking(False)
        self._nobody = "absent"
        self.number: int = self._socket.getsockname()[1]
        self.connections: list[HeldConnection] = []
        asyncio.get_running_loop().add_reader(self._socket, self.accept)

    def accept(self) -> None:
        """Lets those in who have come."""
        with suppress(OSError):
            while True:
                sock, _ = self._socket.accept()
                self._nobody = "gone"
                self.connections.append(HeldConnection(self._proxy, self._name, sock))

    @property
    def state(self) -> str:
        """Return what the worker does."""
        states = {connection.state for connection in self.connections}
        return min(states or {self._nobody}, key=STATES.index)

    def close(self) -> None:
        """Takes no connection any more, and lets those leave that there are."""
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        for connection in self.connections:
            connection.leave()


class HoldingProxy:
    """The proxy; it works as long as it is asked.

    ``ask`` asks the server, and ``now_ms`` what time it is in the exploration; what happens while
    it is ``uncounted`` is no change of data.
    """

    def __init__(
        self,
        server: tuple[str, int],
        ask: Ask,
        now_ms: Callable[[], int],
        uncounted: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.server = server
        self.now_ms = now_ms
        self.uncounted = uncounted
        self._ask = ask
        self._runner = asyncio.Runner()
        self._ports: dict[str, HoldingPort] = {}
        self.changed = asyncio.Event()
        """Set when a worker does something else than before."""
        self.numbers = count(1)
        """Numbers of connections, and of the moments since which they are held."""

    def close(self) -> None:
        """Ends it, and what is left of connections."""
        with self._runner:
            for name in list(self._ports):
                self.answer("PORT", "CLOSE", name)

    def answer(self, *words: str | int) -> Any:
        """Return the reply to DEBUG with these words."""
        return self._runner.run(self._answer(words))

    @property
    def _connections(self) -> list[HeldConnection]:
        return [connection for port in self._ports.values() for connection in port.connections]

    async def _answer(self, words: Sequence[str | int]) -> Any:
        match words:
            case "PORT", "OPEN", str(name):
                port = self._ports[name] = HoldingPort(self, name)
                return port.number
            case "PORT", "CLOSE", str(name):
                await self._close(name)
            case "FAULT", "HELD":
                held = [connection for connection in self._connections if connection.is_held]
                held.sort(key=lambda connection: connection.held_since)
                return [connection.described() for connection in held]
            case "FAULT", "RELEASE", int(number), *action:
                found = [each for each in self._connections if each.number == number]
                return bool(found) and found[0].release(str(*action))
            case "FAULT", "REST", str(name), "UNTIL", str(until), *timeout:
                seconds = float(timeout[1]) / 1000 if timeout else inf
                return await self._rest(name, until.split(","), seconds)
            case "CLOCK", *_:
                self._end_waits()
        return 0  # Faults are added and cleared: every port holds, as long as it is open.

    async def _close(self, name: str) -> None:
        """Closes a port; what has come by it has left the server then."""
        if port := self._ports.get(name):
            port.close()
            await self._rest(name, ("gone", "absent"), inf)
            del self._ports[name]

    async def _rest(self, name: str, until: Sequence[str], seconds: float) -> Any:
        """Tells of a worker as soon as its state is one of these, or the time is over."""
        end, state, clients = monotonic() + seconds, "gone", list[dict[str, Any]]()
        while (port := self._ports.get(name)) is not None:
            self.changed.clear()
            self._look(port)
            state, clients = port.state, [each.described() for each in port.connections]
            left = end - monotonic()
            if state in until or left <= 0:
                break
            unsure = any(connection.is_unsure for connection in port.connections)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), min(left, LOOK_S if unsure else 1))
        return {"workers": [{"name": name, "state": state, "clients": clients}]}

    def _look(self, port: HoldingPort) -> None:
        """Finds out what becomes of commands without a reply, and of connections that were closed:
        the server may not have noticed yet."""
        port.accept()
        unsure = [connection for connection in port.connections if connection.is_unsure]
        listed = self._listed([connection.server_id for connection in unsure])
        for connection in unsure:
            connection.note(listed.get(connection.server_id))
        port.connections = [each for each in port.connections if each.server_id or not each.closed]

    def _listed(self, numbers: Sequence[int]) -> dict[int, str]:
        """Return the flags of connections by their numbers on the server, of those it has."""
        text = self._ask("CLIENT", "LIST", "ID", *numbers) if numbers else ""
        found = re.findall(r"^id=(\d+) .*?\bflags=(\S*)", text, re.MULTILINE)
        return {int(number): flags for number, flags in found}

    def _end_waits(self) -> None:
        """Ends the waits whose time is over."""
        for port in self._ports.values():
            self._look(port)
        for connection in self._connections:
            if connection.state == "parked" and 0 <= connection.until <= self.now_ms():
                self._ask("CLIENT", "UNBLOCK", connection.server_id, "TIMEOUT")
