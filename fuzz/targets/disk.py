"""A server on a disk that loses power, tears writes, lies about fsync, or changes bits.

An input is the fault of the disk and the requests of a client, each of which is answered before
the next one is sent, with ``appendfsync always``. Then the power is cut, and a server is started
with what is left.

Invariants:

- While fsync is honest, nothing is lost that was acknowledged: when the server starts, it has what
  all answered requests have made, with or without the one that was under way.
- While fsync is honest and what was written last is missing or ends somewhere, the server starts.
- When sectors were written in another order, or with something else in them, the start may be
  refused, with the file, and with the offset if it is a file of data.
- When fsync lies and no file was replaced meanwhile, the server has what was there at some moment,
  or refuses to start.
- Bits that change lead to a refusal of one line, or to data that pass ``check()``; never to a
  traceback. A start that is refused leaves all files as they are.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from random import Random
from typing import Any, Final

from fuzz.disks import TEARS, Fault, LyingDisk, flip
from fuzz.requests import Requests, commands
from fuzz.sequences import Step, read, write
from fuzz.targets.base import Broken, require
from server.core.table import Command
from server.persistence.manager import PersistenceError
from tests.server.persistence.disks import TestDisk
from tests.server.persistence.rig import Rig
from tests.support.pictures import picture

LENGTH: Final = 20
"""How many requests there are at most."""

FOLDER: Final = "appendonlydir"
MANIFEST: Final = "appendonly.aof.manifest"

CLEAN: Final = ("nothing", "all", "prefix", "zeros")
"""Tears that leave whole what was synced, and behind it only an end."""

TIMEOUT_S: Final = 20.0

_FAULT: Final = re.compile(rb"#cut=(\d{1,4}) lie=(-1|\d{1,3}) tear=([a-z]+) flips=(\d{1,2}) (\d+)")

History = list[dict[int, Any]]
"""What there was after each request."""


def _waits_by_itself(command: Command) -> bool:
    return "blocking" in command.flags and not command.name.startswith("x")


class LosingDisk:
    """Lets servers live, and start again."""

    name = "disk"
    mutable = False
    policy = "always"
    """What ``appendfsync`` is; a test shows that others do not keep the invariants."""

    def __init__(self) -> None:
        # Readers of streams wait only if they are told to; the others would wait in vain.
        writers = [one for one in commands() if one.writes]
        self._commands = [one for one in writers if not _waits_by_itself(one)]

    def make(self, random: Random) -> bytes:
        """A fault, and requests."""
        kind = random.choice(("honest", "honest", "lie", "flips"))
        lie = random.randrange(20) if kind == "lie" else -1
        flips = random.randrange(1, 4) if kind == "flips" else 0
        head = (random.randrange(80), lie, random.choice(TEARS), flips, random.randrange(2**32))
        requests = Requests(random, self._commands)
        steps: list[Step] = []
        for _ in range(random.randrange(1, LENGTH)):
            chance = random.random()
            if chance < 0.04:
                steps.append((0, [b"SAVE"]))
            elif chance < 0.08:
                steps.append((random.choice((1, 1000)), []))
            elif chance < 0.15:
                inner = [(0, requests.one()) for _ in range(random.randrange(4))]
                steps += [(0, [b"MULTI"]), *inner, (0, [b"EXEC"])]
            else:
                steps.append((0, requests.one()))
        return b"#cut=%d lie=%d tear=%b flips=%d %d\n" % _encoded(head) + write(steps)

    def run(self, data: bytes) -> None:
        """Plays it."""
        fault, seed = _fault_of(data)
        steps = [step for step in read(data) if not _waits(step)]
        with tempfile.TemporaryDirectory() as folder:
            _Trial(Path(folder), fault, Random(seed), self.policy).run(steps)

    def close(self) -> None:
        """There is nothing to end."""


def _encoded(head: tuple[int, int, str, int, int]) -> tuple[int, int, bytes, int, int]:
    cut, lie, tear, flips, seed = head
    return cut, lie, tear.encode(), flips, seed


def _fault_of(data: bytes) -> tuple[Fault, int]:
    """What the first line says; a disk without faults if it says nothing."""
    found = _FAULT.match(data)
    if found is None or found[3].decode() not in TEARS:
        return Fault(9999, -1, "nothing", 0), 0
    return Fault(int(found[1]), int(found[2]), found[3].decode(), int(found[4])), int(found[5])


def _waits(step: Step) -> bool:
    """Whether a request may have to wait for others, who do not come."""
    return any(word.lower() == b"block" for word in step[1])


class _Trial:
    """One server, its end, and the next one."""

    def __init__(self, folder: Path, fault: Fault, random: Random, policy: str) -> None:
        self._folder = folder
        self._policy = policy
        self._fault = fault
        self._random = random
        self._disk = LyingDisk(fault)
        self._now_ms = 0
        self._raised: list[str] = []

    def run(self, steps: list[Step]) -> None:
        """Lets both servers live, and compares."""
        with asyncio.Runner() as runner:
            runner.get_loop().set_exception_handler(self._note)
            history = runner.run(self._first_life(steps))
            first = self._disk.survivors(self._random, self._folder / "first" / FOLDER)
            files = flip(self._random, first, self._fault.flips)
            found, refusal = runner.run(self._second_life(files))
        require(not self._raised, f"an exception: {self._raised}")
        if found is None:
            self._check_refusal(refusal, files)
        else:
            self._check_data(found, history)

    def _note(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._raised.append(f"{context.get('message')}: {context.get('exception')!r}")

    # --- lives -------------------------------------------------------------------------------

    async def _first_life(self, steps: list[Step]) -> History:
        """What there was after each request that was answered, and at the end."""
        (self._folder / "first").mkdir()
        rig = Rig(self._folder / "first", self._disk, appendfsync=self._policy)
        try:
            await rig.start()
        except PersistenceError:
            await rig.stop()
            return [{}, {}]
        self._now_ms = rig.now_ms
        history = await self._play(rig, steps)
        self._disk.cut_power()
        await rig.stop()
        self._now_ms = rig.now_ms
        return history

    async def _play(self, rig: Rig, steps: list[Step]) -> History:
        keyspace = rig.server.state.keyspace
        history = [_seen(keyspace)]
        for number, words in steps:
            if not words:
                rig.cron(number)
                await rig.disk_rests()
                continue
            try:
                reply = await asyncio.wait_for(rig.ask(*words), TIMEOUT_S)
            except TimeoutError:
                raise Broken(f"no reply: {words!r}"[:200]) from None
            if reply == "closed" or "Input/output error" in str(reply):
                break
            history.append(_seen(keyspace))
        return [*history, _seen(keyspace)]

    async def _second_life(self, files: dict[str, bytes]) -> tuple[dict[int, Any] | None, str]:
        """What a server has that starts with these files, or why it does not start."""
        folder = self._folder / "second" / FOLDER
        folder.mkdir(parents=True)
        for name, data in files.items():
            (folder / name).write_bytes(data)
        rig = Rig(self._folder / "second", TestDisk())
        rig.now_ms = self._now_ms or rig.now_ms
        try:
            await rig.start()
        except PersistenceError as error:
            await rig.stop()
            return None, str(error)
        rig.server.state.keyspace.check()
        found = _seen(rig.server.state.keyspace)
        require(await rig.ask("SET", "written", "again") == b"OK", "nothing can be written")
        await rig.stop()
        return found, ""

    # --- invariants --------------------------------------------------------------------------

    def _check_refusal(self, refusal: str, files: dict[str, bytes]) -> None:
        clean = self._fault.honest and self._fault.tear in CLEAN
        require(not clean, f"a start was refused: {refusal}")
        require("\n" not in refusal and refusal.isprintable(), f"not a line: {refusal!r}")
        placed = re.search(r"offset \d+", refusal) or MANIFEST in refusal or FOLDER in refusal
        require(bool(placed), f"no file and no offset: {refusal}")
        folder = self._folder / "second" / FOLDER
        left = {name: (folder / name).read_bytes() for name in files if "temp-" not in name}
        wanted = {name: files[name] for name in left}
        require(left == {**wanted, **_lock(left)}, "a start that was refused has changed a file")

    def _check_data(self, found: dict[int, Any], history: History) -> None:
        if self._fault.flips:
            return
        lasting = self._lasting(found)
        if self._fault.honest:
            wanted = [self._lasting(one) for one in history[-2:]]
            require(lasting in wanted, "something is lost that was acknowledged")
        elif not self._disk.renamed_since_lie and self._fault.tear in CLEAN:
            require(
                lasting in [self._lasting(one) for one in ({}, *history)],
                "there is what there never was",
            )

    def _lasting(self, found: dict[int, Any]) -> dict[int, Any]:
        """Without the keys that have expired."""
        left = {
            index: {
                key: value for key, value in keys.items() if not value[1] or value[1] > self._now_ms
            }
            for index, keys in found.items()
        }
        return {index: keys for index, keys in left.items() if keys}


def _lock(files: dict[str, bytes]) -> dict[str, bytes]:
    """The file that says who has opened the folder, which changes with each start."""
    return {name: data for name, data in files.items() if name.endswith(".lock")}


def _seen(keyspace: Any) -> dict[int, Any]:
    """The data but for the times at which consumers were seen, which are written once a second."""
    found = picture(keyspace)
    for keys in found.values():
        for value, _ in keys.values():
            for group in value["groups"].values() if isinstance(value, dict) else ():
                group["consumers"] = {
                    name: owned for name, (*_, owned) in group["consumers"].items()
                }
    return found
