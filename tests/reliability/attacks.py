"""Attacks and accidents: what is done to a server while another client writes to it."""

from __future__ import annotations

import random
import shutil
import time
import urllib.request
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.data import EMPTY, Data
from benchmarks.driver import Client, ReplyError, pack
from benchmarks.loads import Load
from benchmarks.pauses import HEAVY, Pause
from benchmarks.servers import Running

MIB: Final = 1024 * 1024

Do = Callable[[Running, float], None]
"""What is done to a server, to which part of its full scale (0 to 1)."""


@dataclass(frozen=True)
class Attack:
    """``do`` happens to a server that holds ``data`` and was started with ``options``.

    ``memory_mib`` is what the server may take for it at full scale, at its peak: a bound with a
    wide margin, from what the attack sends or asks for. Where the attack ``restarts`` the server,
    what others waited says nothing, and neither does its memory. One ``of_page`` asks for the web
    page, which no other server has.
    """

    name: str
    title: str
    do: Do
    data: Data = EMPTY
    options: tuple[str, ...] = ()
    memory_mib: int = 64
    restarts: bool = False
    of_page: bool = False


# --- a lot at once ---------------------------------------------------------------------------

HEAVY_MIB: Final = {
    "pause-pipeline": 128,
    "pause-arguments": 512,
    "pause-keys-all": 512,
    "pause-del-keys": 768,
    "pause-flush": 256,
    "pause-exec": 1024,
    "pause-xautoclaim": 1024,
    "pause-history": 1024,
    "pause-xinfo": 1024,
}
"""What the longest requests and replies may take; those of a million items take 100 MB each."""


def _heavy(pause: Pause) -> Attack:
    def do(server: Running, scale: float) -> None:
        load: Load = pause.load
        data = pause.data.scaled(scale)
        load.run(server, data, max(int(load.amount * scale), 1))

    memory = HEAVY_MIB.get(pause.name, 64)
    return Attack(pause.name.removeprefix("pause-"), pause.title, do, pause.data, memory_mib=memory)


# --- malformed frames ------------------------------------------------------------------------


def frame(data: bytes, answer: bytes | None = None) -> Do:
    """Sends bytes a hundred times over, each time on a connection of its own; the answer, if one
    is expected, is an error after which the connection ends."""

    def do(server: Running, scale: float) -> None:
        for _ in range(max(int(100 * scale), 1)):
            with Client(server.address) as client:
                client.send(data)
                if answer is not None:
                    reply = client.read_any()
                    assert isinstance(reply, ReplyError)
                    assert str(reply).encode().startswith(answer)

    return do


_FRAMES: Final = (
    Attack(
        "frame-push",
        "a push type of 250,000,000 elements inside a request",
        frame(b"*2\r\n$1\r\na\r\n>250000000\r\n", b"ERR Protocol error: expected '$', got '>'"),
    ),
    Attack(
        "frame-map",
        "a map inside a request",
        frame(b"*2\r\n%1\r\n", b"ERR Protocol error: expected '$', got '%'"),
    ),
    Attack("frame-count", "a request of 1,000,000,000 arguments, begun", frame(b"*1000000000\r\n")),
    Attack(
        "frame-bulk", "an argument of 512 MB, begun", frame(b"*2\r\n$3\r\nGET\r\n$536870912\r\n")
    ),
)


# --- scripts ---------------------------------------------------------------------------------


def script(source: str, *expected: str) -> Do:
    """Runs a script ten times; the reply is one of those expected, or any if none is named."""

    def do(server: Running, scale: float) -> None:
        with Client(server.address) as client:
            for _ in range(max(int(10 * scale), 1)):
                client.send(pack("EVAL", source, 0))
                reply = client.read_any()
                text = reply.decode() if isinstance(reply, bytes) else str(reply)
                assert not expected or text.startswith(expected)

    return do


