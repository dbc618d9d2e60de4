"""Playing a case against a server, over real sockets."""

from __future__ import annotations

import select
import time
from dataclasses import dataclass, field

from tests.support.wire import connected, pack

from .marks import Version, normalise, parse_version
from .quoting import split_arguments
from .resp import Incomplete, escape, parse
from .script import Case, Step

REPLY_TIMEOUT_S = 20.0
CLOSED = b"(closed)"
AFTERWARDS = {
    "ACL": "ACL SETUSER default reset on nopass ~* &* +@all",
    "AUTH": "ACL LOG RESET",
    "CLIENT PAUSE": "CLIENT UNPAUSE",
    "FUNCTION": "FUNCTION FLUSH",
}


class ConversationError(AssertionError):
    """The server did something that no reply comparison can express."""


@dataclass(frozen=True)
class Observation:
    """What a step brought, after its marks took the chance out of it."""

    step: Step
    reply: bytes


class Connection:
    """One client connection that can be asked for whole replies, as raw bytes."""

    def __init__(self, address: tuple[str, int], protocol: int) -> None:
        self.socket = connected(address)
        self.buffer = b""
        self.sent_at = 0.0
        self.ended = False
        if protocol == 3 and not self.ask(b"HELLO", b"3").startswith(b"%"):
            raise ConversationError("HELLO 3 was refused")

    def send(self, data: bytes) -> None:
        """Send raw bytes; a connection that the server has closed takes them silently."""
        self.sent_at = time.monotonic()
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            self.ended = True

    def ask(self, *arguments: bytes) -> bytes:
        """The reply to a command."""
        self.send(pack(*arguments))
        return self.receive()

    def receive(self) -> bytes:
        """The next reply."""
        while True:
            try:
                _, end = parse(self.buffer)
            except Incomplete:
                self._wait_for_bytes()
            else:
                reply, self.buffer = self.buffer[:end], self.buffer[end:]
                return reply

    def _wait_for_bytes(self) -> None:
        """Read what comes next, and refuse silence."""
        if self.ended:
            raise ConversationError(f"closed instead of a reply, after {escape(self.buffer)!r}")
        if not self._is_readable(REPLY_TIMEOUT_S):
            raise ConversationError(f"no reply in {REPLY_TIMEOUT_S} s, but {escape(self.buffer)!r}")
        self._read()

    def _is_readable(self, seconds: float) -> bool:
        """Whether something comes within so long. Other than select, poll takes any descriptor."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def _read(self) -> None:
        """Take the bytes that are there."""
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            data = b""
        self.ended = not data
        self.buffer += data

    def pending(self) -> bytes:
        """What has come without being asked for; never waits."""
        while not self.ended and self._is_readable(0):
            self._read()
        return self.buffer

    def expect_end(self) -> None:
        """Wait until the server closes the connection, and refuse any further reply."""
        deadline = time.monotonic() + REPLY_TIMEOUT_S
        while not self.ended:
            if not self._is_readable(max(0, deadline - time.monotonic())):
                raise ConversationError("the connection is still open")
            self._read()
        if self.buffer:
            raise ConversationError(f"unexpected before the end: {escape(self.buffer)}")

    def close(self) -> None:
        """Close the client's end."""
        self.socket.close()


