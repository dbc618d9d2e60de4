"""The files of a server, and what of them survives a loss of power.

A base of the append-only file is synced before the manifest names it, so what it holds is safe. Of
an increment only that is known to be safe which was there when everything was synced: the rest may
have been in the memory of the system.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

Loss = Literal["nothing", "unsynced", "everything"]
"""What a restart may lose."""


class Mark(NamedTuple):
    """What was there at a moment: the name of the base, if there was one, and what of it counts.

    ``safe`` says that everything was synced at that moment: the base holds what is to survive, and
    so do the first ``lengths`` bytes of the increments. Otherwise neither is to survive.
    """

    base: str
    safe: bool
    lengths: Mapping[str, int]


class DataFiles:
    """The files of a server with these settings, as CONFIG GET tells them.

    The server that uses them must have ended before they are changed.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        folder = Path(settings["dir"])
        self._folder = folder / settings["appenddirname"]
        self._manifest = self._folder / f"{settings['appendfilename']}.manifest"
        self._dump = folder / settings["dbfilename"] if settings["dbfilename"] else None

    def mark(self, *, safe: bool) -> Mark:
        """What there is now, which is ``safe`` or worthless."""
        base, increments = self._listed()
        paths = ((name, self._folder / name) for name in increments)
        lengths = {name: path.stat().st_size for name, path in paths} if safe else {}
        return Mark(base, safe, lengths)

    def cut(self, mark: Mark) -> None:
        """Leaves what survives a loss of power, if nothing was synced since the mark but the bases
        that were made later."""
        base, increments = self._listed()
        if not base or (base == mark.base and not mark.safe):
            self.remove()
            return
        for name in increments:
            path = self._folder / name
            os.truncate(path, min(mark.lengths.get(name, 0), path.stat().st_size))

    def remove(self) -> None:
        """Leaves nothing."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._dump is not None:
            self._dump.unlink(missing_ok=True)

    def _listed(self) -> tuple[str, list[str]]:
        """The base, empty if there is none, and the increments that the manifest names."""
        try:
            lines = self._manifest.read_text().splitlines()
        except FileNotFoundError:
            return "", []
        files = [shlex.split(line) for line in lines if line.startswith("file ")]
        bases = [words[1] for words in files if words[-1] == "b"]
        return "".join(bases), [words[1] for words in files if words[-1] == "i"]