def endless(source: str) -> Do:
    """Runs a script that never ends, until another client ends it."""

    def do(server: Running, scale: float) -> None:
        with Client(server.address) as client, Client(server.address) as other:
            client.send(pack("EVAL", source, 0))
            answer: object = None
            while not isinstance(answer, ReplyError):  # The script may begin after the first PING.
                other.send(pack("PING"))
                answer = other.read_any()
            assert str(answer).startswith("BUSY")
            assert other.call("SCRIPT", "KILL") == b"OK"
            assert isinstance(client.read_any(), ReplyError)

    return do


_VARARGS: Final = """\
local names = {}
for place = 1, 198 do names[place] = 'a' .. place end
local f = loadstring('return function(' .. table.concat(names, ',') .. ', ...) return 1 end')()
local last
for round = 1, 1000 do last = coroutine.wrap(f)() end
return 'ended ' .. last
"""

_BOMB: Final = """\
local kept = {}
for place = 1, 300 do kept[place] = string.rep('x', 1000000) .. place end
return 'kept ' .. #kept
"""

_THRESHOLD: Final = ("--busy-reply-threshold", "50")

_SCRIPTS: Final = (
    Attack(
        "script-unpack",
        "a script that unpacks 2,147,483,647 values (CVE-2025-46817)",
        script(
            "return unpack({1}, -1, 2147483646)", "ERR user_script:1: too many results to unpack"
        ),
    ),
    Attack(
        "script-varargs",
        "coroutines of a function with 198 parameters and more (CVE-2014-5461)",
        script(_VARARGS, "ended 1"),
    ),
    Attack(
        "script-memory",
        "a script that keeps 300 MB",
        script(_BOMB, "kept 300", "ERR not enough memory"),
        memory_mib=512,
    ),
    Attack(
        "script-flags",
        "scripts whose first lines name flags, in 160 KB",
        script(
            "#!lua flags=" + "no-writes," * 16_000 + "\nreturn 1",
            *("ERR Invalid script shebang", "ERR Unexpected flag"),
        ),
    ),
    Attack(
        "script-endless",
        "a script that never ends (others are told so after 50 ms)",
        endless("while true do end"),
        options=_THRESHOLD,
    ),
)


# --- limits ----------------------------------------------------------------------------------


def _queue(server: Running, scale: float) -> None:
    """Queues commands of a megabyte in a transaction, and goes away."""
    value = "x" * 1_000_000
    with Client(server.address) as client:
        client.call("MULTI")
        try:
            for _ in range(max(int(200 * scale), 1)):
                client.send(pack("SET", "key", value))
                client.read()
        except OSError:
            pass  # cut off, which is one way to bound it


def _full(server: Running, scale: float) -> None:
    """Adds values that cannot be compressed until there is no memory left, and goes on asking; what
    frees memory still runs, and makes room again."""
    fill = random.Random(1)
    refused = added = 0
    with Client(server.address) as client:
        used = int(client.call("INFO", "memory").split(b"used_memory:")[1].split()[0])
        client.call("CONFIG", "SET", "maxmemory", used + int(100 * MIB * scale))
        while refused < 1000:
            client.send(pack("XADD", "full", "*", "value", fill.randbytes(10_000)))
            reply = client.read_any()
            if isinstance(reply, ReplyError):
                assert str(reply).startswith("OOM command not allowed")
                refused += 1
            else:
                added += 1
            assert added * 10_000 < 300 * MIB
        assert client.call("XTRIM", "full", "MAXLEN", 0) == added
        client.call("CONFIG", "SET", "maxmemory", 0)
        client.call("XADD", "full", "*", "value", "fits")


def _silent_reader(server: Running, scale: float) -> None:
    """Asks for 1,000 MB and reads nothing of it."""
    with Client(server.address) as client, Client(server.address) as other:
        other.call("SET", "large", "x" * 1_000_000)
        client.send(pack("GET", "large") * max(int(1000 * scale), 1))
        for _ in range(20):
            other.call("PING")


def _silent_subscriber(server: Running, scale: float) -> None:
    """Subscribes and reads nothing of the 200 MB that are published."""
    message = "x" * 100_000
    with Client(server.address) as client, Client(server.address) as other:
        client.call("SUBSCRIBE", "news")
        for _ in range(max(int(2000 * scale), 1)):
            other.call("PUBLISH", "news", message)