class Server:
    """A running server, and the connection that prepares it for each case."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.control = Connection(address, 2)
        self._settings = self._read_settings()

    def version(self) -> Version:
        """The version of Redis that the server says it is."""
        for line in self.control.ask(b"INFO", b"server").splitlines():
            if line.startswith(b"redis_version:"):
                return parse_version(line.partition(b":")[2].decode("ascii"))
        raise ConversationError("INFO names no redis_version")

    def prepare(self, command: str) -> None:
        """Run a command that has to succeed for the next case to mean something."""
        reply = self.control.ask(*split_arguments(command, {}))
        if reply != b"+OK\r\n":
            raise ConversationError(f"{command}: {escape(reply)}")

    def _read_settings(self) -> dict[bytes, bytes]:
        """Every setting, as CONFIG GET shows it."""
        reply = parse(self.control.ask(b"CONFIG", b"GET", b"*"))[0]
        words = [item.text or b"" for item in reply.items]
        return dict(zip(words[::2], words[1::2], strict=True))

    def restore_settings(self) -> None:
        """Make every setting what it was before the first case."""
        now = self._read_settings()
        for name, value in self._settings.items():
            if now[name] != value:
                reply = self.control.ask(b"CONFIG", b"SET", name, value)
                if reply != b"+OK\r\n":
                    raise ConversationError(f"CONFIG SET {escape(name)}: {escape(reply)}")

    def forget_users(self) -> None:
        """Remove every user but the default one, and what was denied to them."""
        users = [item.text for item in parse(self.control.ask(b"ACL", b"USERS"))[0].items]
        self.control.ask(b"ACL", b"DELUSER", *(name or b"" for name in users if name != b"default"))
        self.prepare("ACL LOG RESET")

    def settle(self) -> None:
        """Return when everything sent so far has been worked off."""
        self.control.ask(b"PING")
        self.control.ask(b"PING")

    def close(self) -> None:
        """Close the control connection."""
        self.control.close()


@dataclass
class Player:
    """Plays one case in one protocol."""

    server: Server
    protocol: int
    case: Case
    connections: dict[str, Connection] = field(default_factory=dict)
    saved: dict[str, bytes] = field(default_factory=dict)

    def play(self) -> list[Observation]:
        """The replies of all steps that have one."""
        self.server.prepare("FLUSHALL")
        try:
            observations = [self._observe(step) for step in self.case.steps]
            self._refuse_leftovers()
        finally:
            self._clean_up()
        return [observation for observation in observations if observation.step.observed]

    def _observe(self, step: Step) -> Observation:
        """Take one step."""
        try:
            reply = self._take(step)
            return Observation(step, normalise(reply, step.marks, self.saved))
        except ConversationError as error:
            raise ConversationError(f"{step.line}: {error}") from error

    def _take(self, step: Step) -> bytes:
        """Do what the step says and return the bytes that it brought."""
        if step.action == "pause":
            time.sleep(step.low / 1000)
            return b""
        if step.action == "leaves":
            self.connections.pop(step.client).close()
            self.server.settle()
            return b""
        connection = self._connection(step.client)
        if step.action == "closed":
            connection.expect_end()
            return CLOSED
        if step.action == "receives":
            return self._receive(connection, step)
        if step.action == "repeats":
            return self._repeat(connection, step)
        return self._send(connection, step)

    def _connection(self, name: str) -> Connection:
        """The connection of that name, opened when it is first needed."""
        if name not in self.connections:
            protocol = self.protocol if self.case.greets else 2
            self.connections[name] = Connection(self.server.address, protocol)
        return self.connections[name]

    def _send(self, connection: Connection, step: Step) -> bytes:
        """Send a step's text, and read one reply or make sure that there is none."""
        arguments = split_arguments(step.text, self.saved)
        if step.action == "sends":
            connection.send(b"".join(arguments))
            return b""
        if step.action != "waits":
            connection.send(pack(*arguments))
        if step.action == "command":
            return connection.receive()
        self.server.settle()
        if connection.pending():
            raise ConversationError(f"replied at once: {escape(connection.buffer)}")
        return b""

    def _receive(self, connection: Connection, step: Step) -> bytes:
        """The next replies, not before their time."""
        reply = b"".join(connection.receive() for _ in range(step.count))
        elapsed_ms = (time.monotonic() - connection.sent_at) * 1000
        if elapsed_ms < step.low:
            raise ConversationError(f"the reply came after {elapsed_ms:.0f} ms")
        return reply

    def _repeat(self, connection: Connection, step: Step) -> bytes:
        """The replies to a numbered pipeline."""
        numbers = range(step.low, step.high + 1)
        values = [{**self.saved, "n": b"%d" % number} for number in numbers]
        connection.send(b"".join(pack(*split_arguments(step.text, v)) for v in values))
        return b"".join(connection.receive() for _ in numbers)

    def _refuse_leftovers(self) -> None:
        """A case names every reply: none may be left when it ends."""
        self.server.settle()
        for name, connection in self.connections.items():
            if connection.pending():
                raise ConversationError(f"{name} also received {escape(connection.buffer)}")

    def _clean_up(self) -> None:
        """Close the connections and undo what outlives a FLUSHALL: the next case must not depend
        on this one."""
        for connection in self.connections.values():
            connection.close()
        if any("config" in step.text.lower() for step in self.case.steps):
            self.server.restore_settings()
        for command, remedy in AFTERWARDS.items():
            if any(command in step.text.upper() for step in self.case.steps):
                self.server.prepare(remedy)
                if command == "ACL":
                    self.server.forget_users()
