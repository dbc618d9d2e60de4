"""Starts with an append-only file, by kind of content: every server loads the same files.

Penstock has written them, as a server that clients work with. What a start without data takes is
taken off, so that what remains is what the commands cost.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.curves import Curve
from benchmarks.data import FIELDS, Data, entry_id
from benchmarks.driver import Client, LoadError, pack
from benchmarks.durability import kept
from benchmarks.loads import Load, Values
from benchmarks.servers import COMPILED, PENSTOCK, Running, find_program, with_options
from benchmarks.workloads import Target, Workload

MANY: Final = 1_000_000
SIZES: Final = (10_000, 100_000, MANY)
OPTIONS: Final = kept("no")
FOLDER: Final = "appendonlydir"

Requests = Callable[[int], Iterator[bytes]]
"""Packed requests that come to about so many commands in the file."""


@dataclass(frozen=True)
class Content:
    """What a file consists of. ``why`` tells why its target is missed, if it is."""

    name: str
    title: str
    requests: Requests
    most: float | None = 1.5
    why: str = ""


# --- what clients do -------------------------------------------------------------------------

_SCRIPT: Final = """\
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('XADD', KEYS[2], ARGV[2], 'value', ARGV[1])
"""
_AT_ONCE: Final = 10
"""How many entries a consumer reads at once."""

EACH_COMMAND: Final = (
    "a command is a list of byte strings, an entry is added to its stream's block as a client's is:"
    " the time goes to allocating and freeing objects and to looking keys up, no function of"
    " Penstock takes more than some percent of it"
)


def _entries(commands: int) -> Iterator[bytes]:
    for number in range(commands):
        yield pack("XADD", "s", entry_id(number), *FIELDS)


def _groups(commands: int) -> Iterator[bytes]:
    """Of ten entries there are 15 commands: they are added, delivered in a transaction, and
    acknowledged."""
    yield pack("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    for first in range(0, commands * _AT_ONCE // 15, _AT_ONCE):
        identities = [entry_id(first + place) for place in range(_AT_ONCE)]
        for identity in identities:
            yield pack("XADD", "s", identity, *FIELDS)
        yield pack("XREADGROUP", "GROUP", "g", "c", "COUNT", _AT_ONCE, "STREAMS", "s", ">")
        yield pack("XACK", "s", "g", *identities)


def _transactions(commands: int) -> Iterator[bytes]:
    for number in range(commands // 4):
        yield pack("MULTI")
        yield pack("SET", f"key:{number}", "value")
        yield pack("SET", f"other:{number}", "value")
        yield pack("EXEC")


def _transaction(commands: int) -> Iterator[bytes]:
    yield pack("MULTI")
    for number in range(commands):
        yield pack("SET", f"key:{number}", "value")
    yield pack("EXEC")


def _scripts(commands: int) -> Iterator[bytes]:
    for number in range(commands // 4):
        words = (f"key:{number}", "s", "value", entry_id(number))
        yield pack("EVAL", _SCRIPT, 2, *words)


def _policies(commands: int) -> Iterator[bytes]:
    """Every other entry becomes a dead letter, and the rest is deleted once it is acknowledged."""
    policies = ("ack-wait", 600_000, "max-deliveries", 5, "dead-letter", "dead")
    yield pack("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM")
    yield pack("PENSTOCK", "POLICY", "SET", "s", "GROUP", "g", *policies)
    yield pack("PENSTOCK", "POLICY", "SET", "s", "delete", "acked")
    for number in range(0, commands // 14, 2):
        good, bad = entry_id(number), entry_id(number + 1)
        yield pack("XADD", "s", good, *FIELDS)
        yield pack("XADD", "s", bad, *FIELDS)
        yield pack("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "STREAMS", "s", ">")
        yield pack("XACK", "s", "g", good)
        yield pack("XNACK", "s", "g", "FATAL", "IDS", 1, bad)


def _strings(commands: int) -> Iterator[bytes]:
    for number in range(commands // 5):
        key = f"key:{number}"
        yield pack("SET", key, "value")
        yield pack("INCR", f"counter:{number % 1000}")
        yield pack("APPEND", f"text:{number % 100_000}", "more")
        yield pack("PEXPIREAT", key, 4_000_000_000_000)
        yield pack("DEL", f"key:{number - 100}" if number % 2 else f"none:{number}")


def _streams(commands: int) -> Iterator[bytes]:
    for number in range(commands):
        yield pack("XADD", f"s:{number * 7 % 20_000}", entry_id(number), "field", "value")


CONTENTS: Final = (
    Content("xadd", "XADD to one stream", _entries),
    Content("groups", "groups at work: XADD, deliveries, XACK", _groups),
    Content("transactions", "transactions of two SET", _transactions),
    Content("transaction", "one transaction of SET", _transaction),
    Content("scripts", "what scripts did: SET and XADD", _scripts, why=EACH_COMMAND),
    Content(
        "policies", "policies: dead letters, entries deleted when acknowledged", _policies, None
    ),
    Content("strings", "strings: SET, INCR, APPEND, PEXPIREAT, DEL", _strings),
    Content("streams", "XADD to 20,000 streams in turns", _streams, why=EACH_COMMAND),
)

# --- the files -------------------------------------------------------------------------------


@functools.cache
def _root() -> Path:
    """Where files are kept while this process measures."""
    folder = tempfile.mkdtemp(prefix="benchmark-loading-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def files(content: Content, commands: int) -> Path:
    """The folder of an append-only file, which a server has left that was killed."""
    folder = _root() / f"{content.name}-{commands}"
    with Running(with_options(PENSTOCK, OPTIONS)) as server:
        with Client(server.address) as client:
            client.feed(content.requests(commands))
        server.kill()
        shutil.copytree(server.folder / FOLDER, folder)
    return folder


def _start(server: Running, folder: Path | None) -> int:
    """The nanoseconds of CPU time that a start takes with the files of a folder, or without any."""
    server.kill()
    shutil.rmtree(server.folder / FOLDER, ignore_errors=True)
    if folder is not None:
        shutil.copytree(folder, server.folder / FOLDER)
    server.restart()
    return server.cpu_ns()


def _least(measure: Callable[[], int], commands: int) -> int:
    """The least of some measurements, more of them where there are few commands: what else a
    machine does only adds to it."""
    return min(measure() for _ in range(10 if commands <= SIZES[0] else 2))


@dataclass(frozen=True, kw_only=True)
class Replay(Load):
    """A start with a file of this content."""

    content: Content

    def possible(self, data: Data) -> int:
        """As many as the data says."""
        return data.commands

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What a command cost."""
        source, commands = files(self.content, data.commands), data.commands
        empty = _least(lambda: _start(server, None), commands)
        cost = _least(lambda: _start(server, source), commands)
        with Client(server.address) as client:
            if not client.call("DBSIZE"):
                raise LoadError("the server has loaded nothing")
        return _values(cost - empty, commands)