def _connections(server: Running, scale: float) -> None:
    """Opens 2,000 connections, each of which says half a word."""
    with ExitStack() as stack:
        for _ in range(max(int(2000 * scale), 1)):
            client = stack.enter_context(Client(server.address))
            client.send(b"*2\r\n$4\r\nPI")


_LIMITS: Final = (
    Attack("queue", "200 MB queued in MULTI", _queue, memory_mib=384),
    Attack(
        "full", "maxmemory reached with values that cannot be compressed", _full, memory_mib=256
    ),
    Attack("silent-reader", "1,000 MB asked for and not read", _silent_reader, memory_mib=256),
    Attack("silent-subscriber", "200 MB published to one that does not read", _silent_subscriber),
    Attack("connections", "2,000 connections with half a request", _connections, memory_mib=128),
)


# --- accidents -------------------------------------------------------------------------------


def _kill(server: Running, scale: float) -> None:
    """The process is killed and started again, several times."""
    for _ in range(max(int(10 * scale), 2)):
        time.sleep(0.05 + 0.1 * scale)
        server.kill()
        server.restart()


def _remove_folder(server: Running, scale: float) -> None:
    """The folder of the append-only file goes, and a rewrite is asked for."""
    with Client(server.address) as client:
        shutil.rmtree(server.folder / "appendonlydir")
        client.call("BGREWRITEAOF")
        while b"aof_rewrite_in_progress:0" not in client.call("INFO", "persistence"):
            time.sleep(0.05)


def _policy(policy: str) -> tuple[str, ...]:
    return ("--appendfsync", policy)


_ACCIDENTS: Final = (
    *(
        Attack(
            f"kill-{policy}",
            f"SIGKILL and a start, ten times, appendfsync {policy}",
            _kill,
            Data(entries=200_000),
            options=_policy(policy),
            restarts=True,
        )
        for policy in ("no", "everysec", "always")
    ),
    Attack(
        "folder", "the folder of the append-only file removed, then BGREWRITEAOF", _remove_folder
    ),
)


# --- the web page ----------------------------------------------------------------------------


def page(entries: int, size: int, path: str, most: int) -> Do:
    """Adds entries of so many bytes and asks for something of the page, which is read as it comes:
    it has so many bytes at most for each of them, and no fewer where it is a file."""

    def do(server: Running, scale: float) -> None:
        count = max(int(entries * scale), 1)
        with Client(server.address) as client:
            port = int(client.call("CONFIG", "GET", "metrics-port")[1])
            for _ in range(count):
                client.call("XADD", "large", "*", "value", b"x" * size)
        whole = 0
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}&db=0&key=large") as answer:
            while piece := answer.read(MIB):
                whole += len(piece)
        assert 0 < whole <= count * most + MIB

    return do


_OF_PAGE: Final = tuple(
    Attack(name, title, page(entries, size, path, most), memory_mib=memory, of_page=True)
    for name, title, entries, size, path, most, memory in (
        ("export-10", "60 entries of 10 MB exported", 60, 10**7, "/export?", 10**7 + 100, 896),
        ("export-1", "300 entries of 1 MB exported", 300, 10**6, "/export?", 10**6 + 100, 512),
        ("search", "60 entries of 10 MB searched", 60, 10**7, "/stream?value=tea", 0, 896),
        ("letters", "60 letters of 10 MB filtered", 60, 10**7, "/letters?text=tea", 0, 896),
    )
)
"""The entries themselves take what their bytes are."""


def _all(groups: Iterable[Iterable[Attack]]) -> tuple[Attack, ...]:
    return tuple(attack for group in groups for attack in group)


ATTACKS: Final = _all([map(_heavy, HEAVY), _FRAMES, _SCRIPTS, _LIMITS, _ACCIDENTS, _OF_PAGE])
"""All of them, in the order of the table."""
