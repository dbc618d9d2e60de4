"""A server without sockets that writes down what its commands do, as an append-only file would."""

from __future__ import annotations

from collections.abc import Sequence

from hiredis import Reader

from server.dispatch.reactions import Recorder
from server.persistence.loader import Loader
from server.state.session import Session
from storage.aof.encode_effects import EffectEncoder
from storage.aof.snapshot import snapshot
from storage.engine.effects import Effect
from tests.support.direct import Argument, Direct, DirectClient


class Recording:
    """A :class:`Direct` and the file of what is sent through :meth:`send`, a unit each time."""

    def __init__(self, direct: Direct | None = None) -> None:
        self.direct = direct or Direct()
        self.keyspace = self.direct.server.state.keyspace
        self.forms = EffectEncoder(self.keyspace)
        self.client: DirectClient = self.direct.client()
        self.out: list[bytes] = []
        self._effects: list[Effect] = []
        self._journal: Recorder | None = None
        """Who is told as well: what replicas are given is noted while there are any."""
        self._listen()
        self.forms.begin(self.out)

    def _listen(self) -> None:
        """Is told of effects, also where a command has just begun or ended a replication."""
        reactions = self.direct.server.services.reactions
        if reactions.record != self._record:
            self._journal, reactions.record = reactions.record, self._record

    def _record(self, effects: Sequence[Effect], session: Session | None) -> None:
        self._effects += effects
        if self._journal is not None:
            self._journal(effects, session)

    def send(self, *arguments: Argument) -> bytes | None:
        """The raw reply; what the command did is in the file."""
        reply = self.client.send(*arguments)
        self.close_unit()
        return reply

    def pass_time(self, milliseconds: int) -> None:
        """Lets time pass: keys expire, each as a unit of its own."""
        self.direct.advance(milliseconds)
        self.direct.cron()
        self.close_unit()

    def close_unit(self) -> None:
        """What has happened up to now goes into the file."""
        self.forms.append(self._effects, self.out)
        self._effects.clear()
        self._listen()

    def take(self) -> bytes:
        """What the file holds, which is then empty."""
        data = b"".join(self.out)
        self.out.clear()
        return data

    def contents(self) -> bytes:
        """What the file holds when the server stops."""
        self.forms.flush_seen(self.out)
        return b"".join(self.out)

    def rewritten(self) -> bytes:
        """The file that a rewrite would begin with."""
        return b"".join(snapshot(self.keyspace))


def commands_of(data: bytes) -> list[list[bytes]]:
    """The commands in a file."""
    reader = Reader()
    reader.feed(data)
    commands: list[list[bytes]] = []
    while (command := reader.gets()) is not False:
        commands.append(command)
    return commands


def readable(data: bytes) -> list[str]:
    """The commands in a file, each as a line of words."""
    return [
        " ".join(word.decode("latin-1") or "''" for word in command)
        for command in commands_of(data)
    ]


def load(direct: Direct, *files: bytes) -> None:
    """Loads files into a server."""
    loader = Loader(direct.server.state, direct.server.services.dispatcher)
    for data in files:
        loader.begin_file()
        for command in commands_of(data):
            loader.apply(command)
        assert loader.open_group == 0
    loader.finish()
