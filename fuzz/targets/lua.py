"""Scripts in a server process of their own.

Invariants:

- The process goes on, whatever the script is.
- EVAL is answered by one well-formed reply: at once, or when SCRIPT KILL has ended it.
- Others are answered meanwhile.
- The memory of the process stays within script-memory-limit and some room.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from pathlib import Path
from random import Random

from fuzz.targets.base import Broken, require
from tests.conformance.resp import Incomplete, parse
from tests.support.process import PenstockProcess
from tests.support.wire import pack

MEGABYTE = 1024**2
LIMIT = 16 * MEGABYTE
ROOM = 96 * MEGABYTE
"""What the process may grow by besides: replies, what it keeps of scripts, and its own heap."""

TIMEOUT_S = 20.0
"""Within which everything must have ended."""

PATIENCE_S = 0.3
"""After so long a script is ended."""

NAMES = ("a", "b", "KEYS[1]", "ARGV[1]", "redis", "string", "table", "math", "cjson", "cmsgpack",
         "struct", "bit", "_G", "os", "coroutine")  # fmt: skip
CALLS = ("redis.call", "redis.pcall", "pcall", "xpcall", "tostring", "tonumber", "type", "next",
         "unpack", "select", "setmetatable", "getmetatable", "rawset", "rawget", "loadstring",
         "string.rep", "string.format", "string.gsub", "string.find", "string.byte", "string.dump",
         "string.char", "table.concat", "table.insert", "table.sort", "table.remove",
         "coroutine.wrap", "coroutine.create", "coroutine.resume", "cjson.encode", "cjson.decode",
         "cmsgpack.pack", "cmsgpack.unpack", "struct.pack", "struct.unpack", "bit.lshift",
         "bit.tohex", "math.random", "redis.sha1hex", "redis.error_reply", "redis.status_reply",
         "redis.setresp", "redis.log", "redis.acl_check_cmd", "collectgarbage", "error", "assert",
         "os.clock")  # fmt: skip
VALUES = ("nil", "true", "1", "0", "-1", "1.5", "2^31", "2^53", "-2^63", "1e308", "0/0", "''",
          "'x'", "'set'", "'get'", "'xadd'", "'xrange'", "'s'", "'*'", "'%d%s'", "'(.-)*'", "'>I8'",
          "{}", "{1,2,3}", "{a=1}", "{err='E x'}", "{ok='x'}", "function() end",
          "function(...) return ... end", "string.rep('x',1000)")  # fmt: skip


class Lua:
    """Sends scripts to a process, which is started again when it could not be made to stop one."""

    name = "lua"
    mutable = False

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._process: PenstockProcess | None = None
        self._start = 0

    def make(self, random: Random) -> bytes:
        """A script of a few statements."""
        lines = [_statement(random, 3) for _ in range(random.randrange(1, 6))]
        return "\n".join([*lines, f"return {_expression(random, 2)}"]).encode()

    def run(self, data: bytes) -> None:
        """Sends the script, with a key and an argument, to a server that goes on."""
        process = self._serving()
        address = process.address
        with (
            socket.create_connection(address) as client,
            socket.create_connection(address) as other,
        ):
            client.settimeout(TIMEOUT_S)
            other.settimeout(TIMEOUT_S)
            client.sendall(pack("EVAL", data, 1, "s", 1))
            ended = _ended(client, other)
            require(process.process.poll() is None, "the server has ended")
            if not ended:
                self._restart()
                return
        self._check_memory(process)

    def _serving(self) -> PenstockProcess:
        if self._process is None:
            options = ("--port", "0", "--bind", "127.0.0.1", "--dir", self._folder.name)
            limits = ("--script-memory-limit", str(LIMIT), "--busy-reply-threshold", "50")
            self._process = PenstockProcess(*options, *limits).__enter__()
            # Nobody reads the log, and a server whose log is full has to wait.
            self._process.ask(pack("CONFIG", "SET", "loglevel", "nothing"))
            self._start = self._resident()
        return self._process

    def _resident(self) -> int:
        assert self._process is not None
        statm = Path(f"/proc/{self._process.process.pid}/statm").read_text()
        return int(statm.split()[1]) * 4096

    def _check_memory(self, process: PenstockProcess) -> None:
        grown = self._resident() - self._start
        require(grown < LIMIT + ROOM, f"the process has grown by {grown // MEGABYTE} MiB")

    def _restart(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def close(self) -> None:
        """Ends the process."""
        self._restart()
        self._folder.cleanup()


def _ended(client: socket.socket, other: socket.socket) -> bool:
    """Waits for the reply to a script, and ends the script after a while; whether that worked."""
    reply = b""
    started = time.monotonic()
    client.settimeout(PATIENCE_S)
    while True:
        with contextlib.suppress(TimeoutError):
            data = client.recv(1 << 20)
            require(bool(data), "the connection was closed")
            reply += data
            if _is_whole(reply):
                return True
            continue
        answer = _ask(other, [b"PING"])
        require(answer[:5] in (b"+PONG", b"-BUSY"), f"PING was answered by {answer[:100]!r}")
        killed = _ask(other, [b"SCRIPT", b"KILL"])
        if killed.startswith(b"-UNKILLABLE"):
            return False
        require(time.monotonic() - started < TIMEOUT_S, "a script cannot be ended")


def _ask(client: socket.socket, words: list[bytes]) -> bytes:
    try:
        client.sendall(pack(*words))
        return client.recv(4096)
    except (TimeoutError, ConnectionError) as error:
        raise Broken(f"{words[0]!r} was not answered: {error!r}") from None


def _is_whole(reply: bytes) -> bool:
    """Whether it is one reply; raises :class:`Broken` if it is more, or none at all."""
    try:
        _, end = parse(reply)
    except Incomplete:
        return False
    except (ValueError, RecursionError):
        raise Broken(f"a malformed reply: {reply[:100]!r}") from None
    require(end == len(reply), f"more than one reply: {reply[:100]!r}")
    return True


# --- scripts ---------------------------------------------------------------------------------


def _statement(random: Random, depth: int) -> str:
    kind = random.randrange(8 if depth else 3)
    inner = "" if not depth else _statement(random, depth - 1)
    if kind < 2:
        return f"local {random.choice('ab')} = {_expression(random, depth)}"
    if kind == 2:
        return _call(random, depth)
    if kind == 3:
        return f"for i=1,{random.choice((1, 10, 1000, 10**9))} do {inner} end"
    if kind == 4:
        return f"if {_expression(random, 1)} then {inner} end"
    if kind == 5:
        return f"while {_expression(random, 1)} do {inner} end"
    if kind == 6:
        return f"local function f(...) {inner} end pcall(f, {_expression(random, 1)})"
    return f"for k,v in pairs({_expression(random, 1)}) do {inner} end"


def _call(random: Random, depth: int) -> str:
    arguments = ", ".join(_expression(random, depth - 1) for _ in range(random.randrange(5)))
    return f"{random.choice(CALLS)}({arguments})"


def _expression(random: Random, depth: int) -> str:
    kind = random.randrange(6) if depth > 0 else random.randrange(2)
    if kind == 0:
        return random.choice(NAMES)
    if kind == 1:
        return random.choice(VALUES)
    if kind in (2, 3):
        return _call(random, depth)
    left, right = _expression(random, depth - 1), _expression(random, depth - 1)
    if kind == 4:
        return f"({left} {random.choice(('+', '..', '==', '<', '%', '^', 'and', 'or'))} {right})"
    return f"{{{left}, x = {right}}}"
