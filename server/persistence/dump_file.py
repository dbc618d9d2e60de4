"""The RDB file that SAVE and BGSAVE write beside the base, for other servers and for tools.

It is made if ``dbfilename`` names it, in the form of Redis 7.0, which all later servers load. The
base holds more (:mod:`storage.rdb.write`), so the file is loaded only where there is no base.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from server.road.state import ServerState
from server.runtime.version import REDIS_VERSION
from storage.aof.disk import Disk
from storage.rdb import codes
from storage.rdb.write import write_rdb


class DumpFile:
    """The file at ``path``, which is written under another name first."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self.path = os.path.join(folder, name)
        self.temporary = os.path.join(folder, f"temp-{name}")

    @classmethod
    def wanted(cls, state: ServerState) -> DumpFile | None:
        """The file that the settings ask for, if they do."""
        name = state.config.dbfilename
        return cls(state.config.dir, name) if name else None

    def chunks(self, state: ServerState) -> Iterator[bytes]:
        """What is to be in it."""
        aux = [
            (b"redis-ver", REDIS_VERSION.encode()),
            (b"redis-bits", b"64"),
            (b"ctime", b"%d" % (state.clock() // 1000)),
        ]
        return write_rdb(state.keyspace, version=codes.REDIS_7_0, aux=aux)

    def install(self, disk: Disk) -> None:
        """Puts what was written in its place, durably; raises :class:`OSError`."""
        disk.rename(self.temporary, self.path)
        disk.sync_folder(self._folder)

    def discard(self, disk: Disk) -> None:
        """Removes what was written, if anything was."""
        with contextlib.suppress(OSError):
            disk.unlink(self.temporary)