@dataclass(frozen=True, kw_only=True)
class Check(Load):
    """A check of such a file without a server, by the program that comes with the server."""

    content: Content

    def possible(self, data: Data) -> int:
        """As many as the data says."""
        return data.commands

    def run(self, server: Running, data: Data, units: int) -> Values:
        """What a command cost."""
        source, commands = files(self.content, data.commands), data.commands
        _start(server, None)
        cost = _least(lambda: _checked(server, source), commands)
        empty = _least(lambda: _checked(server, server.folder / FOLDER), commands)
        return _values(cost - empty, commands)


def _checked(server: Running, folder: Path) -> int:
    """The nanoseconds of CPU time that a check takes."""
    manifest = str(folder / "appendonly.aof.manifest")
    program = find_program(f"{server.kind.name}-check-aof")
    command = [program or str(COMPILED), *(() if program else ("-m", "penstock", "check-aof"))]
    # Not in the folder of the sources, which would be imported in place of what is installed.
    process = subprocess.Popen([*command, manifest], stdout=subprocess.DEVNULL, cwd=server.folder)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise LoadError(f"the check ended with status {process.returncode}")
    return int((used.ru_utime + used.ru_stime) * 1e9)


def _values(nanoseconds: int, commands: int) -> Values:
    """The cost of a command; that of few of them may be lost in what a start varies by."""
    cost = max(nanoseconds, 1)
    return {
        "units": commands,
        "cpu_us": cost / 1000 / commands,
        "per_second": commands / (cost / 1e9),
    }


LOADING: Final = tuple(
    Workload(
        f"load-{content.name}",
        f"loading 1,000,000 commands: {content.title}",
        Replay(amount=MANY, content=content),
        (Target("cpu_us", content.most, why=content.why),) if content.most else (),
        Data(commands=MANY),
        rounds=3,
        options=OPTIONS,
    )
    for content in CONTENTS
)
"""What each kind of content costs."""

GROWING: Final = Curve(
    "curve-loading",
    "commands in the file",
    "commands",
    tuple(Data(commands=size) for size in SIZES),
    {
        **{content.title: Replay(amount=MANY, content=content) for content in CONTENTS},
        "check-aof: transactions of two SET": Check(amount=MANY, content=CONTENTS[2]),
    },
    options=OPTIONS,
)
"""How that grows with the number of commands."""
