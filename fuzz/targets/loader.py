"""Files of the append-only file, as they were written or damaged.

Invariants:

- A file is loaded whole, or up to a torn tail, or refused with an offset within it and a text of
  one line.
- What was loaded passes ``check()``, and a rewrite of it loads to the same data.
- Of a file that was only cut short, everything in front of the cut is loaded, and nothing is
  called damaged.
- No other exception is raised, and no file takes long.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from fuzz.mutate import mutated
from fuzz.requests import Requests, commands
from fuzz.targets.base import require
from server.persistence.loader import Loader as CommandLoader
from server.persistence.loader import Replay
from storage.aof.check import Findings, check_file
from storage.aof.disk import Disk
from storage.aof.snapshot import snapshot
from tests.support.direct import Direct
from tests.support.pictures import picture
from tests.support.recording import Recording, load

LENGTH = 30
"""How many requests a file is made from at most."""

CUT = b"CUT"
"""What an input ends with that is a file cut short, and nothing else."""


class Loader:
    """Loads files."""

    name = "loader"
    mutable = True

    def __init__(self) -> None:
        self._commands = [one for one in commands() if one.writes]
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "file.aof"

    def make(self, random: Random) -> bytes:
        """What a server has written, or that with changes."""
        recording = Recording()
        requests = Requests(random, self._commands)
        for _ in range(random.randrange(1, LENGTH)):
            if not recording.client.parked:
                recording.send(*requests.one())
        data = recording.contents()
        kind = random.random()
        if kind < 0.1:
            return data
        if kind < 0.3:
            return data[: random.randrange(len(data) + 1)] + CUT
        return mutated(random, data, [])

    def run(self, data: bytes) -> None:
        """Loads a file, and looks at what came of it."""
        cut = data.endswith(CUT)
        data = data.removesuffix(CUT)
        self._path.write_bytes(data)
        direct = Direct()
        state = direct.server.state
        loader = CommandLoader(state, direct.server.services.dispatcher)
        findings = check_file(str(self._path), Disk(), replay=Replay(state, loader))
        self._check_findings(findings, data)
        require(not (cut and findings.damage), f"a cut was called damage: {findings.damage}")
        if findings.damage:
            return
        loader.finish()
        self._check_data(direct)

    def _check_findings(self, findings: Findings, data: bytes) -> None:
        require(findings.size == len(data), "the size is wrong")
        if findings.damage:
            require("\n" not in findings.damage, "an error of several lines")
            require(0 <= findings.offset <= len(data), "an offset outside of the file")
        if findings.tail is not None:
            require(findings.tail.offset + findings.tail.size == len(data), "a tail elsewhere")

    def _check_data(self, direct: Direct) -> None:
        keyspace = direct.server.state.keyspace
        keyspace.check()
        again = Direct()
        load(again, b"".join(snapshot(keyspace)))
        require(
            picture(again.server.state.keyspace) == picture(keyspace),
            "a rewrite leads to other data",
        )

    def close(self) -> None:
        """Removes the file."""
        self._folder.cleanup()
